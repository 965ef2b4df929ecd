//! What people do: grants, approvals, freezes, and the rollout of mentions.

use axum::http::Method;
use serde_json::json;

use super::{ANY, CURSOR, FROM, HANDOFF, LIMIT, TO};
use super::{get, json, path, problem, query};
use crate::authorization::GrantStanding;
use crate::callers::Act;
use crate::http::endpoint::{Body, Endpoint, Form, Parameter, Weight};
use crate::http::{approvals, freezes, grants, mentions};
use crate::limits;

const GRANT: Parameter =
    path("ref", Form::Text { max: 64 }, "authz_01KHSA7E5V0000000000000004", "The authorizationRef");
const MESSAGE: Parameter = path("message", Form::Text { max: 30 }, "1473395000000000002", "The messageId");

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = of_grants();
    endpoints.extend(of_approvals());
    endpoints.extend(of_freezes());
    endpoints.extend(of_mentions());
    endpoints
}

fn of_grants() -> Vec<Endpoint> {
    vec![
        Endpoint {
            description: "Grants that are kept, the newest first.",
            act: Some(Act::ReadApprovals),
            parameters: vec![
                query(
                    "state",
                    Form::OneOf(|| GrantStanding::ALL.map(GrantStanding::as_str).to_vec()),
                    "in_force",
                    "Only those that stand so",
                ),
                LIMIT,
                query(
                    "cursor",
                    ANY,
                    "authz_01KHSA7E5V0000000000000004",
                    "Where the page before this one ended",
                ),
            ],
            answers: vec![json(200, "GrantPage", "A page")],
            ..get("/v1/authorizations", "listAuthorizations", "people", "List grants", handler!(grants::list))
        },
        Endpoint {
            method: Method::POST,
            description: "Makes a grant: what a delegated handoff may do without asking a person again. An operator makes \
                it, and never their own.",
            act: Some(Act::Authorize),
            body: Some(Body {
                description: "What it is for",
                schema: "NewGrant",
                weight: Weight::Act,
                example: || {
                    json!({"principal": "user:main", "agents": ["blockchain-operator"], "operations": ["transfer"],
                        "modes": ["simulated"], "expiresAt": "2026-02-18T21:00:00Z", "uses": 1})
                },
            }),
            answers: vec![
                json(201, "Grant", "Made, and in force; `Location` names the grant"),
                problem(403, "The caller is no person, or it is their own"),
                problem(422, "It does not say what it must; `faults` has everything that is wrong"),
            ],
            ..get("/v1/authorizations", "makeAuthorization", "people", "Make a grant", handler!(grants::make))
        },
        Endpoint {
            act: Some(Act::ReadApprovals),
            parameters: vec![GRANT],
            answers: vec![json(200, "Grant", "The grant, and how often it was used")],
            ..get(
                "/v1/authorizations/{ref}",
                "getAuthorization",
                "people",
                "Show one grant",
                handler!(grants::show),
            )
        },
        Endpoint {
            method: Method::DELETE,
            description: "Takes a grant back: no handoff that is decided after this can use it.",
            act: Some(Act::Authorize),
            parameters: vec![
                GRANT,
                query(
                    "reason",
                    Form::Text { max: limits::REASON_CHARS_MAX },
                    "no longer needed",
                    "Why; it is kept in the ledger with your name",
                ),
            ],
            answers: vec![json(200, "Grant", "Revoked"), problem(409, "It was revoked before")],
            ..get(
                "/v1/authorizations/{ref}",
                "revokeAuthorization",
                "people",
                "Revoke a grant",
                handler!(grants::revoke),
            )
        },
    ]
}

fn of_approvals() -> Vec<Endpoint> {
    vec![
        Endpoint {
            description: "Handoffs that wait for a person, what ends first coming first, each with exactly what would be \
                dispatched: `wouldDispatch` has no `auth` and no receipt.",
            act: Some(Act::ReadApprovals),
            parameters: vec![
                LIMIT,
                query(
                    "cursor",
                    ANY,
                    "1771444680000000000.hs_20260218_router_0001",
                    "Where the page before ended",
                ),
            ],
            answers: vec![json(200, "ApprovalPage", "A page; it ends early where the TaskSpecs are large")],
            ..get("/v1/approvals", "listApprovals", "people", "List what waits", handler!(approvals::list))
        },
        Endpoint {
            act: Some(Act::ReadApprovals),
            parameters: vec![HANDOFF],
            answers: vec![json(200, "Approval", "What waits, and exactly what would be dispatched")],
            ..get("/v1/approvals/{id}", "getApproval", "people", "Show what waits", handler!(approvals::show))
        },
        Endpoint {
            method: Method::POST,
            description: "Says yes or no. A yes judges the handoff again, as of now, and is to this TaskSpec and no other; \
                whoever has a part in it may only say no. The Decision carries nothing to dispatch: that is for the \
                source.",
            act: Some(Act::Approve),
            parameters: vec![HANDOFF],
            body: Some(Body {
                description: "Yes or no, and why",
                schema: "ApprovalAnswer",
                weight: Weight::Act,
                example: || json!({"decision": "approve", "reason": "checked the recipient with the desk"}),
            }),
            answers: vec![
                json(
                    200,
                    "Decision",
                    "The decision as it now stands; it may still wait, for a second person",
                ),
                problem(403, "The caller is no person, or it is their own"),
                problem(
                    409,
                    "It does not wait, or not any more; or it cannot be allowed now and still waits",
                ),
                problem(422, "It does not say what it must; `faults` has everything that is wrong"),
            ],
            ..get(
                "/v1/approvals/{id}",
                "answerApproval",
                "people",
                "Approve or reject",
                handler!(approvals::answer),
            )
        },
    ]
}

fn of_freezes() -> Vec<Endpoint> {
    let body = || {
        Some(Body {
            description: "Everything, a mode or a route, and why",
            schema: "FreezeAsk",
            weight: Weight::Act,
            example: || json!({"scope": "mode", "mode": "live", "reason": "wrong balances on the exchange"}),
        })
    };
    vec![
        Endpoint {
            act: Some(Act::ReadState),
            answers: vec![json(200, "FreezeList", "Who froze what, when and why")],
            ..get("/v1/freeze", "listFreezes", "people", "List what is frozen", handler!(freezes::list))
        },
        Endpoint {
            method: Method::POST,
            description: "Stops decisions: all that are sequenced after `fromSequence` in its scope are refused, and so are \
                reports. `inFlight` is what was under way already and is not stopped by this. Setting it again changes \
                nothing.",
            act: Some(Act::Freeze),
            body: body(),
            answers: vec![
                json(200, "Frozen", "It holds"),
                problem(422, "It does not say what it must, or names a route that does not exist"),
            ],
            ..get("/v1/freeze", "freeze", "people", "Stop decisions", handler!(freezes::set))
        },
        Endpoint {
            method: Method::DELETE,
            description: "Lets decisions go on. It takes the same body, and lifts exactly what was frozen.",
            act: Some(Act::Unfreeze),
            body: body(),
            answers: vec![
                json(200, "Frozen", "It no longer holds, from `fromSequence` on"),
                problem(409, "Exactly this is not frozen; `frozen` has what is"),
                problem(422, "It does not say what it must"),
            ],
            ..get("/v1/freeze", "unfreeze", "people", "Let decisions go on", handler!(freezes::lift))
        },
    ]
}

fn of_mentions() -> Vec<Endpoint> {
    vec![
        Endpoint {
            act: Some(Act::ReadMentions),
            answers: vec![json(200, "MentionPhase", "The phase, and how it came to that")],
            ..get(
                "/v1/mentions/phase",
                "getMentionPhase",
                "people",
                "Show the mention phase",
                handler!(mentions::phase),
            )
        },
        Endpoint {
            method: Method::PUT,
            description: "Moves the phase: up one step at a time, down at will.",
            act: Some(Act::MoveMentionPhase),
            body: Some(Body {
                description: "The phase, and why",
                schema: "MentionPhaseAsk",
                weight: Weight::Act,
                example: || json!({"phase": "gated-read", "reason": "a week without a false positive"}),
            }),
            answers: vec![
                json(200, "MentionPhase", "Moved"),
                problem(409, "It is in that phase, or that is more than one step up"),
                problem(422, "It does not say what it must"),
            ],
            ..get(
                "/v1/mentions/phase",
                "moveMentionPhase",
                "people",
                "Move the mention phase",
                handler!(mentions::move_phase),
            )
        },
        Endpoint {
            description: "Mentions that were judged, the newest first, each with what it would have been, the phase left \
                aside.",
            act: Some(Act::ReadMentions),
            parameters: vec![FROM, TO, LIMIT, CURSOR],
            answers: vec![json(200, "MentionPage", "A page")],
            ..get("/v1/mentions", "listMentions", "people", "List mentions", handler!(mentions::list))
        },
        Endpoint {
            act: Some(Act::ReadMentions),
            answers: vec![json(200, "MentionMetrics", "In this phase, and in all")],
            ..get(
                "/v1/mentions/metrics",
                "getMentionMetrics",
                "people",
                "Show what was seen of mentions, in numbers",
                handler!(mentions::metrics),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Records an operator's word that a message was no mention, or meant no work.",
            act: Some(Act::MoveMentionPhase),
            parameters: vec![MESSAGE],
            body: Some(Body {
                description: "Why; and which handoff, where the message led to several",
                schema: "FalsePositiveAsk",
                weight: Weight::Act,
                example: || json!({"reason": "it was a joke"}),
            }),
            answers: vec![
                json(200, "MentionMarked", "Recorded"),
                problem(409, "It was marked before, or the message led to several handoffs"),
                problem(422, "It does not say what it must"),
            ],
            ..get(
                "/v1/mentions/{message}/false-positive",
                "markMention",
                "people",
                "Mark a mention as none",
                handler!(mentions::mark),
            )
        },
    ]
}
