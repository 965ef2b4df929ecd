//! The model gateway that `ai/embeddings`, `ai/rerank` and `ai/chat` go to.
//!
//! It speaks as OpenAI's does: what a caller sends as `params` is the body, what it answers is the result. Its address and
//! its key are the operator's, so it is dialled wherever it is. What it says about a request that it refuses is the
//! caller's to read; what is wrong with it, or with our key, is not.
//!
//! Deliberately absent: models of our own, streams of tokens, and keeping anything of what is asked or answered.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use serde_json::Value as Json;
use tokio::sync::Semaphore;

use crate::a2a::{AiParams, ErrorCode, Finding, Method, RpcError};
use crate::callers::Role;
use crate::json::printable;
use crate::limits;
use crate::os::files;
use crate::proof::Secret;
use crate::settings::Ai;
use crate::web::{Client, Post, Reply, WebAddress, WebFault};

/// The way to a model gateway.
#[derive(Debug)]
pub struct Models {
    base: WebAddress,
    key: Option<Secret>,
    client: Client,
    timeout: Duration,
    answer_bytes_max: usize,
    roles: Vec<Role>,
    at_once: Semaphore,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AiFault {
    /// What is asked for cannot be passed on.
    Unsupported {
        pointer: &'static str,
        message: &'static str,
    },
    ModelNotFound(Option<String>),
    /// The request is not one that it takes.
    Refused(Option<String>),
    TimedOut,
    /// It cannot be reached, does not know us, has too much to do, or answers what is no answer.
    Unavailable(String),
}

impl AiFault {
    pub const OUTCOMES: [&'static str; 6] =
        ["answered", "unsupported", "model_not_found", "refused", "timed_out", "unavailable"];

    /// What it is counted as.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported",
            Self::ModelNotFound(_) => "model_not_found",
            Self::Refused(_) => "refused",
            Self::TimedOut => "timed_out",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl From<AiFault> for RpcError {
    fn from(fault: AiFault) -> Self {
        let said = |words: &Option<String>, otherwise: &str| match words {
            Some(words) => format!("the model gateway refuses it: {words}"),
            None => otherwise.to_owned(),
        };
        let (code, own, pointer, message, hint) = match &fault {
            AiFault::Unsupported { pointer, message } => (
                ErrorCode::UnsupportedOperation,
                "AI_UNSUPPORTED",
                *pointer,
                (*message).to_owned(),
                "leave it out: the answer comes as a whole",
            ),
            AiFault::ModelNotFound(words) => (
                ErrorCode::InvalidParams,
                "AI_MODEL_NOT_FOUND",
                "/params/model",
                said(words, "the model gateway has no such model"),
                "name a model that it has",
            ),
            AiFault::Refused(words) => (
                ErrorCode::InvalidParams,
                "AI_REQUEST_REFUSED",
                "/params",
                said(words, "the model gateway refuses the request"),
                "send what its API takes",
            ),
            AiFault::TimedOut => (
                ErrorCode::Internal,
                "AI_TIMEOUT",
                "",
                "the model gateway did not answer in time".to_owned(),
                "try again, or ask for less",
            ),
            AiFault::Unavailable(_) => (
                ErrorCode::Internal,
                "AI_UNAVAILABLE",
                "",
                "the model gateway cannot be asked now".to_owned(),
                "try again shortly",
            ),
        };
        let finding = Finding {
            code: Some(own.to_owned()),
            pointer: pointer.to_owned(),
            message: message.clone(),
            hint: Some(hint.to_owned()),
        };
        Self { findings: vec![finding], ..Self::new(code, message) }
    }
}

/// Why there is no way to it.
#[derive(Debug)]
pub struct ModelsFault(String);

impl fmt::Display for ModelsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ModelsFault {}

impl Models {
    /// As the operator set it; nothing if there is none. Paths are below the workspace.
    pub fn open(settings: &Ai, workspace: &Path) -> Result<Option<Self>, ModelsFault> {
        let Some(url) = &settings.url else { return Ok(None) };
        let base = WebAddress::parse(url).map_err(|fault| ModelsFault(format!("[ai] url {fault}")))?;
        let authorities = settings.ca.as_ref().map(|path| workspace.join(path));
        let client = Client::new(authorities.as_deref())
            .map_err(|fault| ModelsFault(format!("[ai] ca cannot be used: {fault}")))?;
        let key = match (&settings.api_key, &settings.api_key_file) {
            (Some(key), _) => Some(Secret::new(key.expose().as_bytes().to_vec())),
            (None, Some(path)) => {
                let bytes = files::read_private(&workspace.join(path), limits::SETTING_SECRET_CHARS_MAX)
                    .map_err(|error| ModelsFault(format!("[ai] api_key_file {} {error}", path.display())))?;
                Some(Secret::from_file_bytes(bytes))
            }
            (None, None) => None,
        };
        Ok(Some(Self {
            base,
            key,
            client,
            timeout: settings.timeout,
            answer_bytes_max: settings.answer_bytes_max,
            roles: settings.roles.iter().filter_map(|name| name.parse().ok()).collect(),
            at_once: Semaphore::new(settings.requests_max),
        }))
    }

    /// May callers of this role ask it?
    pub fn serves(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// How long an answer may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks it, in a trace if there is one.
    pub async fn ask(
        &self,
        method: Method,
        params: &AiParams,
        traceparent: Option<&str>,
    ) -> Result<Json, AiFault> {
        let path = path(method).ok_or(AiFault::Unsupported {
            pointer: "/method",
            message: "this method is not the model gateway's",
        })?;
        if params.0.get("stream").is_some_and(|stream| *stream != Json::Bool(false)) {
            let message = "a stream of tokens cannot be passed on";
            return Err(AiFault::Unsupported { pointer: "/params/stream", message });
        }
        let unavailable = |why: &str| AiFault::Unavailable(why.to_owned());
        let address = self.base.join(path).ok_or_else(|| unavailable("its address cannot be written"))?;
        let began = tokio::time::Instant::now();
        let place = tokio::time::timeout(self.timeout, self.at_once.acquire()).await;
        let _place = place.map_err(|_| AiFault::TimedOut)?.map_err(|_| unavailable("it is closed"))?;
        let mut post = Post {
            address: &address,
            headers: hyper::HeaderMap::new(),
            body: Bytes::from(params.0.to_string()),
            timeout: self.timeout.saturating_sub(began.elapsed()),
            answer_bytes_max: Some(self.answer_bytes_max),
        }
        .with("content-type", "application/json")
        .with("accept", "application/json");
        if let Some(traceparent) = traceparent {
            post = post.with("traceparent", traceparent);
        }
        if let Some(key) = &self.key {
            let mut value = zeroize::Zeroizing::new(b"Bearer ".to_vec());
            value.extend_from_slice(key.expose());
            post = post.with_secret("authorization", &value);
        }
        match self.client.post(post, |_| true).await {
            Ok(reply) => judge(&reply),
            Err(WebFault::TimedOut) => Err(AiFault::TimedOut),
            Err(fault) => Err(AiFault::Unavailable(fault.to_string())),
        }
    }
}

fn path(method: Method) -> Option<&'static str> {
    match method {
        Method::Embeddings => Some("/v1/embeddings"),
        Method::Rerank => Some("/v1/rerank"),
        Method::Chat => Some("/v1/chat/completions"),
        _ => None,
    }
}

/// What an answer comes to.
fn judge(reply: &Reply) -> Result<Json, AiFault> {
    let body: Option<Json> = serde_json::from_slice(&reply.body).ok();
    let status = reply.status;
    if status.is_success() {
        let answer = body.filter(Json::is_object);
        return answer.ok_or_else(|| AiFault::Unavailable("its answer is no JSON object".to_owned()));
    }
    let error = body.as_ref().and_then(|body| body.get("error"));
    let text = |name: &str| error.and_then(|error| error.get(name)).and_then(Json::as_str);
    let words = text("message").or(error.and_then(Json::as_str)).map(printable);
    let names_no_model = text("code") == Some("model_not_found") || text("type") == Some("model_not_found");
    Err(match status {
        StatusCode::NOT_FOUND => AiFault::ModelNotFound(words),
        _ if names_no_model => AiFault::ModelNotFound(words),
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
            AiFault::Refused(words)
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => AiFault::TimedOut,
        // Our key is our own business, and so is what else is wrong.
        _ => AiFault::Unavailable(format!("it answered {}", status.as_u16())),
    })
}
