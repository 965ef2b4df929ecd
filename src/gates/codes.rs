//! Every code: what it means, why it exists, how to fix it, an example.
//!
//! Wire contract: a code is never renamed and never reused. `docs/codes.md` is made from this list, and a
//! test fails when they drift.

use std::fmt::Write as _;

use serde::Serialize;

use super::verdict::{Gate, Reason};

/// What a person reads about a code.
struct Page {
    code: &'static str,
    gate: Gate,
    /// Only such reasons: the handoff is expired, not denied.
    expiry: bool,
    means: &'static str,
    why: &'static str,
    fix: &'static str,
    example: &'static str,
}

macro_rules! codes {
    ($($variant:ident = $code:literal, $gate:ident $($expiry:ident)? {
        means: $means:literal, why: $why:literal, fix: $fix:literal, example: $example:literal,
    })*) => {
        /// The code of a reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn page(self) -> &'static Page {
                match self {
                    $(Self::$variant => &Page {
                        code: $code, gate: Gate::$gate, expiry: codes!(@expiry $($expiry)?),
                        means: $means, why: $why, fix: $fix, example: $example,
                    }),*
                }
            }
        }
    };
    (@expiry expiry) => { true };
    (@expiry) => { false };
}

codes! {
    BodyInvalid = "A2A_BODY_INVALID", Contract {
        means: "The body could not be read as one strict JSON document.",
        why: "Two parsers that understand a body differently can be played against each other: what the gateway allows would not be what the target does.",
        fix: "Send UTF-8 JSON of at most 256 KiB and 64 levels, with no key twice in one object and no number that a double does not give back.",
        example: "`{\"mode\":\"dev\",\"mode\":\"live\"}` has a key twice.",
    }
    TaskspecInvalid = "A2A_TASKSPEC_INVALID", Contract {
        means: "The document does not have the shape of a TaskSpec.",
        why: "A handoff without a complete TaskSpec has no one to answer for it.",
        fix: "Correct what `path` points at; `docs/schemas/task-spec.schema.json` is the contract. All findings come in one answer.",
        example: "`acceptance.doneWhen` is an empty list.",
    }
    SourceMismatch = "A2A_SOURCE_MISMATCH", Contract {
        means: "The caller submits in the name of an agent that is not its own.",
        why: "An orchestrator that could name any source could spend another one's trust.",
        fix: "Submit with the token of the source agent. An admin token may stand in for any source in dev and simulated, never in live.",
        example: "The token of `decision-router` submits a TaskSpec whose source is `crypto-sage`.",
    }
    TimestampWindowExceeded = "A2A_TIMESTAMP_WINDOW_EXCEEDED", Contract {
        means: "`createdAt` lies more than 120 seconds in the future.",
        why: "A TaskSpec from the future is a broken clock or a prepared one.",
        fix: "Set the sender's clock and stamp the TaskSpec when it is made.",
        example: "`createdAt` is tomorrow.",
    }
    RouteUnknown = "A2A_ROUTE_UNKNOWN", Contract {
        means: "`routing.routeKey` is no route of the routing table.",
        why: "What is not listed is not allowed.",
        fix: "Name a route of `policies/routes.json`, or have an operator add it.",
        example: "`routing.routeKey` is `nowhere.execution-plane.v1`.",
    }
    RouteBlocked = "A2A_ROUTE_BLOCKED", Contract {
        means: "The route is blocked, by an operator or by a rollback.",
        why: "After a rollback nothing may pass until somebody has looked.",
        fix: "Wait, or have an operator unblock the route.",
        example: "A handoff arrives after `handoffd rollback` blocked its route.",
    }
    RouteTargetMismatch = "A2A_ROUTE_TARGET_MISMATCH", Contract {
        means: "The target, or the fallback that is named, does not belong to the route.",
        why: "Work must not reach an agent that the route was not approved for.",
        fix: "Name the route's primary, an alias or its fallback as target; leave `fallbackAgentId` out or name the route's own.",
        example: "`target.agentId` is `stranger`.",
    }
    RouteCapabilityMismatch = "A2A_ROUTE_CAPABILITY_MISMATCH", Contract {
        means: "The route does not offer the capability that is asked of the target.",
        why: "An agent is trusted with a capability, not with everything.",
        fix: "Ask for the capability that the route offers.",
        example: "`target.capability` is `treasury-plane`.",
    }
    SchemaNotFound = "EXECUTION_SCHEMA_NOT_FOUND", Contract {
        means: "`intent.inputSchemaRef` leads to no JSON file.",
        why: "An input that nothing describes cannot be checked.",
        fix: "Name an existing .json file by its path below the workspace root.",
        example: "`intent.inputSchemaRef` is `agents/blockchain-operator/config/missing.schema.v1.json`.",
    }
    SchemaRefForbidden = "EXECUTION_SCHEMA_REF_FORBIDDEN", Contract {
        means: "`intent.inputSchemaRef` leads out of the workspace, or is none of those that the route takes.",
        why: "A sender that picks any file on the machine picks the rules it is judged by, and reads what it should not.",
        fix: "Give a plain relative path: no `..`, no leading slash, no link that leads out.",
        example: "`intent.inputSchemaRef` is `../outside/execution-plane.schema.v1.json`.",
    }
    SchemaUnversioned = "EXECUTION_SCHEMA_UNVERSIONED", Contract {
        means: "The input schema has no version in its file name or `$id`.",
        why: "A schema that changes under its name changes what old TaskSpecs meant.",
        fix: "Name it like `operation.schema.v1.json`.",
        example: "`intent.inputSchemaRef` is `docs/schemas/task-spec.schema.json`.",
    }
    SchemaInvalid = "EXECUTION_SCHEMA_INVALID", Contract {
        means: "The input, or the envelope made of it, does not fit the input schema; or the receiver's own rules; or the schema itself cannot be used.",
        why: "The receiver would refuse it, after dispatch, when it is too late to mend.",
        fix: "Correct the input at `path`. For `execution-plane.v1` ids take 6 to 128 letters, digits and `. _ : -`, idempotency keys 8 to 256 characters, times end in `Z` with at most three fraction digits.",
        example: "`intent.input.slippageBps` is `\"many\"`.",
    }
    SelfTest = "POLICY_SELF_TEST", Safety {
        means: "`safety.e2eActor` is neither `human` nor `authorized-harness`.",
        why: "An agent's word on its own work is not evidence.",
        fix: "Have a person or an authorized harness run the end-to-end test, and say so.",
        example: "`safety.e2eActor` is `agent`.",
    }
    ApprovalRequired = "POLICY_APPROVAL_REQUIRED", Safety {
        means: "A live handoff does not require human approval.",
        why: "Live work moves real money; somebody must be able to say no.",
        fix: "Set `safety.requiresHumanApproval` to true.",
        example: "`mode` is `live` and `safety.requiresHumanApproval` is false.",
    }
    ApprovalRejected = "POLICY_APPROVAL_REJECTED", Risk {
        means: "A person was asked about the handoff and said no.",
        why: "The one who answers for live work has the last word.",
        fix: "Ask them what would have to change, and hand it over under a new handoffId.",
        example: "An operator answers `POST /v1/approvals/{handoffId}` with `reject`.",
    }
    ApprovalExpired = "POLICY_APPROVAL_EXPIRED", Risk expiry {
        means: "Nobody said yes in time.",
        why: "A yes to what was asked long ago is a yes to something else.",
        fix: "Hand it over again under a new handoffId, when somebody is there to approve it.",
        example: "A live handoff waits for 15 minutes, and no operator answers.",
    }
    RollbackPlanMissing = "POLICY_ROLLBACK_PLAN_MISSING", Safety {
        means: "There is no rollback plan, it is not required, or it does not resolve to a file in the workspace.",
        why: "Nothing goes forward without a way back.",
        fix: "Add `rollback` with `required: true` and a `planRef` to a .md or .json file below the workspace root.",
        example: "`rollback.planRef` is `agents/blockchain-operator/docs/missing.md`.",
    }
    SideEffects = "POLICY_SIDE_EFFECTS", Safety {
        means: "A dev or simulated handoff asks for external side effects.",
        why: "A rehearsal that changes the world is not one.",
        fix: "Leave `safety.allowExternalSideEffects` out, or use mode live on a route that has earned it.",
        example: "`mode` is `simulated` and `safety.allowExternalSideEffects` is true.",
    }
    StageNotReached = "POLICY_STAGE_NOT_REACHED", Stage {
        means: "The mode is beyond the stage that the route has reached.",
        why: "A route goes dev, simulated, live, and each step is earned with evidence.",
        fix: "Use a mode the route has reached, or promote it through the gates G0 to G4.",
        example: "A live handoff on a route whose last gate is G2.",
    }
    CanaryFull = "POLICY_CANARY_FULL", Stage {
        means: "The route is live in canary and its one slot is taken.",
        why: "A route that is new to live is tried with one handoff at a time.",
        fix: "Send it again when the handoff under way has ended.",
        example: "A second live handoff while the first has not been reported complete.",
    }
    RefUnknown = "POLICY_REF_UNKNOWN", Policy {
        means: "`authorship.delegationPolicy.policyRef` is no policy of this workspace.",
        why: "Without a policy file there is no authority to delegate under.",
        fix: "Name a file of `policies/delegation/` by its path in the workspace.",
        example: "`policyRef` is `policies/delegation/nobody-v1.json`.",
    }
    PrincipalDenied = "POLICY_PRINCIPAL_DENIED", Policy {
        means: "The policy does not list the envelope's principal.",
        why: "A policy is for the people it names.",
        fix: "Use a policy that lists this principal.",
        example: "The envelope is signed by `user:other` under the policy of `user:main`.",
    }
    AllowlistExceeded = "POLICY_ALLOWLIST_EXCEEDED", Policy {
        means: "The TaskSpec's own allowlists go beyond the policy file.",
        why: "The lists in a TaskSpec are the sender's words; they may narrow the file, never widen it.",
        fix: "Remove the entry, or have an operator add it to the policy file.",
        example: "`allowTasks` has `withdraw.all`, which the file does not.",
    }
    AgentDenied = "POLICY_AGENT_DENIED", Policy {
        means: "The target, or the fallback that is named, is not allowed.",
        why: "Delegated work goes only to agents that policy and sender both name.",
        fix: "Choose an allowed agent, or have the list extended.",
        example: "`allowAgents` lists only `crypto-sage-dr`, and the target is `blockchain-operator`.",
    }
    ChannelDenied = "POLICY_CHANNEL_DENIED", Policy {
        means: "The channel is not allowed, or there is none and the policy wants one.",
        why: "A delegation is given in a place where the right people see it.",
        fix: "Use an allowed channel, or have an operator allow it or set `allowWithoutChannel`.",
        example: "The mention was seen in `discord:channel:999999999999999999`.",
    }
    TaskDenied = "POLICY_TASK_DENIED", Policy {
        means: "The operation is not allowed.",
        why: "A delegation is for named operations.",
        fix: "Choose an allowed operation, or have the list extended.",
        example: "`intent.operation` is `swap.jupiter`, and `allowTasks` lists only `transfer`.",
    }
    ScopeExceeded = "POLICY_SCOPE_EXCEEDED", Envelope {
        means: "The signed scope is wider than the allowlists, or does not cover the act.",
        why: "What the principal signed is the last word on how far a delegation goes.",
        fix: "Have the principal sign a scope that covers the act and is no wider than the allowlists.",
        example: "The scope covers `transfer`, and the operation is `swap.jupiter`.",
    }
    DelegateMismatch = "POLICY_DELEGATE_MISMATCH", Envelope {
        means: "The envelope delegates to another agent or session than the source.",
        why: "An envelope that anyone could carry is a bearer cheque.",
        fix: "Ask the principal for an envelope of your own.",
        example: "`envelope.delegateAgent.agentId` is `other-router`.",
    }
    EnvelopeNotYetValid = "POLICY_ENVELOPE_NOT_YET_VALID", Envelope {
        means: "The envelope does not hold yet.",
        why: "A delegation for tomorrow is not one for today.",
        fix: "Send it when it holds, and check the clocks; 120 seconds of skew are forgiven.",
        example: "`ttl.issuedAt` is in an hour.",
    }
    EnvelopeExpired = "POLICY_ENVELOPE_EXPIRED", Envelope expiry {
        means: "The envelope no longer holds.",
        why: "A delegation ends by itself, so that a lost one cannot be used for ever.",
        fix: "Ask the principal for a new envelope. An instant equal to `expiresAt` is expired.",
        example: "`ttl.expiresAt` was a second ago.",
    }
    EnvelopeTtlTooLong = "POLICY_ENVELOPE_TTL_TOO_LONG", Envelope {
        means: "The envelope holds longer than the policy allows.",
        why: "The longer a delegation holds, the more a leak costs.",
        fix: "Have the principal sign a shorter one.",
        example: "The envelope holds for a day under a policy with `maxTtlSeconds: 900`.",
    }
    ProofAlgorithm = "POLICY_PROOF_ALGORITHM", Envelope {
        means: "The proof's algorithm is not accepted.",
        why: "An algorithm that the sender picks freely is a way around the proof.",
        fix: "Use `hmac-sha256-v1` or `ed25519-v1`.",
        example: "`proof.algorithm` is `none`.",
    }
    KeyUnknown = "A2A_KEY_UNKNOWN", Envelope {
        means: "There is no key of this principal for this purpose that counts now; or, at `/routing/routeKey`, none with which the gateway could sign what the route's receiver demands to be signed.",
        why: "A proof needs a key whose owner and purpose the gateway knows; a receiver that enforces signatures refuses what has none.",
        fix: "Have an administrator add or rotate the key; check `proof.keyId`, or the route's `signingKeyId`.",
        example: "`proof.keyId` is `lost-key`.",
    }
    EnvelopeHashMismatch = "POLICY_ENVELOPE_HASH_MISMATCH", Envelope {
        means: "`proof.hash` is not the SHA-256 of the canonical envelope without `proof`.",
        why: "The hash names the envelope in the audit log; a wrong one names nothing.",
        fix: "Compute it over the RFC 8785 form: `sha256:` and 64 lower-case hex digits.",
        example: "The hash has 32 hex digits.",
    }
    SignatureInvalid = "A2A_SIGNATURE_INVALID", Envelope {
        means: "The signature is not the principal's over this envelope.",
        why: "The signature is the only thing that ties the act to the person.",
        fix: "Sign the RFC 8785 form of the envelope without `proof`, and change nothing in it afterwards. `handoffd sign` does it.",
        example: "One digit of the signature was changed.",
    }
    BindingMismatch = "POLICY_BINDING_MISMATCH", Envelope {
        means: "The envelope is bound to something else, or not bound where the policy demands it.",
        why: "An unbound envelope covers any amount to any recipient inside its scope.",
        fix: "Sign with `handoffd sign --bind`, for this handoff.",
        example: "`binding.handoffId` names another handoff.",
    }
    AuditMismatch = "POLICY_AUDIT_MISMATCH", Envelope {
        means: "`audit.delegation` does not say what `authorship` says.",
        why: "An audit log that disagrees with the act proves nothing.",
        fix: "State the same policyRef, envelopeHash, riskClassification and authorizationRef in both.",
        example: "`audit.delegation.riskClassification` is `read` where the risk block says `live`.",
    }
    RiskUnderstated = "POLICY_RISK_UNDERSTATED", Risk {
        means: "The classification is below the policy's floor for this operation.",
        why: "Who sets the risk sets the questions that are asked; the sender does not set it alone.",
        fix: "Classify the operation as the policy does, and meet what that asks for.",
        example: "`transfer` is classified as `read`.",
    }
    ConfirmationRequired = "POLICY_CONFIRMATION_REQUIRED", Risk {
        means: "Sensitive or live work does not require confirmation.",
        why: "A person must be able to stop what cannot be undone.",
        fix: "Set `authorship.risk.requiresConfirmation` to true.",
        example: "`risk.classification` is `live` and `requiresConfirmation` is false.",
    }
    AuthorizationMissing = "POLICY_AUTHORIZATION_MISSING", Risk {
        means: "Sensitive or live work names no authorization.",
        why: "A delegation lets an agent ask; a person's grant lets it act.",
        fix: "Ask an operator for a grant and name it in `authorship.risk.authorizationRef`.",
        example: "`risk.classification` is `live` and there is no `authorizationRef`.",
    }
    AuthorizationUnknown = "POLICY_AUTHORIZATION_UNKNOWN", Risk {
        means: "The grant that is named does not exist.",
        why: "Anyone can write a reference; only a person can make a grant.",
        fix: "Name a grant that an operator made.",
        example: "`authorizationRef` is `authz_made_up`.",
    }
    AuthorizationExpired = "POLICY_AUTHORIZATION_EXPIRED", Risk expiry {
        means: "The grant no longer holds.",
        why: "A yes is for a time.",
        fix: "Ask for a new grant.",
        example: "The grant ended a minute ago.",
    }
    AuthorizationRevoked = "POLICY_AUTHORIZATION_REVOKED", Risk {
        means: "The grant was taken back.",
        why: "A person may change their mind.",
        fix: "Ask for a new grant.",
        example: "An operator revoked the grant after it was made.",
    }
    AuthorizationSpent = "POLICY_AUTHORIZATION_SPENT", Risk {
        means: "The grant's uses are used up.",
        why: "A yes to one act is not a yes to the next.",
        fix: "Ask for a new grant, or one with more uses.",
        example: "A grant for one use is named by a second handoff.",
    }
    AuthorizationScope = "POLICY_AUTHORIZATION_SCOPE", Risk {
        means: "The grant does not cover this principal, agent, operation, channel, mode or intent.",
        why: "A yes covers what the person looked at.",
        fix: "Ask for a grant that covers this handoff.",
        example: "The grant is for `transfer`, the handoff for `swap.jupiter`.",
    }
    MentionNotDelegated = "POLICY_MENTION_NOT_DELEGATED", Mention {
        means: "A gated mention comes without a delegation.",
        why: "A mention is a trigger; by itself it authorizes nothing.",
        fix: "Send it as `delegated-human-proxy` with policy, envelope and risk.",
        example: "`mentionDelegationMode` is `gated` and `authorship.mode` is absent.",
    }
    MentionLoop = "POLICY_MENTION_LOOP", Mention {
        means: "The bot that mentions is the bot that shall act.",
        why: "Two messages later it would be talking to itself for ever.",
        fix: "Drop the mention.",
        example: "`originBotId` and `targetBotId` are both `decision-router`.",
    }
    MentionBotMismatch = "POLICY_MENTION_BOT_MISMATCH", Mention {
        means: "A bot of the mention is not the handoff's source or target.",
        why: "The mention must be about this handoff, not another one.",
        fix: "Set `originBotId` to the source's agentId and `targetBotId` to the target's.",
        example: "`targetBotId` is `crypto-sage-dr`, and the target is `blockchain-operator`.",
    }
    MentionExpired = "POLICY_MENTION_EXPIRED", Mention expiry {
        means: "The mention's time has run out.",
        why: "An old message must not set off new work.",
        fix: "Have the person mention the bot again. An instant equal to `observedAt + ttlSeconds` is expired.",
        example: "The mention was seen ten minutes ago with `ttlSeconds: 300`.",
    }
    MentionFromFuture = "POLICY_MENTION_FROM_FUTURE", Mention {
        means: "The mention was seen in the future.",
        why: "A time that has not come would stretch the mention's life.",
        fix: "Stamp the mention when it is seen, and check the clocks; 120 seconds of skew are forgiven.",
        example: "`observedAt` is in an hour.",
    }
    MentionDuplicate = "POLICY_MENTION_DUPLICATE", Mention {
        means: "The message was used before.",
        why: "A message sets off one act, however often it is delivered.",
        fix: "Nothing to do: the first handoff stands.",
        example: "The same `messageId` arrives with a new handoffId.",
    }
    MentionPhase = "POLICY_MENTION_PHASE", Mention {
        means: "Mentions are not let through in the present phase.",
        why: "Mention-triggered work is rolled out in steps: log-only, gated-read, gated-live.",
        fix: "Wait for an operator to raise the phase.",
        example: "A gated mention while the phase is `log-only`.",
    }
    LoopDetected = "POLICY_LOOP_DETECTED", Lineage {
        means: "The chain of handoffs is too long, or comes back to an agent that stands in it.",
        why: "Agents that hand work around in circles spend money and get nothing done.",
        fix: "Break the chain: let a person or the first orchestrator start afresh.",
        example: "The ninth hop along `parentHandoffId`.",
    }
    ParentInvalid = "A2A_PARENT_INVALID", Lineage {
        means: "`parentHandoffId` names no accepted handoff that leads here.",
        why: "A made-up parent would hide where a chain began.",
        fix: "Name an accepted handoff of the same correlationId whose target is this source.",
        example: "`parentHandoffId` names a handoff that was denied.",
    }
    Frozen = "POLICY_FROZEN", Freeze {
        means: "An operator froze this route, this mode or the whole gateway.",
        why: "The kill switch holds for every decision after it.",
        fix: "Wait for an operator to lift it.",
        example: "Any handoff after `handoffd freeze`.",
    }
    HandoffReused = "A2A_HANDOFF_REUSED", Identity {
        means: "The handoffId belongs to another handoff.",
        why: "One id, one handoff: otherwise no one can say what was decided.",
        fix: "Use a new handoffId. A denied handoff may be corrected and sent again under its own.",
        example: "An accepted handoff's id comes with other content.",
    }
    IdempotencyConflict = "A2A_IDEMPOTENCY_CONFLICT", Identity {
        means: "The idempotencyKey stands for other content.",
        why: "The same key must mean the same act, or a retry could do something else.",
        fix: "Use a new key for new content; send the same content to get the same decision.",
        example: "A retry whose amount was changed.",
    }
}

impl Code {
    pub fn as_str(self) -> &'static str {
        self.page().code
    }

    /// The code that is written so.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// A reason of which the ledger kept only the code, in the words of its page.
    pub(crate) fn recalled(self) -> Reason {
        let Page { gate, means, fix, .. } = *self.page();
        let plain = |text: &str| {
            let text = text.strip_suffix('.').unwrap_or(text);
            let mut rest = text.chars();
            rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
        };
        Reason { gate, code: self, path: String::new(), message: plain(means), hint: plain(fix) }
    }

    /// The gate that gives this code.
    pub fn gate(self) -> Gate {
        self.page().gate
    }

    /// Is it a matter of time that ran out, and nothing else?
    pub fn is_expiry(self) -> bool {
        self.page().expiry
    }

    /// What it says, in a sentence.
    pub fn means(self) -> &'static str {
        self.page().means
    }

    /// Why it is there at all.
    pub fn why(self) -> &'static str {
        self.page().why
    }

    /// What to do about it.
    pub fn fix(self) -> &'static str {
        self.page().fix
    }

    pub fn example(self) -> &'static str {
        self.page().example
    }

    /// Does it stand in the way for a while only, and not because of what the handoff is?
    pub fn passes(self) -> bool {
        matches!(self, Self::Frozen | Self::CanaryFull)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The text of `docs/codes.md`; `has_example` says which codes have a TaskSpec that shows them.
pub fn codes_markdown(has_example: impl Fn(Code) -> bool) -> String {
    let mut text = String::from(
        "# Codes\n\n\
         Every refusal has a code that is never renamed and never reused. A reason also has the JSON pointer of \
         what is wrong (`path`), a `message` and a `hint`. All gates run, so several reasons come together: any \
         reason that is not an expiry makes the decision `denied`, expiries alone make it `expired`.\n\n\
         This page is made from the list in `src/gates/codes.rs`; see CONTRIBUTING.md.\n\n\
         | code | gate | meaning |\n| --- | --- | --- |\n",
    );
    for code in Code::ALL {
        let Page { code: name, gate, means, .. } = code.page();
        let anchor = name.to_lowercase();
        let _ = writeln!(text, "| [`{name}`](#{anchor}) | {} | {means} |", gate.title());
    }
    for code in Code::ALL {
        let Page { code: name, gate, expiry, means, why, fix, example } = code.page();
        let expiry = if *expiry { " (an expiry)" } else { "" };
        let _ = writeln!(
            text,
            "\n## {name}\n\n\
             **Means.** {means} Gate: {}{expiry}.\n\n**Why.** {why}\n\n**Fix.** {fix}\n\n**Example.** {example}",
            gate.title()
        );
        if has_example(*code) {
            let _ = writeln!(
                text,
                "Shown by [`docs/examples/refused/{name}.json`](examples/refused/{name}.json)."
            );
        }
    }
    text
}
