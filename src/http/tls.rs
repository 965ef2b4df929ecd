//! TLS, when there is a certificate; clients may have to show one of their own.
//!
//! The files are read again when they change and on SIGHUP: all of them are in force, or those before them stay, and
//! `/readyz` says why. Connections that are open keep what they were opened with. `memory/served.pem` has the certificate in
//! force, so that commands on this machine know what to trust whatever the files say by now.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig};

use super::certificate::Certificate;
use crate::limits;
use crate::os::files::{self, Stamp};
use crate::proof::to_base64url;
use crate::settings::{ClientCertificates, Tls};
use crate::timestamp::Timestamp;

/// Something about the certificates that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFault {
    pub(crate) why: String,
    pub(crate) fix: String,
}

/// The certificates in force.
#[derive(Debug)]
pub(crate) struct Certificates {
    tls: Tls,
    workspace: PathBuf,
    loaded: Mutex<Arc<Loaded>>,
    looked: Mutex<Looked>,
    /// Somebody wants the files read again, whether they changed or not.
    asked: AtomicBool,
}

/// What the files came to.
#[derive(Debug)]
pub(crate) struct Loaded {
    config: Arc<ServerConfig>,
    /// How it is shown to those who trust nothing else.
    pem: String,
    /// What the gateway's own certificate says; nothing if it cannot be read.
    pub(crate) own: Option<Certificate>,
}

/// The files as they were looked at last.
#[derive(Debug, Default)]
struct Looked {
    read: [Option<Stamp>; 3],
    last: [Option<Stamp>; 3],
    /// Why the files are not in force, if they are not.
    faults: Vec<TlsFault>,
}

/// What a look at the files came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    Same,
    Changed,
    Failed,
}

impl Certificates {
    /// Reads them; nothing if no certificate is configured. Paths are relative to the workspace.
    pub(super) fn open(tls: &Tls, workspace: &Path) -> Result<Option<Arc<Self>>, Vec<TlsFault>> {
        if tls.certificate.is_none() {
            return Ok(None);
        }
        // Before they are read: what changes meanwhile is read again.
        let stamps = stamps(tls, workspace);
        let loaded = Mutex::new(Arc::new(load(tls, workspace)?));
        let looked = Looked { read: stamps, last: stamps, faults: Vec::new() };
        let (tls, workspace) = (tls.clone(), workspace.to_owned());
        Ok(Some(Arc::new(Self {
            tls,
            workspace,
            loaded,
            looked: Mutex::new(looked),
            asked: AtomicBool::new(false),
        })))
    }

    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        lock(&self.loaded).clone()
    }

    /// For a connection that is opened now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.loaded().config.clone())
    }

    /// Has the files read again at the next look.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Reads the files if they have changed and are quiet since the last look, or if somebody asked.
    pub(crate) fn look(&self) -> Renewed {
        let now = stamps(&self.tls, &self.workspace);
        let mut looked = lock(&self.looked);
        // Certificate and key are replaced one after the other.
        let is_quiet = std::mem::replace(&mut looked.last, now) == now;
        if !self.asked.swap(false, Ordering::AcqRel) && (now == looked.read || !is_quiet) {
            return Renewed::Same;
        }
        let is_new = std::mem::replace(&mut looked.read, now) != now;
        match load(&self.tls, &self.workspace) {
            Ok(loaded) => {
                looked.faults.clear();
                *lock(&self.loaded) = Arc::new(loaded);
                if is_new { Renewed::Changed } else { Renewed::Same }
            }
            Err(faults) => {
                looked.faults = faults;
                Renewed::Failed
            }
        }
    }

    /// What is wrong: files that are not in force, and what is in force but not for long.
    pub(crate) fn faults(&self, now: Timestamp) -> Vec<TlsFault> {
        let mut faults = lock(&self.looked).faults.clone();
        for fault in &mut faults {
            fault.why.push_str("; the certificate before it stays in force");
        }
        faults.extend(self.loaded().own.as_ref().and_then(|own| validity(own, now)));
        faults
    }

    /// Leaves the certificate in force for the commands on this machine.
    pub(crate) fn show_at(&self, path: &Path) -> std::io::Result<()> {
        files::replace_public(path, self.loaded().pem.as_bytes())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a link leads counts: whoever renews certificates may move only that.
fn stamps(tls: &Tls, workspace: &Path) -> [Option<Stamp>; 3] {
    [&tls.certificate, &tls.private_key, &tls.client_ca]
        .map(|path| std::fs::metadata(workspace.join(path.as_ref()?)).ok().map(Stamp::from))
}

/// Reads what the settings name, all of it.
pub(crate) fn load(tls: &Tls, workspace: &Path) -> Result<Loaded, Vec<TlsFault>> {
    let at = |path: &Option<PathBuf>| workspace.join(path.as_deref().unwrap_or(Path::new("")));
    let (certificate, private_key) = (at(&tls.certificate), at(&tls.private_key));
    let wants_theirs = tls.client_certificates != ClientCertificates::Off;
    let chain = certificates("certificate", &certificate);
    let key = private_key_of(&private_key);
    let theirs = if wants_theirs { certificates("client_ca", &at(&tls.client_ca)) } else { Ok(Vec::new()) };
    let (chain, key, theirs) = match (chain, key, theirs) {
        (Ok(chain), Ok(key), Ok(theirs)) => (chain, key, theirs),
        // Whoever mends one is not sent back for the other.
        (chain, key, theirs) => {
            return Err([chain.err(), key.err(), theirs.err()].into_iter().flatten().collect());
        }
    };
    let own = chain.first().and_then(|first| Certificate::read(first));
    let pem = chain.iter().map(|one| to_pem(one)).collect();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(
            |error| vec![fault(error.to_string(), "report it: the TLS library refuses its own defaults")],
        )?;
    let builder = if wants_theirs {
        let is_required = tls.client_certificates == ClientCertificates::Required;
        let verifier = verifier(provider, theirs, is_required).map_err(|why| {
            let why = format!("[tls] client_ca: {}: {why}", at(&tls.client_ca).display());
            vec![fault(why, "give the certificate of the authority that signs those of your callers, PEM")]
        })?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        let NoPair { of, why, fix } = no_pair(&error);
        let (certificate, private_key) = (certificate.display(), private_key.display());
        let of = match of {
            OfPair::Key => format!("[tls] private_key: {private_key}"),
            OfPair::Certificate => format!("[tls] certificate: {certificate}"),
            OfPair::Both => format!("[tls] {certificate} and {private_key}"),
        };
        vec![fault(format!("{of}: {why}"), fix)]
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Loaded { config: Arc::new(config), pem, own })
}

/// Why a certificate and a key cannot be shown to anybody, and what to do.
pub(crate) struct NoPair {
    of: OfPair,
    pub(crate) why: String,
    pub(crate) fix: &'static str,
}

/// The file that is not right.
enum OfPair {
    Certificate,
    Key,
    Both,
}

/// What the TLS library has against them, in words.
pub(crate) fn no_pair(error: &Error) -> NoPair {
    let of_pair = |of, why: String, fix| NoPair { of, why, fix };
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => of_pair(
            OfPair::Key,
            "it is not the key of the certificate".to_owned(),
            "put both of one pair in place; the key must be that of the first certificate in the file",
        ),
        error if is_old(error) => of_pair(
            OfPair::Certificate,
            "it is X.509 v1, which TLS does not take".to_owned(),
            "make a v3 one: have it signed with an extension such as subjectAltName (openssl x509 -req -extfile FILE)",
        ),
        Error::InvalidCertificate(_) => of_pair(
            OfPair::Certificate,
            error.to_string(),
            "give a certificate of X.509 v3 in PEM form, as whoever signed it gave it",
        ),
        error => of_pair(
            OfPair::Both,
            error.to_string(),
            "use a certificate with a key of ECDSA P-256, RSA or Ed25519",
        ),
    }
}

/// Is it a certificate of X.509 v1 or v2 that was refused? The library names that only where it is shown to programmers.
fn is_old(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    format!("{other:?}").contains("UnsupportedCertVersion")
}

fn verifier(
    provider: Arc<CryptoProvider>,
    theirs: Vec<CertificateDer<'static>>,
    is_required: bool,
) -> Result<Arc<dyn tokio_rustls::rustls::server::danger::ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in theirs {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = if is_required { verifier } else { verifier.allow_unauthenticated() };
    verifier.build().map_err(|error| error.to_string())
}

/// What is wrong with the time for which a certificate counts.
pub(crate) fn validity(certificate: &Certificate, now: Timestamp) -> Option<TlsFault> {
    let Certificate { not_before, not_after, .. } = certificate;
    let left_s = not_after.seconds_since(now);
    // A certificate that was made for a day is not near its end when it is new.
    let soon_s = (not_after.seconds_since(*not_before) / 3).min(limits::CERTIFICATE_SOON_S);
    let why = if now < *not_before {
        format!("[tls] certificate: it does not count before {not_before}; callers refuse it")
    } else if left_s <= 0 {
        format!("[tls] certificate: it has expired on {not_after}; callers refuse it")
    } else if left_s < soon_s {
        format!("[tls] certificate: it expires on {not_after}")
    } else {
        return None;
    };
    let fix = if now < *not_before {
        "set the clock, or wait"
    } else {
        "put a new certificate and its key in place; a running gateway takes them up by itself"
    };
    Some(fault(why, fix))
}

fn fault(why: String, fix: &str) -> TlsFault {
    TlsFault { why, fix: fix.to_owned() }
}

/// The certificates that a setting names.
fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let bad = |why: String| {
        let fix =
            format!("make {} a PEM file with a certificate that the daemon's user can read", path.display());
        fault(format!("[tls] {setting}: {}: {why}", path.display()), &fix)
    };
    let bytes = files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max)
        .map_err(|error| bad(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| bad(error.to_string()))?;
    if found.is_empty() { Err(bad("has no certificate".to_owned())) } else { Ok(found) }
}

fn private_key_of(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    let bad = |why: String| {
        let fix = format!(
            "make {} a PEM file with the certificate's key, for the daemon's user alone: chmod 600",
            path.display()
        );
        fault(format!("[tls] private_key: {}: {why}", path.display()), &fix)
    };
    let key = files::read_private(path, limits::WORKSPACE_FILE.bytes_max)
        .map(zeroize::Zeroizing::new)
        .map_err(|error| bad(error.to_string()))?;
    PrivateKeyDer::from_pem_slice(&key).map_err(|error| bad(format!("has no private key: {error}")))
}

fn to_pem(certificate: &[u8]) -> String {
    let mut text = to_base64url(certificate).replace('-', "+").replace('_', "/");
    text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn make_pair(directory: &Path) {
        let mut command = Command::new("openssl");
        command.current_dir(directory).args(["req", "-x509", "-nodes", "-newkey", "ec"]);
        command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]);
        command.args(["-keyout", "tls.key", "-out", "tls.pem"]);
        assert!(command.output().unwrap().status.success());
        assert!(
            Command::new("chmod").current_dir(directory).args(["600", "tls.key"]).status().unwrap().success()
        );
    }

    #[test]
    fn files_that_change_are_taken_up_when_they_are_quiet_and_whenever_somebody_asks() {
        let directory = tempfile::tempdir().unwrap();
        make_pair(directory.path());
        let (certificate, private_key) = (Some("tls.pem".into()), Some("tls.key".into()));
        let tls = Tls { certificate, private_key, ..Tls::default() };
        let certificates = Certificates::open(&tls, directory.path()).unwrap().unwrap();
        let first = certificates.loaded().pem.clone();
        assert_eq!(certificates.look(), Renewed::Same);

        make_pair(directory.path());
        assert_eq!(certificates.look(), Renewed::Same, "they may be changing still");
        assert_eq!(certificates.look(), Renewed::Changed);
        let second = certificates.loaded().pem.clone();
        assert_ne!(first, second);
        let file = std::fs::read_to_string(directory.path().join("tls.pem")).unwrap();
        assert_eq!(second, file, "it is shown as it was given");

        std::fs::remove_file(directory.path().join("tls.key")).unwrap();
        certificates.ask();
        assert_eq!(certificates.look(), Renewed::Failed);
        assert_eq!(certificates.look(), Renewed::Same, "nothing has changed since");
        assert_eq!(certificates.loaded().pem, second);
        let faults = certificates.faults(crate::os::clock::now());
        assert!(faults.len() == 1 && faults[0].why.contains("tls.key"), "{faults:?}");
    }
}
