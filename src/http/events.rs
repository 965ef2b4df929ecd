//! What agents report about handoffs, and cancellations.

use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::oneshot;

use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use crate::callers::{Caller, Role};
use crate::engine::{EngineFault, Report, ReportRefusal};
use crate::wire::{SentEvent, Side, WireCode, WireFault};

/// `POST /v1/handoffs/{id}/events`.
pub(super) async fn report(mut call: Call) -> Answer {
    let bytes = call.json_body().await?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Problem::new(Kind::WireInvalid, "not UTF-8"))?;
    let event = SentEvent::parse(text).map_err(|faults| invalid(&faults))?;
    let sender = call.caller()?.wire_sender();
    if event.envelope().is_none_or(|envelope| envelope.sender() != sender) {
        return Err(refused(&WireFault::other_sender(&sender.to_string()), None));
    }
    let (told, heard) = oneshot::channel();
    let side = side_of(call.caller()?);
    let report = Report { handoff_id: call.path().to_owned(), event, side };
    call.app.gateway.engine().report(report, Box::new(move |answer| drop(told.send(answer))))?;
    match heard.await.unwrap_or(Err(EngineFault::Stopped))? {
        Ok(reported) => {
            let status = if reported.replayed { StatusCode::OK } else { StatusCode::CREATED };
            let body = json!({
                "handoffId": reported.handoff_id,
                "attempt": reported.attempt,
                "streamSeq": reported.stream_seq,
                "status": reported.state.as_str(),
                "terminal": reported.terminal,
                "replayed": reported.replayed,
                "sequence": reported.sequence,
            });
            Ok(json_response(status, &body))
        }
        Err(ReportRefusal::Unknown) => Err(Problem::not_found("handoff")),
        Err(ReportRefusal::Refused { fault, expected }) => Err(refused(&fault, expected)),
    }
}

/// For which side of a handoff a caller speaks: one agent's orchestrator hands over, and its worker takes work, each with
/// a token of its own.
pub(super) fn side_of(caller: &Caller) -> Side {
    match caller.role() {
        Role::Agent => Side::Target,
        Role::Orchestrator | Role::Operator | Role::Harness | Role::Auditor | Role::Admin => Side::Source,
    }
}

/// Each code has one status.
fn kind_of(code: WireCode) -> Kind {
    match code {
        WireCode::Invalid => Kind::WireInvalid,
        WireCode::TooLarge => Kind::WireTooLarge,
        WireCode::Stream => Kind::WireStream,
        WireCode::Sender => Kind::WireSender,
        WireCode::Halted => Kind::WireHalted,
        WireCode::Duplicate => Kind::WireDuplicate,
        WireCode::Sequence => Kind::WireSequence,
        WireCode::Terminal => Kind::WireTerminal,
        WireCode::Transition => Kind::WireTransition,
        WireCode::Artifact => Kind::WireArtifact,
    }
}

fn refused(fault: &WireFault, expected: Option<u64>) -> Problem {
    let problem = Problem::new(kind_of(fault.code), &fault.message).at(&fault.pointer);
    let problem = match &fault.hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    };
    match expected {
        Some(expected) => problem.with("expected", expected),
        None => problem,
    }
}

/// The first thing that is wrong as the problem, and all of them in `faults`.
fn invalid(faults: &[WireFault]) -> Problem {
    let all: Vec<_> = faults
        .iter()
        .map(|fault| {
            json!({"code": fault.code.as_str(), "pointer": fault.pointer, "message": fault.message,
                "hint": fault.hint, "rule": fault.rule})
        })
        .collect();
    match faults.first() {
        Some(first) => refused(first, None).with("faults", all),
        None => Problem::new(Kind::WireInvalid, "the event is not valid"),
    }
}
