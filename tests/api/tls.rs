//! TLS, with certificates that the test makes.

use std::io::{BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use super::harness::{Daemon, command, eventually, spec, write};
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
    make("renewed", Some("other-authority"), "subjectAltName=IP:127.0.0.1,DNS:localhost");
    // With whoever signed them, so that commands on this machine can trust them.
    for (name, authority) in [("gateway", "authority"), ("renewed", "other-authority")] {
        let whole = format!("cat {authority}.pem >> {name}.pem");
        assert!(Command::new("sh").current_dir(directory).args(["-c", &whole]).status().unwrap().success());
    }
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
    send_trusting("authority", daemon, shown, request)
}

fn send_trusting(authority: &str, daemon: &Daemon, shown: Option<&str>, request: &Request) -> Option<Reply> {
    let directory = daemon.path("tls");
    let read = |name: &str| CertificateDer::from_pem_file(directory.join(format!("{name}.pem"))).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(read(authority)).unwrap();
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
    // Whoever asks the command line for it in the clear is told what is wrong, and so is who trusts in junk.
    let ask = |scheme: &str, more: &[&str]| {
        let url = format!("{scheme}://localhost:{}", daemon.address.port());
        let arguments = [&["route", "list", "--url", &url], more].concat();
        let mut asking = command(&daemon.workspace(), &arguments);
        let output = asking.env("HANDOFFD_TOKEN", &daemon.admin).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let told = ask("http", &[]);
    assert!(told.contains("if it speaks TLS, try https://localhost"), "{told}");
    write(&daemon.path("junk.pem"), "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n");
    let told = ask("https", &["--ca", daemon.path("junk.pem").to_str().unwrap()]);
    assert!(told.contains("junk.pem: its certificate 1 cannot be read"), "{told}");
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

/// What of `degraded` in `/readyz` is about TLS.
fn tls_trouble(authority: &str, daemon: &Daemon) -> Option<String> {
    let ready = send_trusting(authority, daemon, None, &Request::new("GET", "/readyz")).unwrap();
    assert_eq!(ready.status, 200);
    let degraded = ready.json()["degraded"].as_array().unwrap().clone();
    let of_tls = degraded.into_iter().find(|one| one["what"] == "tls");
    of_tls.map(|one| one["why"].as_str().unwrap().to_owned())
}

#[test]
fn certificates_are_renewed_while_it_runs_both_files_or_none() {
    let daemon = with_tls("");
    let replace = |from: &str, to: &str| {
        std::fs::copy(daemon.path("tls").join(from), daemon.path("tls/new")).unwrap();
        let moved = Command::new("mv").current_dir(daemon.path("tls")).args(["new", to]).status();
        assert!(moved.unwrap().success());
    };
    // Commands on this machine trust what is served, whatever the files say.
    let cli_works = || {
        let listed = daemon.cli(&["freeze", "list"]);
        assert!(listed.status.success(), "{listed:?}");
    };
    assert_eq!(tls_trouble("authority", &daemon), None);
    cli_works();
    replace("renewed.pem", "gateway.pem");
    let why = eventually("the key does not fit", || tls_trouble("authority", &daemon));
    assert!(why.contains("tls/gateway.key") && why.contains("stays in force"), "{why}");
    cli_works();
    replace("renewed.key", "gateway.key");
    let request = Request::new("GET", "/readyz");
    eventually("the new one is served", || send_trusting("other-authority", &daemon, None, &request));
    assert!(send(&daemon, None, &request).is_none(), "new connections get the new one alone");
    assert_eq!(tls_trouble("other-authority", &daemon), None);
    eventually("commands know", || daemon.cli(&["freeze", "list"]).status.success().then_some(()));
}

#[test]
fn a_certificate_that_has_expired_is_served_and_said() {
    let daemon = with_tls("");
    let script = "echo subjectAltName=IP:127.0.0.1 > san && openssl req -new -key gateway.key -subj /CN=gateway -out gateway.csr && \
                  openssl x509 -req -in gateway.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days -1 \
                  -extfile san -out expired.pem && mv expired.pem gateway.pem";
    let made = Command::new("sh").current_dir(daemon.path("tls")).args(["-c", script]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let said =
        || daemon.log().lines().any(|line| line.contains("WARN") && line.contains("it has expired on"));
    eventually("it is said", || said().then_some(()));
}

#[test]
fn commands_show_a_certificate_to_a_gateway_that_asks_for_one() {
    let daemon = with_tls("client_ca = \"tls/authority.pem\"\nclient_certificates = \"required\"\n");
    let run = |arguments: &[&str], shown: &[(&str, &str)]| {
        let mut command = command(&daemon.workspace(), arguments);
        command.envs(shown.iter().map(|(name, file)| (*name, daemon.path(file))));
        command.output().unwrap()
    };
    let caller = [("HANDOFFD_CERT", "tls/caller.pem"), ("HANDOFFD_KEY", "tls/caller.key")];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let flags = ["freeze", "list", "--cert", "tls/caller.pem", "--key", "tls/caller.key"];
    assert!(run(&flags, &[]).status.success());
    assert!(run(&["freeze", "list"], &caller).status.success());
    let without = run(&["freeze", "list"], &[]);
    assert_eq!(without.status.code(), Some(3), "{without:?}");
    assert!(text(&without.stderr).contains("--cert and --key"), "{without:?}");
    let half = run(&["freeze", "list", "--cert", "tls/caller.pem"], &[]);
    assert!(text(&half.stderr).contains("go together"), "{half:?}");
    let stranger = [("HANDOFFD_CERT", "tls/stranger.pem"), ("HANDOFFD_KEY", "tls/stranger.key")];
    let refused = run(&["freeze", "list"], &stranger);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");

    // The file is what counts: a command that cannot tell the gateway has not failed.
    let made = run(&["token", "new", "--name", "rita", "--role", "operator"], &[]);
    assert!(made.status.success(), "{made:?}");
    let said = text(&made.stderr);
    assert!(said.contains("the file is changed") && !said.contains("error"), "{said}");
    let token = text(&made.stdout).trim().to_owned();
    let ask = Request::new("GET", "/v1/state").token(&token);
    eventually("the token counts", || (send(&daemon, Some("caller"), &ask)?.status == 200).then_some(()));
    // Wrong flags are told before anything is changed.
    let wrong = run(&["token", "new", "--name", "omar", "--role", "operator", "--cert", "nope"], &[]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(!text(&run(&["token", "list"], &[]).stdout).contains("omar"));

    let doctor = text(&run(&["doctor"], &caller).stdout);
    assert!(doctor.lines().any(|line| line.starts_with("ok    daemon")), "{doctor}");
    let doctor = text(&run(&["doctor"], &[]).stdout);
    assert!(doctor.lines().any(|line| line.starts_with("skip  daemon")), "{doctor}");
}

#[test]
fn what_a_terminal_is_told_to_try_works_as_it_is_told() {
    let root = tempfile::tempdir().unwrap();
    let workspace = root.path().join("a gateway's $HOME");
    assert!(command(&workspace, &["init"]).output().unwrap().status.success());
    let openssl = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=localhost \
                   -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
                   -keyout tls.key -out tls.pem";
    let made = Command::new("sh").current_dir(&workspace).args(["-c", openssl]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    super::harness::write(
        &workspace.join("handoffd.toml"),
        "[tls]\ncertificate = \"tls.pem\"\nprivate_key = \"tls.key\"\n",
    );
    // `script` gives it a terminal.
    let line = "exec \"$DAEMON\" serve --workspace \"$PLACE\" --listen 127.0.0.1:0";
    let said = root.path().join("said");
    let mut terminal = Command::new("script")
        .args(["-qf", "-c", line])
        .arg(&said)
        .current_dir(root.path())
        .env("DAEMON", env!("CARGO_BIN_EXE_handoffd"))
        .env("PLACE", &workspace)
        .env_remove("HANDOFFD_WORKSPACE")
        .env("NO_COLOR", "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let told = eventually("it says what to try", || {
        let said = std::fs::read(&said).ok()?;
        let said = String::from_utf8_lossy(&said).replace('\r', "");
        said.contains("Stop with Ctrl-C").then_some(said)
    });
    let from = told.find("curl -s").unwrap();
    let curl = told[from..].split("\n\n").next().unwrap();
    assert!(curl.contains("https://localhost:"), "{curl}");
    let asked = Command::new("sh").args(["-c", curl]).current_dir("/").output().unwrap();
    let stopped = terminal.kill().and_then(|()| terminal.wait());
    let answer = String::from_utf8_lossy(&asked.stdout);
    assert!(asked.status.success() && answer.contains("\"decision\""), "{curl}\n{asked:?}");
    stopped.unwrap();
    eventually("it has left", || workspace.join("memory/checkpoint").exists().then_some(()));
}
