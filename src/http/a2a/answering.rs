//! `POST /rpc`: requests in, answers out.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value as Json, json};

use super::card_at;
use super::talk::Talk;
use super::tasks::Wanted;
use super::who::Who;
use crate::a2a::{
    self, Ask, Call as A2aCall, CallerCard, ErrorCode, Id, Incoming, Method, Request, RpcError, Version,
};
use crate::http::call::Call;
use crate::http::endpoint::Answer;
use crate::http::handoffs::json_response;

/// What a request is answered with.
enum Reply {
    Result(Json),
    Stream(Response),
}

/// `POST /rpc`.
pub(in crate::http) async fn rpc(mut call: Call) -> Answer {
    let bytes = call.json_body().await?;
    let header = call.headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let asked = header.or(call.query.text("A2A-Version")).map(str::to_owned);
    // What is read borrows from the body, and is gone before anything is waited for.
    let incoming = a2a::body(&bytes).and_then(|document| a2a::read_requests(&document, asked.as_deref()));
    if let Ok(Incoming::Batch(requests)) = &incoming {
        call.charge(requests.len().saturating_sub(1))?;
    }
    let talk = Talk::of(call);
    let incoming = match incoming {
        Ok(incoming) => incoming,
        Err(error) => {
            let error = error.traced(talk.traceparent.as_deref());
            talk.app.metrics.rpc("unreadable", error.code.number(), std::time::Instant::now());
            return Ok(json_response(
                StatusCode::OK,
                &a2a::failed(&Id::NULL, &error, Version::told(asked.as_deref())),
            ));
        }
    };
    Ok(match incoming {
        Incoming::One(request) => match talk.answer(request).await {
            None => StatusCode::ACCEPTED.into_response(),
            Some(Reply::Result(answer)) => json_response(StatusCode::OK, &answer),
            Some(Reply::Stream(response)) => response,
        },
        Incoming::Batch(requests) => {
            let mut answers = Vec::with_capacity(requests.len());
            // One after the other: what a request did is seen by the next.
            for request in requests {
                match talk.answer(request).await {
                    Some(Reply::Result(answer)) => answers.push(answer),
                    // The reader has refused streams in a batch.
                    Some(Reply::Stream(_)) | None => {}
                }
            }
            if answers.is_empty() {
                StatusCode::ACCEPTED.into_response()
            } else {
                json_response(StatusCode::OK, &answers)
            }
        }
    })
}

impl Talk {
    /// The whole answer to a request; nothing to a notification.
    async fn answer(&self, Request { id, version, call }: Request) -> Option<Reply> {
        let began = std::time::Instant::now();
        let rpc_id = id.clone().unwrap_or(Id::NULL);
        let (name, answered) = match call {
            Err(error) => ("invalid", Err(error)),
            Ok(call) => (word(call.method), self.carry_out(&call, &rpc_id, id.is_none()).await),
        };
        let code = answered.as_ref().err().map_or(0, |error| error.code.number());
        self.app.metrics.rpc(name, code, began);
        if let Some(span) = &self.span {
            span.answered(name, code);
        }
        id?;
        Some(match answered {
            Ok(Reply::Result(result)) => Reply::Result(a2a::succeeded(&rpc_id, result)),
            Ok(stream) => stream,
            Err(error) => {
                Reply::Result(a2a::failed(&rpc_id, &error.traced(self.traceparent.as_deref()), version))
            }
        })
    }

    async fn carry_out(&self, call: &A2aCall, id: &Id, silent: bool) -> Result<Reply, RpcError> {
        let version = call.version;
        Ok(Reply::Result(match &call.ask {
            // Nobody hears the stream of a notification.
            Ask::Send(submission) | Ask::Stream(submission) if silent => {
                self.take_in(submission, version).await?;
                Json::Null
            }
            Ask::Send(submission) => self.send(submission, version).await?,
            Ask::Stream(submission) => {
                let heard = self.take_in(submission, version).await?;
                return self
                    .stream_of(heard, &submission.message, (id.clone(), version))
                    .await
                    .map(Reply::Stream);
            }
            Ask::GetTask { id, history_length } => {
                let wanted = Wanted { history_length: *history_length, ..Wanted::all(version) };
                self.find(id).await?.to_json(None, &wanted)
            }
            Ask::ListTasks(asked) => self.list(asked).await?,
            Ask::CancelTask { id } => self.cancel(id, version).await?,
            Ask::Subscribe { id: task, from } => {
                if version == Version::V0_3 && !self.takes_streams {
                    let next = self.next_update(task).await?;
                    json!({"id": task.to_string(), "from": from.unwrap_or(next)})
                } else {
                    return self.subscribe(task, *from, (id.clone(), version)).await.map(Reply::Stream);
                }
            }
            Ask::ExtendedCard => self.extended_card()?,
            Ask::SetPush { id, config } => self.set_push(id, config, version).await?,
            Ask::GetPush { id, config_id } => self.get_push(id, config_id.as_deref(), version).await?,
            Ask::ListPush { id, page_size, page_token } => {
                self.list_push(id, *page_size, page_token.as_deref(), version).await?
            }
            Ask::DeletePush { id, config_id } => self.delete_push(id, config_id, version).await?,
            Ask::Ai { params } => self.ask_model(call.method, params).await?,
        }))
    }

    fn extended_card(&self) -> Result<Json, RpcError> {
        let Who::Caller(caller) = &self.who else {
            return Err(RpcError::at(
                ErrorCode::NoExtendedCard,
                "/method",
                "the extended card is for callers who say who they are",
                "send a token",
            ));
        };
        let base_url = self.app.base_url();
        let asks = CallerCard { role: caller.role(), agent_id: caller.agent_id() };
        Ok(card_at(&self.app, &base_url).extended(&asks))
    }
}

/// The name that metrics know a method by.
fn word(method: Method) -> &'static str {
    method.name(Version::V0_3).or(method.name(Version::V1_0)).unwrap_or("unknown")
}
