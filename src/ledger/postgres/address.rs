//! Where a database is: a URL as libpq writes it, and what it says of TLS.
//!
//! A connection is encrypted and the server's name verified, or it is not encrypted at all: there is no mode in
//! which whoever stands between could choose. Nothing here shows the URL, which may have a password in it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::PostgresFault;
use super::tls::{Tls, TlsFiles};
use crate::limits;

/// A database that can be connected to.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: Option<Tls>,
    shown: String,
}

impl Address {
    /// Reads a URL. Certificates that it names are read now.
    pub(super) fn read(url: &str) -> Result<Self, PostgresFault> {
        let (url, asked) = split(url)?;
        let fault = |error: tokio_postgres::Error| PostgresFault::Address(super::said(&error));
        let mut config: Config = url.parse().map_err(fault)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(PostgresFault::Address("names no host".to_owned()));
        }
        config
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .tcp_user_timeout(Duration::from_millis(limits::PG_ANSWER_MS))
            .keepalives_idle(Duration::from_millis(limits::PG_KEEPALIVE_MS))
            .keepalives_interval(Duration::from_millis(limits::PG_KEEPALIVE_MS));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_millis(limits::PG_CONNECT_MS));
        }
        if config.get_application_name().is_none() {
            config.application_name("handoffd");
        }
        let tls = if asked.mode.unwrap_or_else(|| default_mode(&config)) {
            config.ssl_mode(SslMode::Require);
            Some(Tls::new(&asked.files).map_err(PostgresFault::Address)?)
        } else {
            config.ssl_mode(SslMode::Disable);
            None
        };
        let shown = shown(&config);
        Ok(Self { config, tls, shown })
    }
}

/// Hosts and database, without user, password or parameters.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.shown)
    }
}

/// What a URL asks for that tokio-postgres leaves to its caller.
#[derive(Default)]
struct Asked {
    mode: Option<bool>,
    files: TlsFiles,
}

/// Takes the parameters about TLS out of a URL.
fn split(url: &str) -> Result<(String, Asked), PostgresFault> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(PostgresFault::Address("does not begin with postgres://".to_owned()));
    }
    let mut asked = Asked::default();
    let Some((address, parameters)) = url.split_once('?') else { return Ok((url.to_owned(), asked)) };
    // A password with a `?` in it would be taken for parameters, and a fault would show it.
    if parameters.contains('@') {
        return Err(PostgresFault::Address(
            "has `?` or `@` where neither can be; in a user name or password write them as %3F and %40"
                .to_owned(),
        ));
    }
    let mut rest = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=').unwrap_or((parameter, "")) {
            ("sslmode", "disable") => asked.mode = Some(false),
            ("sslmode", "require" | "verify-ca" | "verify-full") => asked.mode = Some(true),
            ("sslmode", _) => {
                return Err(PostgresFault::Address(
                    "has an sslmode that is neither `disable` nor `verify-full`; a certificate is always verified, and nothing falls back to plain text".to_owned(),
                ));
            }
            ("sslrootcert", path) => asked.files.roots = Some(decoded(path)),
            ("sslcert", path) => asked.files.certificate = Some(decoded(path)),
            ("sslkey", path) => asked.files.private_key = Some(decoded(path)),
            // There is one answer to it, and it is ours.
            ("target_session_attrs", _) => {}
            _ => rest.push(parameter),
        }
    }
    let url = if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
    Ok((url, asked))
}

/// The names of parameters that are paths.
const PATHS: [&str; 3] = ["sslrootcert", "sslcert", "sslkey"];

/// The same URL with its paths made from a directory, where they are not from the root: whoever set it has said it of a
/// workspace, and the process may run anywhere.
pub(crate) fn anchored(url: &str, directory: &Path) -> String {
    let Some((address, parameters)) = url.split_once('?') else { return url.to_owned() };
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let anchored = parameters.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, path)) if PATHS.contains(&name) && !path.is_empty() && !decoded(path).is_absolute() => {
            format!("{name}={}/{path}", encoded(&directory))
        }
        _ => parameter.to_owned(),
    });
    format!("{address}?{}", anchored.collect::<Vec<_>>().join("&"))
}

/// A path as a URL has it: `%20` is a space, and a `+` is itself.
fn decoded(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let (mut path, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let value = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        let value = value.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match value.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) => {
                path.push(value);
                at += 3;
            }
            None => {
                path.push(*byte);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Encrypted, unless nothing leaves the machine.
fn default_mode(config: &Config) -> bool {
    let here = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    !(config.get_hosts().iter().all(here) && config.get_hostaddrs().iter().all(|one| one.is_loopback()))
}

fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => path.display().to_string(),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("postgres://{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<(&str, bool), &str>) {
        match (Address::read(url), expected) {
            (Ok(address), Ok((shown, encrypted))) => {
                assert_eq!(
                    (address.to_string().as_str(), address.tls.is_some()),
                    (shown, encrypted),
                    "{url}"
                );
                assert!(!format!("{address:?} {address}").contains("hunter2"));
            }
            (Err(fault), Err(part)) => {
                assert!(fault.to_string().contains(part), "{url}: {fault}");
                assert!(!fault.to_string().contains("hunter2"), "{fault}");
            }
            (found, expected) => panic!("{url}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_connection_is_encrypted_unless_it_stays_on_the_machine() {
        check("postgres://u:hunter2@127.0.0.1/d", Ok(("postgres://127.0.0.1:5432/d", false)));
        check("postgresql://u@localhost:6000/d", Ok(("postgres://localhost:6000/d", false)));
        check("postgres://u:hunter2@db.example/d", Ok(("postgres://db.example:5432/d", true)));
        check(
            "postgres://u@localhost,db.example/d",
            Ok(("postgres://localhost:5432,db.example:5432/d", true)),
        );
        check("postgres://u@db.example/d?sslmode=disable", Ok(("postgres://db.example:5432/d", false)));
        check("postgres://u@127.0.0.1/d?sslmode=verify-full", Ok(("postgres://127.0.0.1:5432/d", true)));
        check("postgres://u@h/d?sslmode=prefer", Err("neither `disable` nor `verify-full`"));
        check("postgres://u@h/d?target_session_attrs=any", Ok(("postgres://h:5432/d", true)));
        check("postgres://u:hunter2@h/d?sslrootcert=/nowhere/ca.pem", Err("/nowhere/ca.pem"));
        check("postgres://u:hunter2@h/d?colour=blue", Err("colour"));
        check("postgres://u:?hunter2@h/d", Err("write them as %3F and %40"));
        check("postgres://u@h/d?sslrootcert=/no%20where/ca%2Bb+c.pem", Err("/no where/ca+b+c.pem"));
        check("postgres://u@h/d?sslrootcert=/half%2/ca%zz.pem", Err("/half%2/ca%zz.pem"));
        check("postgres:///d", Err("names no host"));
        check("mysql://h/d", Err("does not begin with postgres://"));
    }

    #[test]
    fn paths_are_the_workspaces_unless_they_begin_at_the_root() {
        let check = |parameters: &str, expected: &str| {
            let url = |parameters: &str| format!("postgres://u@h/d{parameters}");
            assert_eq!(anchored(&url(parameters), Path::new("/srv/our team")), url(expected));
        };
        check("", "");
        check("?sslmode=verify-full", "?sslmode=verify-full");
        check("?sslrootcert=ca.pem&a=b", "?sslrootcert=/srv/our%20team/ca.pem&a=b");
        check(
            "?sslcert=tls/c%20d.pem&sslkey=k",
            "?sslcert=/srv/our%20team/tls/c%20d.pem&sslkey=/srv/our%20team/k",
        );
        check("?sslrootcert=/etc/ca.pem&sslkey=%2Fetc%2Fk", "?sslrootcert=/etc/ca.pem&sslkey=%2Fetc%2Fk");
        let found =
            Address::read(&anchored("postgres://u@h/d?sslrootcert=no.pem", Path::new("/srv/our team")));
        assert!(found.unwrap_err().to_string().contains("/srv/our team/no.pem"));
    }
}
