//! A task's events until its end, over as many connections as that takes.
//!
//! INVARIANT (nothing lost, nothing twice): an event with a number is given out once and in order. What comes without one
//! after numbered events is the task as it is, which they have told already; it is given out only if the stream then
//! ends without them.

use serde_json::{Value as Json, json};

use super::super::message::Message;
use super::super::method::Method;
use super::super::version::Version;
use super::sse::{Event, Events};
use super::{Asked, Client, ClientFault, Opened, Sent, exchange, is_over, pause, shape};

/// What a stream tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The number of the event in its task, where the server gives numbers.
    pub id: Option<u64>,
    /// The object of 0.3: a task, a message, a status-update or an artifact-update, as its `kind` says.
    pub json: Json,
}

impl Told {
    fn text(&self, pointer: &str) -> Option<&str> {
        self.json.pointer(pointer).and_then(Json::as_str)
    }

    pub fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    /// The state that the task is in, if it says one; in the words of 0.3.
    pub fn state(&self) -> Option<&str> {
        self.text("/status/state")
    }

    pub fn task_id(&self) -> Option<&str> {
        match self.kind() {
            "task" => self.text("/id"),
            _ => self.text("/taskId"),
        }
    }

    /// Is it the last one?
    pub fn is_final(&self) -> bool {
        match self.kind() {
            // Who answers with a message makes no task.
            "message" => true,
            "status-update" => self.json.get("final") == Some(&json!(true)),
            _ => self.state().is_some_and(shape::is_terminal),
        }
    }
}

/// A task's events, in order, until its end.
pub struct Stream<'c, 'h> {
    client: &'c Client<'h>,
    connection: Option<Connection>,
    /// What is sent again if the first answer was lost.
    message: Option<Json>,
    task_id: Option<String>,
    last: Option<u64>,
    state: String,
    /// The last task that was given out whole.
    task: Option<Json>,
    /// The task as it is, while the events that led there may still come.
    snapshot: Option<Told>,
    /// How often it was resumed since something new came.
    resumed: u32,
    is_ended: bool,
}

/// One connection, and the version whose envelopes it carries; none for bare objects.
struct Connection {
    events: Events<ureq::BodyReader<'static>>,
    envelope: Option<Version>,
}

impl std::fmt::Debug for Stream<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:?}, behind {:?})", self.task_id, self.last)
    }
}

impl<'c, 'h> Stream<'c, 'h> {
    pub(super) fn of_message(client: &'c Client<'h>, message: &Message) -> Result<Self, ClientFault> {
        let params = client.send_params(message, true);
        let body = client.request(Method::StreamMessage, params)?;
        Self::open(Self { message: Some(body), ..Self::nowhere(client) })
    }

    pub(super) fn of_task(client: &'c Client<'h>, id: &str, from: Option<u64>) -> Result<Self, ClientFault> {
        let last = from.map(|from| from.max(1) - 1);
        Self::open(Self { task_id: Some(id.to_owned()), last, ..Self::nowhere(client) })
    }

    fn nowhere(client: &'c Client<'h>) -> Self {
        Self {
            client,
            connection: None,
            message: None,
            task_id: None,
            last: None,
            state: String::new(),
            task: None,
            snapshot: None,
            resumed: 0,
            is_ended: false,
        }
    }

    fn open(mut self) -> Result<Self, ClientFault> {
        self.connect()?;
        Ok(self)
    }

    /// The number of the last event that was given out.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Asks for the events behind the last one that was seen; or, if there is no task yet, sends the same message.
    fn connect(&mut self) -> Result<(), ClientFault> {
        let client = self.client;
        let behind = self.last.filter(|last| *last > 0);
        let by_number = match (&self.task_id, self.last) {
            (Some(id), Some(last)) => client.place.stream_from(id, last.saturating_add(1)),
            _ => None,
        };
        let version = client.place.version;
        let (opened, envelope) = match (&self.task_id, &self.message, by_number) {
            (Some(_), _, Some(url)) => {
                let asked = Asked { url: &url, sent: Sent::Get, version: None, stream: Some(behind) };
                (exchange(&client.agent, client.hooks, &asked)?, None)
            }
            (Some(id), _, None) => {
                let body = client.request(Method::Subscribe, json!({"id": id}))?;
                (client.ask(&body, Some(behind))?, Some(version))
            }
            (None, Some(body), _) => (client.ask(body, Some(None))?, Some(version)),
            (None, None, _) => return Err(ClientFault::Strange("there is nothing to follow".to_owned())),
        };
        match opened {
            Opened::Stream(response) => {
                let reader = response.into_body().into_reader();
                self.connection = Some(Connection { events: Events::new(reader), envelope });
                Ok(())
            }
            Opened::Whole(answer) => match client.result(&answer) {
                // It ended while nobody looked: the task says how.
                Err(fault) if is_over(&fault) && self.task_id.is_some() => self.look(),
                Err(fault) => Err(fault),
                Ok(_) => Err(ClientFault::Strange("there is no stream where one was asked for".to_owned())),
            },
        }
    }

    /// The task as it is, instead of a stream.
    fn look(&mut self) -> Result<(), ClientFault> {
        let id = self.task_id.clone().unwrap_or_default();
        let json = self.client.get(&id, None)?;
        self.snapshot = Some(Told { id: None, json });
        self.connection = None;
        Ok(())
    }

    /// What an event tells, if it is new.
    fn take(&mut self, event: &Event, envelope: Option<Version>) -> Result<Option<Told>, ClientFault> {
        let strange = || ClientFault::Strange("an event of the stream is not JSON".to_owned());
        let mut json: Json = serde_json::from_str(&event.data).map_err(|_| strange())?;
        if let Some(version) = envelope {
            if let Some(fault) = ClientFault::of_answer(&json) {
                return Err(fault);
            }
            let result = json.as_object_mut().and_then(|members| members.remove("result"));
            json = shape::plain(result.ok_or_else(strange)?, version);
        }
        let told = Told { id: event.id.as_deref().and_then(|id| id.parse().ok()), json };
        match (told.id, self.last) {
            (Some(id), Some(last)) if id <= last => return Ok(None),
            // The task as it is, which numbered events have told or will, or which has not changed.
            (None, last)
                if told.kind() == "task" && (last.is_some() || self.task.as_ref() == Some(&told.json)) =>
            {
                self.snapshot = Some(told);
                return Ok(None);
            }
            _ => {}
        }
        Ok(Some(told))
    }

    /// Notes what is given out.
    fn give(&mut self, told: Told) -> Told {
        self.last = told.id.or(self.last);
        self.resumed = 0;
        if let Some(id) = told.task_id() {
            self.task_id = Some(id.to_owned());
        }
        if let Some(state) = told.state() {
            self.state = state.to_owned();
        }
        if told.kind() == "task" {
            self.task = Some(told.json.clone());
        }
        self.is_ended = told.is_final();
        told
    }

    /// The connection is gone: was that the end, or is it resumed?
    fn resume(&mut self, why: &str, is_closed: bool) -> Result<Option<Told>, ClientFault> {
        self.connection = None;
        if let Some(snapshot) = self.snapshot.take().filter(Told::is_final) {
            return Ok(Some(self.give(snapshot)));
        }
        // Some servers end a stream where somebody else has to act; a second one that brings nothing new says so.
        if is_closed && self.resumed > 0 && shape::is_interrupted(&self.state) {
            self.is_ended = true;
            return Ok(None);
        }
        if self.resumed >= self.client.hooks.max_retries() {
            let seen = self.last.map_or_else(String::new, |last| format!(" behind event {last}"));
            return Err(ClientFault::Lost(format!("the stream broke off{seen}: {why}")));
        }
        if self.resumed > 0 {
            pause(self.resumed - 1, None);
        }
        self.resumed += 1;
        self.client.hooks.retrying(why);
        self.connect()?;
        // There was no stream to be had, and the task says why.
        match self.snapshot.take().filter(|told| self.connection.is_none() && told.is_final()) {
            Some(told) => Ok(Some(self.give(told))),
            None => Ok(None),
        }
    }

    fn advance(&mut self) -> Result<Option<Told>, ClientFault> {
        while !self.is_ended {
            let (why, is_closed) = match &mut self.connection {
                Some(connection) => {
                    let envelope = connection.envelope;
                    match connection.events.next() {
                        Ok(Some(event)) => match self.take(&event, envelope)? {
                            Some(told) => return Ok(Some(self.give(told))),
                            None => continue,
                        },
                        Ok(None) => ("it was closed before its end".to_owned(), true),
                        Err(error) => (error.to_string(), false),
                    }
                }
                None => ("there was no stream".to_owned(), true),
            };
            if let Some(told) = self.resume(&why, is_closed)? {
                return Ok(Some(told));
            }
        }
        Ok(None)
    }
}

impl Iterator for Stream<'_, '_> {
    type Item = Result<Told, ClientFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.is_ended = true;
        }
        next.transpose()
    }
}
