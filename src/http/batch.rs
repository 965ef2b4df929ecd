//! `POST /v1/handoffs/batch`: many TaskSpecs, one Decision each, one ledger batch.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::oneshot;

use super::call::Call;
use super::endpoint::Answer as HttpAnswer;
use super::handoffs::{Purpose, answer, asker, json_response, ruling};
use super::problem::{Kind, Problem};
use crate::engine::{Candidate, EngineFault, Reply};
use crate::json::{Bounds, read};
use crate::limits;
use crate::os::clock;
use crate::proof::canonical;

pub(super) async fn submit(mut call: Call) -> HttpAnswer {
    let bytes_max = call.app.settings.server.batch_bytes_max;
    let bytes = call.json_body().await?;
    let bounds = Bounds { bytes_max, levels_max: limits::TASK_SPEC.levels_max + 1 };
    let bodies = bodies(&bytes, bounds).inspect_err(|_| call.app.metrics.unreadable())?;
    call.charge(bodies.len().saturating_sub(1))?;
    let asker = asker(call.caller()?, Purpose::Submit);
    let now = clock::now();
    let (mut candidates, mut receivers) =
        (Vec::with_capacity(bodies.len()), Vec::with_capacity(bodies.len()));
    for (position, body) in bodies.iter().enumerate() {
        let candidate = Candidate::judge(body.clone(), ruling(&call.rules, asker.clone()), now)
            .map_err(|fault| Problem::from(&fault).at(format!("/{position}{}", fault.pointer)))?;
        let (sender, receiver) = oneshot::channel();
        let reply: Reply = Box::new(move |result| drop(sender.send(result)));
        receivers.push((receiver, candidate.is_delegated()));
        candidates.push((candidate.traced(call.trace.incoming.as_deref()), reply));
    }
    call.app.gateway.engine().submit_together(candidates)?;
    let mut decisions = Vec::with_capacity(receivers.len());
    for ((receiver, delegated), body) in receivers.into_iter().zip(&bodies) {
        let decided = receiver.await.unwrap_or(Err(EngineFault::Stopped))?;
        decisions.push(answer(&decided, body, delegated, &call.rules, &call.app.gateway));
    }
    Ok(json_response(StatusCode::OK, &json!({"decisions": decisions})))
}

/// Each TaskSpec as a text of its own. In canonical form, which has the same digests as any other.
fn bodies(bytes: &[u8], bounds: Bounds) -> Result<Vec<Arc<str>>, Problem> {
    let document = read(bytes, bounds).map_err(|fault| Problem::from(&fault))?;
    if !document.root().is_array() {
        return Err(Problem::new(Kind::BodyInvalid, "the body is not a list")
            .at("")
            .hint("send a JSON array of TaskSpecs"));
    }
    let mut bodies = Vec::new();
    for (position, element) in document.root().items().enumerate() {
        if position == limits::BATCH_HANDOFFS_MAX {
            let message = format!("a batch has at most {} TaskSpecs", limits::BATCH_HANDOFFS_MAX);
            return Err(Problem::new(Kind::TooLarge, message)
                .at(format!("/{position}"))
                .hint("send several batches"));
        }
        let text = String::from_utf8(canonical(element))
            .map_err(|_| Problem::new(Kind::BodyInvalid, "not UTF-8").at(format!("/{position}")))?;
        bodies.push(text.into());
    }
    if bodies.is_empty() {
        return Err(Problem::new(Kind::BodyInvalid, "the list is empty")
            .at("")
            .hint("send at least one TaskSpec"));
    }
    Ok(bodies)
}
