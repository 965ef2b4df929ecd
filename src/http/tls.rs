//! TLS, when there is a certificate; clients may have to show one of their own.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::limits;
use crate::os::files;
use crate::settings::{ClientCertificates, Tls};

/// What is needed to accept TLS; nothing if no certificate is configured. Paths are relative to the workspace.
pub(super) fn acceptor(tls: &Tls, workspace: &Path) -> Result<Option<TlsAcceptor>, String> {
    let (Some(certificate), Some(private_key)) = (&tls.certificate, &tls.private_key) else {
        return Ok(None);
    };
    let chain = certificates("certificate", &workspace.join(certificate));
    let key = private_key_of(&workspace.join(private_key));
    let (chain, key) = match (chain, key) {
        (Ok(chain), Ok(key)) => (chain, key),
        (Err(why), Ok(_)) | (Ok(_), Err(why)) => return Err(why),
        // Whoever mends one is not sent back for the other.
        (Err(one), Err(other)) => return Err(format!("{one}; {other}")),
    };
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match (&tls.client_ca, tls.client_certificates) {
        (Some(path), ClientCertificates::Optional | ClientCertificates::Required) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("client_ca", &workspace.join(path))? {
                roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match tls.client_certificates {
                ClientCertificates::Required => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| format!("{} and {}: {error}", certificate.display(), private_key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

/// The certificates that a setting names.
fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |why: String| format!("[tls] {setting}: {}: {why}", path.display());
    let bytes = files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max)
        .map_err(|error| bad(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| bad(error.to_string()))?;
    if found.is_empty() { Err(bad("has no certificate".to_owned())) } else { Ok(found) }
}

fn private_key_of(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bad = |why: String| format!("[tls] private_key: {}: {why}", path.display());
    let key = files::read_private(path, limits::WORKSPACE_FILE.bytes_max)
        .map(zeroize::Zeroizing::new)
        .map_err(|error| bad(error.to_string()))?;
    PrivateKeyDer::from_pem_slice(&key).map_err(|error| bad(format!("has no private key: {error}")))
}
