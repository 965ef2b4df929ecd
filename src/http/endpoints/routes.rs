//! Routes: where each stands between dev and live, its gates, and the way back.

use axum::http::Method;
use serde_json::json;

use super::{get, json, path, problem};
use crate::callers::Act;
use crate::http::endpoint::{Body, Endpoint, Form, Parameter, Weight};
use crate::http::routes;

const KEY: Parameter = path("key", Form::Text { max: 160 }, "crypto-sage.execution-plane.v1", "The routeKey");
const GATE: Parameter = path("gate", Form::OneOf(|| vec!["G0", "G1", "G2", "G3", "G4"]), "G0", "The gate");

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            act: Some(Act::ReadRoutes),
            answers: vec![json(200, "Routes", "Every route that is declared")],
            ..get(
                "/v1/routes",
                "listRoutes",
                "routes",
                "List routes and their stages",
                handler!(routes::list),
            )
        },
        Endpoint {
            description: "Where the route stands, its gates with their evidence, and what is missing for the next one as \
                          things stand. No agent is asked for it.",
            act: Some(Act::ReadRoutes),
            parameters: vec![KEY],
            answers: vec![json(200, "Route", "The route")],
            ..get("/v1/routes/{key}", "getRoute", "routes", "Show a route", handler!(routes::show))
        },
        Endpoint {
            method: Method::POST,
            description: "Evaluates a gate from what the ledger has, and records it as passed or failed, with why. In order: \
                          the next gate, or one before it. With `evidence` that is attached first, by an operator or a \
                          registered harness, never by an end of the handoff; a harness attaches and does not decide.",
            act: Some(Act::AttachEvidence),
            parameters: vec![KEY, GATE],
            body: Some(Body {
                description: "What it is to rest on",
                schema: "GateAsk",
                weight: Weight::Document,
                example: || json!({"reason": "the route is new"}),
            }),
            answers: vec![
                json(200, "GateDecided", "Passed or failed; both are recorded"),
                problem(409, "It is not its turn, or the route is blocked, or it changed meanwhile"),
            ],
            ..get(
                "/v1/routes/{key}/gates/{gate}",
                "decideGate",
                "routes",
                "Evaluate a gate",
                handler!(routes::decide_gate),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Demotes the route to simulated, blocks it if asked to, restores the definition before this one, and \
                          ends live handoffs in flight. Each step is done or skipped, with why.",
            act: Some(Act::Promote),
            parameters: vec![KEY],
            body: Some(Body {
                description: "Why",
                schema: "RollbackAsk",
                weight: Weight::Document,
                example: || json!({"reason": "slippage beyond the limit", "dryRun": true}),
            }),
            answers: vec![json(200, "RolledBack", "What was done, or would be")],
            ..get(
                "/v1/routes/{key}/rollback",
                "rollBackRoute",
                "routes",
                "Roll a route back",
                handler!(routes::roll_back),
            )
        },
        Endpoint {
            method: Method::POST,
            description: "Rolls the route back, and lets nothing pass until somebody unblocks it.",
            act: Some(Act::Promote),
            parameters: vec![KEY],
            body: Some(Body {
                description: "Why",
                schema: "BlockAsk",
                weight: Weight::Document,
                example: || json!({"reason": "the venue is down"}),
            }),
            answers: vec![json(200, "RolledBack", "What was done")],
            ..get("/v1/routes/{key}/block", "blockRoute", "routes", "Block a route", handler!(routes::block))
        },
        Endpoint {
            method: Method::POST,
            description: "Opens a route that was blocked, or lets the routing table count again after a rollback restored an \
                          earlier definition. Gates that were lost stay lost.",
            act: Some(Act::Promote),
            parameters: vec![KEY],
            body: Some(Body {
                description: "Why, and what is lifted",
                schema: "UnblockAsk",
                weight: Weight::Document,
                example: || json!({"reason": "the venue is back", "what": "block"}),
            }),
            answers: vec![
                json(200, "Unblocked", "The route as it is now"),
                problem(409, "There is nothing to lift"),
            ],
            ..get(
                "/v1/routes/{key}/unblock",
                "unblockRoute",
                "routes",
                "Unblock a route",
                handler!(routes::unblock),
            )
        },
    ]
}
