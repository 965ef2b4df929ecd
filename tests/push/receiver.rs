//! A webhook, or any other server: a real listener on this machine that writes down what comes and answers as it is told.

#![allow(dead_code, reason = "two test programs share it, and each needs a part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) target: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What it does with the n-th request, counted from 0.
pub(super) enum Answer {
    Status(u16),
    Json(u16, Json),
    Redirect(String),
    /// Takes the request and never answers.
    Silence,
}

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    connections: Arc<AtomicUsize>,
}

impl Receiver {
    pub(super) fn start(answer: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (received, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (all, count, answer) = (received.clone(), connections.clone(), Arc::new(answer));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let (all, answer) = (all.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &all, &*answer));
            }
        });
        Self { address, received, connections }
    }

    /// One that says yes to everything.
    pub(super) fn willing() -> Self {
        Self::start(|_, _| Answer::Status(204))
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(stream: TcpStream, all: &Mutex<Vec<Received>>, answer: &dyn Fn(usize, &Received) -> Answer) {
    let mut reader = BufReader::new(stream);
    let Some(received) = read(&mut reader) else { return };
    let n = {
        let mut all = all.lock().unwrap();
        all.push(received.clone());
        all.len() - 1
    };
    let head = match answer(n, &received) {
        Answer::Json(status, body) => {
            let body = body.to_string();
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        }
        Answer::Status(status) => format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"),
        Answer::Redirect(to) => {
            format!("HTTP/1.1 307 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        }
        Answer::Silence => {
            // Until the other side has had enough.
            let _ = reader.read(&mut [0; 1]);
            return;
        }
    };
    let _ = reader.get_mut().write_all(head.as_bytes());
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    let mut body = vec![0; length.1.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Received { target, headers, body })
}
