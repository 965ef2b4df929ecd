//! Links that open the console, for the command line: a browser cannot be handed a token in a safe way.

use axum::http::StatusCode;
use serde_json::json;

use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::os::{clock, random};

/// `POST /v1/console/links`.
pub(super) async fn make(call: Call) -> Answer {
    let caller = call.caller()?;
    let random = random::secret_bytes::<32>()
        .map_err(|_| Problem::new(Kind::Busy, "there is no randomness to make a link of"))?;
    let offered = call.app.sessions.offer(caller, &random, clock::now());
    let Some((secret, until)) = offered else {
        return Err(Problem::new(Kind::Forbidden, "the console is not for this role"));
    };
    let path = format!("/console/enter?link={}", secret.expose());
    Ok(json_response(StatusCode::CREATED, &json!({"path": path, "expiresAt": until})))
}
