//! Server-sent events: entries as they become durable.
//!
//! Every event has an id, so that a client that was cut off says where it stopped (`Last-Event-ID`) and misses
//! nothing. A stream pulls from the ledger at its reader's pace; a reader that takes nothing for too long is cut
//! off by the listener, and one whose token no longer counts is told nothing more.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use serde_json::Value as Json;
use tokio_stream::Stream;

use super::App;
use super::call::Call;
use super::endpoint::Answer;
use super::problem::{Kind as ProblemKind, Problem};
use super::reads::may_see;
use crate::callers::{Act, Caller, TokenId};
use crate::gateway::{Listener, Told};
use crate::ledger::EntriesFault;
use crate::limits;
use crate::os::clock;
use crate::policy::PolicySet;
use crate::views::{AttemptRow, HandoffDetail};
use crate::wire::{Kind, StreamId};

/// `GET /v1/audit/stream`: every entry; the id is its sequence number.
pub(super) async fn audit(call: Call) -> Answer {
    let app = &call.app;
    let resume = resumed(&call)?;
    let from = resume.from.unwrap_or(app.gateway.engine().head() + 1);
    let reached = || {
        let head = app.gateway.engine().head();
        if from <= head + 1 { Ok(()) } else { Err(head) }
    };
    app.find_now(reached).await?.map_err(|head| resume.ahead(head))?;
    let (listener, topic_id) = (app.gateway.listen(from), app.gateway.topic_id().to_owned());
    let kind = call.query.text("type").map(str::to_owned);
    let event = move |told: &Told| {
        let wanted = kind.as_ref().is_none_or(|kind| *kind == told.kind);
        let line = told.entry.to_line(&topic_id);
        let event = Event::default().event("entry").id(told.entry.sequence.to_string()).data(line.trim_end());
        Step { event: wanted.then_some(event), is_last: false }
    };
    Ok(respond(&call, listener, event, |caller, _| caller.may(Act::ReadAudit)))
}

/// `GET /v1/handoffs/{id}/stream`: the Wire events of one attempt; the id is their place in its stream.
pub(super) async fn handoff(call: Call) -> Answer {
    let resume = resumed(&call)?;
    let from = resume.from.unwrap_or(1);
    let (asked, attempt) = (Instant::now(), call.query.integer("attempt"));
    let mut detail = call.seen().await?;
    let mut last = last_place(&call.app, attempt_of(&detail, attempt)?, from).await?;
    // Another replica may have taken in what comes before that place.
    if from > last + 1 && call.app.catches_up(asked).await? {
        detail = call.seen().await?;
        last = last_place(&call.app, attempt_of(&detail, attempt)?, from).await?;
    }
    if from > last + 1 {
        return Err(resume.ahead(last));
    }
    let (row, _) = attempt_of(&detail, attempt)?;
    let (handoff_id, attempt) = (&detail.handoff.handoff_id, row.attempt);
    let stream_id = StreamId::Handoff { handoff_id, attempt }.to_string();
    // Everything of this stream comes after the entry that created it.
    let listener = call.app.gateway.listen(row.created_sequence);
    let event = move |told: &Told| {
        if told.stream_id != stream_id {
            return Step { event: None, is_last: false };
        }
        let event = (told.stream_seq >= from).then(|| {
            Event::default().event(told.kind.clone()).id(told.stream_seq.to_string()).data(&told.entry.wire)
        });
        Step { event, is_last: is_terminal(&told.kind) }
    };
    let row = row.clone();
    Ok(respond(&call, listener, event, move |caller, policies| may_see(caller, &row, policies)))
}

/// Nothing comes after these in a handoff's stream.
fn is_terminal(kind: &str) -> bool {
    matches!(kind, "task.rejected" | "task.complete" | "task.failed" | "task.cancelled")
}

/// What a stream does with an entry.
struct Step {
    event: Option<Event>,
    is_last: bool,
}

/// An attempt of a handoff, with the sequences of its entries that are listed.
type Listed = (AttemptRow, Vec<u64>);

/// The attempt that is asked for, or else the one that stands.
fn attempt_of(detail: &HandoffDetail, asked: Option<u64>) -> Result<&Listed, Problem> {
    let attempt = match asked {
        None => detail.handoff.current.attempt,
        Some(attempt) => u32::try_from(attempt).unwrap_or(u32::MAX),
    };
    let found = detail.attempts.iter().find(|(row, _)| row.attempt == attempt);
    found.ok_or_else(|| Problem::not_found("attempt"))
}

/// How far the stream of an attempt goes; read from its last entry only for whoever wants to begin behind what is listed.
async fn last_place(app: &Arc<App>, (row, listed): &Listed, from: u64) -> Result<u64, Problem> {
    let listed = listed.len() as u64;
    if from <= listed + 1 {
        return Ok(listed);
    }
    let (ledger, last) = (app.gateway.ledger().clone(), row.updated_sequence);
    let read = tokio::task::spawn_blocking(move || ledger.committed(last)).await;
    let entry = match read {
        Ok(Ok(entry)) => entry,
        Ok(Err(fault)) => return Err(Problem::ledger_unreadable(fault)),
        Err(error) => return Err(Problem::ledger_unreadable(error)),
    };
    Ok(Told::of(entry).map_or(listed, |told| told.stream_seq))
}

/// Where a reader wants to go on.
struct Resume {
    /// What says so.
    named: &'static str,
    /// Nothing if it has not said.
    from: Option<u64>,
}

impl Resume {
    /// What it has seen is not there, as after a restored backup. It would wait without a word, and what comes until then
    /// would be hidden from it.
    fn ahead(&self, last: u64) -> Problem {
        let detail = match last {
            0 => "nothing is in the stream yet, so it begins with 1".to_owned(),
            last => format!(
                "the last in the stream is {last}; a reader that begins behind the next one would miss what comes between"
            ),
        };
        Problem::new(ProblemKind::StreamAhead, detail).at(self.named).with("last", last).hint(
            "if the ledger was restored from a backup, what you have seen behind that is gone: begin again without a position, or \
             with from=1",
        )
    }
}

/// `Last-Event-ID` counts over `from`, which was for the first time only.
fn resumed(call: &Call) -> Result<Resume, Problem> {
    Ok(match last_event_id(call)? {
        Some(last) => Resume { named: "Last-Event-ID", from: Some(last.saturating_add(1)) },
        None => Resume { named: "from", from: call.query.integer("from") },
    })
}

fn last_event_id(call: &Call) -> Result<Option<u64>, Problem> {
    let Some(value) = call.headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let bad = || Problem::new(ProblemKind::RequestInvalid, "not the id of an event").at("Last-Event-ID");
    number.map(Some).ok_or_else(bad)
}

/// May the holder of a token see what is told, by these policies?
type Sees = dyn Fn(&Caller, &PolicySet) -> bool + Send + Sync;

/// Whoever follows a stream, which lasts no longer than the token that opened it, and than what that may see.
pub(super) struct Reader {
    app: Arc<App>,
    /// Nothing of one who needs none.
    token_id: Option<TokenId>,
    sees: Box<Sees>,
    beat: tokio::time::Interval,
}

impl Reader {
    /// `sees` says whether the holder of its token may see what is told, by the policies in force.
    pub(super) fn new(
        app: &Arc<App>,
        caller: Option<&Caller>,
        sees: impl Fn(&Caller, &PolicySet) -> bool + Send + Sync + 'static,
    ) -> Self {
        let beat = tokio::time::interval(Duration::from_secs(limits::STREAM_HEARTBEAT_S));
        Self { app: app.clone(), token_id: caller.map(Caller::token_id), sees: Box::new(sees), beat }
    }

    /// May it be told more? Not once its token was revoked, has expired or is another agent's, nor once the route leads
    /// elsewhere.
    pub(super) fn counts(&self) -> bool {
        let Some(token_id) = self.token_id else { return true };
        let rules = self.app.rules.current();
        let holder = rules.roster.holder(token_id, clock::now());
        holder.is_some_and(|holder| (self.sees)(holder, &rules.in_force.policies))
    }

    /// Is this the end of its own token?
    fn is_ended_by(&self, told: &Told) -> bool {
        told.kind == Kind::TokenRevoked.as_str()
            && self
                .token_id
                .is_some_and(|token_id| revoked_in(&told.entry.wire) == Some(token_id.to_string()))
    }

    /// Waits until its token does not count: that is in the ledger a moment before it is in force. One that counts all the
    /// same was made anew since.
    async fn settle(&self) {
        let settled = async {
            while self.counts() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(limits::STREAM_HEARTBEAT_S), settled).await;
    }

    /// Waits until it is time to look whether it still counts, where nothing is told. Safe to stop waiting for at any
    /// time.
    pub(super) async fn beat(&mut self) {
        self.beat.tick().await;
    }
}

/// The id of the token that an entry says is revoked.
fn revoked_in(wire: &str) -> Option<String> {
    let wire: Json = serde_json::from_str(wire).ok()?;
    wire.pointer("/payload/token_id")?.as_str().map(str::to_owned)
}

fn respond(
    call: &Call,
    listener: Listener,
    event: impl Fn(&Told) -> Step + Send + 'static,
    sees: impl Fn(&Caller, &PolicySet) -> bool + Send + Sync + 'static,
) -> axum::response::Response {
    let beat = KeepAlive::new().interval(Duration::from_secs(limits::STREAM_HEARTBEAT_S)).text("");
    let reader = Reader::new(&call.app, call.caller.as_ref(), sees);
    let stream = events(listener, event, reader, call.app.stopping.subscribe());
    Sse::new(stream).keep_alive(beat).into_response()
}

/// The last event of a stream whose next entry cannot be read: a problem, without an id to go on from.
fn unreadable(fault: &EntriesFault) -> Event {
    let problem = Problem::ledger_unreadable(fault).to_json();
    Event::default().event("error").data(problem.to_string())
}

fn events(
    listener: Listener,
    event: impl Fn(&Told) -> Step + Send + 'static,
    reader: Reader,
    stopping: tokio::sync::watch::Receiver<bool>,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    futures_util::stream::unfold(Some((listener, event, reader, stopping)), |state| async move {
        let (mut listener, event, mut reader, mut stopping) = state?;
        loop {
            let told = tokio::select! {
                told = listener.next() => match told {
                    Some(told) => told,
                    // One that ended without a word would look as if nothing more had happened.
                    None => return listener.fault().map(|fault| (Ok(unreadable(fault)), None)),
                },
                () = reader.beat() => {
                    if reader.counts() {
                        continue;
                    }
                    return None;
                }
                // A stream would keep a gateway that stops from stopping.
                _ = stopping.wait_for(|stopping| *stopping) => return None,
            };
            if reader.is_ended_by(&told) {
                reader.settle().await;
            }
            let Step { event: one, is_last } = event(&told);
            match (one, is_last) {
                (Some(_), _) if !reader.counts() => return None,
                (Some(one), true) => return Some((Ok(one), None)),
                (Some(one), false) => return Some((Ok(one), Some((listener, event, reader, stopping)))),
                (None, true) => return None,
                (None, false) => {}
            }
        }
    })
}
