//! The load that benches put on servers: clients that send one request after the other, each on a connection of its own,
//! and look at every answer.
//!
//! Beside it, what is sent (`specs`), and what a server needs: a process that ends with the bench (`process`), a daemon on a workspace of its own
//! (`daemon`), PostgreSQL's own load (`pgbench`), and where figures are written for scripts/bench (`report`).

pub(crate) mod daemon;
pub(crate) mod pgbench;
pub(crate) mod process;
pub(crate) mod report;
pub(crate) mod slow_link;
pub(crate) mod specs;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use specs::NUMBER;

/// Every so many answers one is looked at as a whole, and not only at its status: looking costs the load its time. Odd, so
/// that each of two requests in turn has its own.
const LOOK_EVERY: usize = 63;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A request with room for a number in every id, and where those rooms are.
#[derive(Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    numbers: Arc<[usize]>,
    /// What it may be answered with, and what must stand in the answer.
    statuses: &'static [u16],
    holds: &'static str,
}

impl Request {
    pub(crate) fn post(path: &str, token: &str, body: &str) -> Self {
        Self::of("POST", path, token, body)
    }

    pub(crate) fn of(method: &str, path: &str, token: &str, body: &str) -> Self {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let numbers = text.match_indices(NUMBER).map(|(place, _)| place).collect();
        Self { bytes: text.into_bytes(), numbers, statuses: &[200, 201], holds: "" }
    }

    pub(crate) fn answered(self, statuses: &'static [u16], holds: &'static str) -> Self {
        Self { statuses, holds, ..self }
    }

    /// Makes it a request that was never sent before.
    pub(crate) fn renew(&mut self) {
        let number = format!("{:010}", NEXT.fetch_add(1, Ordering::Relaxed));
        for place in self.numbers.iter() {
            self.bytes[*place..place + NUMBER.len()].copy_from_slice(number.as_bytes());
        }
    }

    /// The same with another text, as long as the one before.
    pub(crate) fn with(&self, old: &str, new: &str) -> Self {
        let text = String::from_utf8(self.bytes.clone()).unwrap();
        assert!(old.len() == new.len() && text.contains(old));
        Self { bytes: text.replace(old, new).into_bytes(), ..self.clone() }
    }

    /// Whether an answer is what was asked for; it is shown if not.
    pub(crate) fn hold(&self, status: u16, answer: &[u8], as_a_whole: bool) {
        let is_right = self.statuses.contains(&status)
            && (!as_a_whole || String::from_utf8_lossy(answer).contains(self.holds));
        assert!(is_right, "not {:?} with {}: {}", self.statuses, self.holds, String::from_utf8_lossy(answer));
    }
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, answer: vec![0; 64 * 1024] }
    }

    /// The status and the whole answer, with its head.
    pub(crate) async fn ask(&mut self, request: &Request) -> (u16, &[u8]) {
        self.stream.write_all(&request.bytes).await.unwrap();
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.answer[filled..]).await.unwrap();
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(whole) = whole(&self.answer[..filled]) {
                assert_eq!(filled, whole, "one answer for one request");
                let status = std::str::from_utf8(&self.answer[9..12]).unwrap().parse().unwrap();
                return (status, &self.answer[..filled]);
            }
        }
    }
}

/// How long the answer is, once all of it is there.
fn whole(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&answer[..head]).unwrap().to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let all = head + 4 + length.unwrap();
    (answer.len() >= all).then_some(all)
}

/// Sends a request once, as it is, and gives its answer.
pub(crate) fn ask(address: &str, request: &Request) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = Connection::open(address).await;
        let (status, answer) = connection.ask(request).await;
        (status, String::from_utf8_lossy(answer).into_owned())
    })
}

/// What so many connections got done in a while.
pub(crate) struct Load {
    pub(crate) elapsed_s: f64,
    /// Sorted, in microseconds.
    pub(crate) latencies: Vec<u32>,
}

impl Load {
    /// Several as one.
    pub(crate) fn all<'l>(loads: impl Iterator<Item = &'l Self>) -> Self {
        let mut all = Self { elapsed_s: 0.0, latencies: Vec::new() };
        for load in loads {
            all.elapsed_s += load.elapsed_s;
            all.latencies.extend(&load.latencies);
        }
        all.latencies.sort_unstable();
        all
    }

    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed_s
    }

    /// In microseconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(place.min(self.latencies.len().saturating_sub(1))).map_or(0.0, |us| f64::from(*us))
    }
}

/// Loads each server with so many connections, all from one thread. Each connection sends its requests in turn, and every
/// other one begins with another: of all that is sent, each is an even share.
pub(crate) fn load(servers: &[(&str, &[Request])], connections: usize, seconds: f64) -> Load {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(seconds);
    let mut latencies: Vec<u32> = runtime.block_on(async {
        let each = servers.iter().flat_map(|server| std::iter::repeat_n(server, connections));
        let clients: Vec<_> = each
            .enumerate()
            .map(|(first, (address, requests))| {
                tokio::spawn(client((*address).to_owned(), requests.to_vec(), first, until))
            })
            .collect();
        let mut all = Vec::new();
        for client in clients {
            all.extend(client.await.unwrap());
        }
        all
    });
    let elapsed_s = began.elapsed().as_secs_f64();
    latencies.sort_unstable();
    Load { elapsed_s, latencies }
}

async fn client(address: String, mut requests: Vec<Request>, first: usize, until: Instant) -> Vec<u32> {
    let mut connection = Connection::open(&address).await;
    let mut latencies = Vec::new();
    let kinds = requests.len();
    while Instant::now() < until {
        let request = &mut requests[(first + latencies.len()) % kinds];
        request.renew();
        let began = Instant::now();
        let (status, answer) = connection.ask(request).await;
        let took = began.elapsed();
        request.hold(status, answer, latencies.len() % LOOK_EVERY == 0);
        latencies.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }
    latencies
}

/// The one in the middle, or between the two there.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    (figures[(figures.len() - 1) / 2] + figures[figures.len() / 2]) / 2.0
}
