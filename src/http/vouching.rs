//! Evidence of end-to-end runs over HTTP: who may vouch for which, and what they have to show.

use serde::Deserialize;

use super::App;
use super::acts::asking;
use super::problem::{Kind, Problem};
use super::routes::{not_now, route_fault, unseen};
use super::tokens::wrong;
use crate::callers::{Act, Caller, Role, Roster};
use crate::engine::Routed;
use crate::gateway::{GateAsk, Promoter};
use crate::promotion::{Attached, NotNow, PromotionGate, Voucher, may_ask};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct EvidenceBody {
    run_id: Option<String>,
    trace_id: Option<String>,
    report: Option<String>,
}

/// Attaches evidence, if whoever has it may vouch for this handoff.
pub(super) fn attach(
    app: &App,
    promoter: &Promoter<'_>,
    caller: &Caller,
    ask: &GateAsk,
    handoff_id: &str,
    attached: Attached,
) -> Result<Routed, Problem> {
    let record = app.gateway.engine().route(&ask.route_key).ok_or_else(|| Problem::not_found("route"))?;
    let now = may_ask(&record, ask.gate);
    // A harness may be done before G2 is; an operator wants the gate decided now.
    if let Err(why) = now
        && (caller.may(Act::Promote) || !matches!(why, NotNow::OutOfOrder { next: Some(_) }))
    {
        return Err(not_now(why));
    }
    let found = promoter.end_to_end(handoff_id).map_err(unseen)?;
    let handoff = found
        .filter(|found| found.route_key.as_deref() == Some(&ask.route_key))
        .map(|found| found.handoff)
        .ok_or_else(|| wrong("/handoffId", "there is no such handoff on this route"))?;
    let voucher = voucher(&app.rules.current().roster, caller);
    let names = std::iter::once(caller.name().as_str()).chain(voucher.names());
    if let Some(own) = handoff.own_among(record.route(), promoter.names(), names) {
        return Err(own_evidence(own, &voucher));
    }
    let evidence = (handoff_id.to_owned(), attached, voucher);
    let routed = app.gateway.engine().attach_evidence(ask.route_key.clone(), evidence, asking(caller))?;
    routed.map_err(|fault| route_fault(&fault))
}

/// Who stands behind what this caller attaches: the agent that it is for, and the person, who may have registered it.
fn voucher(roster: &Roster, caller: &Caller) -> Voucher {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let maker = (caller.role() == Role::Harness).then(|| roster.maker_of(caller.token_id())).flatten();
    let principal = match maker {
        Some((_, maker)) => maker.and_then(|maker| maker.standing().principal()),
        None => caller.standing().principal(),
    };
    Voucher {
        agent_id: owned(caller.agent_id()),
        registered_by: maker.map(|(name, _)| name.to_string()),
        principal: owned(principal),
    }
}

fn own_evidence(own: &str, voucher: &Voucher) -> Problem {
    let by_its_maker = voucher.registered_by.as_deref() == Some(own)
        || (voucher.registered_by.is_some() && voucher.principal.as_deref() == Some(own));
    let message = if by_its_maker {
        "an end of this handoff registered the harness"
    } else {
        "the caller is an end of this handoff"
    };
    Problem::new(Kind::RouteEvidenceOwn, message)
        .hint("have an operator or a harness attach it who is neither its source nor its target")
}

pub(super) fn read_evidence(
    gate: PromotionGate,
    handoff_id: Option<&str>,
    evidence: EvidenceBody,
) -> Result<Attached, Problem> {
    if gate != PromotionGate::G3 {
        return Err(wrong("/evidence", format!("{gate} takes no evidence; G3 does")));
    }
    if handoff_id.is_none() {
        return Err(wrong("/handoffId", "evidence is of one handoff: say of which"));
    }
    let EvidenceBody { run_id, trace_id, report } = evidence;
    let plain = |text: &str, range: std::ops::RangeInclusive<usize>| {
        range.contains(&text.chars().count()) && !text.chars().any(char::is_control)
    };
    if run_id.as_deref().is_some_and(|text| !plain(text, 1..=128)) {
        return Err(wrong("/evidence/runId", "1 to 128 characters, no control characters"));
    }
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if trace_id.as_deref().is_some_and(|text| text.len() != 32 || !text.bytes().all(is_hex)) {
        return Err(wrong("/evidence/traceId", "a W3C trace id: 32 hex digits, lower case"));
    }
    if report.as_deref().is_some_and(|text| !plain(text, 3..=1024)) {
        return Err(wrong("/evidence/report", "3 to 1024 characters, no control characters"));
    }
    if run_id.is_none() && trace_id.is_none() && report.is_none() {
        return Err(wrong("/evidence", "a runId, a traceId or a report"));
    }
    Ok(Attached { run_id, trace_id, report })
}
