//! Server-sent events.

use std::fs;
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::harness::{Daemon, eventually, location, lost_spec, short_or_long, spec};
use super::wire::{PATIENCE, Request, connect, read_chunk, read_head};

/// An event, or a comment, which has neither id nor data.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) kind: String,
    data: String,
    pub(crate) is_comment: bool,
}

impl Event {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.data).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        &self.data
    }
}

/// A stream that is being read.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Events {
    pub(crate) fn open(daemon: &Daemon, request: &Request) -> Self {
        let mut stream = connect(daemon.address);
        stream.write_all(&request.bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).unwrap();
        assert_eq!(status, 200, "{headers:?}");
        let kind = headers.iter().find(|(name, _)| name == "content-type").unwrap();
        assert_eq!(kind.1, "text/event-stream");
        Self { reader, text: String::new() }
    }

    /// The next event or comment; nothing at the end.
    pub(crate) fn next(&mut self) -> Option<Event> {
        while !self.text.contains("\n\n") {
            self.text.push_str(std::str::from_utf8(&read_chunk(&mut self.reader)?).unwrap());
        }
        let (block, rest) = self.text.split_once("\n\n").unwrap();
        let mut event = Event::default();
        for line in block.lines() {
            match line.split_once(':').unwrap() {
                ("", _) => event.is_comment = true,
                ("id", value) => event.id = Some(value.trim().parse().unwrap()),
                ("event", value) => event.kind = value.trim().to_owned(),
                ("data", value) => event.data.push_str(value.strip_prefix(' ').unwrap_or(value)),
                other => panic!("{other:?}"),
            }
        }
        self.text = rest.to_owned();
        Some(event)
    }

    /// The next event that is no comment.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        loop {
            let event = self.next()?;
            if !event.is_comment {
                return Some(event);
            }
        }
    }
}

fn follow(daemon: &Daemon, target: &str) -> Request {
    Request::new("GET", target).token(&daemon.admin)
}

#[test]
fn the_ledger_is_followed_from_now_or_from_an_entry() {
    let daemon = Daemon::new();
    let before = daemon.events().len() as u64;
    let mut now = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream"));
    let mut all = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream?from=1"));
    let mut decided = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream?from=1&type=gate.decided"));
    assert_eq!(daemon.submit(&spec("follow_0001")).status, 201);
    for (n, kind) in (1..).zip(["task.created", "gate.decided", "task.available"]) {
        let event = now.next_event().unwrap();
        assert_eq!((event.id, event.kind.as_str()), (Some(before + n), "entry"));
        let entry = event.json();
        assert_eq!(entry["hcs"]["sequence_number"], before + n);
        let wire: Json = serde_json::from_str(entry["wire"].as_str().unwrap()).unwrap();
        assert_eq!(wire["type"], kind);
    }
    for n in 1..=before + 3 {
        assert_eq!(all.next_event().unwrap().id, Some(n));
    }
    assert_eq!(decided.next_event().unwrap().id, Some(before + 2));
    // The line in the stream is the line of the export, byte for byte.
    let exported = daemon.get("/v1/audit/export?from=2").text();
    let mut again = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream?from=2"));
    assert_eq!(Some(again.next_event().unwrap().data.as_str()), exported.lines().next());
}

#[test]
fn a_quiet_stream_says_that_it_is_still_there() {
    let daemon = Daemon::new();
    let mut events = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream"));
    let beat = events.next().unwrap();
    assert!(beat.is_comment && beat.data.is_empty() && beat.id.is_none(), "{beat:?}");
}

/// A ledger that was restored from a backup ends before what a reader has seen, and would hide from it what comes until then.
#[test]
fn a_reader_that_has_seen_more_than_there_is_is_told_so() {
    let daemon = Daemon::new();
    let one = spec("ahead_0001");
    assert_eq!(daemon.submit(&one).status, 201);
    let handoff = format!("{}/stream", location(&one));
    for (target, last) in [("/v1/audit/stream", daemon.events().len() as u64), (handoff.as_str(), 3)] {
        let resumed = |id: u64| follow(&daemon, target).header("Last-Event-ID", &id.to_string());
        let begun = |from: u64| follow(&daemon, &format!("{target}?from={from}"));
        // The last event, or the one after it: nothing is left out.
        for right in [resumed(last), begun(last + 1)] {
            assert!(Events::open(&daemon, &right).next().unwrap().is_comment, "{target}");
        }
        assert_eq!(Events::open(&daemon, &begun(last)).next_event().unwrap().id, Some(last));
        let far = [(resumed(last + 1), "Last-Event-ID"), (resumed(u64::MAX), "Last-Event-ID")];
        for (ahead, named) in
            far.into_iter().chain([(begun(last + 2), "from"), (begun(i64::MAX as u64), "from")])
        {
            let refused = daemon.send(&ahead);
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (409, "STREAM_AHEAD"),
                "{target}: {refused:?}"
            );
            let problem = refused.json();
            assert_eq!((&problem["last"], &problem["pointer"]), (&json!(last), &json!(named)));
        }
    }
    // One that came as far by what happened since goes on.
    let (target, head) = ("/v1/audit/stream", daemon.events().len() as u64);
    let mut next = Events::open(&daemon, &follow(&daemon, target).header("Last-Event-ID", &head.to_string()));
    assert_eq!(daemon.submit(&spec("ahead_0002")).status, 201);
    assert_eq!(next.next_event().unwrap().id, Some(head + 1));
}

/// What takes a token away is in the ledger a moment before it is in force.
#[test]
fn a_stream_does_not_tell_of_the_end_of_its_own_token() {
    let daemon = Daemon::new();
    for n in 0..short_or_long(10, 200) {
        let name = format!("reader-{n}");
        let token = daemon.token(&name, "auditor", None);
        let request = Request::new("GET", "/v1/audit/stream?type=token.revoked").token(&token);
        let mut events = Events::open(&daemon, &request);
        let other = daemon.token("other", "auditor", None);
        let revoke = |name: &str| {
            let asked = Request::new("DELETE", &format!("/v1/tokens/{name}")).token(&daemon.admin);
            assert_eq!(daemon.send(&asked).status, 200);
        };
        revoke("other");
        assert!(events.next_event().unwrap().json()["wire"].as_str().unwrap().contains("\"other\""));
        revoke(&name);
        assert_eq!(events.next_event(), None, "{name}");
        drop(other);
    }
}

/// A reader that is cut off again and again, and says where it stopped, sees every entry once and in order.
#[test]
fn a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice() {
    let daemon = Daemon::new();
    let handoffs = short_or_long(120, 2_000);
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        for thread in 0..2 {
            let (daemon, done) = (&daemon, &done);
            scope.spawn(move || {
                for n in 0..handoffs / 2 {
                    assert_eq!(daemon.submit(&spec(&format!("resume_{thread}_{n:04}"))).status, 201);
                }
                done.store(true, Ordering::Release);
            });
        }
        let mut seen: Vec<u64> = Vec::new();
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < 10 * PATIENCE, "it never ends");
            let request = match seen.last() {
                None => follow(&daemon, "/v1/audit/stream?from=1"),
                // `from` is for the first time only: what the reader has seen counts.
                Some(last) => {
                    follow(&daemon, "/v1/audit/stream?from=1").header("Last-Event-ID", &last.to_string())
                }
            };
            let mut events = Events::open(&daemon, &request);
            for _ in 0..17 {
                // A comment while all is done: nothing more comes.
                let event = events.next().unwrap();
                match event.id {
                    Some(id) => seen.push(id),
                    None if done.load(Ordering::Acquire) && seen.len() >= 3 * handoffs => return seen,
                    None => {}
                }
            }
        }
    });
    let all = daemon.events().len() as u64;
    assert_eq!(seen, (1..=all).collect::<Vec<_>>());
}

#[test]
fn one_handoff_is_followed_to_its_end() {
    let daemon = Daemon::new();
    let denied = lost_spec("stream_0001");
    assert_eq!(daemon.submit(&denied).status, 403);
    let target = format!("{}/stream", location(&denied));
    let read = |request: &Request| {
        let mut events = Events::open(&daemon, request);
        let read: Vec<(u64, String)> =
            std::iter::from_fn(|| events.next_event()).map(|event| (event.id.unwrap(), event.kind)).collect();
        read
    };
    let whole = [(1, "task.created"), (2, "gate.decided"), (3, "task.rejected")]
        .map(|(n, kind)| (n, kind.to_owned()));
    // It ends by itself, for nothing can come after this.
    assert_eq!(read(&follow(&daemon, &target)), whole);
    assert_eq!(read(&follow(&daemon, &format!("{target}?from=3"))), whole[2..]);
    assert_eq!(read(&follow(&daemon, &target).header("Last-Event-ID", "1")), whole[1..]);
    assert_eq!(read(&follow(&daemon, &target).header("Last-Event-ID", "3")), []);
    let ahead = follow(&daemon, &target).header("Last-Event-ID", "4");
    assert_eq!(daemon.send(&ahead).code(), "STREAM_AHEAD");

    // The second attempt has a stream of its own, and is the one that stands.
    let mut allowed = spec("stream_0001");
    allowed["audit"]["idempotencyKey"] = "idem_stream_0002".into();
    assert_eq!(daemon.submit(&allowed).status, 201);
    let mut second = Events::open(&daemon, &follow(&daemon, &target));
    let kinds: Vec<String> = (0..3).map(|_| second.next_event().unwrap().kind).collect();
    assert_eq!(kinds, ["task.created", "gate.decided", "task.available"]);
    assert!(second.next().unwrap().is_comment, "an allowed handoff goes on");
    assert_eq!(read(&follow(&daemon, &format!("{target}?attempt=1"))), whole);
    assert_eq!(daemon.get(&format!("{target}?attempt=3")).status, 404);
}

/// Readers that take nothing: others get their answers, and next to nothing is kept for those.
#[test]
fn readers_that_never_read_hold_up_nobody() {
    let daemon = Daemon::new();
    let batch = |name: &str| {
        let specs: Vec<Json> = (0..100).map(|n| spec(&format!("{name}_{n:04}"))).collect();
        assert_eq!(daemon.post("/v1/handoffs/batch", Json::from(specs)).status, 200);
    };
    let segment = daemon.path("memory/ledger/00000000000000000001.jsonl");
    let ledger_kib = || fs::metadata(&segment).unwrap().len() / 1024;
    let deaf: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(daemon.address);
            stream.write_all(&follow(&daemon, "/v1/audit/stream?from=1").bytes()).unwrap();
            stream
        })
        .collect();
    eventually("the readers are connected", || {
        (daemon.metric("handoffd_connections")? >= 20.0).then_some(())
    });
    // By now their connections are full, and so are the caches that everybody shares.
    (0..4).for_each(|n| batch(&format!("warm_{n}")));
    let (resident, ledger) = (daemon.resident_kib(), ledger_kib());
    (0..short_or_long(6, 200)).for_each(|n| batch(&format!("deaf_{n}")));
    // All that was decided since, kept for each of them, would be 20 times what the ledger has grown by.
    let (grown, copies) = (daemon.resident_kib().saturating_sub(resident), 20 * (ledger_kib() - ledger));
    assert!(grown < copies / 2, "{grown} KiB, and copies would be {copies} KiB");
    let mut hears = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream"));
    assert_eq!(daemon.submit(&spec("heard_0001")).status, 201);
    assert_eq!(
        hears.next_event().unwrap().json()["hcs"]["sequence_number"],
        daemon.events().len() as u64 - 2
    );
    drop(deaf);
}

/// A reader that has asked for more than its connection holds, and takes none of it, is cut off.
#[test]
fn an_answer_that_nobody_takes_is_not_kept_for_ever() {
    let daemon = Daemon::new();
    let mut deaf = connect(daemon.address);
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let request = Request::new("GET", "/openapi.json").bytes();
    // Until it takes no more questions either: both directions are full.
    while deaf.write_all(&request).is_ok() {}
    assert!(daemon.resident_kib() < 300 * 1024);
    eventually("it is cut off", || (daemon.metric("handoffd_connections")? < 2.0).then_some(()));
    assert_eq!(daemon.submit(&spec("others_0001")).status, 201);
}

#[test]
fn streams_end_when_the_daemon_stops() {
    let mut daemon = Daemon::new();
    let mut events = Events::open(&daemon, &follow(&daemon, "/v1/audit/stream"));
    let one = spec("ends_0001");
    assert_eq!(daemon.submit(&one).status, 201);
    let mut handoff = Events::open(&daemon, &follow(&daemon, &format!("{}/stream", location(&one))));
    assert_eq!(events.next_event().unwrap().id, Some(daemon.events().len() as u64 - 2));
    // All that it has to tell is told; a stop may come before it could be.
    assert_eq!(std::iter::from_fn(|| handoff.next_event()).take(3).count(), 3);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    while events.next().is_some() {}
    assert!(handoff.next_event().is_none());
}

/// Reads a stream to its end: what it told besides beats. One that goes on beating has not ended.
pub(crate) fn to_the_end(events: &mut Events) -> Vec<Event> {
    let (mut told, mut beats) = (Vec::new(), 0);
    while let Some(event) = events.next() {
        beats += u32::from(event.is_comment);
        assert!(beats < 10, "it goes on: {told:?}");
        if !event.is_comment {
            told.push(event);
        }
    }
    told
}

/// Whoever has lost its token reads nothing more, wherever it began to.
#[test]
fn a_stream_ends_with_the_token_that_opened_it() {
    let daemon = Daemon::new();
    let one = spec("token_0001");
    assert_eq!(daemon.submit(&one).status, 201);
    let targets = [
        "/v1/audit/stream?from=1".to_owned(),
        "/v1/audit/stream?type=gate.decided".to_owned(),
        format!("{}/stream", location(&one)),
    ];
    let open = |token: &str| {
        targets.each_ref().map(|target| Events::open(&daemon, &Request::new("GET", target).token(token)))
    };
    let mut others = open(&daemon.admin);
    let mut streams = open(&daemon.token("gone", "auditor", None));
    assert_eq!(daemon.send(&Request::new("DELETE", "/v1/tokens/gone").token(&daemon.admin)).status, 200);
    let head = daemon.events().len() as u64;
    assert_eq!(daemon.submit(&spec("token_0002")).status, 201);
    for events in &mut streams {
        let told = to_the_end(events);
        assert!(told.iter().all(|event| event.id.unwrap() <= head), "{told:?}");
    }
    // One that expires ends by itself, without a word from anybody.
    let soon = json!({"name": "brief", "role": "auditor", "expiresAt": super::signing::from_now(3)});
    let made = daemon.post("/v1/tokens", soon);
    assert_eq!(made.status, 201, "{made:?}");
    for events in &mut open(made.json()["token"].as_str().unwrap()) {
        to_the_end(events);
    }
    // Those of others go on.
    assert_eq!(others[1].next_event().unwrap().kind, "entry");
}
