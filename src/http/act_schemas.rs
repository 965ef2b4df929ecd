//! The shapes of what people do, as `/openapi.json` names them. The bodies' are those that the product validates with.

use crate::authorization::{APPROVAL_BODY, GRANT_BODY};
use crate::freeze::FREEZE_BODY;
use crate::mentions::{FALSE_POSITIVE_BODY, PHASE_BODY};
use crate::proposal::PROPOSAL_BODY;

/// Name and text of every schema.
pub(super) fn act_schemas() -> impl Iterator<Item = (&'static str, &'static str)> {
    let bodies = [
        ("NewGrant", GRANT_BODY.text()),
        ("ApprovalAnswer", APPROVAL_BODY.text()),
        ("FreezeAsk", FREEZE_BODY.text()),
        ("PolicyAnswer", PROPOSAL_BODY.text()),
        ("MentionPhaseAsk", PHASE_BODY.text()),
        ("FalsePositiveAsk", FALSE_POSITIVE_BODY.text()),
    ];
    bodies.into_iter().chain(ANSWERS.iter().copied())
}

const ANSWERS: &[(&str, &str)] = &[
    ("Grant", GRANT),
    (
        "GrantPage",
        r##"{"type": "object", "required": ["authorizations", "next"], "properties": {
            "authorizations": {"type": "array", "items": {"$ref": "#/components/schemas/Grant"}},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page; null on the last"}}}"##,
    ),
    ("Approval", APPROVAL),
    (
        "ApprovalPage",
        r##"{"type": "object", "required": ["approvals", "total", "next"], "properties": {
            "approvals": {"type": "array", "items": {"$ref": "#/components/schemas/Approval"}},
            "total": {"type": "integer", "minimum": 0, "description": "How many wait in all"},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page; null on the last"}}}"##,
    ),
    ("Freeze", FREEZE),
    (
        "FreezeList",
        r##"{"type": "object", "required": ["frozen"], "properties": {
            "frozen": {"type": "array", "items": {"$ref": "#/components/schemas/Freeze"}}}}"##,
    ),
    (
        "Frozen",
        r##"{"allOf": [{"$ref": "#/components/schemas/Freeze"}, {"type": "object",
            "required": ["heldBefore", "inFlight", "inFlightTotal"], "properties": {
                "heldBefore": {"type": "boolean", "description": "It was frozen already"},
                "inFlight": {"type": ["array", "null"], "maxItems": 1000,
                    "description": "Under way already, and not stopped; null if that could not be found out",
                    "items": {"$ref": "#/components/schemas/InFlight"}},
                "inFlightTotal": {"type": ["integer", "null"], "minimum": 0}}}]}"##,
    ),
    (
        "InFlight",
        r#"{"type": "object", "required": ["handoffId", "status"], "properties": {
            "handoffId": {"type": "string"}, "status": {"enum": ["available", "claimed", "working", "blocked"]},
            "mode": {"type": ["string", "null"]}, "routeKey": {"type": ["string", "null"]},
            "sourceAgent": {"type": ["string", "null"]}, "targetAgent": {"type": ["string", "null"]},
            "updatedAt": {"type": "string"}}}"#,
    ),
    (
        "MentionPhase",
        r#"{"type": "object", "required": ["phase", "moved"], "properties": {
            "phase": {"enum": ["log-only", "gated-read", "gated-live"]},
            "moved": {"type": ["object", "null"], "required": ["from", "at", "reason", "sequence"], "properties": {
                "from": {"type": "string"}, "by": {"type": ["string", "null"], "description": "null if it fell by itself"},
                "at": {"type": "string"}, "reason": {"type": "string"},
                "code": {"type": ["string", "null"], "description": "The refusal that dropped it"},
                "sequence": {"type": "integer", "minimum": 1}}},
            "sequence": {"type": "integer", "minimum": 1, "description": "The entry that moved it, in answer to that"}}}"#,
    ),
    (
        "MentionPage",
        r##"{"type": "object", "required": ["mentions", "next"], "properties": {
            "mentions": {"type": "array", "items": {"$ref": "#/components/schemas/Mention"}},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page; null on the last"}}}"##,
    ),
    (
        "Mention",
        r#"{"type": "object", "required": ["sequence", "at", "handoffId", "wouldBe", "codes"], "properties": {
            "sequence": {"type": "integer", "minimum": 1}, "at": {"type": "string"}, "handoffId": {"type": "string"},
            "messageId": {"type": ["string", "null"]}, "phase": {"type": ["string", "null"]},
            "riskClassification": {"type": ["string", "null"]},
            "wouldBe": {"enum": ["allowed", "denied", "expired", "needs_approval"], "description": "The phase left aside"},
            "codes": {"type": "array", "items": {"type": "string"}}, "contentDigest": {"type": ["string", "null"]},
            "falsePositive": {"type": "boolean", "description": "An operator marked it as none"}}}"#,
    ),
    (
        "MentionMetrics",
        r##"{"type": "object", "required": ["phase", "inPhase", "total"], "properties": {
            "phase": {"type": "string"}, "inPhase": {"$ref": "#/components/schemas/MentionCounters"},
            "total": {"$ref": "#/components/schemas/MentionCounters"}}}"##,
    ),
    (
        "MentionCounters",
        r#"{"type": "object", "required": ["candidates", "wouldAllow", "loopsStopped", "duplicatesStopped", "expired",
            "falsePositives"], "additionalProperties": {"type": "integer", "minimum": 0}}"#,
    ),
    (
        "MentionMarked",
        r#"{"type": "object", "required": ["handoffId", "messageId", "sequence"], "properties": {
            "handoffId": {"type": "string"}, "messageId": {"type": "string"}, "sequence": {"type": "integer", "minimum": 1}}}"#,
    ),
];

const GRANT: &str = r#"{"type": "object", "required": ["authorizationRef", "state", "principal", "agents", "operations", "modes",
    "channels", "expiresAt", "uses", "used", "madeBy", "madeAt"], "properties": {
        "authorizationRef": {"type": "string", "pattern": "^authz_[0-9A-HJKMNP-TV-Z]{26}$"},
        "state": {"enum": ["in_force", "revoked", "expired", "spent"]}, "principal": {"type": "string"},
        "agents": {"type": "array", "items": {"type": "string"}},
        "operations": {"type": "array", "items": {"type": "string"}},
        "modes": {"type": "array", "items": {"enum": ["dev", "simulated", "live"]}},
        "channels": {"type": "array", "items": {"type": "string"}, "description": "Empty: any, and none"},
        "routeKey": {"type": ["string", "null"]}, "expiresAt": {"type": "string", "format": "date-time"},
        "uses": {"type": "integer", "minimum": 1}, "used": {"type": "integer", "minimum": 0},
        "intentHash": {"type": ["string", "null"]}, "madeBy": {"type": "string"}, "madeAt": {"type": "string"},
        "revokedAt": {"type": ["string", "null"]}, "revokedBy": {"type": ["string", "null"]},
        "sequence": {"type": "integer", "minimum": 1, "description": "The entry that made or revoked it, in answer to that"}}}"#;

const APPROVAL: &str = r#"{"type": "object", "required": ["handoffId", "attempt", "askedAt", "expiresAt", "needed", "saidYes",
    "taskSpecDigest", "taskSpec", "wouldDispatch"], "properties": {
        "handoffId": {"type": "string"}, "attempt": {"type": "integer", "minimum": 1},
        "correlationId": {"type": ["string", "null"]}, "sourceAgent": {"type": ["string", "null"]},
        "targetAgent": {"type": ["string", "null"]}, "principal": {"type": ["string", "null"]},
        "routeKey": {"type": ["string", "null"]}, "mode": {"type": ["string", "null"]},
        "operation": {"type": ["string", "null"]}, "summary": {"type": ["string", "null"]},
        "askedAt": {"type": "string"}, "expiresAt": {"type": "string"}, "needed": {"type": "integer", "minimum": 1},
        "saidYes": {"type": "array", "items": {"type": "string"}}, "taskSpecDigest": {"type": "string"},
        "taskSpec": {"type": ["object", "null"], "description": "As it was submitted; null if it is no longer kept"},
        "wouldDispatch": {"type": ["object", "null"], "description": "What the target would be sent, without auth or receipt"}}}"#;

const FREEZE: &str = r#"{"type": "object", "required": ["scope", "by", "at", "reason", "fromSequence"], "properties": {
    "scope": {"enum": ["all", "mode", "route"]}, "mode": {"type": "string"}, "routeKey": {"type": "string"},
    "by": {"type": "string"}, "at": {"type": "string"}, "reason": {"type": "string"},
    "fromSequence": {"type": "integer", "minimum": 1, "description": "Decisions behind this entry are refused, or no longer"}}}"#;
