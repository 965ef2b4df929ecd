//! Messages on their way in: to the gates, to those who follow a handoff, or to a task that waits for a TaskSpec.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::oneshot;

use super::talk::Talk;
use super::tasks::{Found, Fresh, Wanted, wire_refusal};
use crate::a2a::{self, ErrorCode, Finding, Message, RpcError, Submission, TaskId, Version};
use crate::answer::Answer;
use crate::callers::Act;
use crate::engine::{Addressee, Candidate, EngineFault, Said, SaidPlace, Saying};
use crate::gates::Decision;
use crate::http::handoffs::ruling;
use crate::http::problem::Problem;
use crate::json::{BodyFault, printable};
use crate::os::clock;
use crate::proof::canonical_json;
use crate::wire::Sender;

/// A message that was taken in, now or before.
pub(super) struct Heard {
    /// The task that it belongs to.
    pub(super) id: TaskId,
    /// The Decision as its sender is answered, if it was made now and is a refusal: of others a task shows nothing.
    pub(super) answer: Option<Json>,
    /// What was decided, if that was for the first time.
    pub(super) fresh: Option<Fresh>,
}

impl Talk {
    /// `message/send`.
    pub(super) async fn send(&self, submission: &Submission, version: Version) -> Result<Json, RpcError> {
        let heard = self.take_in(submission, version).await?;
        let configuration = &submission.configuration;
        let patience = if configuration.wait { self.patience() } else { Duration::ZERO };
        let wanted = Wanted { history_length: configuration.history_length, ..Wanted::all(version) };
        let task = self.settled(heard, &submission.message, &wanted, patience).await?;
        Ok(a2a::send_result(task, version))
    }

    /// Takes a message in, and says which task it belongs to.
    pub(super) async fn hear(&self, message: &Message, version: Version) -> Result<Heard, RpcError> {
        let to = message.task_id.as_deref().and_then(TaskId::parse);
        let spec = message.task_spec()?;
        self.who.must(match (&spec, &to) {
            (None, Some(TaskId::Attempt { .. })) => Act::ReportEvent,
            _ => Act::Submit,
        })?;
        // What was said before is not asked again what it may be: the task has moved on since.
        if to.is_some()
            && let Some(heard) = self.heard_before(message).await?
        {
            return Ok(heard);
        }
        // A message that goes on with a task is for whoever sees that task, in the context that it has.
        let found = match &to {
            Some(id) => Some(self.find(id).await?),
            None => None,
        };
        if let (Some(found), Some(context)) = (&found, &message.context_id)
            && found.context_id() != context
        {
            return Err(RpcError::at(
                ErrorCode::InvalidParams,
                "/params/message/contextId",
                format!("the task is in another context than `{}`", printable(context)),
                "leave the contextId out: the task has one",
            ));
        }
        let handing = match spec {
            None => None,
            Some((part, spec)) => Some((part, self.judge(part, spec)?)),
        };
        let to = Self::addressee(to, found.as_ref(), handing)?;
        let sender = match (&to, &found) {
            (Addressee::Followers { .. }, Some(Found::Attempt(attempt))) => self.who.voice_in(&attempt.row),
            _ => self.who.sender(),
        };
        let context_id = match &message.context_id {
            Some(context_id) => context_id.clone(),
            None => format!("ctx_{}", Self::new_id()?),
        };
        let class = Sender::parse(&sender).unwrap_or(Sender::System).class();
        let saying = Saying {
            caller: self.name.clone(),
            sender,
            side: self.who.side(),
            message_id: message.message_id.clone(),
            content: message.content_digest(),
            words: message.to_kept().into(),
            payload: message.sent_payload(version, class),
            context_id,
            to,
        };
        self.say(saying).await
    }

    /// The task of a message that this caller has sent before.
    async fn heard_before(&self, message: &Message) -> Result<Option<Heard>, RpcError> {
        let (name, message_id) = (self.name.clone(), message.message_id.clone());
        let claim = self.app.ask(move |reader| reader.claims().said(&name, &message_id)).await?;
        let content = message.content_digest().to_string();
        // One that stands for other content is for the sequencer to refuse.
        let Some(claim) = claim.filter(|claim| claim.content.as_deref() == Some(&content)) else {
            return Ok(None);
        };
        let place = SaidPlace { asked: claim.asked, handoff: claim.handoff };
        Ok(Some(Heard { id: task_of(place)?, answer: None, fresh: None }))
    }

    /// What the gates say of a TaskSpec, before anything is claimed.
    fn judge(&self, part: usize, spec: &Json) -> Result<Candidate, RpcError> {
        // In its canonical form: clients write `100.0` where the author wrote `100`.
        let body: Arc<str> = String::from_utf8(canonical_json(spec)).unwrap_or_default().into();
        let ruling = ruling(&self.rules, self.who.asker());
        let candidate =
            Candidate::judge(body, ruling, clock::now()).map_err(|fault| unreadable(part, &fault))?;
        Ok(candidate.traced(self.traceparent.as_deref()))
    }

    fn addressee(
        to: Option<TaskId>,
        found: Option<&Found>,
        handing: Option<(usize, Candidate)>,
    ) -> Result<Addressee, RpcError> {
        Ok(match (handing, to, found) {
            (Some((part, _)), Some(_), Some(Found::Attempt(attempt))) => {
                return Err(if attempt.stream.fold(None, drop).is_ended() {
                    over()
                } else {
                    RpcError::at(
                        ErrorCode::InvalidParams,
                        format!("/params/message/parts/{part}/data"),
                        "the task has its TaskSpec already",
                        "send another TaskSpec without a taskId: it is a handoff of its own",
                    )
                });
            }
            (Some((_, candidate)), to, _) => {
                let otherwise = Self::new_task()?.to_string();
                let asked = to.map(|id| id.to_string());
                Addressee::Gates { candidate: Box::new(candidate), asked, otherwise }
            }
            (None, Some(_), Some(Found::Attempt(attempt))) => {
                if attempt.stream.fold(None, drop).is_ended() {
                    return Err(over());
                }
                let (handoff_id, attempt) = (attempt.stream.handoff_id.clone(), attempt.stream.attempt);
                Addressee::Followers { handoff_id, attempt }
            }
            (None, Some(id), _) => Addressee::Nobody { asked: id.to_string(), begins: false },
            (None, None, _) => Addressee::Nobody { asked: Self::new_task()?.to_string(), begins: true },
        })
    }

    async fn say(&self, saying: Saying) -> Result<Heard, RpcError> {
        let (told, heard) = oneshot::channel();
        let engine = self.app.gateway.engine();
        // A caller that has gone away is told nothing; what was decided stands all the same.
        engine.say(saying, Box::new(move |said| drop(told.send(said)))).map_err(Problem::from)?;
        match heard.await.unwrap_or(Err(EngineFault::Stopped)).map_err(Problem::from)? {
            Said::Taken { place, decided, written } => {
                if let (Some(span), Some(decided)) = (&self.span, &decided) {
                    span.decided(decided);
                }
                // What was said before it belongs to a task that had no TaskSpec.
                let is_first =
                    place.asked.is_none() && decided.as_ref().is_some_and(|decided| !decided.replayed);
                let fresh = place.handoff.clone().filter(|_| is_first);
                let fresh = fresh.map(|(handoff_id, attempt)| Fresh { handoff_id, attempt, written });
                let answer = decided.filter(|decided| is_refusal(decided.decision)).map(|decided| {
                    let answer = Answer::of_answered(&decided, None, clock::now());
                    serde_json::to_value(&answer).unwrap_or_default()
                });
                Ok(Heard { id: task_of(place)?, answer, fresh })
            }
            Said::Before(place) => Ok(Heard { id: task_of(place)?, answer: None, fresh: None }),
            Said::OtherContent => Err(RpcError::at(
                ErrorCode::InvalidParams,
                "/params/message/messageId",
                "this messageId stands for another message of yours",
                "give every message an id of its own; the same id is for sending the same message again",
            )),
            Said::Unknown => Err(RpcError::at(
                ErrorCode::TaskNotFound,
                "/params/message/taskId",
                "there is no such task",
                "leave the taskId out to begin a new one",
            )),
            Said::Over => Err(over()),
            Said::Refused(fault) => Err(wire_refusal(ErrorCode::UnsupportedOperation, &fault)),
        }
    }
}

fn is_refusal(decision: Decision) -> bool {
    matches!(decision, Decision::Denied | Decision::Expired)
}

/// The id of the task that a message belongs to.
fn task_of(place: SaidPlace) -> Result<TaskId, RpcError> {
    let SaidPlace { asked, handoff } = place;
    let asked = asked.as_deref().and_then(TaskId::parse);
    let attempt = handoff.map(|(handoff_id, attempt)| TaskId::Attempt { handoff_id, attempt });
    asked.or(attempt).ok_or_else(|| RpcError::new(ErrorCode::Internal, "the message belongs to no task"))
}

fn over() -> RpcError {
    RpcError::at(
        ErrorCode::UnsupportedOperation,
        "/params/message/taskId",
        "the task has ended, or has its TaskSpec already",
        "leave the taskId out to begin a new one; refer to this one in referenceTaskIds",
    )
}

fn unreadable(part: usize, fault: &BodyFault) -> RpcError {
    let finding = Finding {
        code: Some("A2A_BODY_INVALID".to_owned()),
        pointer: format!("/params/message/parts/{part}/data{}", fault.pointer),
        message: fault.to_string(),
        hint: Some(fault.hint().to_owned()),
    };
    let message = format!("the TaskSpec cannot be read: {fault}");
    RpcError { findings: vec![finding], ..RpcError::new(ErrorCode::InvalidParams, message) }
}
