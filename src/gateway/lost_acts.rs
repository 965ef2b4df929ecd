//! What people did in entries that a database has lost, and what there is to do about each of them.
//!
//! The new epoch makes some of it void, and what takes tokens away is done again at once. The rest is a person's to do.

use std::str::FromStr as _;

use serde_json::Value as Json;

use crate::json::printable;
use crate::views::ActRow;
use crate::wire::{Kind, StreamId};

/// One act, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAct {
    pub sequence: u64,
    /// The type of its event.
    pub kind: &'static str,
    /// Who did it, as the ledger names them.
    pub by: String,
    /// What was done.
    pub what: String,
    /// What to do about it.
    pub redo: String,
    /// The token that it took away.
    pub revoked_token: Option<String>,
}

impl LostAct {
    /// Nothing if it is none that anybody would do again.
    pub(super) fn read(row: &ActRow) -> Option<Self> {
        let wire: Json = serde_json::from_str(&row.wire).ok()?;
        let text = |pointer: &str| wire.pointer(pointer).and_then(Json::as_str);
        let kind = Kind::from_str(text("/type")?).ok()?;
        let (what, redo) = words(kind, &wire)?;
        let revoked_token = text("/payload/token_id").filter(|_| kind == Kind::TokenRevoked);
        Some(Self {
            sequence: row.sequence,
            kind: kind.as_str(),
            by: printable(text("/sender").unwrap_or("?")),
            what,
            redo,
            revoked_token: revoked_token.map(str::to_owned),
        })
    }
}

/// What it was, and what to do.
fn words(kind: Kind, wire: &Json) -> Option<(String, String)> {
    let text = |name: &str| {
        printable(
            wire.pointer("/payload").and_then(|all| all.get(name)).and_then(Json::as_str).unwrap_or("?"),
        )
    };
    let has = |name: &str| wire.pointer("/payload").is_some_and(|payload| payload.get(name).is_some());
    let of = match StreamId::parse(wire.pointer("/stream/stream_id")?.as_str()?)? {
        StreamId::Handoff { handoff_id: name, .. }
        | StreamId::Route { route_key: name }
        | StreamId::Gateway { topic_id: name } => printable(name),
    };
    let scope = || match (has("route_key"), has("mode")) {
        (false, false) => ("everything".to_owned(), "--all".to_owned()),
        (false, true) => (format!("mode {}", text("mode")), format!("--mode {}", text("mode"))),
        (true, _) => (format!("route `{}`", text("route_key")), format!("--route {}", text("route_key"))),
    };
    let void = || "void in the new epoch; nothing to do".to_owned();
    Some(match kind {
        Kind::FreezeSet => {
            let (scope, flag) = scope();
            (format!("froze {scope}: {}", text("reason")), format!("handoffd freeze set {flag} --reason …"))
        }
        Kind::FreezeLifted => {
            let (scope, flag) = scope();
            (format!("lifted the freeze of {scope}"), format!("it holds again: handoffd freeze lift {flag} --reason …"))
        }
        Kind::TokenRevoked => (
            format!("revoked token `{}` ({})", text("name"), text("token_id")),
            "`--keep` revokes it again, if it still counts".to_owned(),
        ),
        Kind::TokenCreated => (
            format!("made token `{}` ({}), {}", text("name"), text("token_id"), text("role")),
            "unless it is still listed: handoffd token new".to_owned(),
        ),
        Kind::KeyRemoved => (
            format!("removed key `{}` of {}", text("key_id"), text("owner")),
            "check that no memory/keyring.json has it, and start one replica with --put-in-force".to_owned(),
        ),
        Kind::KeyAdded => (
            format!("added key `{}` of {}", text("key_id"), text("owner")),
            "start one replica that has it with --put-in-force".to_owned(),
        ),
        Kind::AuthorizationRevoked => (format!("revoked grant `{}`", text("authorization_ref")), void()),
        Kind::AuthorizationCreated => (
            format!("made grant `{}`", text("authorization_ref")),
            "void in the new epoch, if it is still needed: handoffd authorize new".to_owned(),
        ),
        Kind::ApprovalGranted => (
            format!("approved `{of}`"),
            "if it waits again: handoffd approvals approve; else it has to be sent again".to_owned(),
        ),
        Kind::ApprovalRejected => {
            (format!("rejected `{of}`"), "if it waits again: handoffd approvals reject".to_owned())
        }
        Kind::TaskCancelled => {
            (format!("cancelled `{of}`: {}", text("reason")), "if it is open again: cancel it again".to_owned())
        }
        Kind::RollbackExecuted => {
            let blocked = wire.pointer("/payload/blocked") == Some(&Json::Bool(true));
            let (word, command) = if blocked { (" and blocked it", "route block") } else { ("", "rollback") };
            (
                format!("rolled route `{of}` back{word}: {}", text("reason")),
                format!("handoffd {command} {of} --reason …"),
            )
        }
        Kind::RollbackLifted => {
            (format!("unblocked route `{of}`"), format!("handoffd route unblock {of}, if it is blocked"))
        }
        Kind::PromotionDecided => (
            format!("gate {} of route `{of}`: {}", text("gate"), text("outcome")),
            format!("handoffd promote {of}, from the gate where it stands"),
        ),
        Kind::PromotionAdvanced => (
            format!("route `{of}` went from {} to {}", text("from"), text("to")),
            "it is where it was before; its gates are to be earned again".to_owned(),
        ),
        Kind::PromotionReset => (
            format!("route `{of}` was set back from {}", text("from")),
            "done again when the policy files are put in force".to_owned(),
        ),
        Kind::PolicyLoaded => (
            format!("put policy set {} in force", text("digest")),
            "replicas that have it decide nothing: start one with --put-in-force, or put the older files back"
                .to_owned(),
        ),
        Kind::PolicyProposed => {
            (format!("proposed policy set {}", text("digest")), "proposed again by who has it".to_owned())
        }
        Kind::PolicyApproved => (
            format!("approved policy set {}", text("digest")),
            "handoffd policy approve, when it is proposed again".to_owned(),
        ),
        Kind::PolicyRejected => (
            format!("rejected policy set {}", text("digest")),
            "handoffd policy reject, when it is proposed again".to_owned(),
        ),
        Kind::MentionChanged => (
            format!("mentions went from {} to {}", text("from"), text("to")),
            format!("handoffd mention phase set {} --reason …", text("to")),
        ),
        _ => return None,
    })
}
