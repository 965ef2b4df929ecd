//! What the ledger says, read back: entries that the views have not applied, what is in force, and old decisions.

use std::sync::Arc;

use serde::Deserialize;

use super::EngineFault;
use super::claims::ClaimIndex;
use super::epoch::Epoch;
use super::facts::{Facts, Recorded};
use super::record::{Decided, LedgerPlace, Pass};
use super::speaking;
use super::standing::Standing;
use crate::gates::{Code, Decision, Gate, Outcome};
use crate::ledger::Entry;
use crate::proof::Digest;
use crate::timestamp::Timestamp;
use crate::wire::{Envelope, Fact, Sender, StreamId};

/// Reads decisions back from the ledger, group by group.
#[derive(Clone, Default)]
pub(super) struct Replay {
    created: Option<(Facts, Option<Digest>, String)>,
}

#[derive(Deserialize)]
struct WireText {
    #[serde(rename = "type")]
    kind: String,
    sender: String,
    stream: WireStream,
    payload: serde_json::Value,
}

#[derive(Deserialize)]
struct WireStream {
    stream_id: String,
    stream_seq: u64,
    correlation_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecidedPayload {
    codes: Vec<String>,
    decision: String,
    gates: Vec<String>,
    policy_digest: String,
    task_spec_digest: String,
}

fn bad(entry: &Entry, what: &str) -> EngineFault {
    EngineFault::BadLedger(format!("entry {}: {what}", entry.sequence))
}

impl WireText {
    fn of(entry: &Entry) -> Result<Self, EngineFault> {
        serde_json::from_str(&entry.wire).map_err(|_| bad(entry, "it is no Wire event"))
    }
}

/// The decision that an entry makes, if it is one on a handoff.
pub(super) fn decision_in(entry: &Entry) -> Result<Option<Decided>, EngineFault> {
    let wire = WireText::of(entry)?;
    let decides = wire.kind == "gate.decided" && wire.stream.stream_id.starts_with("task:");
    if decides { decided(entry, wire.stream, wire.payload).map(Some) } else { Ok(None) }
}

fn decided(entry: &Entry, stream: WireStream, payload: serde_json::Value) -> Result<Decided, EngineFault> {
    let payload: DecidedPayload =
        serde_json::from_value(payload).map_err(|_| bad(entry, "its decision is not ours"))?;
    let all = [Decision::Allowed, Decision::NeedsApproval, Decision::Denied, Decision::Expired];
    let decision = all.into_iter().find(|decision| decision.as_str() == payload.decision);
    let task = stream.stream_id.strip_prefix("task:").and_then(|task| task.rsplit_once(":attempt:"));
    let (handoff_id, attempt) = task.ok_or_else(|| bad(entry, "it names no handoff"))?;
    let gates: Option<Vec<_>> = payload.gates.iter().map(|text| read_outcome(text)).collect();
    let recalled = |text: &String| Code::from_text(text).map(Code::recalled);
    let reasons: Option<Vec<_>> = payload.codes.iter().map(recalled).collect();
    Ok(Decided {
        decision: decision.ok_or_else(|| bad(entry, "its decision is not ours"))?,
        handoff_id: Some(handoff_id.to_owned()),
        correlation_id: Some(stream.correlation_id),
        attempt: attempt.parse().map_err(|_| bad(entry, "it names no attempt"))?,
        decided_at: entry.consensus_timestamp.clone(),
        replayed: false,
        gates: gates.ok_or_else(|| bad(entry, "its gates are not ours"))?,
        reasons: reasons.ok_or_else(|| bad(entry, "its codes are not ours"))?,
        policy_digest: payload.policy_digest,
        task_spec_digest: Digest::parse(&payload.task_spec_digest)
            .ok_or_else(|| bad(entry, "its digest is none"))?,
        // Made again from the TaskSpec that asks for it.
        tag: None,
        ledger: LedgerPlace { sequence: entry.sequence, running_hash: entry.running_hash },
        // Said anew with every answer that is given again.
        pass: Pass::Withheld,
    })
}

impl Replay {
    /// Takes the next entry in, and says which handoff it is about.
    pub(super) fn entry(
        &mut self,
        entry: &Entry,
        index: &mut ClaimIndex,
        standing: &mut Standing,
    ) -> Result<Option<String>, EngineFault> {
        let wire = WireText::of(entry)?;
        let about = match StreamId::parse(&wire.stream.stream_id) {
            Some(StreamId::Handoff { handoff_id, .. }) => Some(handoff_id.to_owned()),
            _ => None,
        };
        self.take(entry, wire, index, standing)?;
        Ok(about)
    }

    fn take(
        &mut self,
        entry: &Entry,
        wire: WireText,
        index: &mut ClaimIndex,
        standing: &mut Standing,
    ) -> Result<(), EngineFault> {
        take_in(entry, &wire, standing)?;
        match wire.kind.as_str() {
            "task.created" => {
                let recorded: Recorded =
                    serde_json::from_value(wire.payload).map_err(|_| bad(entry, "its facts are not ours"))?;
                let (facts, content_digest) = recorded.into_facts();
                self.created = Some((facts, content_digest, wire.stream.correlation_id));
                Ok(())
            }
            "gate.decided" if wire.stream.stream_id.starts_with("task:") && wire.stream.stream_seq > 2 => {
                settled(entry, wire, index)
            }
            "gate.decided" if wire.stream.stream_id.starts_with("task:") => {
                let (facts, content_digest, correlation_id) =
                    self.created.take().ok_or_else(|| bad(entry, "nothing was created before it"))?;
                let decided = decided(entry, wire.stream, wire.payload)?;
                let accepted = matches!(decided.decision, Decision::Allowed | Decision::NeedsApproval);
                let accepted = accepted.then(|| Arc::new(decided));
                let before = index.before(&facts, &correlation_id)?;
                index.take(&facts, content_digest, &correlation_id, accepted, before, entry.sequence);
                Ok(())
            }
            "message.sent" if wire.stream.stream_id.starts_with("project:") => {
                speaking::take_in(entry.sequence, &wire.payload, index)?;
                stands(entry, wire, standing)
            }
            _ => match StreamId::parse(&wire.stream.stream_id) {
                Some(StreamId::Handoff { handoff_id, .. }) if wire.stream.stream_seq > 3 => {
                    moved(entry, handoff_id, index)?;
                    over(entry, handoff_id, index, standing)
                }
                _ => stands(entry, wire, standing),
            },
        }
    }
}

/// Takes in what people decided, and who waits for them.
fn take_in(entry: &Entry, wire: &WireText, standing: &mut Standing) -> Result<(), EngineFault> {
    let not_ours = || bad(entry, "it is no Wire event of ours");
    let fact = Fact {
        kind: wire.kind.parse().map_err(|_| not_ours())?,
        sender: Sender::parse(&wire.sender).ok_or_else(not_ours)?,
        stream: StreamId::parse(&wire.stream.stream_id).ok_or_else(not_ours)?,
        sequence: entry.sequence,
        at: Timestamp::parse(&entry.consensus_timestamp).ok_or_else(|| bad(entry, "its time is none"))?,
        payload: &wire.payload,
    };
    standing.take(&fact, wire.stream.stream_seq).map_err(|fault| EngineFault::BadLedger(fault.to_string()))
}

/// Takes in what was decided about a handoff that waited.
fn settled(entry: &Entry, wire: WireText, index: &mut ClaimIndex) -> Result<(), EngineFault> {
    let handoff_id = match StreamId::parse(&wire.stream.stream_id) {
        Some(StreamId::Handoff { handoff_id, .. }) => handoff_id.to_owned(),
        _ => return Err(bad(entry, "it names no handoff")),
    };
    moved(entry, &handoff_id, index)?;
    let task = index.task(&handoff_id)?.ok_or_else(|| bad(entry, "nothing was accepted before it"))?;
    let decided = Arc::new(decided(entry, wire.stream, wire.payload)?);
    index.put_decided(task, decided, entry.sequence)
}

/// Takes in that a handoff has ended.
fn over(
    entry: &Entry,
    handoff_id: &str,
    index: &ClaimIndex,
    standing: &mut Standing,
) -> Result<(), EngineFault> {
    if let Some(task) = index.task(handoff_id)?.filter(|task| task.is_over())
        && let Some(route_key) = &task.route_key
    {
        standing.land(route_key, handoff_id, entry.sequence);
    }
    Ok(())
}

/// Takes in what an entry says of a handoff that was accepted before.
fn moved(entry: &Entry, handoff_id: &str, index: &mut ClaimIndex) -> Result<(), EngineFault> {
    let task = index.task(handoff_id)?.ok_or_else(|| bad(entry, "nothing was accepted before it"))?;
    let envelope = Envelope::read_again(&entry.wire).ok_or_else(|| bad(entry, "it is no Wire event"))?;
    let at = Timestamp::parse(&entry.consensus_timestamp).ok_or_else(|| bad(entry, "its time is none"))?;
    let next = task.after(&envelope, &entry.wire, entry.sequence, at);
    let next = next.map_err(|fault| bad(entry, &fault.to_string()))?;
    index.put_task(Arc::new(next), entry.sequence)
}

/// Takes in what an entry says of what is in force.
pub(super) fn standing(entry: &Entry, standing: &mut Standing) -> Result<(), EngineFault> {
    let wire = WireText::of(entry)?;
    take_in(entry, &wire, standing)?;
    stands(entry, wire, standing)
}

fn stands(entry: &Entry, wire: WireText, standing: &mut Standing) -> Result<(), EngineFault> {
    if wire.stream.stream_id.starts_with("project:") {
        standing.gateway_seq = wire.stream.stream_seq;
    }
    match wire.kind.as_str() {
        "policy.loaded" => {
            let digest = wire.payload.get("digest").and_then(serde_json::Value::as_str);
            standing.policy_digest = digest.map(str::to_owned);
        }
        "token.created" | "token.revoked" | "key.added" | "key.removed" => {
            let taken = Arc::make_mut(&mut standing.credentials).take(&wire.kind, wire.payload);
            taken.ok_or_else(|| bad(entry, "its token or key is not ours"))?;
        }
        "epoch.begun" => {
            let facts =
                serde_json::from_value(wire.payload).map_err(|_| bad(entry, "its epoch is not ours"))?;
            let since = Timestamp::parse(&entry.consensus_timestamp);
            let since = since.ok_or_else(|| bad(entry, "its time is none"))?;
            standing.epoch = Some(Arc::new(Epoch { since, facts }));
        }
        _ => {}
    }
    Ok(())
}

fn read_outcome(text: &str) -> Option<(Gate, Outcome)> {
    let (gate, outcome) = text.split_once(':')?;
    let gate = Gate::ALL.into_iter().find(|other| other.id() == gate)?;
    let outcomes = [Outcome::Pass, Outcome::Fail, Outcome::NotApplicable];
    Some((gate, outcomes.into_iter().find(|other| other.as_str() == outcome)?))
}
