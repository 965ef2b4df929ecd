//! A task as its Wire stream tells it: events in order, what a client is shown out.
//!
//! INVARIANT (A2A never goes back): submitted and auth-required come before working and input-required, and those before
//! the end. A handoff that becomes available again because its lease ended is still shown as working, with a message.
//!
//! INVARIANT (nothing said in private): what an operator gave as a reason stays in the ledger. An agent's own words about
//! its work are shown; of everybody else's, only codes.

use serde_json::{Value as Json, json};

use super::events::{Update, What};
use super::id::TaskId;
use super::message::Message;
use super::part::Part;
use super::task::shown_decision;
use crate::timestamp::Timestamp;
use crate::wire::{A2aUpdate, Artifact, Contracts, Envelope, Kind, SenderClass, State};

/// A task so far.
#[derive(Debug, Clone)]
pub struct Life<'c> {
    pub(super) contracts: &'c Contracts,
    pub(super) head: Head,
    pub(super) status: Option<Status>,
    pub(super) artifacts: Vec<Artifact>,
    /// The Decision that the caller was answered, and what the stream tells of the last one.
    answer: Option<Json>,
    told: Option<Json>,
    /// The number of the last event that was taken in.
    stream_seq: u64,
}

/// What stands in everything that is said about a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) task_id: String,
    pub(super) context_id: String,
    pub(super) handoff_id: Option<String>,
    pub(super) traceparent: Option<String>,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Status {
    /// The state that is shown, which is not always the stream's.
    pub(super) state: State,
    pub(super) at: Option<Timestamp>,
    pub(super) message: Option<Message>,
}

impl<'c> Life<'c> {
    /// A task of which nothing has been told.
    pub fn new(contracts: &'c Contracts) -> Self {
        Self {
            contracts,
            head: Head::default(),
            status: None,
            artifacts: Vec::new(),
            answer: None,
            told: None,
            stream_seq: 0,
        }
    }

    /// Keeps the id of the message that it began with, instead of the handoff's own.
    #[must_use]
    pub fn begun_as(mut self, id: &TaskId) -> Self {
        self.head.task_id = id.to_string();
        self
    }

    /// The Decision that the caller was answered; before the events, for one of them shows it.
    #[must_use]
    pub fn decided(mut self, answer: &Json) -> Self {
        self.answer = Some(shown_decision(answer));
        self
    }

    /// Takes the next event of the stream in, and says what a client is shown of it, if anything.
    ///
    /// `words` are those of a `message.sent`, if the client may read them. The ledger took the event, so its place is
    /// not judged again; what comes behind the end, or a second time, is not shown. Whoever resumes a stream takes it in
    /// from its first event all the same, and tells from where the client was.
    pub fn take(&mut self, envelope: &Envelope<'_>, words: Option<&Message>) -> Option<Update> {
        let stream_seq = envelope.stream_seq();
        if stream_seq <= self.stream_seq || self.is_ended() {
            return None;
        }
        self.stream_seq = stream_seq;
        self.take_head(envelope);
        let kind = envelope.kind();
        if kind == Kind::GateDecided {
            self.told = Some(self.decision_of(envelope));
        }
        let what = match self.contracts.a2a_update(kind)? {
            A2aUpdate::ArtifactUpdate => What::Artifact(self.take_artifact(envelope)?),
            A2aUpdate::Message => {
                // A client of 1.0 takes a bare message for the whole answer, so it travels in the status.
                let message = words?.clone().in_task(&self.head.task_id, &self.head.context_id);
                let status = self.status.as_mut()?;
                status.message = Some(message);
                status.at = envelope.ts();
                What::Status(status.clone())
            }
            A2aUpdate::Task => What::Task(self.take_status(envelope)?),
            A2aUpdate::StatusUpdate => What::Status(self.take_status(envelope)?),
        };
        Some(Update::new(stream_seq, self.head.clone(), what, self.is_ended()))
    }

    /// Has it come to its end?
    pub fn is_ended(&self) -> bool {
        self.status.as_ref().is_some_and(|status| self.contracts.is_terminal(status.state))
    }

    /// Does it wait for somebody, or has it ended: is there something for the client to do, or nothing more to wait for?
    pub fn is_settled(&self) -> bool {
        let interrupted = |state| matches!(state, State::Waiting | State::Blocked);
        self.is_ended() || self.status.as_ref().is_some_and(|status| interrupted(status.state))
    }

    /// The number of the last event.
    pub fn stream_seq(&self) -> u64 {
        self.stream_seq
    }

    /// The state that is shown.
    pub fn state(&self) -> Option<State> {
        self.status.as_ref().map(|status| status.state)
    }

    /// The Decision that stands: the answer, unless the stream has decided otherwise since it was given.
    pub(super) fn decision(&self) -> Option<&Json> {
        let word = |decision: &Json| decision.get("decision").cloned();
        match (&self.answer, &self.told) {
            (Some(answer), Some(told)) if word(answer) == word(told) => Some(answer),
            (answer, told) => told.as_ref().or(answer.as_ref()),
        }
    }

    fn take_head(&mut self, envelope: &Envelope<'_>) {
        if self.head.handoff_id.is_none() {
            let own = TaskId::of_stream(envelope.stream_id());
            self.head.handoff_id = own.as_ref().and_then(TaskId::handoff_id).map(str::to_owned);
            self.head.context_id = envelope.context_id().to_owned();
            if let (true, Some(own)) = (self.head.task_id.is_empty(), own) {
                self.head.task_id = own.to_string();
            }
        }
        // The trace that it began with; those of later reports are their senders'.
        if self.head.traceparent.is_none() {
            self.head.traceparent = envelope.traceparent().map(str::to_owned);
        }
    }

    fn take_status(&mut self, envelope: &Envelope<'_>) -> Option<Status> {
        let next = self.contracts.state_after(envelope.kind())?;
        let before = self.state();
        let goes_back = before.is_some_and(|before| progress(next) < progress(before));
        let state = if goes_back { State::Working } else { next };
        let parts = self.words(envelope, before, goes_back);
        let message = (!parts.is_empty()).then(|| {
            Message::from_agent(envelope.wire_id(), parts).in_task(&self.head.task_id, &self.head.context_id)
        });
        let status = Status { state, at: envelope.ts(), message };
        self.status = Some(status.clone());
        Some(status)
    }

    fn take_artifact(&mut self, envelope: &Envelope<'_>) -> Option<Artifact> {
        let payload = envelope.payload();
        let artifact = Artifact {
            artifact_id: payload.text("artifact_id")?.to_owned(),
            uri: payload.text("uri")?.to_owned(),
            version: payload.count("version")?,
            hash: payload.text("hash")?.to_owned(),
            is_final: payload.flag("final").unwrap_or(true),
            lineage: payload.texts("lineage").map(str::to_owned).collect(),
        };
        match self.artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id) {
            Some(known) => *known = artifact.clone(),
            None => self.artifacts.push(artifact.clone()),
        }
        Some(artifact)
    }

    /// What the stream alone tells of a decision.
    fn decision_of(&self, envelope: &Envelope<'_>) -> Json {
        let payload = envelope.payload();
        let reasons: Vec<Json> = payload.texts("codes").map(|code| json!({"code": code})).collect();
        json!({
            "decision": payload.text("decision"),
            "handoffId": self.head.handoff_id,
            "correlationId": self.head.context_id,
            "decidedAt": envelope.ts().map(|at| at.to_string()),
            "reasons": reasons,
            "policyDigest": payload.text("policyDigest"),
        })
    }

    /// What is said about a change of the status.
    fn words(&self, envelope: &Envelope<'_>, before: Option<State>, goes_back: bool) -> Vec<Part> {
        let payload = envelope.payload();
        let by_agent = envelope.sender().class() == SenderClass::Agent;
        let own_words = |name| payload.text(name).filter(|_| by_agent);
        match envelope.kind() {
            Kind::TaskAvailable if goes_back => {
                vec![Part::text("the agent that had claimed it fell silent; it can be claimed again")]
            }
            Kind::TaskAvailable if before == Some(State::Waiting) => {
                vec![Part::text("a person approved it; it can be claimed")]
            }
            Kind::ApprovalRequested => {
                let until = payload.text("expires_at").map(|until| format!(", until {until}"));
                vec![Part::text(format!("a person must approve it{}", until.unwrap_or_default()))]
            }
            Kind::TaskRejected => {
                let codes: Vec<&str> = payload.texts("codes").collect();
                let mut parts = vec![Part::text(format!("rejected: {}", codes.join(", ")))];
                parts.extend(self.decision().cloned().map(Part::data));
                parts
            }
            Kind::TaskBlocked => {
                vec![Part::text(
                    own_words("reason").unwrap_or("the work is blocked; an operator is looking at it"),
                )]
            }
            Kind::TaskFailed => {
                let code = payload.text("code").unwrap_or_default();
                vec![Part::text(match own_words("message") {
                    Some(message) => format!("{code}: {message}"),
                    None => format!("failed: {code}"),
                })]
            }
            Kind::TaskCancelled => {
                vec![Part::text(own_words("reason").unwrap_or("an operator cancelled it"))]
            }
            _ => Vec::new(),
        }
    }
}

/// How far a state is from the beginning.
fn progress(state: State) -> u8 {
    match state {
        State::Created | State::Waiting | State::Available => 0,
        State::Claimed | State::Working | State::Blocked => 1,
        State::Rejected | State::Completed | State::Failed | State::Cancelled => 2,
    }
}
