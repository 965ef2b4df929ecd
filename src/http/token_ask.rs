//! What `POST /v1/tokens` is asked for, or all that is wrong with it at once.

use std::str::FromStr as _;

use serde::Deserialize;

use crate::callers::{Name, Role, Roster, Standing};
use crate::contract::{BodySchema, Finding};
use crate::json::{Document, Value};
use crate::timestamp::Timestamp;

/// The body's schema, as `/openapi.json` has it.
pub(super) const NEW_TOKEN: &str = r#"{"type": "object", "required": ["name", "role"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "pattern": "^[A-Za-z0-9._:@-]{1,64}$",
        "description": "1 to 64 letters, digits, or . _ : @ -, not beginning with tok_"},
    "role": {"enum": ["orchestrator", "agent", "operator", "harness", "auditor", "admin"],
        "description": "orchestrator, agent, operator, harness, auditor or admin"},
    "agentId": {"type": ["string", "null"], "minLength": 2, "maxLength": 64,
        "description": "the agent that an orchestrator or an agent acts for, 2 to 64 characters"},
    "principal": {"type": ["string", "null"], "minLength": 1, "maxLength": 128,
        "description": "the principal that an operator also is, 1 to 128 characters"},
    "expiresAt": {"type": ["string", "null"], "format": "date-time",
        "description": "from when it no longer counts, such as 2026-02-18T19:38:00Z"}}}"#;

static BODY: BodySchema = BodySchema::new(NEW_TOKEN);

/// The token that somebody wants made.
#[derive(Debug)]
pub(super) struct TokenAsk {
    pub(super) name: Name,
    pub(super) standing: Standing,
    pub(super) expires_at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Body {
    name: String,
    role: String,
    agent_id: Option<String>,
    principal: Option<String>,
    expires_at: Option<Timestamp>,
}

impl TokenAsk {
    /// The token, or everything that is wrong with the body. What no schema can say is looked at whatever the schema says,
    /// so that nobody has to mend one thing to hear of the next.
    pub(super) fn read(document: &Document<'_>, now: Timestamp) -> Result<Self, Vec<Finding>> {
        let shaped = BODY.read::<Body>(document);
        let mut findings = misfits(document.root(), now);
        match shaped.map(Self::of) {
            Ok(Some(ask)) if findings.is_empty() => return Ok(ask),
            Ok(_) => {}
            Err(shape) => {
                findings.retain(|misfit| shape.iter().all(|finding| finding.pointer != misfit.pointer));
                findings.extend(shape);
            }
        }
        findings.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        Err(findings)
    }

    fn of(body: Body) -> Option<Self> {
        let role = Role::from_str(&body.role).ok()?;
        let standing = Standing::of(role, body.agent_id.as_deref(), body.principal.as_deref()).ok()?;
        Some(Self { name: Name::from_str(&body.name).ok()?, standing, expires_at: body.expires_at })
    }
}

/// What is wrong with members that are there, or for lack of one that the role needs.
fn misfits(body: Value<'_>, now: Timestamp) -> Vec<Finding> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let mut findings = Vec::new();
    let mut found =
        |pointer: &str, what: String, hint: &str| findings.push(Finding::new(pointer, what, hint));
    match text("name").map(Name::from_str) {
        Some(Err(why)) => found("/name", why, "take another name"),
        Some(Ok(name)) if name.as_str() == Roster::ADMIN => {
            found(
                "/name",
                "this name is for the token in memory/admin.token".to_owned(),
                "take another name",
            );
        }
        Some(Ok(_)) | None => {}
    }
    if let Some(role) = text("role").and_then(|role| Role::from_str(role).ok()) {
        let (agent, principal) = (text("agentId"), text("principal"));
        // The agent by itself, then the principal with it: only one fault is told at a time.
        let agents = Standing::of(role, agent, None).err();
        let principals = principal.and_then(|principal| Standing::of(role, agent, Some(principal)).err());
        let principals = principals.filter(|fault| fault.member() == "principal");
        for fault in agents.into_iter().chain(principals) {
            let hint = "GET /openapi.json has what goes with which role";
            found(&format!("/{}", fault.member()), fault.to_string(), hint);
        }
    }
    if let Some(ends) = text("expiresAt").and_then(Timestamp::parse).filter(|ends| *ends <= now) {
        found(
            "/expiresAt",
            format!("it would have ended at {ends}; it is {now}"),
            "name a time in the future",
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read;
    use crate::limits;

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        let check = |body: &str, expected: &[&str]| {
            let document = read(body.as_bytes(), limits::ACT).unwrap();
            let found = TokenAsk::read(&document, now).map(drop).err().unwrap_or_default();
            let places: Vec<&str> = found.iter().map(|finding| finding.pointer.as_str()).collect();
            assert_eq!(places, expected, "{body}: {found:?}");
        };
        check(r#"{"name": "router-1", "role": "orchestrator", "agentId": "router"}"#, &[]);
        check(r#"{"name": "rita", "role": "operator", "expiresAt": "2026-02-18T19:38:01Z"}"#, &[]);
        check(
            r#"{"name": "run", "role": "harness", "agentId": null, "principal": null, "expiresAt": null}"#,
            &[],
        );
        check(
            r#"{"name": "rita", "role": "operator", "expiresAt": "2026-02-18T19:38:00Z"}"#,
            &["/expiresAt"],
        );
        check(r#"{"name": "rita", "role": "operator", "expiresAt": "tomorrow"}"#, &["/expiresAt"]);
        check(r#"{"name": "x", "role": "king"}"#, &["/role"]);
        check(r#"{"name": "admin", "role": "auditor"}"#, &["/name"]);
        check(r#"{"name": "tok_1", "role": "auditor"}"#, &["/name"]);
        check(r#"{"name": "x", "role": "agent"}"#, &["/agentId"]);
        check(r#"{"name": "x", "role": "agent", "agentId": "\u0007\u0007"}"#, &["/agentId"]);
        check(
            r#"{"name": "x", "role": "auditor", "agentId": "router", "principal": "user:x"}"#,
            &["/agentId", "/principal"],
        );
        check("{}", &["/name", "/role"]);
        check("[]", &[""]);
        check(
            r#"{"name": "a b", "role": "agent", "principal": "user:x", "expiresAt": "2020-01-01T00:00:00Z", "colour": 1}"#,
            &["/agentId", "/colour", "/expiresAt", "/name", "/principal"],
        );
    }
}
