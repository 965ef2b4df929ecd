//! Tells a service manager that the gateway is ready, stops, or takes longer to start (`sd_notify`): a datagram to `$NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::limits;

/// Says it to whoever started us; nobody may want to know, and then nothing happens.
pub(super) fn tell(what: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, what) {
        tracing::warn!(%error, "the service manager could not be told: {what}");
    }
}

/// A start that goes on is to be given the time for it, again and again while it says so.
pub(super) fn takes_longer() {
    tell(&longer());
}

fn longer() -> String {
    format!("EXTEND_TIMEOUT_USEC={}", limits::START_STEP_MS * 1000)
}

fn send(socket: &OsStr, what: &str) -> io::Result<()> {
    // `@` stands for the zero byte of a name that is no file.
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(what.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_service_manager_hears_it_on_a_path_and_on_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(heard(&socket), "READY=1");

        let name = format!("handoffd-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(heard(&socket), "STOPPING=1");

        assert_eq!(longer(), "EXTEND_TIMEOUT_USEC=60000000");
        assert!(send(OsStr::new("/no/such/socket"), "READY=1").is_err());
    }
}
