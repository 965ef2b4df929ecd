//! What is kept of a handoff beside the answers of the API: its TaskSpec, why it was refused, and whether its
//! entries hold together.
//!
//! The ledger has the codes of a refusal, not its words: those are in the answer, and follow from the TaskSpec, the
//! policy set and the time. They are worked out again here from what is kept, and the page says under which set.

use std::sync::Arc;

use serde_json::Value as Json;

use super::form::encoded;
use super::prose::Prose;
use super::shown::Markup;
use crate::contract::TaskSpec;
use crate::dispatch::{Settled, payload, preview};
use crate::gates::{Caller, Code, Gate, Ground, judge};
use crate::gateway::read_checkpoint;
use crate::http::{App, Problem};
use crate::json::read;
use crate::ledger::{EntriesFault, RunningHash};
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// A reason against a handoff, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Why {
    /// The id of the gate that gives this code; nothing for a code that is not ours.
    pub(super) gate: Option<&'static str>,
    pub(super) code: String,
    /// Into the TaskSpec; nothing where only the code is known.
    pub(super) path: Option<String>,
    pub(super) message: String,
    pub(super) hint: String,
}

impl Why {
    /// Where in the TaskSpec, unless it is about all of it.
    pub(super) fn place(&self) -> Option<&str> {
        self.path.as_deref().filter(|path| !path.is_empty())
    }

    /// Its code as a part of an address.
    pub(super) fn link(&self) -> String {
        encoded(&self.code)
    }

    pub(super) fn message_prose(&self) -> Markup<Prose> {
        Prose::of(self.message.as_str())
    }

    pub(super) fn hint_prose(&self) -> Markup<Prose> {
        Prose::of(self.hint.as_str())
    }
}

/// How a decision is explained.
#[derive(Debug, Default)]
pub(super) struct Explained {
    pub(super) reasons: Vec<Why>,
    /// Was the set that decided the one in force now?
    pub(super) is_same_set: bool,
}

/// A decision as the ledger has it.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) at: String,
    pub(super) policy_digest: String,
    pub(super) codes: Vec<String>,
}

/// Explains the codes of a decision: by the gates, as of when it was made, where the TaskSpec is kept; and by what
/// the code means otherwise.
pub(super) fn explain(app: &App, task_spec: Option<&str>, decided: &Decided) -> Explained {
    let rules = app.rules.current();
    let policies = app.gateway.engine().policies_over(&rules.in_force.policies);
    let mut reasons = Vec::new();
    let document = task_spec.and_then(|text| read(text.as_bytes(), limits::TASK_SPEC).ok());
    if let (Some(document), Some(now)) = (&document, Timestamp::parse(&decided.at)) {
        let keyring = &rules.in_force.keyring;
        let ground = Ground { policies: &policies, keyring, caller: Caller::Unchecked, now };
        for reason in judge(document, &ground).verdict.reasons() {
            if decided.codes.iter().any(|code| code == reason.code.as_str()) {
                reasons.push(Why {
                    gate: Some(reason.gate.id()),
                    code: reason.code.to_string(),
                    path: Some(reason.path.clone()),
                    message: reason.message.clone(),
                    hint: reason.hint.clone(),
                });
            }
        }
    }
    for code in &decided.codes {
        if !reasons.iter().any(|why| why.code == *code) {
            reasons.push(by_its_code(code));
        }
    }
    Explained { reasons, is_same_set: policies.digest().is_written(&decided.policy_digest) }
}

/// What a code means, whatever it was about.
fn by_its_code(code: &str) -> Why {
    let known = Code::ALL.iter().find(|known| known.as_str() == code);
    Why {
        gate: known.map(|known| known.gate().id()),
        code: code.to_owned(),
        path: None,
        message: known.map_or("", |known| known.means()).to_owned(),
        hint: known.map_or("", |known| known.fix()).to_owned(),
    }
}

/// The title of a gate by its id.
pub(super) fn gate_title(id: &str) -> String {
    Gate::ALL.iter().find(|gate| gate.id() == id).map_or(id, |gate| gate.title()).to_owned()
}

/// What the target was sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// Without its signature.
    pub(super) payload: Json,
    /// Of the payload as it was sent, as the receipt has it; nothing if it cannot be signed any more.
    pub(super) digest: Option<String>,
}

/// What an allowed handoff gave its orchestrator to send: it follows from the TaskSpec, the route and the decision.
pub(super) fn sent(
    app: &App,
    task_spec: &str,
    decided_at: &str,
    running_hash: &str,
    now: Timestamp,
) -> Option<Sent> {
    let rules = app.rules.current();
    let policies = app.gateway.engine().policies_over(&rules.in_force.policies);
    let document = read(task_spec.as_bytes(), limits::TASK_SPEC).ok()?;
    let spec = TaskSpec::read(&document).0;
    let route = policies.route(spec.routing.route_key.get()?.as_str())?;
    let decided_at = Timestamp::parse(decided_at)?;
    let digest = RunningHash::from_hex(running_hash).and_then(|running_hash| {
        let settled = Settled { decided_at, running_hash };
        payload(&spec, route, &settled, &rules.in_force.keyring, now).ok()
    });
    let digest = digest.map(|dispatch| dispatch.digest().to_string());
    Some(Sent { payload: preview(&spec, route, decided_at)?, digest })
}

/// The TaskSpec as it was submitted; nothing if it is no longer kept.
pub(super) async fn task_spec(
    app: &Arc<App>,
    sequence: u64,
    digest: &str,
) -> Result<Option<String>, Problem> {
    let (ledger, Some(digest)) = (app.gateway.ledger().clone(), Digest::parse(digest)) else {
        return Ok(None);
    };
    off_thread(move || ledger.body(sequence, digest)).await
}

/// One entry with the hash before it, and whether the two give its own.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) sequence: u64,
    pub(super) before: String,
    pub(super) stored: String,
    pub(super) computed: String,
}

impl Link {
    pub(super) fn holds(&self) -> bool {
        self.stored == self.computed
    }
}

/// Computes the links of these entries again, of those that the ledger has.
pub(super) async fn links(app: &Arc<App>, sequences: Vec<u64>) -> Result<Vec<Link>, Problem> {
    let (ledger, topic_id) = (app.gateway.ledger().clone(), app.gateway.topic_id().to_owned());
    off_thread(move || {
        let mut links = Vec::with_capacity(sequences.len());
        for sequence in sequences {
            let mut before = RunningHash::genesis(&topic_id);
            for entry in ledger.entries(sequence.saturating_sub(1).max(1), sequence)? {
                let entry = entry?;
                if entry.sequence == sequence {
                    let computed = before.then(sequence, &entry.consensus_timestamp, &entry.wire);
                    links.push(Link {
                        sequence,
                        before: before.to_string(),
                        stored: entry.running_hash.to_string(),
                        computed: computed.to_string(),
                    });
                }
                before = entry.running_hash;
            }
        }
        Ok(links)
    })
    .await
}

/// The checkpoint that was written last; nothing if there is none that can be read.
pub(super) fn last_checkpoint(app: &App) -> Option<Json> {
    let checkpoint = read_checkpoint(&app.gateway.files().checkpoint()).ok()??;
    serde_json::to_value(checkpoint).ok()
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EntriesFault> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}
