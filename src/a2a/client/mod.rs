//! An A2A client: finds an agent by its card, hands it messages, and follows tasks to their end.
//!
//! Small and blocking. It speaks 1.0 where the card does and 0.3 where not, and says what it heard in one shape. Nothing
//! is waited for or read without end; redirects are not followed, and a card that points to another host is not either.
//!
//! Whatever is asked is asked again when the answer was lost: a message carries the same `messageId` each time, and a
//! stream that was cut goes on behind the last event that was seen. A hand: the one part of this room with a socket.

mod fault;
mod hooks;
mod place;
mod shape;
mod sse;
mod stream;

use std::fmt;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use ureq::http::Response;

use super::error::ErrorCode;
use super::message::Message;
use super::method::Method;
use super::version::Version;
use crate::json::printable;
use crate::limits;
pub use fault::ClientFault;
pub use hooks::{Answer, Hooks, Plain};
use place::{Place, card_url};
pub use stream::{Stream, Told};

/// An agent that can be asked.
pub struct Client<'h> {
    agent: ureq::Agent,
    hooks: &'h dyn Hooks,
    card: Json,
    place: Place,
}

impl fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.place.rpc)
    }
}

/// What goes out.
#[derive(Debug, Clone, Copy)]
enum Sent<'b> {
    Get,
    Post(&'b Json),
}

/// A request, but for what is the same in each.
#[derive(Debug, Clone, Copy)]
struct Asked<'b> {
    url: &'b str,
    sent: Sent<'b>,
    version: Option<Version>,
    /// A stream is wanted, behind this event.
    stream: Option<Option<u64>>,
}

/// An answer that has been read.
struct Read {
    status: u16,
    retry_after_s: Option<u64>,
    body: Vec<u8>,
}

/// An answer, all of it or as it comes.
enum Opened {
    Stream(Response<ureq::Body>),
    Whole(Read),
}

impl<'h> Client<'h> {
    /// Fetches the card of the agent at `url`, which is the agent's or the card's own address.
    ///
    /// Of the `agent` its certificates and proxy count; time-outs and redirects are the client's own matter.
    pub fn discover(agent: ureq::Agent, url: &str, hooks: &'h dyn Hooks) -> Result<Self, ClientFault> {
        let at = card_url(url);
        let asked = Asked { url: &at, sent: Sent::Get, version: None, stream: None };
        let whole = exchange(&agent, hooks, &asked)?;
        let Opened::Whole(answer) = whole else {
            return Err(ClientFault::Strange(format!("{at} is no card")));
        };
        let card = success(&at, &answer)?;
        let place = Place::of(&card, url)?;
        Ok(Self { agent, hooks, card, place })
    }

    /// The card that everybody may read.
    pub fn card(&self) -> &Json {
        &self.card
    }

    /// The version that is spoken.
    pub fn version(&self) -> Version {
        self.place.version
    }

    /// The card for who asks.
    pub fn extended_card(&self) -> Result<Json, ClientFault> {
        self.call(Method::ExtendedCard, json!({}))
    }

    /// Sends a message; `wait` is whether the answer may take until there is something to do or nothing to wait for.
    /// The answer is a task or a message, as its `kind` says.
    pub fn send(&self, message: &Message, wait: bool) -> Result<Json, ClientFault> {
        let result = self.call(Method::SendMessage, self.send_params(message, wait))?;
        Ok(shape::plain(result, self.place.version))
    }

    /// Sends a message, and follows the task that it makes to its end.
    pub fn stream(&self, message: &Message) -> Result<Stream<'_, 'h>, ClientFault> {
        Stream::of_message(self, message)
    }

    /// Follows a task to its end: all of it from an event's number on, where the server has numbers; without a number,
    /// the task as it is and what comes.
    pub fn resubscribe(&self, id: &str, from: Option<u64>) -> Result<Stream<'_, 'h>, ClientFault> {
        Stream::of_task(self, id, from)
    }

    /// The task as it is.
    pub fn get(&self, id: &str, history_length: Option<u32>) -> Result<Json, ClientFault> {
        let mut params = json!({"id": id});
        if let (Some(params), Some(length)) = (params.as_object_mut(), history_length) {
            params.insert("historyLength".to_owned(), json!(length));
        }
        let result = self.call(Method::GetTask, params)?;
        Ok(shape::plain_task(result, self.place.version))
    }

    /// Cancels a task, and gives what became of it.
    pub fn cancel(&self, id: &str) -> Result<Json, ClientFault> {
        let result = self.call(Method::CancelTask, json!({"id": id}))?;
        Ok(shape::plain_task(result, self.place.version))
    }

    /// Asks for anything else that a version has; the answer is as it has it.
    pub fn call(&self, method: Method, params: Json) -> Result<Json, ClientFault> {
        let body = self.request(method, params)?;
        match self.ask(&body, None)? {
            Opened::Whole(answer) => self.result(&answer),
            Opened::Stream(_) => Err(ClientFault::Strange("a stream came, and was not asked for".to_owned())),
        }
    }

    /// The same client, that speaks 0.3; if the card says that this is spoken.
    pub fn in_0_3(mut self) -> Result<Self, ClientFault> {
        match self.place.older.clone() {
            Some(rpc) => {
                self.place.rpc = rpc;
                self.place.version = Version::V0_3;
                Ok(self)
            }
            None => Err(ClientFault::Strange("the card names no JSON-RPC interface of A2A 0.3".to_owned())),
        }
    }

    fn send_params(&self, message: &Message, wait: bool) -> Json {
        let version = self.place.version;
        let configuration = match version {
            Version::V0_3 => json!({"blocking": wait}),
            Version::V1_0 => json!({"returnImmediately": !wait}),
        };
        json!({"message": message.to_json(version), "configuration": configuration})
    }

    fn request(&self, method: Method, params: Json) -> Result<Json, ClientFault> {
        let version = self.place.version;
        let name = method
            .name(version)
            .ok_or_else(|| ClientFault::Strange(format!("A2A {} has no such method", version.as_str())))?;
        let mut request = Map::new();
        request.insert("jsonrpc".to_owned(), json!("2.0"));
        // One request, one answer: there is nothing to tell apart.
        request.insert("id".to_owned(), json!(1));
        request.insert("method".to_owned(), json!(name));
        request.insert("params".to_owned(), params);
        Ok(Json::Object(request))
    }

    fn ask(&self, body: &Json, stream: Option<Option<u64>>) -> Result<Opened, ClientFault> {
        let asked =
            Asked { url: &self.place.rpc, sent: Sent::Post(body), version: Some(self.place.version), stream };
        exchange(&self.agent, self.hooks, &asked)
    }

    fn result(&self, answer: &Read) -> Result<Json, ClientFault> {
        let mut answer = success(&self.place.rpc, answer)?;
        if let Some(fault) = ClientFault::of_answer(&answer) {
            return Err(fault);
        }
        let result = answer.as_object_mut().and_then(|members| members.remove("result"));
        result.ok_or_else(|| ClientFault::Strange("the answer has neither a result nor an error".to_owned()))
    }
}

/// Asks until there is an answer, or it has been asked often enough.
fn exchange(agent: &ureq::Agent, hooks: &dyn Hooks, asked: &Asked<'_>) -> Result<Opened, ClientFault> {
    let mut retries = 0;
    loop {
        let (why, wait_s) = match ask_once(agent, hooks, asked) {
            Ok(Opened::Whole(answer)) if !(200..300).contains(&answer.status) => {
                let Read { status, retry_after_s, .. } = answer;
                let seen = Answer { status, retry_after_s, retries };
                if retries >= hooks.max_retries() || !hooks.should_retry(&seen) {
                    return Ok(Opened::Whole(answer));
                }
                (format!("{} answers with status {status}", asked.url), retry_after_s)
            }
            Ok(opened) => return Ok(opened),
            Err(fault) => {
                // Nobody there at all is told at once; somebody who was there a moment ago is starting again.
                let passes = match &fault {
                    ClientFault::Lost(_) => true,
                    ClientFault::Unreachable(_) => {
                        retries > 0 || asked.stream.is_some_and(|from| from.is_some())
                    }
                    _ => false,
                };
                if !passes || retries >= hooks.max_retries() {
                    return Err(fault);
                }
                (fault.to_string(), None)
            }
        };
        hooks.retrying(&why);
        pause(retries, wait_s);
        retries += 1;
    }
}

/// Rests before the next attempt: longer each time, or as long as the server says.
fn pause(retries: u32, wait_s: Option<u64>) {
    let grown_ms = limits::CLIENT_RETRY_MS.saturating_mul(1 << retries.min(16));
    let wait_ms = wait_s.map_or(grown_ms, |wait_s| wait_s.saturating_mul(1000));
    thread::sleep(Duration::from_millis(wait_ms.min(limits::CLIENT_RETRY_WAIT_MS_MAX)));
}

fn ask_once(agent: &ureq::Agent, hooks: &dyn Hooks, asked: &Asked<'_>) -> Result<Opened, ClientFault> {
    let url = asked.url;
    let lost = |error: ureq::Error| ClientFault::of_transport(url, &error);
    let mut headers = hooks.headers();
    headers.extend(asked.version.map(|version| ("A2A-Version".to_owned(), version.as_str().to_owned())));
    let accept = if asked.stream.is_some() { "text/event-stream" } else { "application/json" };
    headers.push(("Accept".to_owned(), accept.to_owned()));
    let last = asked.stream.flatten().map(|last| ("Last-Event-ID".to_owned(), last.to_string()));
    headers.extend(last);
    let response = match asked.sent {
        Sent::Get => {
            let request =
                headers.iter().fold(agent.get(url), |request, (name, value)| request.header(name, value));
            bounded(request, asked.stream.is_some()).call()
        }
        Sent::Post(body) => {
            let request =
                headers.iter().fold(agent.post(url), |request, (name, value)| request.header(name, value));
            bounded(request, asked.stream.is_some())
                .content_type("application/json")
                .send(body.to_string().as_bytes())
        }
    };
    let mut response = response.map_err(lost)?;
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let retry_after_s = header("retry-after").and_then(|text| text.trim().parse().ok());
    let is_stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    if is_stream && (200..300).contains(&status) && asked.stream.is_some() {
        return Ok(Opened::Stream(response));
    }
    let body = response.body_mut().with_config().limit(limits::CLIENT_ANSWER_BYTES_MAX).read_to_vec();
    Ok(Opened::Whole(Read { status, retry_after_s, body: body.map_err(lost)? }))
}

/// A request that ends, or a stream that is not silent for long; and nobody on the way may point elsewhere.
fn bounded<B>(request: ureq::RequestBuilder<B>, is_stream: bool) -> ureq::RequestBuilder<B> {
    let config = request
        .config()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(limits::CLIENT_CONNECT_S)));
    if is_stream {
        let silence = Some(Duration::from_secs(limits::A2A_SILENCE_S));
        config.timeout_global(None).timeout_recv_response(silence).timeout_per_read(silence).build()
    } else {
        config.timeout_global(Some(Duration::from_secs(limits::CLIENT_REQUEST_S))).build()
    }
}

/// The JSON of an answer that is a success; otherwise why it is none, in the server's words where it has some.
fn success(url: &str, answer: &Read) -> Result<Json, ClientFault> {
    let json: Option<Json> = serde_json::from_slice(&answer.body).ok();
    if (200..300).contains(&answer.status) {
        return json.ok_or_else(|| ClientFault::Strange(format!("{url} does not answer with JSON")));
    }
    let words = json.as_ref().and_then(|json| {
        let said =
            json.pointer("/error/message").or_else(|| json.get("detail")).or_else(|| json.get("title"));
        said.and_then(Json::as_str)
    });
    let why = match answer.status {
        300..400 => format!("{url} points elsewhere; give the agent's own URL"),
        _ => words.map_or_else(|| format!("{url} does not answer as an A2A agent does"), printable),
    };
    Err(ClientFault::Status { status: answer.status, why })
}

/// Is it said that this task has ended, and that there is nothing to subscribe to?
fn is_over(fault: &ClientFault) -> bool {
    fault.is_rpc(ErrorCode::UnsupportedOperation.number())
}
