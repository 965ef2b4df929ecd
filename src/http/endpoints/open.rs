//! What needs no token.

use super::{get, json, text};
use crate::http::endpoint::Endpoint;
use crate::http::{evidence, health, openapi};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            answers: vec![json(200, "Alive", "The process answers")],
            ..get("/healthz", "alive", "health", "Is it alive?", handler!(health::alive))
        },
        Endpoint {
            description: "503 when it cannot decide; 200 with `degraded` when something is wrong that it survives.",
            answers: vec![json(200, "Ready", "It can decide"), json(503, "Ready", "It cannot, and why")],
            ..get("/readyz", "ready", "health", "Can it decide?", handler!(health::ready))
        },
        Endpoint {
            answers: vec![text(200, "application/openmetrics-text", "For Prometheus")],
            ..get("/metrics", "metrics", "health", "What is counted", handler!(health::metrics))
        },
        Endpoint {
            answers: vec![json(200, "OpenApi", "This document")],
            ..get("/openapi.json", "openapi", "health", "What there is", handler!(openapi::show))
        },
        Endpoint {
            description: "The gateway's public keys, with which receipts and checkpoints are verified.",
            answers: vec![json(200, "Jwks", "A JSON Web Key Set")],
            ..get(
                "/.well-known/jwks.json",
                "jwks",
                "evidence",
                "The gateway's public keys",
                handler!(evidence::jwks),
            )
        },
    ]
}
