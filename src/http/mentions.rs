//! The rollout of mentions over HTTP: the phase, what was seen, the numbers, and what was none.

use axum::http::StatusCode;
use serde_json::{Value as Json, json};

use super::acts::done;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::ledger::EntriesFault;
use crate::limits;
use crate::mentions::{
    Counters, FalsePositiveAsk, MarkedAlready, MentionObserved, PhaseAsk, PhaseFault, Rollout,
};
use crate::views::EntryFilter;
use crate::wire::Kind as EventKind;

/// `GET /v1/mentions/phase`.
pub(super) async fn phase(call: Call) -> Answer {
    let rollout = call.app.gateway.engine().mentions();
    Ok(json_response(StatusCode::OK, &phase_to_json(&rollout)))
}

/// `PUT /v1/mentions/phase`.
pub(super) async fn move_phase(mut call: Call) -> Answer {
    let by = call.asking()?;
    let ask = call.act(PhaseAsk::read).await?;
    let engine = call.app.gateway.engine().clone();
    let asked = engine.clone();
    let sequence = done(move || asked.move_phase(ask, by)).await?.map_err(not_moved)?;
    let mut body = phase_to_json(&engine.mentions());
    if let Some(members) = body.as_object_mut() {
        members.insert("sequence".to_owned(), sequence.into());
    }
    Ok(json_response(StatusCode::OK, &body))
}

/// `GET /v1/mentions/metrics`.
pub(super) async fn metrics(call: Call) -> Answer {
    let rollout = call.app.gateway.engine().mentions();
    let body = json!({
        "phase": rollout.phase().as_str(),
        "inPhase": counters_to_json(rollout.in_phase()),
        "total": counters_to_json(rollout.total()),
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// `GET /v1/mentions`: what was observed, the newest first.
pub(super) async fn list(call: Call) -> Answer {
    let query = call.query;
    let page = call
        .app
        .ask(move |reader| {
            let filter = EntryFilter {
                kind: Some(EventKind::MentionObserved.as_str()),
                from: query.time("from"),
                to: query.time("to"),
                ..EntryFilter::default()
            };
            let limit = query.integer("limit").map_or(limits::PAGE_ROWS, |limit| limit as usize);
            reader.entries(&filter, query.cursor(), limit)
        })
        .await?;
    let ledger = call.app.gateway.ledger().clone();
    let rollout = call.app.gateway.engine().mentions();
    let next = page.next.map(|next| next.to_string());
    let read = tokio::task::spawn_blocking(move || -> Result<Vec<Json>, EntriesFault> {
        let mut rows = Vec::with_capacity(page.rows.len());
        for row in &page.rows {
            let entry = ledger.committed(row.sequence)?;
            let wire: Json = serde_json::from_str(&entry.wire).unwrap_or_default();
            let payload = wire.get("payload").cloned().unwrap_or_default();
            if let Ok(observed) = serde_json::from_value::<MentionObserved>(payload) {
                let is_marked = rollout.may_mark(&observed.handoff_id).is_err();
                rows.push(observed_to_json(&observed, entry.sequence, &entry.consensus_timestamp, is_marked));
            }
        }
        Ok(rows)
    });
    match read.await {
        Ok(Ok(rows)) => Ok(json_response(StatusCode::OK, &json!({"mentions": rows, "next": next}))),
        Ok(Err(fault)) => Err(Problem::ledger_unreadable(fault)),
        Err(error) => Err(Problem::ledger_unreadable(error)),
    }
}

/// `POST /v1/mentions/{message}/false-positive`.
pub(super) async fn mark(mut call: Call) -> Answer {
    let by = call.asking()?;
    let ask = call.act(FalsePositiveAsk::read).await?;
    let message_id = call.path().to_owned();
    let (message, named) = (message_id.clone(), ask.handoff_id.clone());
    let found = call
        .app
        .ask(move |reader| match named {
            None => reader.handoffs_of_message(&message, limits::MESSAGE_HANDOFFS_LISTED_MAX),
            Some(handoff_id) => {
                let detail = reader.handoff(&handoff_id)?;
                let is_it = detail.is_some_and(|detail| {
                    detail.attempts.iter().any(|(row, _)| row.message_id.as_deref() == Some(&message))
                });
                Ok(if is_it { vec![handoff_id] } else { Vec::new() })
            }
        })
        .await?;
    let handoff_id = match found.as_slice() {
        [] => return Err(Problem::new(Kind::NotFound, "no handoff came from such a message")),
        [one] => one.clone(),
        several => {
            return Err(Problem::new(Kind::MentionAmbiguous, "the message led to several handoffs")
                .at("/handoffId")
                .hint("name the one that you mean")
                .with("handoffIds", several.to_vec()));
        }
    };
    let engine = call.app.gateway.engine().clone();
    let marked = (handoff_id.clone(), message_id.clone());
    let sequence =
        done(move || engine.mark_mention(marked, ask, by)).await?.map_err(|fault| marked_already(&fault))?;
    let body = json!({"handoffId": handoff_id, "messageId": message_id, "sequence": sequence});
    Ok(json_response(StatusCode::OK, &body))
}

fn phase_to_json(rollout: &Rollout) -> Json {
    let moved = rollout.moved().map(|moved| {
        json!({
            "from": moved.from.as_str(),
            "by": moved.by,
            "at": moved.at,
            "reason": moved.reason,
            "code": moved.code,
            "sequence": moved.sequence,
        })
    });
    json!({"phase": rollout.phase().as_str(), "moved": moved})
}

fn counters_to_json(counters: &Counters) -> Json {
    let Counters { candidates, would_allow, loops_stopped, duplicates_stopped, expired, false_positives } =
        counters;
    json!({
        "candidates": candidates,
        "wouldAllow": would_allow,
        "loopsStopped": loops_stopped,
        "duplicatesStopped": duplicates_stopped,
        "expired": expired,
        "falsePositives": false_positives,
    })
}

fn observed_to_json(observed: &MentionObserved, sequence: u64, at: &str, is_marked: bool) -> Json {
    json!({
        "sequence": sequence,
        "at": at,
        "handoffId": observed.handoff_id,
        "messageId": observed.message_id,
        "phase": observed.phase.map(|phase| phase.as_str()),
        "riskClassification": observed.risk_classification.map(|class| class.as_str()),
        "wouldBe": observed.would_be,
        "codes": observed.codes,
        "falsePositive": is_marked,
        "contentDigest": observed.content_digest.map(|digest| digest.to_string()),
    })
}

fn not_moved(fault: PhaseFault) -> Problem {
    let kind = match fault {
        PhaseFault::Same(_) => Kind::MentionPhaseSame,
        PhaseFault::Skips { .. } => Kind::MentionPhaseSkipped,
    };
    Problem::new(kind, fault.to_string()).at("/phase").hint(fault.hint())
}

fn marked_already(fault: &MarkedAlready) -> Problem {
    Problem::new(Kind::MentionMarkedAlready, fault.to_string()).hint(fault.hint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mentions::Phase;

    #[test]
    fn a_fault_keeps_its_code_on_the_way_to_the_caller() {
        let (from, to) = (Phase::LogOnly, Phase::GatedLive);
        for fault in [PhaseFault::Same(from), PhaseFault::Skips { from, to }] {
            assert_eq!(not_moved(fault).kind().code(), fault.code());
        }
        let fault = MarkedAlready { handoff_id: "hs_1".to_owned() };
        assert_eq!(marked_already(&fault).kind().code(), fault.code());
    }
}
