//! TLS to a database: the certificate is verified, and so is the name in it.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::limits;
use crate::os::files;

/// The files that a URL names; what the public authorities sign is trusted where it names none.
#[derive(Debug, Clone, Default)]
pub(super) struct TlsFiles {
    pub(super) roots: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) private_key: Option<PathBuf>,
}

/// How connections are encrypted.
#[derive(Debug, Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn new(files: &TlsFiles) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        match &files.roots {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let mut config = match (&files.certificate, &files.private_key) {
            (Some(certificate), Some(private_key)) => {
                let shown = private_key.display();
                let key = files::read_private(private_key, limits::WORKSPACE_FILE.bytes_max)
                    .map(zeroize::Zeroizing::new)
                    .map_err(|error| format!("{shown}: {error}"))?;
                let key = PrivateKeyDer::from_pem_slice(&key)
                    .map_err(|error| format!("{shown} has no private key: {error}"))?;
                builder
                    .with_client_auth_cert(certificates(certificate)?, key)
                    .map_err(|error| format!("{} and {shown}: {error}", certificate.display()))?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err("names one of sslcert and sslkey without the other".to_owned()),
        };
        // What a server that takes TLS from the first byte on asks for; others do not look at it.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{}: {error}", path.display()))?;
    if found.is_empty() { Err(format!("{} has no certificate", path.display())) } else { Ok(found) }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, InvalidDnsNameError> {
        let name = ServerName::try_from(domain)?.to_owned();
        Ok(Handshake { connector: TlsConnector::from(self.0.clone()), name })
    }
}

/// A handshake with one server.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, socket).await.map(Encrypted) })
    }
}

/// A stream that tokio-postgres takes.
pub(super) struct Encrypted(Stream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
