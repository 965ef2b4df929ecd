//! Grants over HTTP: made, listed, shown and revoked by operators.

use axum::http::{HeaderValue, StatusCode, header};
use serde_json::{Value as Json, json};

use super::App;
use super::acts::done;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::authorization::{AuthorizationRef, GrantFault, Held, grant_ask};
use crate::engine::Granted;
use crate::limits;
use crate::os::clock;
use crate::timestamp::Timestamp;

/// As of when a grant counts: now, by the ledger, and since when grants are good for anything.
struct AsOf {
    at: Timestamp,
    since: Option<Timestamp>,
}

impl AsOf {
    fn now(app: &App) -> Self {
        let (engine, clock) = (app.gateway.engine(), clock::now());
        // The ledger's time never goes back, whatever the clock does.
        let at = engine.ledger_time().map_or(clock, |ledger| ledger.max(clock));
        Self { at, since: engine.void_before() }
    }
}

/// `POST /v1/authorizations`.
pub(super) async fn make(mut call: Call) -> Answer {
    let by = call.asking()?;
    let now = clock::now();
    let principal = call.caller()?.standing().principal().map(str::to_owned);
    let terms = call.act(|document| grant_ask(document, now, principal.as_deref())).await?;
    let engine = call.app.gateway.engine().clone();
    let granted = done(move || engine.grant(terms, by)).await?.map_err(refused)?;
    let mut response = json_response(StatusCode::CREATED, &after_act(&granted, &call.app));
    let place = format!("/v1/authorizations/{}", granted.held.grant.authorization_ref);
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// `DELETE /v1/authorizations/{ref}`.
pub(super) async fn revoke(call: Call) -> Answer {
    let by = call.asking()?;
    let (name, reason) = (call.path().to_owned(), call.query.text("reason").map(str::to_owned));
    let engine = call.app.gateway.engine().clone();
    let granted = done(move || engine.revoke_grant(name, reason, by)).await?.map_err(refused)?;
    Ok(json_response(StatusCode::OK, &after_act(&granted, &call.app)))
}

/// `GET /v1/authorizations`, the newest first.
pub(super) async fn list(call: Call) -> Answer {
    let before = match call.query.text("cursor") {
        None => None,
        Some(text) => Some(text.parse::<AuthorizationRef>().map_err(|_| {
            Problem::new(Kind::QueryInvalid, "expected what the page before this one gave as `next`")
                .at("cursor")
        })?),
    };
    let limit = call.query.integer("limit").map_or(limits::PAGE_ROWS, |limit| limit as usize);
    let (book, as_of) = (call.app.gateway.engine().grants(), AsOf::now(&call.app));
    let wanted = call.query.text("state");
    let is_wanted =
        |held: &&Held| wanted.is_none_or(|word| held.standing(as_of.at, as_of.since).as_str() == word);
    let mut found = book.newest_before(before).filter(is_wanted);
    let page: Vec<&Held> = found.by_ref().take(limit).collect();
    let more = found.next().is_some();
    let next = page.last().filter(|_| more).map(|held| held.grant.authorization_ref.to_string());
    let rows: Vec<Json> = page.into_iter().map(|held| to_json(held, &as_of)).collect();
    Ok(json_response(StatusCode::OK, &json!({"authorizations": rows, "next": next})))
}

/// `GET /v1/authorizations/{ref}`.
pub(super) async fn show(call: Call) -> Answer {
    let (engine, name) = (call.app.gateway.engine().clone(), call.path().to_owned());
    let unknown = || refused(GrantFault::Unknown { name: name.clone() });
    let held = call.app.find_now(|| engine.grants().find(&name).cloned().ok_or_else(unknown)).await??;
    Ok(json_response(StatusCode::OK, &to_json(&held, &AsOf::now(&call.app))))
}

fn after_act(granted: &Granted, app: &App) -> Json {
    let mut json = to_json(&granted.held, &AsOf::now(app));
    if let Some(members) = json.as_object_mut() {
        members.insert("sequence".to_owned(), granted.sequence.into());
    }
    json
}

fn to_json(held: &Held, as_of: &AsOf) -> Json {
    let (grant, terms) = (&held.grant, &held.grant.terms);
    json!({
        "authorizationRef": grant.authorization_ref.to_string(),
        "state": held.standing(as_of.at, as_of.since).as_str(),
        "principal": terms.principal,
        "agents": terms.agents,
        "operations": terms.operations,
        "modes": terms.modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>(),
        "channels": terms.channels,
        "routeKey": terms.route_key,
        "expiresAt": terms.expires_at,
        "uses": terms.uses,
        "used": held.used,
        "intentHash": terms.intent_hash.map(|hash| hash.to_string()),
        "madeBy": grant.made_by.name(),
        "madeAt": grant.made_at,
        "revokedAt": held.revoked_at,
        "revokedBy": held.revoked_by.as_deref(),
    })
}

fn refused(fault: GrantFault) -> Problem {
    let kind = match fault {
        GrantFault::NotHuman => Kind::AuthorizationNotHuman,
        GrantFault::Own { .. } => Kind::AuthorizationOwn,
        GrantFault::Full => Kind::AuthorizationFull,
        GrantFault::Unknown { .. } => Kind::AuthorizationUnknown,
        GrantFault::Revoked { .. } => Kind::AuthorizationRevoked,
    };
    Problem::new(kind, fault.to_string()).hint(fault.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_code_on_the_way_to_the_caller() {
        let name = || "authz_x".to_owned();
        let at = Timestamp::from_unix_nanoseconds(0);
        let faults = [
            GrantFault::NotHuman,
            GrantFault::Own { as_what: "principal", id: "user:main".to_owned() },
            GrantFault::Full,
            GrantFault::Unknown { name: name() },
            GrantFault::Revoked { name: name(), at },
        ];
        for fault in faults {
            let code = fault.code();
            assert_eq!(refused(fault).kind().code(), code);
        }
    }
}
