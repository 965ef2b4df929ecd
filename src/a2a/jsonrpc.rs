//! JSON-RPC 2.0: a body becomes requests, each of which is a call or the error to answer it with.

use serde_json::{Value as Json, json};

use super::call::{Call, not_in_a_batch};
use super::error::{ErrorCode, RpcError};
use super::method::Method;
use super::version::Version;
use crate::json::{Document, Value, printable, read};
use crate::limits;

/// What tells a client which of its requests an answer is for: a string, a number or `null`.
#[derive(Debug, Clone, PartialEq)]
pub struct Id(Json);

impl Id {
    /// Of a request whose own could not be read.
    pub const NULL: Self = Self(Json::Null);

    fn read(value: Value<'_>) -> Option<Self> {
        let known = value.is_null() || value.as_str().is_some() || value.number_text().is_some();
        known.then(|| Self(value.to_json()))
    }

    pub fn to_json(&self) -> Json {
        self.0.clone()
    }
}

/// What a body holds.
#[derive(Debug)]
pub enum Incoming {
    One(Request),
    /// At least one; the answers are an array, without those that nobody wants.
    Batch(Vec<Request>),
}

/// One request.
#[derive(Debug)]
pub struct Request {
    /// Who is answered; nobody, if it is a notification.
    pub id: Option<Id>,
    /// The version that an error is written in.
    pub version: Version,
    pub call: Result<Call, RpcError>,
}

/// Reads a body as strict JSON.
pub fn body(bytes: &[u8]) -> Result<Document<'_>, RpcError> {
    read(bytes, limits::A2A_BODY).map_err(|fault| RpcError::unreadable(&fault))
}

/// The requests in a body. `asked` is the `A2A-Version` header or query parameter.
pub fn read_requests(document: &Document<'_>, asked: Option<&str>) -> Result<Incoming, RpcError> {
    let root = document.root();
    if !root.is_array() {
        return Ok(Incoming::One(request(root, asked, false)));
    }
    let count = root.size();
    if count == 0 || count > limits::A2A_BATCH_MAX {
        return Err(RpcError::at(
            ErrorCode::InvalidRequest,
            "",
            format!("the batch has {count} requests"),
            format!("send 1 to {} requests at once", limits::A2A_BATCH_MAX),
        ));
    }
    Ok(Incoming::Batch(root.items().map(|item| request(item, asked, true)).collect()))
}

/// The answer with a result.
pub fn succeeded(id: &Id, result: Json) -> Json {
    json!({"jsonrpc": "2.0", "id": id.to_json(), "result": result})
}

/// The answer with an error.
pub fn failed(id: &Id, error: &RpcError, version: Version) -> Json {
    json!({"jsonrpc": "2.0", "id": id.to_json(), "error": error.to_json(version)})
}

fn request(value: Value<'_>, asked: Option<&str>, in_batch: bool) -> Request {
    let spoken = Version::asked(asked);
    let by_header = Version::told(asked);
    // What is no request at all is told so even if it has no id; only a request can be a notification.
    let id = value.get("id").map(Id::read);
    let malformed = |error| Request {
        id: Some(id.clone().flatten().unwrap_or(Id::NULL)),
        version: by_header,
        call: Err(error),
    };
    if !value.is_object() {
        return malformed(invalid(
            "",
            "a request is an object",
            "send `jsonrpc`, `id`, `method` and `params`",
        ));
    }
    if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return malformed(invalid(
            "/jsonrpc",
            "`jsonrpc` is not `2.0`",
            "this is JSON-RPC 2.0: send `\"jsonrpc\": \"2.0\"`",
        ));
    }
    if id == Some(None) {
        return malformed(invalid(
            "/id",
            "the id is neither a string, a number nor null",
            "send a string or a number",
        ));
    }
    let Some(name) = value.get("method").and_then(Value::as_str) else {
        return malformed(invalid("/method", "`method` is missing or not a string", "say what you ask for"));
    };
    let params = value.get("params").filter(|params| !params.is_null());
    if params.is_some_and(|params| !params.is_object() && !params.is_array()) {
        return malformed(invalid(
            "/params",
            "`params` has no members",
            "send an object with the parameters",
        ));
    }
    let (version, call) = match (spoken, Method::parse(name)) {
        (Err(unknown), _) => (by_header, Err(RpcError::from(unknown))),
        (Ok(_), None) => (by_header, Err(unknown_method(name))),
        (Ok(_), Some((method, version))) => {
            let allowed = if in_batch { not_in_a_batch(method, version) } else { Ok(()) };
            (version, allowed.and_then(|()| Call::read(method, version, params)))
        }
    };
    Request { id: id.flatten(), version, call }
}

fn invalid(pointer: &str, message: &str, hint: &str) -> RpcError {
    RpcError::at(ErrorCode::InvalidRequest, pointer, message, hint)
}

fn unknown_method(name: &str) -> RpcError {
    let hint = match Method::nearest(name) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "the agent card lists the methods".to_owned(),
    };
    let message = format!("there is no method `{}`", printable(name));
    RpcError::at(ErrorCode::MethodNotFound, "/method", message, hint)
}
