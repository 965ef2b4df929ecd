//! What the ledger says, read back when the engine starts.

use std::sync::Arc;

use serde::Deserialize;

use super::EngineFault;
use super::claims::ClaimIndex;
use super::epoch::Epoch;
use super::facts::Facts;
use super::record::{Decided, LedgerPlace, Pass};
use super::standing::Standing;
use crate::gates::{Decision, Gate, Outcome};
use crate::ledger::Entry;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// Reads decisions back from the ledger, group by group.
#[derive(Default)]
pub(super) struct Replay {
    created: Option<(Facts, String)>,
}

#[derive(Deserialize)]
struct WireText {
    #[serde(rename = "type")]
    kind: String,
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
    decision: String,
    gates: Vec<String>,
    policy_digest: String,
}

impl Replay {
    /// Takes the next entry in.
    pub(super) fn entry(
        &mut self,
        entry: &Entry,
        index: &mut ClaimIndex,
        standing: &mut Standing,
    ) -> Result<(), EngineFault> {
        let bad = |what: &str| EngineFault::BadLedger(format!("entry {}: {what}", entry.sequence));
        let wire: WireText = serde_json::from_str(&entry.wire).map_err(|_| bad("it is no Wire event"))?;
        if wire.stream.stream_id.starts_with("project:") {
            standing.gateway_seq = wire.stream.stream_seq;
        }
        match wire.kind.as_str() {
            "task.created" => {
                let facts =
                    serde_json::from_value(wire.payload).map_err(|_| bad("its facts are not ours"))?;
                self.created = Some((facts, wire.stream.correlation_id));
            }
            "policy.loaded" => {
                let digest = wire.payload.get("digest").and_then(serde_json::Value::as_str);
                standing.policy_digest = digest.map(str::to_owned);
            }
            "route.declared" | "route.removed" => {
                let key =
                    wire.stream.stream_id.strip_prefix("phase:").ok_or_else(|| bad("it names no route"))?;
                let facts = match wire.kind.as_str() {
                    "route.declared" => {
                        Some(serde_json::from_value(wire.payload).map_err(|_| bad("its route is not ours"))?)
                    }
                    _ => None,
                };
                standing.take(key, facts, wire.stream.stream_seq);
            }
            "token.created" | "token.revoked" | "key.added" | "key.removed" => {
                let taken = Arc::make_mut(&mut standing.credentials).take(&wire.kind, wire.payload);
                taken.ok_or_else(|| bad("its token or key is not ours"))?;
            }
            "epoch.begun" => {
                let facts = serde_json::from_value(wire.payload).map_err(|_| bad("its epoch is not ours"))?;
                let since =
                    Timestamp::parse(&entry.consensus_timestamp).ok_or_else(|| bad("its time is none"))?;
                standing.epoch = Some(Arc::new(Epoch { since, facts }));
            }
            // A refusal without a handoffId claims nothing.
            "gate.decided" if wire.stream.stream_id.starts_with("project:") => {}
            "gate.decided" => {
                let payload: DecidedPayload =
                    serde_json::from_value(wire.payload).map_err(|_| bad("its decision is not ours"))?;
                let (facts, correlation_id) =
                    self.created.take().ok_or_else(|| bad("nothing was created before it"))?;
                let accepted = match payload.decision.as_str() {
                    "allowed" => Some(Decision::Allowed),
                    "needs_approval" => Some(Decision::NeedsApproval),
                    _ => None,
                };
                let decided = accepted.map(|decision| {
                    Ok(Arc::new(Decided {
                        decision,
                        handoff_id: Some(facts.handoff_id.clone()),
                        correlation_id: Some(correlation_id.clone()),
                        attempt: facts.attempt,
                        decided_at: entry.consensus_timestamp.clone(),
                        replayed: false,
                        gates: payload.gates.iter().filter_map(|text| read_outcome(text)).collect(),
                        reasons: Vec::new(),
                        policy_digest: payload.policy_digest,
                        task_spec_digest: Digest::parse(&facts.task_spec_digest)
                            .ok_or_else(|| bad("its digest is none"))?,
                        // Made again from the TaskSpec that asks for it.
                        tag: None,
                        ledger: LedgerPlace { sequence: entry.sequence, running_hash: entry.running_hash },
                        // Said anew with every answer that is given again.
                        pass: Pass::Withheld,
                    }))
                });
                index.take(&facts, &correlation_id, decided.transpose()?);
            }
            _ => {}
        }
        Ok(())
    }
}

fn read_outcome(text: &str) -> Option<(Gate, Outcome)> {
    let (gate, outcome) = text.split_once(':')?;
    let gate = Gate::ALL.into_iter().find(|other| other.id() == gate)?;
    let outcomes = [Outcome::Pass, Outcome::Fail, Outcome::NotApplicable];
    Some((gate, outcomes.into_iter().find(|other| other.as_str() == outcome)?))
}
