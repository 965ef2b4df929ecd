//! Reading tasks: one, a list, and canceling.

use serde_json::{Value as Json, json};
use tokio::sync::oneshot;

use super::talk::Talk;
use crate::a2a::{self, ErrorCode, Finding, Life, ListTasks, Message, RpcError, Shown, TaskId, Version};
use crate::callers::Act;
use crate::engine::{EngineFault, Uncanceled};
use crate::http::problem::Problem;
use crate::ledger::{EntriesFault, Entry, Source};
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::views::{
    AskedClaim, AskedState, AttemptRow, Cursor, MessageRow, Reader, TaskFilter, TaskRow, ViewsFault,
};
use crate::wire::{Contracts, Envelope, StreamId};

/// A task that the caller sees.
#[derive(Debug)]
pub(super) enum Found {
    Attempt(Box<Attempt>),
    Asked(Box<Asked>),
}

/// An attempt at a handoff.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) stream: Stream,
    pub(super) row: AttemptRow,
}

/// What has happened in an attempt so far.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// As the client knows it.
    pub(super) id: TaskId,
    pub(super) handoff_id: String,
    pub(super) attempt: u32,
    /// Those of other streams among them are passed over.
    entries: Vec<Entry>,
    history: Vec<Message>,
}

/// A task without a TaskSpec, or whose TaskSpec could be no attempt at anything.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: TaskId,
    pub(super) claim: AskedClaim,
    at: Timestamp,
    history: Vec<Message>,
    /// Of one that was refused.
    decision: Option<Json>,
}

impl Stream {
    /// Its name in the ledger.
    pub(super) fn stream_id(&self) -> String {
        StreamId::Handoff { handoff_id: &self.handoff_id, attempt: self.attempt }.to_string()
    }

    /// The task as it is now.
    pub(super) fn to_json(&self, answer: Option<&Json>, wanted: &Wanted) -> Json {
        self.told_by(&self.fold(answer, drop), wanted)
    }

    /// The same, of what has been heard meanwhile.
    pub(super) fn told_by(&self, life: &Life<'_>, wanted: &Wanted) -> Json {
        life.to_json(&wanted.of(&self.history)).unwrap_or_default()
    }

    /// Everything that the stream has told so far; `answer` is the Decision as it was answered, where it is at hand.
    /// `tell` hears of each update.
    pub(super) fn fold(&self, answer: Option<&Json>, mut tell: impl FnMut(a2a::Update)) -> Life<'static> {
        let mut life = Life::new(Contracts::embedded()).begun_as(&self.id);
        if let Some(answer) = answer {
            life = life.decided(answer);
        }
        let stream_id = self.stream_id();
        for entry in &self.entries {
            if let Some(envelope) = Envelope::read_again(&entry.wire)
                && envelope.stream_id() == stream_id
                && let Some(update) = life.take(&envelope, self.words_of(&envelope))
            {
                tell(update);
            }
        }
        life
    }

    fn words_of(&self, envelope: &Envelope<'_>) -> Option<&Message> {
        let message_id = envelope.payload().text("message_id")?;
        self.history.iter().find(|message| message.message_id == message_id)
    }
}

impl Asked {
    /// Is there nothing more to come of it?
    pub(super) fn is_over(&self) -> bool {
        self.claim.state != AskedState::Open
    }

    pub(super) fn to_json(&self, answer: Option<&Json>, shown: &Shown<'_>) -> Json {
        let context_id = &self.claim.context_id;
        match &self.claim.state {
            AskedState::Canceled => a2a::canceled(&self.id, context_id, self.at, shown),
            AskedState::Rejected { .. } => {
                let decision = answer.or(self.decision.as_ref()).cloned().unwrap_or_default();
                a2a::rejected(&self.id, context_id, self.at, &decision, shown)
            }
            AskedState::Open | AskedState::Handed { .. } => {
                let gone = Message::without_words(&self.claim.task_id);
                let said = self.history.last().unwrap_or(&gone);
                a2a::input_required(&self.id, context_id, self.at, said, shown)
            }
        }
    }
}

impl Found {
    /// The task as it is now.
    pub(super) fn to_json(&self, answer: Option<&Json>, wanted: &Wanted) -> Json {
        match self {
            Self::Attempt(attempt) => attempt.stream.to_json(answer, wanted),
            Self::Asked(asked) => asked.to_json(answer, &wanted.of(&asked.history)),
        }
    }

    pub(super) fn context_id(&self) -> &str {
        match self {
            Self::Attempt(attempt) => &attempt.row.correlation_id,
            Self::Asked(asked) => &asked.claim.context_id,
        }
    }
}

/// A handoff that was decided just now, with all that was written of it: it is shown without reading the ledger, and
/// the views need not have come so far.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) handoff_id: String,
    pub(super) attempt: u32,
    /// Other streams' entries too: the message itself, a route or a grant that changed with it.
    pub(super) written: Vec<Entry>,
}

impl Fresh {
    /// The first entry that can tell more of it.
    pub(super) fn next(&self) -> u64 {
        self.written.last().map_or(1, |entry| entry.sequence + 1)
    }

    /// Its stream so far, which began with this message.
    pub(super) fn into_stream(self, id: TaskId, message: &Message) -> Stream {
        let Self { handoff_id, attempt, written } = self;
        Stream { id, handoff_id, attempt, entries: written, history: vec![message.clone()] }
    }
}

/// How much of a task is asked for, and in which version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) version: Version,
    pub(super) history_length: Option<usize>,
    pub(super) artifacts: bool,
}

impl Wanted {
    pub(super) fn all(version: Version) -> Self {
        Self { version, history_length: None, artifacts: true }
    }

    fn of(self, history: &[Message]) -> Shown<'_> {
        let Self { version, history_length, artifacts } = self;
        Shown { version, history, history_length, artifacts }
    }
}

impl Talk {
    /// The task of that id, if the caller sees it: one that is not theirs looks like one that is not there.
    pub(super) async fn find(&self, id: &TaskId) -> Result<Found, RpcError> {
        self.look(id).await?.ok_or_else(|| RpcError::task_not_found(&id.to_string()))
    }

    /// The same; nothing for one that they do not see.
    pub(super) async fn look(&self, id: &TaskId) -> Result<Option<Found>, RpcError> {
        self.who.must(Act::ReadHandoffs)?;
        let (id, who, name, policies) =
            (id.clone(), self.who.clone(), self.name.clone(), self.policies.clone());
        let ledger = self.app.gateway.ledger().clone();
        let found = self.app.find(move |reader| {
            let look = Look { reader, ledger: &ledger, who: &who, name: &name, policies: &policies };
            look.task(&id)
        });
        Ok(found.await?)
    }

    /// The number that the next update of a task will have.
    pub(super) async fn next_update(&self, id: &TaskId) -> Result<u64, RpcError> {
        Ok(match self.find(id).await? {
            Found::Attempt(attempt) => attempt.stream.fold(None, drop).stream_seq() + 1,
            Found::Asked(_) => 1,
        })
    }

    /// The words of a message that was said in a task just now, if the caller may read them.
    pub(super) async fn words_of(&self, id: &TaskId, envelope: &Envelope<'_>) -> Option<Message> {
        let message_id = envelope.payload().text("message_id")?.to_owned();
        let Ok(Found::Attempt(attempt)) = self.find(id).await else { return None };
        attempt.stream.history.into_iter().find(|message| message.message_id == message_id)
    }

    /// `ListTasks`.
    pub(super) async fn list(&self, asked: &ListTasks) -> Result<Json, RpcError> {
        self.who.must(Act::ReadHandoffs)?;
        let cursor = match asked.page_token.as_deref().map(str::parse::<Cursor>) {
            None => None,
            Some(Ok(cursor)) => Some(cursor),
            Some(Err(_)) => {
                let text = "the token is not one that a page ended with";
                let hint = "send what `nextPageToken` was, or nothing for the first page";
                return Err(RpcError::at(ErrorCode::InvalidParams, "/params/pageToken", text, hint));
            }
        };
        let (who, name, policies) = (self.who.clone(), self.name.clone(), self.policies.clone());
        let (ledger, asked) = (self.app.gateway.ledger().clone(), asked.clone());
        let listed = self.app.ask(move |reader| {
            let filter = TaskFilter {
                seen_by: who.list(&name),
                context_id: asked.context_id.as_deref(),
                states: asked.states.as_deref(),
                since: asked.after,
            };
            let (page, total) = reader.tasks(&filter, cursor, asked.page_size)?;
            let look = Look { reader, ledger: &ledger, who: &who, name: &name, policies: &policies };
            let wanted = Wanted {
                version: Version::V1_0,
                history_length: asked.history_length,
                artifacts: asked.include_artifacts,
            };
            let mut tasks = Vec::new();
            for row in page.rows {
                let found = look.row(row)?;
                // One that was abandoned and can be claimed again is still shown as being worked on.
                if asked.states.as_ref().is_none_or(|states| found.is_shown_as(states)) {
                    tasks.push(found.to_json(None, &wanted));
                }
            }
            let next = page.next.map(|next| next.to_string()).unwrap_or_default();
            Ok(json!({"tasks": tasks, "nextPageToken": next, "pageSize": asked.page_size, "totalSize": total}))
        });
        Ok(listed.await?)
    }

    /// Cancels a task, and shows it as it then is.
    pub(super) async fn cancel(&self, id: &TaskId, version: Version) -> Result<Json, RpcError> {
        self.who.must(Act::ReportEvent)?;
        let found = self.find(id).await?;
        let (told, heard) = oneshot::channel();
        let done = move |answer| drop(told.send(answer));
        let engine = self.app.gateway.engine();
        match &found {
            Found::Attempt(attempt) => {
                let voice = (self.who.voice_in(&attempt.row), self.who.side());
                let place = (attempt.stream.handoff_id.clone(), attempt.stream.attempt);
                engine.cancel(place, voice, "canceled over A2A", done).map_err(Problem::from)?;
            }
            Found::Asked(asked) => {
                let caller = (!self.who.sees_all()).then(|| self.name.clone());
                engine.cancel_asked(asked.claim.task_id.clone(), caller, done).map_err(Problem::from)?;
            }
        }
        match heard.await.unwrap_or(Err(EngineFault::Stopped)).map_err(Problem::from)? {
            Ok(()) => Ok(self.find(id).await?.to_json(None, &Wanted::all(version))),
            Err(Uncanceled::Unknown) => Err(RpcError::task_not_found(&id.to_string())),
            Err(Uncanceled::Over) => Err(RpcError::at(
                ErrorCode::TaskNotCancelable,
                "/params/id",
                "the task has ended",
                "there is nothing left to cancel",
            )),
            Err(Uncanceled::Refused(fault)) => Err(wire_refusal(ErrorCode::TaskNotCancelable, &fault)),
        }
    }
}

/// Why the stream of a handoff does not take something.
pub(super) fn wire_refusal(code: ErrorCode, fault: &crate::wire::WireFault) -> RpcError {
    let finding = Finding {
        code: Some(fault.code.as_str().to_owned()),
        pointer: String::new(),
        message: fault.message.clone(),
        hint: fault.hint.clone(),
    };
    RpcError { findings: vec![finding], ..RpcError::new(code, fault.message.clone()) }
}

impl Found {
    /// Is it shown as one of these states are?
    fn is_shown_as(&self, states: &[crate::wire::State]) -> bool {
        let Self::Attempt(attempt) = self else { return true };
        let shown = |state| Contracts::embedded().a2a_state(state).map(|state| state.v1_0.clone());
        let state = attempt.stream.fold(None, drop).state();
        state.is_none_or(|state| states.iter().any(|wanted| shown(*wanted) == shown(state)))
    }
}

/// Who looks, and where.
struct Look<'l> {
    reader: &'l Reader,
    ledger: &'l Source,
    who: &'l super::who::Who,
    name: &'l str,
    policies: &'l crate::policy::PolicySet,
}

impl Look<'_> {
    fn task(&self, id: &TaskId) -> Result<Option<Found>, ViewsFault> {
        match id {
            TaskId::Attempt { handoff_id, attempt } => self.attempt(id.clone(), handoff_id, *attempt),
            TaskId::Asked(_) => {
                let claim = self.reader.asked(&id.to_string())?;
                let Some(claim) = claim.filter(|claim| claim.caller == self.name || self.who.sees_all())
                else {
                    return Ok(None);
                };
                if let AskedState::Handed { handoff_id, attempt } = &claim.state {
                    return self.attempt(id.clone(), handoff_id, *attempt);
                }
                self.asked(id.clone(), claim).map(|asked| Some(Found::Asked(Box::new(asked))))
            }
        }
    }

    /// A row of a list, which says already that the caller sees it.
    fn row(&self, row: TaskRow) -> Result<Found, ViewsFault> {
        match row {
            TaskRow::Asked(claim) => {
                let id = TaskId::parse(&claim.task_id).unwrap_or_else(|| no_task(&claim.task_id));
                self.asked(id, *claim).map(|asked| Found::Asked(Box::new(asked)))
            }
            TaskRow::Attempt { handoff_id, row, asked } => {
                let own = TaskId::Attempt { handoff_id: handoff_id.clone(), attempt: row.attempt };
                let id = asked.as_deref().and_then(TaskId::parse).unwrap_or(own);
                let detail = self.reader.handoff(&handoff_id)?;
                let attempts = detail.map(|detail| detail.attempts).unwrap_or_default();
                let found = attempts.into_iter().find(|(other, _)| other.attempt == row.attempt);
                let sequences = found.map(|(_, sequences)| sequences).unwrap_or_default();
                self.read(id, handoff_id, *row, &sequences).map(|attempt| Found::Attempt(Box::new(attempt)))
            }
        }
    }

    fn attempt(&self, id: TaskId, handoff_id: &str, number: u32) -> Result<Option<Found>, ViewsFault> {
        let Some(detail) = self.reader.handoff(handoff_id)? else { return Ok(None) };
        let found = detail.attempts.into_iter().find(|(row, _)| row.attempt == number);
        let Some((row, sequences)) = found else { return Ok(None) };
        if !self.who.sees(&row, self.policies) && !self.reader.has_said(self.name, handoff_id, number)? {
            return Ok(None);
        }
        let attempt = self.read(id, handoff_id.to_owned(), row, &sequences)?;
        Ok(Some(Found::Attempt(Box::new(attempt))))
    }

    fn read(
        &self,
        id: TaskId,
        handoff_id: String,
        row: AttemptRow,
        sequences: &[u64],
    ) -> Result<Attempt, ViewsFault> {
        let asked = match &id {
            TaskId::Asked(_) => Some(id.to_string()),
            TaskId::Attempt { .. } => None,
        };
        let messages = self.reader.messages(asked.as_deref(), Some((&handoff_id, row.attempt)))?;
        let entries = entries(self.ledger, sequences).map_err(unread)?;
        let history = self.history(messages, true);
        let stream = Stream { id, handoff_id, attempt: row.attempt, entries, history };
        Ok(Attempt { stream, row })
    }

    fn asked(&self, id: TaskId, claim: AskedClaim) -> Result<Asked, ViewsFault> {
        let history = self.history(self.reader.messages(Some(&claim.task_id), None)?, false);
        let at = self.reader.entry(claim.updated)?.and_then(|row| Timestamp::parse(&row.consensus_timestamp));
        let at = at.unwrap_or(Timestamp::from_unix_nanoseconds(0));
        let decision = match claim.state {
            AskedState::Rejected { decided } => {
                entries(self.ledger, &[decided]).map_err(unread)?.first().map(decision_in)
            }
            _ => None,
        };
        Ok(Asked { id, claim, at, history, decision })
    }

    /// What was said, as far as this caller may read it: its own words, and what was said to those who follow a
    /// handoff. A TaskSpec is its sender's.
    fn history(&self, messages: Vec<MessageRow>, followed: bool) -> Vec<Message> {
        let read = |row: MessageRow| {
            let digest = row.content.as_deref().and_then(Digest::parse)?;
            let message = Message::from_kept(&self.ledger.body(row.said, digest).ok()??)?;
            let own = row.caller == self.name;
            let to_followers = || followed && matches!(message.task_spec(), Ok(None));
            (own || to_followers()).then_some(message)
        };
        messages.into_iter().filter_map(read).collect()
    }
}

/// An id that the views gave is always one of ours; this only satisfies totality.
fn no_task(text: &str) -> TaskId {
    TaskId::Attempt { handoff_id: text.to_owned(), attempt: 1 }
}

/// What the stream alone tells of a decision that no handoff's stream has.
fn decision_in(entry: &Entry) -> Json {
    let wire: Json = serde_json::from_str(&entry.wire).unwrap_or_default();
    let codes = wire.pointer("/payload/codes").and_then(Json::as_array).cloned().unwrap_or_default();
    let reasons: Vec<Json> = codes.into_iter().map(|code| json!({"code": code})).collect();
    json!({
        "decision": wire.pointer("/payload/decision"),
        "decidedAt": entry.consensus_timestamp,
        "reasons": reasons,
        "policyDigest": wire.pointer("/payload/policyDigest"),
        "ledger": {"sequence": entry.sequence, "runningHash": entry.running_hash.to_string()},
    })
}

/// Entries by their numbers, those that stand side by side in one read.
fn entries(ledger: &Source, sequences: &[u64]) -> Result<Vec<Entry>, EntriesFault> {
    let mut found = Vec::with_capacity(sequences.len());
    let mut rest = sequences.iter().copied().peekable();
    while let Some(from) = rest.next() {
        let mut through = from;
        while let Some(next) = rest.next_if(|next| *next == through + 1) {
            through = next;
        }
        for entry in ledger.entries(from, through)? {
            found.push(entry?);
        }
    }
    Ok(found)
}

fn unread(fault: EntriesFault) -> ViewsFault {
    ViewsFault::Io(std::io::Error::other(fault.to_string()))
}
