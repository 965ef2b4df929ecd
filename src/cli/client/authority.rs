//! What `--ca` names: certificates that can be gone by, all of them.
//!
//! Deliberately absent: whom a connection then trusts, which is `trust.rs`'s. It passes over what it cannot use, and who
//! gave one certificate more than counts would hear of it as an unknown issuer.

use std::path::Path;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::super::Failure;
use crate::limits;
use crate::os::files;
use crate::policy::plain;

/// Can every certificate of the file be gone by?
pub(super) fn examine(path: &Path) -> Result<(), Failure> {
    // Standard input can be read once, and is when it is used.
    if path.as_os_str() == "-" {
        return Ok(());
    }
    let bad = |why: &str| Failure(format!("{}: {why}", path.display()));
    let bytes =
        files::read_bounded(path, limits::WORKSPACE_FILE.bytes_max).map_err(|error| bad(&plain(&error)))?;
    let mut store = RootCertStore::empty();
    for (n, certificate) in (1..).zip(CertificateDer::pem_slice_iter(&bytes)) {
        let certificate = certificate.map_err(|_| bad(&format!("its certificate {n} is not in PEM form")))?;
        store.add(certificate).map_err(|_| bad(&format!("its certificate {n} cannot be read")))?;
    }
    if store.is_empty() { Err(bad("has no certificate in PEM form")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_junk_in_it_is_refused_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut command = std::process::Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-subj", "/CN=ca", "-keyout"]).arg(path("ca.key")).arg("-out").arg(path("ca.pem"));
        assert!(command.output().unwrap().status.success());
        let good = std::fs::read_to_string(path("ca.pem")).unwrap();
        let check = |text: &str, expected: Option<&str>| {
            let file = path("tried.pem");
            files::replace_public(&file, text.as_bytes()).unwrap();
            let why = examine(&file).err().map(|Failure(why)| why);
            let expected = expected.map(|expected| format!("{}: {expected}", file.display()));
            assert_eq!(why, expected, "{text}");
        };
        let junk = "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n";
        check(&good, None);
        check(&format!("who it is\n{good}{good}"), None);
        check(junk, Some("its certificate 1 cannot be read"));
        check(&format!("{good}{junk}"), Some("its certificate 2 cannot be read"));
        check(
            &format!("{good}{}", junk.replace("anVuaw==", "%%")),
            Some("its certificate 2 is not in PEM form"),
        );
        check("junk", Some("has no certificate in PEM form"));
    }
}
