//! Cedar or regorus in the axum handler that is the limit in `scripts/bench`: read the body, parse it, ask the engine, answer.
//!
//! Run: handoffd-peer-engines cedar|regorus, with HANDOFFD_WORKSPACE and PORT. Rules are read once, from the same files as
//! handoffd's. Nothing is remembered and nothing is durable; ../README.md says what is asked of them.

mod cedar;
mod rego;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value as Json, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What an engine says of a TaskSpec: its handoffId, and every code that speaks against it.
struct Opinion {
    handoff_id: String,
    codes: Vec<String>,
}

/// The rules of a workspace, as both engines take them in.
struct Rules {
    routes: Json,
    /// By path, as a TaskSpec refers to them.
    delegation: serde_json::Map<String, Json>,
}

impl Rules {
    fn read(root: &Path) -> Result<Self, Fault> {
        let mut routes: Json = serde_json::from_slice(&std::fs::read(root.join("policies/routes.json"))?)?;
        let mut delegation = serde_json::Map::new();
        for entry in std::fs::read_dir(root.join("policies/delegation"))? {
            let path = entry?.path();
            if let Some(name) =
                path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".json"))
            {
                let file = serde_json::from_slice(&std::fs::read(&path)?)?;
                delegation.insert(format!("policies/delegation/{name}"), file);
            }
        }
        Ok(Self { routes: routes["routes"].take(), delegation })
    }
}

fn answer(opinion: Result<Opinion, Fault>) -> Response {
    let (status, body) = match opinion {
        Err(fault) => (StatusCode::BAD_REQUEST, json!({"detail": fault.to_string()})),
        Ok(Opinion { handoff_id, codes }) if codes.is_empty() => {
            (StatusCode::OK, json!({"decision": "allowed", "handoffId": handoff_id}))
        }
        Ok(Opinion { handoff_id, codes }) => {
            let reasons: Vec<Json> = codes.into_iter().map(|code| json!({"code": code})).collect();
            (
                StatusCode::FORBIDDEN,
                json!({"decision": "denied", "handoffId": handoff_id, "reasons": reasons}),
            )
        }
    };
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let rules = Rules::read(Path::new(&std::env::var("HANDOFFD_WORKSPACE")?))?;
    let route = match std::env::args().nth(1).as_deref() {
        Some("cedar") => {
            let gate = Arc::new(cedar::Gate::new(&rules)?);
            post(move |body: Bytes| async move { answer(gate.judge(&body)) })
        }
        Some("regorus") => {
            let gate = Arc::new(rego::Gate::new(&rules)?);
            post(move |body: Bytes| async move { answer(gate.judge(&body)) })
        }
        _ => return Err("say cedar or regorus".into()),
    };
    let listener =
        tokio::net::TcpListener::bind(("127.0.0.1", std::env::var("PORT")?.parse::<u16>()?)).await?;
    axum::serve(listener, Router::new().route("/v1/handoffs", route)).await?;
    Ok(())
}
