//! A link on which everything arrives late, in order: what a network between two machines does to those who wait for an
//! answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Listens, and hands everything on to a port of this machine, so much later in either direction. Returns its own port.
pub(crate) fn slow_link(to: u16, each_way: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.unwrap();
            // Nobody is there any more when the bench ends.
            let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
            for stream in [&near, &far] {
                stream.set_nodelay(true).unwrap();
            }
            carry(near.try_clone().unwrap(), far.try_clone().unwrap(), each_way);
            carry(far, near, each_way);
        }
    });
    port
}

fn carry(mut from: TcpStream, mut to: TcpStream, later: Duration) {
    let (send, sent) = channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 256 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if send.send((Instant::now() + later, buffer[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in sent {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
