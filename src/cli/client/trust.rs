//! TLS as a client sees it: whom it trusts, and what it shows of itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{AlertDescription, ClientConfig, RootCertStore};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::super::{Failure, read_input};
use crate::gateway::Files;
use crate::http::{Certificate as Told, NoPair, no_pair};
use crate::limits;
use crate::os::files;
use crate::settings::Effective;

/// What a connection goes by.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Nobody but these; nothing for those that everybody trusts.
    roots: Option<RootCerts>,
    shown: Option<ClientCert>,
}

impl Trust {
    pub(super) fn new(roots: Option<&Path>, shown: Option<ClientCert>) -> Result<Self, Failure> {
        let roots = roots.map(certificates).transpose()?;
        Ok(Self { roots: roots.map(|found| RootCerts::new_with_certs(&found)), shown })
    }

    pub(super) fn shows_certificate(&self) -> bool {
        self.shown.is_some()
    }

    pub(super) fn config(self) -> TlsConfig {
        let tls = TlsConfig::builder().client_cert(self.shown);
        match self.roots {
            Some(roots) => tls.root_certs(roots).build(),
            None => tls.build(),
        }
    }
}

/// The certificate with which the workspace's gateway shows itself: what it says itself while it runs, and until it has said so
/// what the settings name.
pub(super) fn own_certificate(root: &Path) -> Option<PathBuf> {
    let served = Files::of(root).served_certificate();
    if served.is_file() {
        return Some(served);
    }
    let tls = Effective::load(root, Vec::new()).ok()?.settings.tls;
    tls.certificate.map(|path| root.join(path))
}

/// What it says of itself.
pub(super) fn told(certificate: &Path) -> Option<Told> {
    let bytes = files::read_bounded(certificate, limits::WORKSPACE_FILE.bytes_max).ok()?;
    Told::read(&CertificateDer::from_pem_slice(&bytes).ok()?)
}

/// What a client shows of itself: from flags, or else from the environment.
pub(super) fn shown(cert: Option<&Path>, key: Option<&Path>) -> Result<Option<ClientCert>, Failure> {
    let named = |path: Option<&Path>, variable: &str| {
        let set = || std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        path.map(Path::to_owned).or_else(set)
    };
    let (cert, key) = match (named(cert, "HANDOFFD_CERT"), named(key, "HANDOFFD_KEY")) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        _ => return Err(Failure::new("--cert and --key (or HANDOFFD_CERT and HANDOFFD_KEY) go together")),
    };
    let chain = certificates(&cert)?;
    let bad = |why: String| Failure(format!("{}: {why}", key.display()));
    let bytes = files::read_private(&key, limits::WORKSPACE_FILE.bytes_max)
        .map(zeroize::Zeroizing::new)
        .map_err(|error| bad(error.to_string()))?;
    let none = || bad("has no private key in PEM form".to_owned());
    let private = PrivateKey::from_pem(&bytes).map_err(|_| none())?;
    let der = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| none())?;
    try_on(&chain, der).map_err(|error| {
        let (NoPair { why, fix, .. }, cert, key) = (no_pair(&error), cert.display(), key.display());
        Failure(format!(
            "the certificate {cert} and the key {key} cannot be shown to a gateway: {why}; {fix}"
        ))
    })?;
    Ok(Some(ClientCert::new_with_certs(&chain, private)))
}

/// Would the TLS library take them? The HTTP client takes for granted that it does, and panics where it does not.
fn try_on(chain: &[Certificate<'static>], key: PrivateKeyDer<'static>) -> Result<(), rustls::Error> {
    let chain = chain.iter().map(|one| CertificateDer::from(one.der().to_vec())).collect();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_client_auth_cert(chain, key)
        .map(drop)
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let bytes = read_input(path, limits::WORKSPACE_FILE.bytes_max)?;
    let found: Vec<_> = parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return Err(Failure(format!("{}: has no certificate in PEM form", path.display())));
    }
    Ok(found)
}

/// Why there is no answer, if TLS is.
pub(super) enum Shut {
    /// What the other side does about our certificate.
    Ours(&'static str),
    /// Why we do not trust its.
    Theirs(String),
}

impl Shut {
    pub(super) fn of(error: &ureq::Error) -> Option<Self> {
        let fault = match error {
            ureq::Error::Rustls(fault) => fault,
            ureq::Error::Tls(why) => return Some(Self::Theirs((*why).to_owned())),
            // What is found out while the connection is used comes as an error of reading or writing.
            ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
            _ => return None,
        };
        Some(match fault {
            rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
                Self::Ours("asks for a client certificate")
            }
            rustls::Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::DecryptError,
            ) => Self::Ours("does not take the client certificate"),
            fault => Self::Theirs(fault.to_string()),
        })
    }
}
