//! The agent card: one document that clients of 0.3 and of 1.0 both read.
//!
//! It has the members of 1.0, those of 0.3 that have other names, and what else is promised: `methods` (the slash names) and
//! `endpoints`. Schema: `docs/schemas/agent-card.schema.json`.

use serde_json::{Value as Json, json};

use super::method::Method;
use super::version::Version;
use crate::callers::{Act, Role};
use crate::proof::{Digest, canonical_json};

/// What the card is held to.
pub const CARD_SCHEMA: &str = include_str!("../../docs/schemas/agent-card.schema.json");

/// The extension that tells a caller what it may do.
const CALLER_EXTENSION: &str = "https://handoffd.dev/a2a/extensions/caller/v1";

/// What a card says of this gateway.
#[derive(Debug, Clone, Copy)]
pub struct Card<'c> {
    /// Where it is reached, without a slash at the end.
    pub base_url: &'c str,
    /// The version of the gateway.
    pub version: &'c str,
    pub push: bool,
    /// Whether a model gateway is configured, which the `ai/` methods need.
    pub ai: bool,
}

/// Who asks for the extended card.
#[derive(Debug, Clone, Copy)]
pub struct CallerCard<'c> {
    pub role: Role,
    pub agent_id: Option<&'c str>,
}

/// The value of the `ETag` header for a card.
pub fn etag(card: &Json) -> String {
    format!("\"{}\"", Digest::of(&canonical_json(card)))
}

impl Card<'_> {
    /// The card that everybody may read.
    pub fn to_json(&self) -> Json {
        let base = self.base_url.trim_end_matches('/');
        let rpc = format!("{base}/rpc");
        let methods: Vec<&str> = self.methods().filter_map(|method| method.name(Version::V0_3)).collect();
        let mut skills = skills();
        if self.ai {
            skills.push(skill(
                "models",
                "Ask the model gateway",
                "`ai/embeddings`, `ai/rerank` and `ai/chat` go to the model gateway that the operator configured.",
                &["ai"],
                &[],
            ));
        }
        let interfaces: Vec<Json> = Version::ALL
            .into_iter()
            .rev()
            .map(|version| json!({"url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": version.as_str()}))
            .collect();
        json!({
            "name": "handoffd",
            "description": "Policy gateway for handoffs between agents: send a TaskSpec, get a Decision with every reason, and follow the work.",
            "version": self.version,
            "url": rpc,
            "preferredTransport": "JSONRPC",
            "protocolVersion": "0.3.0",
            "additionalInterfaces": [{"url": rpc, "transport": "JSONRPC"}],
            "supportedInterfaces": interfaces,
            "capabilities": {
                "streaming": true,
                "pushNotifications": self.push,
                "extendedAgentCard": true,
                "stateTransitionHistory": false,
            },
            "supportsAuthenticatedExtendedCard": true,
            "defaultInputModes": ["application/json", "text/plain"],
            "defaultOutputModes": ["application/json", "text/plain"],
            "skills": skills,
            "securitySchemes": {
                // 0.3 reads the flat members, 1.0 the nested ones.
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "a token that an administrator of the gateway made",
                    "httpAuthSecurityScheme": {
                        "scheme": "bearer",
                        "description": "a token that an administrator of the gateway made",
                    },
                },
            },
            "security": [{"bearer": []}],
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
            "methods": methods,
            "endpoints": {
                "well-known": format!("{base}/.well-known/agent-card.json"),
                "jsonrpc": rpc,
                "stream": format!("{base}/stream/{{id}}"),
            },
        })
    }

    /// The card for a caller who said who it is: the same, with what its role may do.
    pub fn extended(&self, caller: &CallerCard<'_>) -> Json {
        let mut card = self.to_json();
        let may: Vec<&str> = Act::ALL.into_iter().filter(|act| caller.role.may(*act)).map(word).collect();
        let mut params = json!({"role": caller.role.as_str(), "may": may});
        if let (Some(params), Some(agent_id)) = (params.as_object_mut(), caller.agent_id) {
            params.insert("agentId".to_owned(), json!(agent_id));
        }
        if let Some(capabilities) = card.get_mut("capabilities").and_then(Json::as_object_mut) {
            let extension = json!({
                "uri": CALLER_EXTENSION,
                "description": "who you are to this gateway, and what you may do",
                "required": false,
                "params": params,
            });
            capabilities.insert("extensions".to_owned(), json!([extension]));
        }
        card
    }

    fn methods(&self) -> impl Iterator<Item = Method> {
        let (push, ai) = (self.push, self.ai);
        let is_push = |method| {
            matches!(method, Method::SetPush | Method::GetPush | Method::ListPush | Method::DeletePush)
        };
        Method::ALL.into_iter().filter(move |method| (push || !is_push(*method)) && (ai || !method.is_ai()))
    }
}

fn skills() -> Vec<Json> {
    vec![
        skill(
            "submit",
            "Hand work over",
            "Send a message with a data part that holds a TaskSpec: the task is submitted if it is allowed, auth-required if a person must approve it, rejected with the Decision if not.",
            &["handoff", "policy"],
            &["a data part with a TaskSpec as docs/schemas/task-spec.schema.json has it"],
        ),
        skill(
            "check",
            "Ask what would be decided",
            "`POST /v1/handoffs/check` answers with the Decision that a TaskSpec would get, and records nothing.",
            &["handoff", "dry-run"],
            &[],
        ),
        skill(
            "approval-status",
            "See whether a person has approved",
            "A task that waits for a person is auth-required, and moves on when somebody says yes or no, or nobody does in time.",
            &["handoff", "approval"],
            &[],
        ),
        skill(
            "evidence",
            "Fetch the evidence of a handoff",
            "`GET /v1/handoffs/{id}/evidence` has the event that an allowed handoff emitted.",
            &["evidence", "audit"],
            &[],
        ),
    ]
}

fn skill(id: &str, name: &str, description: &str, tags: &[&str], examples: &[&str]) -> Json {
    let mut skill = json!({"id": id, "name": name, "description": description, "tags": tags});
    if let (Some(skill), false) = (skill.as_object_mut(), examples.is_empty()) {
        skill.insert("examples".to_owned(), json!(examples));
    }
    skill
}

/// An act as callers know it.
fn word(act: Act) -> &'static str {
    match act {
        Act::Submit => "submit",
        Act::Check => "check",
        Act::ReadHandoffs => "read-handoffs",
        Act::ReadAudit => "read-audit",
        Act::ReadState => "read-state",
        Act::ReadPolicies => "read-policies",
        Act::ReadRoutes => "read-routes",
        Act::ReadMentions => "read-mentions",
        Act::ReadApprovals => "read-approvals",
        Act::ReportEvent => "report-event",
        Act::Approve => "approve",
        Act::ApprovePolicies => "approve-policies",
        Act::Authorize => "authorize",
        Act::Promote => "promote",
        Act::AttachEvidence => "attach-evidence",
        Act::Freeze => "freeze",
        Act::Unfreeze => "unfreeze",
        Act::MoveMentionPhase => "move-mention-phase",
        Act::RegisterHarness => "register-harness",
        Act::ManageTokens => "manage-tokens",
        Act::ManageKeys => "manage-keys",
        Act::ConvertEvidence => "convert-evidence",
        Act::SpeakA2a => "speak-a2a",
        Act::OpenConsole => "open-console",
    }
}
