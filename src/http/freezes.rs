//! The kill switch over HTTP.
//!
//! A freeze that holds is answered with 200 whatever else is broken: whoever stops work in a hurry must not be told
//! that it failed because a list could not be made.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value as Json, json};

use super::App;
use super::acts::{done, invalid};
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::engine::Frozen;
use crate::freeze::{Freeze, FreezeAsk, FreezeScope, NotFrozen};
use crate::limits;
use crate::views::HandoffRow;

/// `GET /v1/freeze`.
pub(super) async fn list(call: Call) -> Answer {
    let freezes = call.app.gateway.engine().freezes();
    let frozen: Vec<Json> = freezes.all().map(freeze_to_json).collect();
    Ok(json_response(StatusCode::OK, &json!({"frozen": frozen})))
}

/// `POST /v1/freeze`.
pub(super) async fn set(mut call: Call) -> Answer {
    let by = call.asking()?;
    let ask = call.act(FreezeAsk::read).await?;
    let routes = call.rules.in_force.policies.routes().keys().map(String::as_str);
    ask.names_one_of(routes).map_err(|finding| invalid(&[finding]))?;
    let engine = call.app.gateway.engine().clone();
    let frozen = done(move || engine.freeze(ask, by)).await?;
    respond(&call.app, &frozen).await
}

/// `DELETE /v1/freeze`. A route that is gone from the policies can still be lifted.
pub(super) async fn lift(mut call: Call) -> Answer {
    let by = call.asking()?;
    let ask = call.act(FreezeAsk::read).await?;
    let engine = call.app.gateway.engine().clone();
    let frozen = done(move || engine.unfreeze(ask, by)).await?.map_err(|fault| not_frozen(&fault))?;
    respond(&call.app, &frozen).await
}

/// The answer to both: what it is about, from which entry on, and what it did not stop.
async fn respond(app: &Arc<App>, frozen: &Frozen) -> Answer {
    let FreezeScope { route_key, mode } = frozen.freeze.scope.clone();
    let mode = mode.map(|mode| mode.as_str());
    let in_flight = app
        .ask(move |reader| reader.in_flight(route_key.as_deref(), mode, limits::IN_FLIGHT_LISTED_MAX))
        .await;
    let mut body = freeze_to_json(&frozen.freeze);
    if let Some(members) = body.as_object_mut() {
        members.insert("fromSequence".to_owned(), frozen.from_sequence.into());
        members.insert("heldBefore".to_owned(), frozen.held_before.into());
        let (rows, total): (Json, Json) = match in_flight {
            Ok((rows, total)) => (rows.iter().map(row_to_json).collect(), total.into()),
            Err(problem) => {
                tracing::error!(code = problem.kind().code(), "what is in flight could not be listed");
                (Json::Null, Json::Null)
            }
        };
        members.insert("inFlight".to_owned(), rows);
        members.insert("inFlightTotal".to_owned(), total);
    }
    Ok(json_response(StatusCode::OK, &body))
}

/// A scope as the body of the request has it.
fn scope_to_json(scope: &FreezeScope) -> Json {
    let word = match (&scope.route_key, scope.mode) {
        (None, None) => "all",
        (None, Some(_)) => "mode",
        (Some(_), _) => "route",
    };
    let mut json = json!({"scope": word});
    if let Some(members) = json.as_object_mut() {
        members.extend(scope.mode.map(|mode| ("mode".to_owned(), mode.as_str().into())));
        members.extend(scope.route_key.as_ref().map(|key| ("routeKey".to_owned(), key.as_str().into())));
    }
    json
}

fn freeze_to_json(freeze: &Freeze) -> Json {
    let mut json = scope_to_json(&freeze.scope);
    if let Some(members) = json.as_object_mut() {
        members.insert("by".to_owned(), freeze.by.as_str().into());
        members.insert("at".to_owned(), freeze.at.to_string().into());
        members.insert("reason".to_owned(), freeze.reason.as_str().into());
        members.insert("fromSequence".to_owned(), freeze.from_sequence.into());
    }
    json
}

fn row_to_json(row: &HandoffRow) -> Json {
    let current = &row.current;
    json!({
        "handoffId": row.handoff_id,
        "status": current.status.as_str(),
        "mode": current.mode,
        "routeKey": current.route_key,
        "sourceAgent": current.source_agent,
        "targetAgent": current.target_agent,
        "updatedAt": current.updated_at,
    })
}

fn not_frozen(fault: &NotFrozen) -> Problem {
    let frozen: Vec<Json> = fault.frozen.iter().map(scope_to_json).collect();
    Problem::new(Kind::FreezeNotSet, fault.to_string()).hint(fault.hint()).with("frozen", frozen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_code_on_the_way_to_the_caller() {
        let fault = NotFrozen { asked: FreezeScope::ALL, frozen: vec![FreezeScope::route("a.route.v1")] };
        assert_eq!(not_frozen(&fault).kind().code(), fault.code());
        let shown = not_frozen(&fault).to_json();
        assert_eq!(shown["frozen"], json!([{"scope": "route", "routeKey": "a.route.v1"}]));
    }
}
