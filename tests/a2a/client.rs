//! The client against a server that does what a test says: loses answers, cuts streams, changes its mind.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use handoffd::a2a::client::{Answer, Client, ClientFault, Hooks, Plain, Told};
use handoffd::a2a::{Message, Part};
use serde_json::{Value as Json, json};

/// A request that came in.
#[derive(Debug, Clone)]
struct Seen {
    target: String,
    headers: Vec<(String, String)>,
    body: Json,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// A server, and all that it was asked but for its card.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers with its card, and everything else with the bytes that the test gives for the nth request. The
    /// connection is closed behind them, whatever they promise.
    fn new(card: fn(&str) -> Json, answer: impl Fn(&Seen, usize) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        // Ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let Some(request) = read(&stream) else { continue };
                let reply = if request.target.ends_with("agent-card.json") {
                    whole(200, "application/json", &card(&format!("http://{address}")).to_string())
                } else {
                    let mut all: std::sync::MutexGuard<'_, Vec<Seen>> = noted.lock().unwrap();
                    all.push(request.clone());
                    answer(&request, all.len())
                };
                let _ = stream.write_all(&reply);
            }
        });
        Self { address, seen }
    }

    fn client<'h>(&self, hooks: &'h dyn Hooks) -> Client<'h> {
        Client::discover(agent(), &format!("http://{}", self.address), hooks).unwrap()
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::new_with_defaults()
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { target, headers, body: Json::Null };
    if let Some(length) = seen.header("content-length") {
        let mut body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        seen.body = serde_json::from_slice(&body).ok()?;
    }
    Some(seen)
}

fn whole(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

fn result(result: Json) -> Vec<u8> {
    whole(200, "application/json", &json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string())
}

fn error(code: i32) -> Vec<u8> {
    let error = json!({"code": code, "message": "no"});
    whole(200, "application/json", &json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string())
}

/// A stream of which only the first bytes come; whether it then ends as it should is for the test to say.
fn stream(text: &str, cut: usize, is_closed_well: bool) -> Vec<u8> {
    let mut reply = b"HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".to_vec();
    let part = &text.as_bytes()[..cut.min(text.len())];
    if !part.is_empty() {
        reply.extend(format!("{:x}\r\n", part.len()).bytes());
        reply.extend(part);
        reply.extend(b"\r\n");
    }
    if is_closed_well {
        reply.extend(b"0\r\n\r\n");
    }
    reply
}

fn old_card(base: &str) -> Json {
    json!({"name": "old", "url": format!("{base}/rpc"), "protocolVersion": "0.3.0"})
}

fn new_card(base: &str) -> Json {
    let at = |version: &str| json!({"url": format!("{base}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": version});
    json!({"name": "new", "supportedInterfaces": [at("1.0"), at("0.3")]})
}

/// As handoffd's: it also says where the events are had by their numbers.
fn our_card(base: &str) -> Json {
    let mut card = new_card(base);
    card["endpoints"] = json!({"stream": format!("{base}/stream/{{id}}")});
    card
}

fn message() -> Message {
    Message::from_user("msg-1", vec![Part::data(json!({"amount": 100}))])
}

fn task(state: &str) -> Json {
    json!({"kind": "task", "id": "hs_1", "contextId": "c", "status": {"state": state}})
}

/// The events of a task in the form of 0.3, by their numbers; what the gateway does not show of itself has none.
fn events() -> Vec<(u64, Json)> {
    let status = |state: &str, is_final: bool| json!({"kind": "status-update", "taskId": "hs_1", "contextId": "c", "status": {"state": state}, "final": is_final});
    let artifact = json!({"kind": "artifact-update", "taskId": "hs_1", "contextId": "c", "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "é"}]}});
    vec![
        (1, task("submitted")),
        (4, status("working", false)),
        (6, artifact),
        (7, status("input-required", false)),
        (8, status("working", false)),
        (9, status("completed", true)),
    ]
}

/// The same as 1.0 says it.
fn in_1_0(event: &Json) -> Json {
    let mut event = event.clone();
    let kind = event["kind"].as_str().unwrap().to_owned();
    event.as_object_mut().unwrap().remove("kind");
    event.as_object_mut().unwrap().remove("final");
    if let Some(state) = event.pointer_mut("/status/state") {
        *state = json!(format!("TASK_STATE_{}", state.as_str().unwrap().to_uppercase().replace('-', "_")));
    }
    if let Some(parts) = event.pointer_mut("/artifact/parts") {
        *parts = json!([{"text": "é"}]);
    }
    let member = match kind.as_str() {
        "task" => "task",
        "status-update" => "statusUpdate",
        _ => "artifactUpdate",
    };
    json!({member: event})
}

/// Which shape the events of a stream have.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Bare,
    Old,
    New,
}

fn told_from(from: u64, form: Form) -> String {
    let mut text = ":hello\n\n".to_owned();
    for (id, event) in events().into_iter().filter(|(id, _)| *id >= from) {
        let data = match form {
            Form::Bare => event,
            Form::Old => json!({"jsonrpc": "2.0", "id": 1, "result": event}),
            Form::New => json!({"jsonrpc": "2.0", "id": 1, "result": in_1_0(&event)}),
        };
        text.push_str(&format!("id: {id}\ndata: {data}\n\n"));
    }
    text
}

fn ids(told: &[Told]) -> Vec<u64> {
    told.iter().map(|told| told.id.unwrap()).collect()
}

#[test]
fn a_message_whose_answer_was_lost_is_sent_again_with_the_same_id() {
    for lost in [0, 1, 2] {
        let server = Server::new(old_card, move |_, n| match n {
            // Nothing at all, and half an answer.
            1 if lost > 0 => Vec::new(),
            2 if lost > 1 => result(task("submitted"))[..90].to_vec(),
            _ => result(task("submitted")),
        });
        let sent = server.client(&Plain).send(&message(), true).unwrap();
        assert_eq!(sent["id"], "hs_1");
        let seen = server.seen();
        assert_eq!(seen.len(), lost + 1);
        for one in seen {
            assert_eq!(one.body["params"]["message"]["messageId"], "msg-1");
            assert_eq!(one.method(), "message/send");
        }
    }
}

/// Renews its token when it is told that the old one does not count.
struct Renewing {
    token: RefCell<String>,
    max_retries: u32,
    asked: Cell<u32>,
}

impl Renewing {
    fn new(max_retries: u32) -> Self {
        Self { token: RefCell::new("old".to_owned()), max_retries, asked: Cell::new(0) }
    }
}

impl Hooks for Renewing {
    fn headers(&self) -> Vec<(String, String)> {
        vec![("Authorization".to_owned(), format!("Bearer {}", self.token.borrow()))]
    }

    fn should_retry(&self, answer: &Answer) -> bool {
        self.asked.set(self.asked.get() + 1);
        *self.token.borrow_mut() = "new".to_owned();
        answer.status == 401
    }

    fn max_retries(&self) -> u32 {
        self.max_retries
    }
}

#[test]
fn headers_and_retries_are_the_users_to_say() {
    let guarded = || {
        Server::new(old_card, |seen, _| match seen.header("authorization") {
            Some("Bearer new") => result(task("working")),
            _ => whole(401, "application/json", r#"{"error": {"code": -32603, "message": "who are you?"}}"#),
        })
    };
    let (server, hooks) = (guarded(), Renewing::new(1));
    assert_eq!(server.client(&hooks).get("hs_1", None).unwrap()["id"], "hs_1");
    assert_eq!((server.seen().len(), hooks.asked.get()), (2, 1));
    // Not once more than is said.
    let (server, hooks) = (guarded(), Renewing::new(0));
    let fault = server.client(&hooks).get("hs_1", None).unwrap_err();
    assert_eq!(fault, ClientFault::Status { status: 401, why: "who are you?".to_owned() });
    assert_eq!((server.seen().len(), hooks.asked.get()), (1, 0));
    // Who has no say gets what passes by itself tried again, and nothing else.
    for (status, requests) in [(503, 2), (429, 2), (400, 1), (401, 1), (500, 1)] {
        let server = Server::new(old_card, move |_, n| match n {
            1 => whole(status, "text/plain", "no"),
            _ => result(task("working")),
        });
        assert_eq!(server.client(&Plain).get("hs_1", None).is_ok(), requests == 2, "{status}");
        assert_eq!(server.seen().len(), requests, "{status}");
    }
}

#[test]
fn the_version_is_what_the_card_says() {
    for (card, version, get) in
        [(old_card as fn(&str) -> Json, "0.3", "tasks/get"), (new_card as fn(&str) -> Json, "1.0", "GetTask")]
    {
        let server = Server::new(card, |seen, _| {
            let state = if seen.method() == "GetTask" { "TASK_STATE_AUTH_REQUIRED" } else { "auth-required" };
            result(task(state))
        });
        let client = server.client(&Plain);
        // Whatever is spoken, it is told in one shape.
        assert_eq!(client.get("hs_1", Some(0)).unwrap()["status"]["state"], "auth-required");
        let older = client.in_0_3().unwrap();
        assert_eq!(older.get("hs_1", None).unwrap()["status"]["state"], "auth-required");
        let seen = server.seen();
        assert_eq!((seen[0].method(), seen[0].header("a2a-version")), (get, Some(version)));
        assert_eq!(seen[0].body["params"], json!({"id": "hs_1", "historyLength": 0}));
        assert_eq!((seen[1].method(), seen[1].header("a2a-version")), ("tasks/get", Some("0.3")));
    }
}

#[test]
fn nobody_on_the_way_points_elsewhere() {
    let other = Server::new(old_card, |_, _| result(task("working")));
    let place = format!("http://{}/rpc", other.address);
    let server = Server::new(old_card, move |_, _| {
        format!("HTTP/1.1 307 x\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .into_bytes()
    });
    let fault = server.client(&Plain).get("hs_1", None).unwrap_err();
    assert!(matches!(fault, ClientFault::Status { status: 307, .. }), "{fault:?}");
    assert!(other.seen().is_empty());
    let server = Server::new(|_| old_card("http://127.0.0.2:9"), |_, _| Vec::new());
    let found = Client::discover(agent(), &format!("http://{}", server.address), &Plain);
    assert!(matches!(found, Err(ClientFault::Elsewhere(_))), "{found:?}");
}

/// Cuts the first stream behind every byte.
#[test]
fn a_stream_that_is_cut_anywhere_goes_on_without_loss_or_repeats() {
    let expected: Vec<Json> = events().into_iter().map(|(_, event)| event).collect();
    for (card, form) in [
        (old_card as fn(&str) -> Json, Form::Old),
        (new_card as fn(&str) -> Json, Form::New),
        (our_card as fn(&str) -> Json, Form::New),
    ] {
        let text = told_from(1, form);
        for (cut, is_closed_well) in (0..text.len()).step_by(5).map(|cut| (cut, cut % 2 == 0)) {
            let first = text.clone();
            let server = Server::new(card, move |seen, n| {
                if n == 1 {
                    return stream(&first, cut, is_closed_well);
                }
                if let Some((_, from)) = seen.target.split_once("?from=") {
                    return stream(&told_from(from.parse().unwrap(), Form::Bare), usize::MAX, true);
                }
                // One that knows the task begins with it as it is, which is no event.
                let now = told_from(1, form);
                let snapshot = match seen.method() {
                    "tasks/resubscribe" | "SubscribeToTask" => {
                        let task = now.split("data: ").nth(1).unwrap().split('\n').next().unwrap();
                        format!("data: {task}\n\n")
                    }
                    _ => String::new(),
                };
                let behind: u64 = seen.header("last-event-id").map_or(0, |last| last.parse().unwrap());
                stream(&(snapshot + &told_from(behind + 1, form)), usize::MAX, true)
            });
            let client = server.client(&Plain);
            let told: Vec<Told> = client.stream(&message()).unwrap().map(Result::unwrap).collect();
            assert_eq!(ids(&told), [1, 4, 6, 7, 8, 9], "{form:?} {cut}");
            let heard: Vec<Json> = told.into_iter().map(|told| told.json).collect();
            assert_eq!(heard, expected, "{form:?} {cut}");
            // If there was no event there is no task to go on with: the same message is sent.
            for one in server.seen().iter().filter(|one| one.method().to_lowercase().contains("stream")) {
                assert_eq!(one.body["params"]["message"]["messageId"], "msg-1");
            }
        }
    }
}

#[test]
fn a_stream_is_had_from_any_number_on() {
    let server = Server::new(our_card, |seen, _| {
        let (_, from) = seen.target.split_once("/stream/hs_1?from=").unwrap();
        stream(&told_from(from.parse().unwrap(), Form::Bare), usize::MAX, true)
    });
    let client = server.client(&Plain);
    for (from, expected) in
        [(0, &[1, 4, 6, 7, 8, 9][..]), (1, &[1, 4, 6, 7, 8, 9]), (5, &[6, 7, 8, 9]), (9, &[9])]
    {
        let told: Vec<Told> = client.resubscribe("hs_1", Some(from)).unwrap().map(Result::unwrap).collect();
        assert_eq!(ids(&told), expected);
    }
}

/// What 1.0 asks of servers: no stream, but an error that says so.
#[test]
fn a_task_that_ended_unseen_is_told_as_it_is() {
    for card in [old_card as fn(&str) -> Json, new_card] {
        let server = Server::new(card, |seen, _| match seen.method() {
            "GetTask" => result(task("TASK_STATE_CANCELED")),
            "tasks/get" => result(task("canceled")),
            _ => error(-32004),
        });
        let client = server.client(&Plain);
        let told: Vec<Told> = client.resubscribe("hs_1", None).unwrap().map(Result::unwrap).collect();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].state(), Some("canceled"));
    }
    // Whose task it is not is told nothing.
    let server = Server::new(old_card, |_, _| error(-32001));
    assert!(server.client(&Plain).resubscribe("hs_1", None).unwrap_err().is_rpc(-32001));
}

struct Twice;

impl Hooks for Twice {
    fn max_retries(&self) -> u32 {
        2
    }
}

#[test]
fn a_stream_that_brings_nothing_new_is_given_up() {
    let server = Server::new(our_card, |seen, n| {
        let form = if seen.target == "/rpc" { Form::New } else { Form::Bare };
        let first = told_from(1, form);
        let cut = first.match_indices("\n\n").nth(2).unwrap().0 + 2;
        stream(if n == 1 { &first } else { ":hello\n\n" }, cut, false)
    });
    let client = server.client(&Twice);
    let told: Vec<Result<Told, ClientFault>> = client.stream(&message()).unwrap().collect();
    let [Ok(first), Ok(second), Err(ClientFault::Lost(why))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((first.id, second.id), (Some(1), Some(4)));
    assert!(why.contains("behind event 4"), "{why}");
    assert_eq!(server.seen().len(), 3);
}

/// Some servers end the stream where somebody has to act: that is an end if it stays so.
#[test]
fn a_stream_that_is_closed_where_somebody_has_to_act_has_ended() {
    let asked = json!({"jsonrpc": "2.0", "id": 1, "result": task("input-required")});
    let server = Server::new(old_card, move |_, _| stream(&format!("data: {asked}\n\n"), usize::MAX, true));
    let client = server.client(&Plain);
    let told: Vec<Told> = client.stream(&message()).unwrap().map(Result::unwrap).collect();
    assert_eq!(told.last().unwrap().state(), Some("input-required"));
    assert!(server.seen().len() <= 3, "{:?}", server.seen());
}
