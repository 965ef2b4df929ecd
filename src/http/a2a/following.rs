//! Following a task: streams, and waiting until it has got somewhere.
//!
//! A stream pulls from the ledger at its reader's pace. What happened before it began is read, what happens after is
//! heard, and what is both is told once: an update knows its place in the Wire stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value as Json;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::sending::Heard;
use super::talk::Talk;
use super::tasks::{Asked, Found, Stream, Wanted};
use crate::a2a::{self, ErrorCode, Id, Life, Message, RpcError, TaskId, Update, Version, resume_from};
use crate::callers::Caller;
use crate::gateway::{Listener, Told};
use crate::http::App;
use crate::http::call::Call;
use crate::http::endpoint::Answer;
use crate::http::metrics::OpenStream;
use crate::http::problem::{Kind, Problem};
use crate::http::reads::may_see;
use crate::http::spans::Side;
use crate::http::streams::Reader;
use crate::limits;
use crate::os::clock;
use crate::policy::PolicySet;
use crate::timestamp::Timestamp;
use crate::views::{AskedState, AttemptRow};
use crate::web::next_span;
use crate::wire::{Contracts, Envelope};

/// The form that a stream is told in.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// Answers to one JSON-RPC request.
    Rpc { id: Id, version: Version },
    /// `GET /stream/{id}`.
    Plain,
}

impl Form {
    fn version(&self) -> Version {
        match self {
            Self::Rpc { version, .. } => *version,
            Self::Plain => Version::V0_3,
        }
    }

    fn update(&self, update: &Update) -> Event {
        let contracts = Contracts::embedded();
        let event = Event::default().id(update.id().to_string());
        match self {
            Self::Rpc { id, version } => {
                event.data(a2a::succeeded(id, update.to_json(contracts, *version)).to_string())
            }
            Self::Plain => {
                let told = update.to_stream_event(contracts);
                event.event(told.event).data(told.data.to_string())
            }
        }
    }

    /// The task as it is now. It has no number: whoever goes on, goes on behind the last update.
    fn snapshot(&self, task: Json, is_last: bool) -> Event {
        match self {
            Self::Rpc { id, version } => {
                Event::default().data(a2a::succeeded(id, a2a::send_result(task, *version)).to_string())
            }
            Self::Plain => {
                Event::default().event(if is_last { "final" } else { "task" }).data(task.to_string())
            }
        }
    }
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the first update: it tells of a task that has just begun.
    First,
    /// With the task as it is now, and then what happens from here on.
    Now,
    /// With the task as it is now where `snapshot` says so, and then with this update.
    From { update: u64, snapshot: bool },
}

/// `GET /stream/{id}`.
pub(in crate::http) async fn stream(call: Call) -> Answer {
    let from = call.query.text("from").map(str::to_owned);
    let id = TaskId::parse(call.path()).ok_or_else(|| Problem::not_found("task"))?;
    let talk = Talk::of(call);
    let update = resume_from(from.as_deref(), talk.last_event_id.as_deref())
        .map_err(|fault| Problem::new(Kind::RequestInvalid, fault.to_string()).at(fault.name))?;
    let begin = Begin::From { update, snapshot: false };
    match talk.follow(&id, Form::Plain, begin, None).await {
        Ok(response) => Ok(response),
        Err(error) if error.code == ErrorCode::TaskNotFound => Err(Problem::not_found("task")),
        Err(error) => Err(Problem::new(Kind::ViewsBehind, error.message).hint("try again shortly")),
    }
}

impl Talk {
    /// `tasks/resubscribe` and `SubscribeToTask`.
    pub(super) async fn subscribe(
        &self,
        id: &TaskId,
        from: Option<u64>,
        (rpc_id, version): (Id, Version),
    ) -> Result<Response, RpcError> {
        let last = self.last_event_id.as_deref();
        let bad = |fault: a2a::ResumeFault| {
            RpcError::at(
                ErrorCode::InvalidParams,
                fault.name,
                fault.to_string(),
                "send the id of the last event you had",
            )
        };
        let begin = match (last, from) {
            (None, None) => Begin::Now,
            _ => {
                let from = from.map(|from| from.to_string());
                let update = resume_from(from.as_deref(), last).map_err(bad)?;
                Begin::From { update, snapshot: version == Version::V1_0 }
            }
        };
        self.follow(id, Form::Rpc { id: rpc_id, version }, begin, None).await
    }

    /// The stream of a message that was taken in.
    pub(super) async fn stream_of(
        &self,
        Heard { id, answer, fresh }: Heard,
        message: &Message,
        (rpc_id, version): (Id, Version),
    ) -> Result<Response, RpcError> {
        let form = Form::Rpc { id: rpc_id, version };
        let Some(fresh) = fresh else {
            return self.follow(&id, form, Begin::First, answer.as_ref()).await;
        };
        let listener = self.app.gateway.listen(fresh.next());
        let (teller, response) = self.teller(form, None);
        self.tell_of(teller, fresh.into_stream(id, message), Begin::First, answer.as_ref(), listener)?;
        Ok(response)
    }

    async fn follow(
        &self,
        id: &TaskId,
        form: Form,
        begin: Begin,
        answer: Option<&Json>,
    ) -> Result<Response, RpcError> {
        // In this order: what becomes durable in between is both read and heard, and told once.
        let listener = self.app.gateway.listen(self.app.gateway.engine().head() + 1);
        let found = self.find(id).await?;
        match found {
            Found::Attempt(attempt) => {
                let (teller, response) = self.teller(form, Some(attempt.row));
                self.tell_of(teller, attempt.stream, begin, answer, listener)?;
                Ok(response)
            }
            Found::Asked(asked) => {
                let (mut teller, response) = self.teller(form, None);
                if asked.is_over() && teller.form.version() == Version::V1_0 && begin == Begin::Now {
                    return Err(ended());
                }
                let (talk, answer, open) = (self.again(), answer.cloned(), OpenTelling::of(self, id));
                tokio::spawn(async move {
                    let _open = open;
                    teller.asked(&talk, *asked, answer, begin, listener).await;
                });
                Ok(response)
            }
        }
    }

    /// Somebody who tells of an attempt or of what is the caller's own, and the answer in which it is told.
    fn teller(&self, form: Form, row: Option<AttemptRow>) -> (Teller, Response) {
        let (sender, events) = mpsc::channel(limits::A2A_STREAM_EVENTS);
        let beat = KeepAlive::new().interval(Duration::from_secs(limits::A2A_HEARTBEAT_S)).text("");
        let response = Sse::new(ReceiverStream::new(events)).keep_alive(beat).into_response();
        // Whoever sees it for what they said in it has said it.
        let row = row.filter(|row| self.who.sees(row, &self.policies));
        let sees = move |caller: &Caller, policies: &PolicySet| {
            row.as_ref().is_none_or(|row| may_see(caller, row, policies))
        };
        let reader = Reader::new(&self.app, self.who.caller(), sees);
        (Teller { form, sender, reader, stopping: self.app.stopping.subscribe() }, response)
    }

    /// Has an attempt told, unless there is nothing to tell.
    fn tell_of(
        &self,
        mut teller: Teller,
        stream: Stream,
        begin: Begin,
        answer: Option<&Json>,
        listener: Listener,
    ) -> Result<(), RpcError> {
        let version = teller.form.version();
        let told = Backlog::of(&stream, answer, begin);
        if told.is_refused(version, begin) {
            return Err(ended());
        }
        let snapshot = told.wants_snapshot(begin).then(|| stream.to_json(answer, &Wanted::all(version)));
        let (talk, open) = (self.again(), OpenTelling::of(self, &stream.id));
        tokio::spawn(async move {
            let _open = open;
            teller.attempt(&talk, &stream, told, snapshot, listener).await;
        });
        Ok(())
    }

    /// The task of a message, once there is something for its sender to do, nothing more to wait for, or the time is
    /// over.
    pub(super) async fn settled(
        &self,
        Heard { id, answer, fresh }: Heard,
        message: &Message,
        wanted: &Wanted,
        patience: Duration,
    ) -> Result<Json, RpcError> {
        let gateway = &self.app.gateway;
        // What becomes durable from `next` on is listened for, so that nothing falls in between.
        let (stream, next) = match fresh {
            Some(fresh) => {
                let next = fresh.next();
                (fresh.into_stream(id, message), next)
            }
            None => {
                let next = gateway.engine().head() + 1;
                match self.find(&id).await? {
                    Found::Attempt(attempt) => (attempt.stream, next),
                    asked => return Ok(asked.to_json(answer.as_ref(), wanted)),
                }
            }
        };
        let mut life = stream.fold(answer.as_ref(), drop);
        if !patience.is_zero() && !life.is_settled() {
            let stream_id = stream.stream_id();
            // Only who waits listens: what is told to somebody costs the writer a copy.
            let mut listener = gateway.listen(next);
            let mut stopping = self.app.stopping.subscribe();
            let settles = async {
                while let Some(told) = listener.next_where(|told| told.stream_id == stream_id).await {
                    if let Some(envelope) = Envelope::read_again(&told.entry.wire) {
                        life.take(&envelope, None);
                    }
                    if life.is_settled() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = settles => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
                () = tokio::time::sleep(patience) => {}
            }
        }
        Ok(stream.told_by(&life, wanted))
    }
}

/// A stream of a task that has ended has nothing to tell.
fn ended() -> RpcError {
    RpcError::at(
        ErrorCode::UnsupportedOperation,
        "/params/id",
        "the task has ended, so nothing will happen to it",
        "get the task to see what became of it",
    )
}

/// What happened before a stream began.
struct Backlog {
    life: Life<'static>,
    /// Those that are to be told.
    updates: Vec<Update>,
}

impl Backlog {
    fn of(stream: &Stream, answer: Option<&Json>, begin: Begin) -> Self {
        let from = match begin {
            Begin::First => 1,
            Begin::Now => u64::MAX,
            Begin::From { update, .. } => update,
        };
        let mut updates = Vec::new();
        let life = stream.fold(answer, |update| {
            if update.id() >= from {
                updates.push(update);
            }
        });
        Self { life, updates }
    }

    /// 1.0 has no stream of a task that has ended, unless the client missed something of it.
    fn is_refused(&self, version: Version, begin: Begin) -> bool {
        version == Version::V1_0 && begin != Begin::First && self.life.is_ended() && self.updates.is_empty()
    }

    /// A client that missed nothing of a task that has ended is told how it ended.
    fn wants_snapshot(&self, begin: Begin) -> bool {
        match begin {
            Begin::First => false,
            Begin::Now => true,
            Begin::From { snapshot, .. } => snapshot || (self.life.is_ended() && self.updates.is_empty()),
        }
    }
}

/// A stream that is being told: counted while it lasts, and traced where its request is.
struct OpenTelling {
    app: Arc<App>,
    task_id: String,
    /// The trace of the request, and the span of the stream.
    trace: Option<(String, String)>,
    began: (Timestamp, Instant),
    _counted: OpenStream,
}

impl OpenTelling {
    fn of(talk: &Talk, id: &TaskId) -> Self {
        let parent = talk.traceparent.clone().filter(|_| talk.app.spans.is_some());
        let trace = parent.and_then(|parent| next_span(&parent).map(|own| (parent, own)));
        Self {
            app: talk.app.clone(),
            task_id: id.to_string(),
            trace,
            began: (clock::now(), Instant::now()),
            _counted: talk.app.metrics.stream_opened(),
        }
    }
}

impl Drop for OpenTelling {
    fn drop(&mut self) {
        if let (Some(spans), Some((parent, own))) = (&self.app.spans, &self.trace) {
            let (began, since) = self.began;
            let attributes = vec![("handoffd.task_id", std::mem::take(&mut self.task_id))];
            let what = (Side::Server, "stream");
            spans.single(what, (parent, own), (began, since.elapsed()), false, attributes);
        }
    }
}

/// Tells one client, at its pace.
struct Teller {
    form: Form,
    sender: mpsc::Sender<Result<Event, Infallible>>,
    reader: Reader,
    stopping: watch::Receiver<bool>,
}

impl Teller {
    /// False when nobody listens any more, or who listens may not be told.
    async fn tell(&self, event: Event) -> bool {
        self.reader.counts() && self.sender.send(Ok(event)).await.is_ok()
    }

    /// The next entry that is wanted; nothing when nobody listens any more, who listens may not be told, or it is time
    /// to stop.
    async fn next(&mut self, listener: &mut Listener, wanted: impl Fn(&Told) -> bool) -> Option<Told> {
        loop {
            tokio::select! {
                told = listener.next_where(&wanted) => return told,
                () = self.reader.beat() => {
                    if !self.reader.counts() {
                        return None;
                    }
                }
                () = self.sender.closed() => return None,
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
        }
    }

    async fn attempt(
        &mut self,
        talk: &Talk,
        stream: &Stream,
        Backlog { mut life, updates }: Backlog,
        snapshot: Option<Json>,
        mut listener: Listener,
    ) {
        let ended = life.is_ended();
        if let Some(task) = snapshot
            && !self.tell(self.form.snapshot(task, ended && updates.is_empty())).await
        {
            return;
        }
        for update in &updates {
            if !self.tell(self.form.update(update)).await {
                return;
            }
        }
        if ended {
            return;
        }
        let stream_id = stream.stream_id();
        while let Some(told) = self.next(&mut listener, |told| told.stream_id == stream_id).await {
            let Some(envelope) = Envelope::read_again(&told.entry.wire) else { continue };
            let words = match told.kind.as_str() {
                "message.sent" => talk.words_of(&stream.id, &envelope).await,
                _ => None,
            };
            if let Some(update) = life.take(&envelope, words.as_ref()) {
                if !self.tell(self.form.update(&update)).await {
                    return;
                }
                talk.app.metrics.stream_told(age(&told));
            }
            if life.is_ended() {
                return;
            }
        }
    }

    /// Follows a task that has no TaskSpec: until it has one, and then the handoff that it is.
    async fn asked(
        &mut self,
        talk: &Talk,
        asked: Asked,
        answer: Option<Json>,
        begin: Begin,
        mut listener: Listener,
    ) {
        let task_id = asked.claim.task_id.clone();
        let over = asked.is_over();
        let snapshot =
            Found::Asked(Box::new(asked)).to_json(answer.as_ref(), &Wanted::all(self.form.version()));
        // Whoever has just sent a message without a TaskSpec is told what is missing; the next word is theirs.
        if !self.tell(self.form.snapshot(snapshot, over)).await || over || begin == Begin::First {
            return;
        }
        let about = |told: &Told| {
            told.kind == "message.sent"
                && told.stream_id.starts_with("project:")
                && names_task(told, &task_id)
        };
        while self.next(&mut listener, about).await.is_some() {
            let Some(id) = TaskId::parse(&task_id) else { return };
            match talk.find(&id).await {
                Ok(Found::Attempt(attempt)) => {
                    let backlog = Backlog::of(&attempt.stream, None, Begin::First);
                    return Box::pin(self.attempt(talk, &attempt.stream, backlog, None, listener)).await;
                }
                Ok(Found::Asked(asked)) if asked.claim.state != AskedState::Open => {
                    let wanted = Wanted::all(self.form.version());
                    let task = Found::Asked(asked).to_json(None, &wanted);
                    self.tell(self.form.snapshot(task, true)).await;
                    return;
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}

fn names_task(told: &Told, task_id: &str) -> bool {
    let wire: Json = serde_json::from_str(&told.entry.wire).unwrap_or_default();
    let named = wire.get("payload").and_then(|payload| payload.get("metadata")?.get("a2a.task")?.as_str());
    named == Some(task_id)
}

/// How long ago an entry became durable, in seconds.
fn age(told: &Told) -> f64 {
    let at = Timestamp::parse(&told.entry.consensus_timestamp).and_then(Timestamp::unix_nanoseconds);
    let now = clock::now().unix_nanoseconds();
    at.zip(now).map_or(0.0, |(at, now)| (now.saturating_sub(at)) as f64 / 1e9)
}
