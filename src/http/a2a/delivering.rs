//! Where the courier gets what it tells, and who hears how it went.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value as Json;

use super::talk::Talk;
use super::tasks::{Found, Wanted};
use super::who::Who;
use crate::a2a::TaskId;
use crate::engine::PushFact;
use crate::gateway::{Gateway, Told};
use crate::http::App;
use crate::http::spans::Side;
use crate::ledger::gateway_key_id;
use crate::limits;
use crate::os::{clock, random};
use crate::proof::to_hex;
use crate::push::{
    Attempt, Book, Courier, Delivery, FileShelf, Guard, Observer, Outcome, Owner, Pace, Registration,
    SharedShelf, Telling, Unreadable, Updates,
};
use crate::settings::A2a;
use crate::web::Client;
use crate::wire::{Kind, Sender};

/// Who tells webhooks, with what there is to tell from before.
pub(in crate::http) fn courier(gateway: &Gateway, settings: &A2a) -> io::Result<Courier> {
    let book = book(gateway, settings)?;
    let authorities = settings.push_ca.as_ref().map(|path| gateway.files().workspace().join(path));
    let client = Client::new(authorities.as_deref())
        .map_err(|fault| io::Error::other(format!("[a2a] push_ca cannot be used: {fault}")))?;
    let pace = Pace { timeout: settings.push_timeout, retry: settings.push_retry, ..Pace::default() };
    Ok(Courier::new(book, Guard::new(settings.push_allow.clone()), client, gateway.shared_seed(), pace))
}

/// Who is to be told what: what is kept in the workspace, or what gateways that share a ledger share. Such a gateway brings
/// along what it had when it was alone.
fn book(gateway: &Gateway, settings: &A2a) -> io::Result<Book> {
    let shelf = FileShelf::open(gateway.files().push())?;
    let (own, broken) = Book::open(Box::new(shelf))?;
    for name in broken {
        tracing::error!(task = name, "the push configs of a task cannot be read; nobody is told about it");
    }
    let Some(sharing) = gateway.sharing() else { return Ok(own) };
    let session = to_hex(random::secret_bytes::<16>().map_err(io::Error::other)?.as_slice());
    let key = gateway_key_id(&gateway.public_key());
    let shelf = SharedShelf::open(sharing.database().clone(), &key, &session, settings.push_timeout)?;
    let shared = Book::shared(shelf);
    shared.take_over(&own)?;
    Ok(shared)
}

/// Tells webhooks until the gateway stops.
pub(in crate::http) async fn deliver(app: Arc<App>) {
    let source = Arc::new(Source { app: app.clone(), streams: Mutex::default() });
    let mut stopping = app.stopping.subscribe();
    let stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
    let telling = app.courier.clone().run(source.clone(), source.clone(), stop);
    tokio::select! {
        () = telling => {}
        () = source.listen() => {}
    }
}

/// Tasks as those who are to be told see them.
struct Source {
    app: Arc<App>,
    /// Streams of handoffs whose tasks began with a message, and go by its name, while somebody is to be told of them.
    streams: Mutex<HashMap<String, TaskId>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl Source {
    /// Wakes the courier whenever something happens to a task. Nobody listens while nobody is to be told.
    async fn listen(&self) {
        let courier = &self.app.courier;
        let quiet = Duration::from_secs(limits::PUSH_QUIET_S);
        loop {
            courier.wanted().await;
            // In this order: what becomes durable in between is both heard and read.
            let mut listener = self.app.gateway.listen(self.app.gateway.engine().head() + 1);
            courier.wake_all();
            loop {
                match tokio::time::timeout(quiet, listener.next()).await {
                    Ok(Some(told)) => self.heard(&told),
                    // The ledger cannot be read just now.
                    Ok(None) => {
                        tokio::time::sleep(quiet).await;
                        break;
                    }
                    Err(_) if courier.book().open_count() == 0 => break,
                    Err(_) => {}
                }
            }
        }
    }

    fn heard(&self, told: &Told) {
        let courier = &self.app.courier;
        if let Some(task) = TaskId::of_stream(&told.stream_id) {
            courier.wake(&task);
            if let Some(task) = lock(&self.streams).get(&told.stream_id) {
                courier.wake(task);
            }
        } else if told.kind == Kind::PushRemoved.as_str() {
            // Deleted, given up or done with: what is left is what somebody is still to be told of.
            lock(&self.streams).retain(|_, task| courier.book().is_open(task));
        } else if told.kind == Kind::MessageSent.as_str() {
            let wire: Json = serde_json::from_str(&told.entry.wire).unwrap_or_default();
            let named = wire.pointer("/payload/metadata/a2a.task").and_then(Json::as_str);
            if let Some(task) = named.and_then(TaskId::parse) {
                courier.wake(&task);
            }
        }
    }

    /// Everybody who goes by that name now.
    fn voices(&self, owner: &Owner) -> Vec<Who> {
        let (rules, now) = (self.app.rules.current(), clock::now());
        let valid = rules.roster.tokens().iter().filter(|token| token.is_valid_at(now));
        let voices = valid.map(|token| Who::Caller(token.caller().clone()));
        let anonymous = self.app.lets_anyone_in().then_some(Who::Anonymous);
        voices.chain(anonymous).filter(|who| *who.name() == *owner.as_str()).collect()
    }

    /// The task, if whoever set the config may still read it.
    async fn find(&self, task: &TaskId, owner: &Owner) -> Result<Found, Unreadable> {
        for who in self.voices(owner) {
            let talk = Talk::in_the_name_of(self.app.clone(), who);
            match talk.look(task).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(_) => return Err(Unreadable::Later),
            }
        }
        Err(Unreadable::Gone)
    }

    async fn read(
        &self,
        task: &TaskId,
        owner: &Owner,
        from: u64,
        count_max: usize,
    ) -> Result<Vec<Telling>, Unreadable> {
        let mut found = self.find(task, owner).await?;
        if let (TaskId::Asked(_), Found::Attempt(attempt)) = (task, &found) {
            let stream_id = attempt.stream.stream_id();
            let known = lock(&self.streams).insert(stream_id.clone(), task.clone());
            // In this order: what is deleted from here on is heard of.
            if !self.app.courier.book().is_open(task) {
                lock(&self.streams).remove(&stream_id);
            } else if known.is_none() {
                // From here on its stream is heard; what came before is read.
                found = self.find(task, owner).await?;
            }
        }
        Ok(match &found {
            Found::Attempt(attempt) => {
                let mut tellings = Vec::new();
                attempt.stream.fold(None, |update| {
                    if update.id() >= from && tellings.len() < count_max {
                        tellings.push(Telling::from(update));
                    }
                });
                tellings
            }
            Found::Asked(asked) if asked.is_over() && from == 1 => {
                vec![Telling::ended(|version| found.to_json(None, &Wanted::all(version)))]
            }
            Found::Asked(_) => Vec::new(),
        })
    }
}

impl Updates for Source {
    fn updates<'u>(
        &'u self,
        task: &'u TaskId,
        owner: &'u Owner,
        from: u64,
        count_max: usize,
    ) -> BoxFuture<'u, Result<Vec<Telling>, Unreadable>> {
        Box::pin(self.read(task, owner, from, count_max))
    }
}

impl Observer for Source {
    fn attempted(&self, attempt: &Attempt<'_>) {
        self.app.metrics.outgoing.push_attempted(attempt.outcome, attempt.took);
        if let (Some(spans), Some((parent, own))) = (&self.app.spans, attempt.trace) {
            let attributes = vec![
                ("handoffd.task_id", attempt.registration.task.to_string()),
                ("handoffd.stream_seq", attempt.stream_seq.to_string()),
                ("handoffd.outcome", attempt.outcome.as_str().to_owned()),
            ];
            let failed = attempt.outcome != Outcome::Delivered;
            spans.single(
                (Side::Client, "push"),
                (parent, own),
                (attempt.began, attempt.took),
                failed,
                attributes,
            );
        }
    }

    fn ended(&self, registration: &Registration) {
        self.app.metrics.outgoing.push_ended(&registration.delivery);
        let reason = match &registration.delivery {
            Delivery::Failed { .. } => "given up",
            _ => "its task has ended",
        };
        let fact = PushFact::Removed { push_id: registration.push_id.clone(), reason };
        // What is in the book counts; should this not be recorded, the ledger says that somebody was told who is not.
        let _ = self.app.gateway.engine().note_push(fact, Sender::System.to_string().into(), drop);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
