//! TLS, with certificates that the test makes.

use std::io::{BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use super::harness::{Daemon, spec};
use super::wire::{Reply, Request, connect, is_closed_within, read_reply};

/// An authority, and what it signed for the gateway and for a caller; another one, and a caller of its.
fn make_certificates(directory: &Path) {
    let make = |name: &str, authority: Option<&str>, extension: &str| {
        let mut command = Command::new("openssl");
        command.current_dir(directory).args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
        command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", &format!("/CN={name}")]);
        command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        if let Some(authority) = authority {
            command.args(["-CA", &format!("{authority}.pem"), "-CAkey", &format!("{authority}.key")]);
            command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext", extension]);
        }
        let made = command.output().expect("the openssl command");
        assert!(made.status.success(), "{made:?}");
        let private =
            Command::new("chmod").current_dir(directory).args(["600", &format!("{name}.key")]).status();
        assert!(private.unwrap().success());
    };
    make("authority", None, "");
    make("gateway", Some("authority"), "subjectAltName=IP:127.0.0.1");
    make("caller", Some("authority"), "extendedKeyUsage=clientAuth");
    make("other-authority", None, "");
    make("stranger", Some("other-authority"), "extendedKeyUsage=clientAuth");
}

fn with_tls(extra: &str) -> Daemon {
    let settings =
        format!("[tls]\ncertificate = \"tls/gateway.pem\"\nprivate_key = \"tls/gateway.key\"\n{extra}");
    Daemon::prepared(tempfile::tempdir().unwrap(), &settings, |workspace| {
        std::fs::create_dir(workspace.join("tls")).unwrap();
        make_certificates(&workspace.join("tls"));
    })
}

/// Sends a request over TLS, showing this certificate if there is one. Nothing if the gateway does not talk to us.
fn send(daemon: &Daemon, shown: Option<&str>, request: &Request) -> Option<Reply> {
    let directory = daemon.path("tls");
    let read = |name: &str| CertificateDer::from_pem_file(directory.join(format!("{name}.pem"))).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(read("authority")).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let key = PrivateKeyDer::from_pem_file(directory.join(format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(vec![read(name)], key).unwrap()
        }
    };
    let address: SocketAddr = daemon.address;
    let name = ServerName::from(address.ip());
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(address));
    stream.write_all(&request.bytes()).ok()?;
    read_reply(&mut BufReader::new(stream))
}

#[test]
fn with_a_certificate_the_gateway_speaks_tls_and_nothing_else() {
    let daemon = with_tls("");
    let request =
        Request::new("POST", "/v1/handoffs").token(&daemon.admin).json(spec("tls_0001").to_string());
    assert_eq!(send(&daemon, None, &request).unwrap().status, 201);
    let mut plain = connect(daemon.address);
    plain.write_all(&request.bytes()).unwrap();
    assert!(read_reply(&mut BufReader::new(&plain)).is_none());
    assert!(is_closed_within(&mut plain, super::wire::PATIENCE));
}

#[test]
fn a_console_session_begun_over_tls_is_for_tls_only() {
    let daemon = with_tls("");
    let host = format!("https://{}", daemon.address);
    let log_in = |origin: &str| {
        Request::new("POST", "/console/login")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Origin", origin)
            .body(format!("token={}", daemon.admin))
    };
    let entered = send(&daemon, None, &log_in("https://handoffd")).unwrap();
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = entered.header("set-cookie").unwrap();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Secure", "; Path=/console"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let opened = Request::new("GET", "/console").header("Cookie", cookie.split(';').next().unwrap());
    assert_eq!(send(&daemon, None, &opened).unwrap().status, 200);
    assert_eq!(send(&daemon, None, &log_in(&host)).unwrap().status, 403, "the request says another host");
}

#[test]
fn required_client_certificates_come_from_the_right_authority() {
    let daemon = with_tls("client_ca = \"tls/authority.pem\"\nclient_certificates = \"required\"\n");
    let request = Request::new("GET", "/readyz");
    assert_eq!(send(&daemon, Some("caller"), &request).unwrap().status, 200);
    assert!(send(&daemon, None, &request).is_none());
    assert!(send(&daemon, Some("stranger"), &request).is_none());
    // A certificate lets a caller in; who it is, its token says.
    assert_eq!(send(&daemon, Some("caller"), &Request::new("GET", "/v1/state")).unwrap().status, 401);
}

#[test]
fn optional_client_certificates_are_checked_when_they_are_shown() {
    let daemon = with_tls("client_ca = \"tls/authority.pem\"\nclient_certificates = \"optional\"\n");
    let request = Request::new("GET", "/readyz");
    assert_eq!(send(&daemon, Some("caller"), &request).unwrap().status, 200);
    assert_eq!(send(&daemon, None, &request).unwrap().status, 200);
    assert!(send(&daemon, Some("stranger"), &request).is_none());
}

#[test]
fn certificates_that_are_missing_are_told_before_anything_is_opened() {
    let workspace = tempfile::tempdir().unwrap();
    let settings = "[tls]\ncertificate = \"nope.pem\"\nprivate_key = \"nope.key\"\n";
    std::fs::File::create(workspace.path().join("handoffd.toml"))
        .unwrap()
        .write_all(settings.as_bytes())
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_handoffd"))
        .current_dir(workspace.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    for part in ["[tls] certificate: ./nope.pem: ", "[tls] private_key: ./nope.key: "] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("listening"), "{told}");
    assert!(!workspace.path().join("memory/ledger").exists(), "no ledger was begun");
}
