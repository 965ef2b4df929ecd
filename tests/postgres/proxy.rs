//! Stands between handoffd and the server, and cuts the line at the worst moment.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// When to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Never,
    /// The server has committed, and its answer is swallowed.
    CommitAnswer,
    /// The server is never told to commit.
    Commit,
    /// The server is told to commit, and nobody waits for what comes of it.
    AfterCommit,
    /// The server is not told to commit, and neither side hears that the line is dead.
    Hold,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    /// What to do with the next commit; done once.
    cut: Mutex<Cut>,
    lines: Mutex<Vec<TcpStream>>,
    refuse: AtomicBool,
}

impl Proxy {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared {
            cut: Mutex::new(Cut::Never),
            lines: Mutex::new(Vec::new()),
            refuse: AtomicBool::new(false),
        });
        let proxy = Self { port: listener.local_addr().unwrap().port(), shared: shared.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if shared.refuse.load(Ordering::SeqCst) {
                    continue;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", port))) else {
                    continue;
                };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                shared.lines.lock().unwrap().push(client.try_clone().unwrap());
                let shared = shared.clone();
                std::thread::spawn(move || carry(client, server, &shared));
            }
        });
        proxy
    }

    /// Cuts the next commit.
    pub(crate) fn cut_next(&self, cut: Cut) {
        *self.shared.cut.lock().unwrap() = cut;
    }

    /// Takes no new lines.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.shared.refuse.store(refuse, Ordering::SeqCst);
    }

    /// Has the cut been made?
    pub(crate) fn has_cut(&self) -> bool {
        *self.shared.cut.lock().unwrap() == Cut::Never
    }

    /// Cuts every line there is.
    pub(crate) fn cut_all(&self) {
        for line in self.shared.lines.lock().unwrap().drain(..) {
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

/// Carries what the client says in whole messages, and what the server says as it comes.
fn carry(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let swallow = Arc::new(Mutex::new(false));
    let swallows = swallow.clone();
    let (answered, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 64 * 1024];
        while let Ok(read @ 1..) = from_server.read(&mut buffer) {
            if *swallows.lock().unwrap() {
                let _ = answered.send(());
            } else if to_client.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    // The first message has no kind.
    let mut begun = false;
    while let Some(message) = message(&mut client, begun) {
        begun = true;
        let mut cut = shared.cut.lock().unwrap();
        let is_commit = message.starts_with(b"Q") && message[5..].starts_with(b"commit");
        let wanted = if is_commit { std::mem::replace(&mut *cut, Cut::Never) } else { Cut::Never };
        match wanted {
            Cut::Never => {
                drop(cut);
                if server.write_all(&message).is_err() {
                    break;
                }
            }
            Cut::CommitAnswer => {
                *swallow.lock().unwrap() = true;
                server.write_all(&message).unwrap();
                answer.recv().unwrap();
                break;
            }
            Cut::Commit => break,
            Cut::Hold => {
                drop(cut);
                // Until somebody cuts all lines.
                let _ = client.read(&mut [0]);
                break;
            }
            Cut::AfterCommit => {
                server.write_all(&message).unwrap();
                // The server goes on by itself; only the client's half is gone.
                let _ = client.shutdown(Shutdown::Both);
                std::mem::forget(server);
                return;
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn message(client: &mut TcpStream, has_kind: bool) -> Option<Vec<u8>> {
    let mut message = vec![0; if has_kind { 5 } else { 4 }];
    client.read_exact(&mut message).ok()?;
    let (_, length) = message.split_last_chunk::<4>()?;
    let rest = u32::from_be_bytes(*length) as usize - 4;
    let begins = message.len();
    message.resize(begins + rest, 0);
    client.read_exact(&mut message[begins..]).ok()?;
    Some(message)
}
