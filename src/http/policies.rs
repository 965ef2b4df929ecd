//! The state document, and the policy set in force.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::json;

use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};

/// `GET /v1/state`.
pub(super) async fn state(call: Call) -> Answer {
    let app = call.app.clone();
    let document = tokio::task::spawn_blocking(move || app.gateway.state().document()).await;
    let document = document.map_err(|_| Problem::new(Kind::ViewsBehind, "the state could not be read"))?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], document).into_response())
}

/// `GET /v1/policies`.
pub(super) async fn show(call: Call) -> Answer {
    let in_force = &call.rules.in_force;
    let failed = call.app.rules.failed();
    let body = json!({
        "digest": in_force.policies.digest().to_string(),
        "loadedAt": call.rules.loaded_at.to_string(),
        "routes": in_force.policies.routes().keys().collect::<Vec<_>>(),
        "policies": in_force.policies.policy_refs().collect::<Vec<_>>(),
        "lastLoad": match failed {
            None => json!({"outcome": "loaded", "at": call.rules.loaded_at.to_string()}),
            Some(failed) => json!({"outcome": "failed", "at": failed.at.to_string(), "why": failed.why}),
        },
    });
    Ok(json_response(StatusCode::OK, &body))
}
