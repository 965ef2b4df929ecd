//! From a commit to a client who follows the ledger on `/v1/audit/stream`: how long behind the answer of a submit its event
//! comes, and how long behind the request. The answer leaves when the decision is durable, so it stands for the commit; an
//! event may overtake it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::load::daemon::Daemon;
use super::load::specs::direct;
use super::load::{Connection, Request, report};

/// Submitters, how many they submit in a second altogether, and who follows. Paced, so that a slow stream shows as
/// latency and not as fewer submits.
const STAGES: [(usize, usize, usize); 3] = [(1, 100, 1), (16, 1_000, 1), (1, 50, 100)];

/// A submit: when it was sent, when answered, and the entry that its answer names.
struct Submit {
    sent: Instant,
    answered: Instant,
    sequence: u64,
}

/// When each entry came, by its number.
type Seen = HashMap<u64, Instant>;

/// No entry has this number; under it stands when the stream was open.
const OPENED: u64 = 0;

pub(crate) fn run(seconds: f64) {
    println!(
        "\nsubmitters  submits/s  followers    events  answer to event: p50 us  p99 us  max us  request to event: p50 us  p99 us"
    );
    for (submitters, rate, followers) in STAGES {
        let daemon = Daemon::start(&[]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = LocalSet::new();
        let (submits, seen) = local.block_on(&runtime, stage(&daemon, submitters, rate, followers, seconds));
        let (mut behind_answer, mut behind_request) = (Vec::new(), Vec::new());
        for events in &seen {
            for submit in &submits {
                let came = events[&submit.sequence];
                behind_answer.push(micros(came, submit.answered));
                behind_request.push(micros(came, submit.sent));
            }
        }
        behind_answer.sort_by(f64::total_cmp);
        behind_request.sort_by(f64::total_cmp);
        let at = |all: &[f64], share: f64| all[((all.len() as f64 * share) as usize).min(all.len() - 1)];
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| at(&behind_answer, share));
        let [whole_p50, whole_p99] = [0.5, 0.99].map(|share| at(&behind_request, share));
        let (events, rate) = (behind_answer.len(), submits.len() as f64 / seconds);
        println!(
            "{submitters:>10}  {rate:>9.0}  {followers:>9}  {events:>8}  {p50:>23.0}  {p99:>6.0}  {max:>6.0}  {whole_p50:>24.0}  {whole_p99:>6.0}"
        );
        report::tell(
            "stream",
            json!({
                "submitters": submitters, "rate": rate, "followers": followers, "events": events,
                "answer_p50_us": p50, "answer_p99_us": p99, "answer_max_us": max,
                "request_p50_us": whole_p50, "request_p99_us": whole_p99,
            }),
        );
    }
}

/// Negative if it came before.
fn micros(later: Instant, earlier: Instant) -> f64 {
    let ahead = later.saturating_duration_since(earlier).as_secs_f64();
    (ahead - earlier.saturating_duration_since(later).as_secs_f64()) * 1e6
}

/// Everything that was submitted, and what each follower saw when.
async fn stage(
    daemon: &Daemon,
    submitters: usize,
    rate: usize,
    followers: usize,
    seconds: f64,
) -> (Vec<Submit>, Vec<Seen>) {
    let seen: Vec<Rc<RefCell<Seen>>> = (0..followers).map(|_| Rc::default()).collect();
    let following: Vec<_> = seen
        .iter()
        .map(|seen| spawn_local(follow(daemon.address.clone(), daemon.token.clone(), seen.clone())))
        .collect();
    // The head of the stream is there: whatever comes now is told.
    until(|| seen.iter().all(|seen| seen.borrow().contains_key(&OPENED))).await;
    let pause = Duration::from_secs_f64(submitters as f64 / rate as f64);
    let request = Request::post("/v1/handoffs", &daemon.token, &direct("simulated"));
    let submitting: Vec<_> = (0..submitters)
        .map(|n| {
            let first = Instant::now() + pause.mul_f64(n as f64 / submitters as f64);
            let count = (seconds / pause.as_secs_f64()) as u32;
            spawn_local(submit(daemon.address.clone(), request.clone(), first, pause, count))
        })
        .collect();
    let mut submits = Vec::new();
    for one in submitting {
        submits.extend(one.await.unwrap());
    }
    until(|| seen.iter().all(|seen| submits.iter().all(|one| seen.borrow().contains_key(&one.sequence))))
        .await;
    following.iter().for_each(JoinHandle::abort);
    (submits, seen.iter().map(|seen| seen.take()).collect())
}

async fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "an event never came");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Submits at its times, or as soon as it can.
async fn submit(
    address: String,
    mut request: Request,
    first: Instant,
    pause: Duration,
    count: u32,
) -> Vec<Submit> {
    let mut connection = Connection::open(&address).await;
    let mut submits = Vec::new();
    for n in 0..count {
        tokio::time::sleep_until((first + pause * n).into()).await;
        request.renew();
        let sent = Instant::now();
        let (status, answer) = connection.ask(&request).await;
        let answered = Instant::now();
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(answer));
        let body = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let body: Json = serde_json::from_slice(&answer[body..]).unwrap();
        let sequence = body["ledger"]["sequence"].as_u64().unwrap();
        submits.push(Submit { sent, answered, sequence });
    }
    submits
}

/// Follows the ledger, and writes down when each entry came. HTTP/1.0, so that the body is the events and nothing else.
async fn follow(address: String, token: String, seen: Rc<RefCell<Seen>>) {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let request =
        format!("GET /v1/audit/stream HTTP/1.0\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        let now = Instant::now();
        assert!(read > 0, "the stream ended");
        text.extend(&buffer[..read]);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if line == b"\r\n" {
                seen.borrow_mut().entry(OPENED).or_insert(now);
            }
            let id = std::str::from_utf8(&line).unwrap().strip_prefix("id: ");
            if let Some(id) = id.and_then(|id| id.trim().parse().ok()) {
                assert!(seen.borrow_mut().insert(id, now).is_none(), "{id} came twice");
            }
        }
    }
}
