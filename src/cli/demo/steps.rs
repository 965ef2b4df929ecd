//! What the demo shows, in order: each a TaskSpec, and what must be decided about it.

use serde_json::{Value as Json, json};

use crate::proof::Key;
use crate::sealing::{Seal, Signer, seal};
use crate::timestamp::Timestamp;

/// One TaskSpec, and what must come of it.
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) story: &'static str,
    pub(super) make: fn(&Examples<'_>) -> Json,
    pub(super) decision: &'static str,
    /// A code that must be among the reasons; nothing if there must be none.
    pub(super) code: Option<&'static str>,
    pub(super) replayed: bool,
}

/// What the TaskSpecs are made from.
pub(super) struct Examples<'k> {
    pub(super) canonical: Json,
    pub(super) delegated: Json,
    pub(super) key: &'k Key,
    pub(super) now: Timestamp,
}

const fn refused(
    title: &'static str,
    story: &'static str,
    make: fn(&Examples<'_>) -> Json,
    code: &'static str,
) -> Step {
    Step { title, story, make, decision: "denied", code: Some(code), replayed: false }
}

const fn allowed(title: &'static str, story: &'static str, make: fn(&Examples<'_>) -> Json) -> Step {
    Step { title, story, make, decision: "allowed", code: None, replayed: false }
}

pub(super) const STEPS: [Step; 12] = [
    allowed(
        "A handoff",
        "decision-router asks to hand a simulated swap to crypto-sage, along a route that we know.",
        |examples| examples.canonical.clone(),
    ),
    refused(
        "G0 contract",
        "The same to an agent that the route does not lead to.",
        |examples| examples.direct(2, |spec| set(spec, "/target/agentId", "stranger")),
        "A2A_ROUTE_TARGET_MISMATCH",
    ),
    refused(
        "Safety",
        "An agent vouches for its own end-to-end test.",
        |examples| examples.direct(3, |spec| set(spec, "/safety/e2eActor", "agent")),
        "POLICY_SELF_TEST",
    ),
    allowed(
        "A signed delegation",
        "A balance read in user:main's name: the envelope is signed with user:main's key, which was just added.",
        |examples| examples.signed(4, |_| {}),
    ),
    refused(
        "D1 policy",
        "Somebody names a policy that nobody wrote.",
        |examples| {
            examples.signed(5, |spec| {
                set(spec, "/authorship/delegationPolicy/policyRef", "policies/delegation/nobody-v1.json");
            })
        },
        "POLICY_REF_UNKNOWN",
    ),
    refused(
        "D2 envelope",
        "The envelope's scope is widened after it was signed.",
        |examples| {
            let mut spec = examples.signed(6, |_| {});
            set(&mut spec, "/authorship/envelope/scope/tasks", json!(["balance.read", "positions.read"]));
            spec
        },
        "POLICY_ENVELOPE_HASH_MISMATCH",
    ),
    refused(
        "D3 risk",
        "A swap is called a mere read, properly signed; the policy's risk floor knows better.",
        |examples| {
            let input = examples.canonical.pointer("/intent/input").cloned().unwrap_or_default();
            examples.signed(7, |spec| {
                set(spec, "/intent/operation", "swap.jupiter");
                set(spec, "/intent/input", input);
                set(spec, "/authorship/delegationPolicy/allowTasks", json!(["swap.jupiter"]));
                set(spec, "/authorship/envelope/scope/tasks", json!(["swap.jupiter"]));
            })
        },
        "POLICY_RISK_UNDERSTATED",
    ),
    refused(
        "D4 mention",
        "A bot mentions itself, to hand itself work.",
        |examples| examples.mentioned(8, "blockchain-operator"),
        "POLICY_MENTION_LOOP",
    ),
    refused(
        "Mention phase",
        "A mention that is in order: they are only counted until an operator raises the phase.",
        |examples| examples.mentioned(9, "decision-router"),
        "POLICY_MENTION_PHASE",
    ),
    Step {
        title: "A duplicate",
        story: "The first handoff once more, as after a lost answer: the same decision, and nothing new in the ledger.",
        make: |examples| examples.canonical.clone(),
        decision: "allowed",
        code: None,
        replayed: true,
    },
    refused(
        "A used id",
        "Other work under the first one's handoffId.",
        |examples| {
            let mut spec = examples.direct(11, |_| {});
            set(&mut spec, "/handoffId", examples.canonical.get("handoffId").cloned().unwrap_or_default());
            spec
        },
        "A2A_HANDOFF_REUSED",
    ),
    refused(
        "Live",
        "The swap for real. A person's yes would be needed; but this route has not even been promoted that far.",
        |examples| {
            examples.direct(12, |spec| {
                set(spec, "/mode", "live");
                set(spec, "/safety/allowExternalSideEffects", true);
            })
        },
        "POLICY_STAGE_NOT_REACHED",
    ),
];

/// Sets what a pointer leads to; all of them lead to something in the examples.
pub(super) fn set(spec: &mut Json, pointer: &str, value: impl Into<Json>) {
    if let Some(place) = spec.pointer_mut(pointer) {
        *place = value.into();
    }
}

impl Examples<'_> {
    /// Another direct handoff.
    pub(super) fn direct(&self, n: u32, change: impl FnOnce(&mut Json)) -> Json {
        let mut spec = renamed(&self.canonical, n);
        change(&mut spec);
        spec
    }

    /// A delegated handoff without a mention, signed after `change`.
    fn signed(&self, n: u32, change: impl FnOnce(&mut Json)) -> Json {
        let mut spec = renamed(&self.delegated, n);
        if let Some(authorship) = spec.get_mut("authorship").and_then(Json::as_object_mut) {
            authorship.remove("mentionDelegationMode");
            authorship.remove("mentionDelegation");
        }
        change(&mut spec);
        self.seal(spec)
    }

    /// A delegated handoff that a mention triggered.
    fn mentioned(&self, n: u32, origin: &str) -> Json {
        let mut spec = renamed(&self.delegated, n);
        set(&mut spec, "/authorship/mentionDelegation/messageId", format!("14733950000000000{n:02}"));
        set(&mut spec, "/authorship/mentionDelegation/originBotId", origin);
        set(&mut spec, "/authorship/mentionDelegation/observedAt", self.now.to_milliseconds());
        self.seal(spec)
    }

    fn seal(&self, mut spec: Json) -> Json {
        let ttl = Some((self.now, self.now.plus_seconds(600)));
        // What cannot be sealed is refused, and the step says so.
        let _ = seal(&mut spec, &Seal { signer: Signer::Shared(self.key), ttl, bind: true });
        spec
    }
}

fn renamed(spec: &Json, n: u32) -> Json {
    let mut spec = spec.clone();
    set(&mut spec, "/handoffId", format!("hs_demo_{n:04}"));
    set(&mut spec, "/correlationId", format!("corr_demo_{n:04}"));
    set(&mut spec, "/audit/requestId", format!("req_demo_{n:04}"));
    set(&mut spec, "/audit/idempotencyKey", format!("idem_demo_{n:04}"));
    spec
}
