//! `ai/…`: passed on to the model gateway, for those who may ask it.

use std::time::Instant;

use serde_json::Value as Json;

use super::talk::Talk;
use super::who::Who;
use crate::a2a::{AiParams, ErrorCode, Finding, Method, RpcError};
use crate::ai::AiFault;
use crate::http::spans::Side;
use crate::os::clock;
use crate::web::next_span;

impl Talk {
    pub(super) async fn ask_model(&self, method: Method, params: &AiParams) -> Result<Json, RpcError> {
        let Some(models) = &self.app.models else {
            return Err(RpcError::at(
                ErrorCode::UnsupportedOperation,
                "/method",
                "no model gateway is configured",
                "the operator sets [ai] url",
            ));
        };
        let may = matches!(&self.who, Who::Caller(caller) if models.serves(caller.role()));
        if !may {
            let message = "this caller may not ask the model gateway".to_owned();
            let finding = Finding {
                code: Some("AUTH_FORBIDDEN".to_owned()),
                pointer: "/method".to_owned(),
                message: message.clone(),
                hint: Some("use a token of a role that [ai] roles names".to_owned()),
            };
            return Err(RpcError {
                findings: vec![finding],
                ..RpcError::new(ErrorCode::UnsupportedOperation, message)
            });
        }
        let (began, since) = (clock::now(), Instant::now());
        let own = self.traceparent.as_deref().and_then(next_span);
        let answered = models.ask(method, params, own.as_deref()).await;
        let fault = answered.as_ref().err();
        self.app.metrics.outgoing.ai_asked(method, fault, since.elapsed());
        if let Some(AiFault::Unavailable(why)) = fault {
            tracing::warn!(why, "the model gateway cannot be asked");
        }
        if let (Some(spans), Some(parent), Some(own)) = (&self.app.spans, &self.traceparent, &own) {
            let outcome = fault.map_or("answered", AiFault::outcome).to_owned();
            let attributes = vec![("handoffd.outcome", outcome)];
            let when = (began, since.elapsed());
            spans.single((Side::Client, "ai"), (parent, own), when, fault.is_some(), attributes);
        }
        Ok(answered?)
    }
}
