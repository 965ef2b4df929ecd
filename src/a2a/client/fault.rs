//! Why the client has no answer.

use std::fmt;

use serde_json::Value as Json;

use crate::json::printable;

/// Why there is no answer, or not the one that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientFault {
    /// Nobody listens there, or who does cannot be trusted.
    Unreachable(String),
    /// The answer was lost, however often it was asked for. What was asked for may have been done.
    Lost(String),
    /// An HTTP status that is no success.
    Status { status: u16, why: String },
    /// The error of a JSON-RPC answer.
    Rpc { code: i64, message: String, data: Option<Json> },
    /// The card names an address on another host than the one that was asked.
    Elsewhere(String),
    /// Not what the protocol says.
    Strange(String),
}

impl ClientFault {
    /// The error of an answer, if it has one.
    pub(super) fn of_answer(answer: &Json) -> Option<Self> {
        let error = answer.get("error").filter(|error| error.is_object())?;
        let message = error.get("message").and_then(Json::as_str).unwrap_or_default();
        Some(Self::Rpc {
            code: error.get("code").and_then(Json::as_i64).unwrap_or_default(),
            message: message.to_owned(),
            data: error.get("data").cloned(),
        })
    }

    pub(super) fn of_transport(url: &str, error: &ureq::Error) -> Self {
        let text = printable(&error.to_string());
        match error {
            ureq::Error::HostNotFound => Self::Unreachable(format!("{url}: there is no such host")),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Self::Unreachable(format!("nobody listens at {url}"))
            }
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) => {
                Self::Unreachable(format!("{url} cannot be trusted: {text}"))
            }
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                Self::Strange("that is not a URL that can be used".to_owned())
            }
            ureq::Error::Timeout(_) => Self::Lost(format!("{url} does not answer in time")),
            _ => Self::Lost(format!("{url} did not answer: {text}")),
        }
    }

    /// Is the code of a JSON-RPC error this one?
    pub fn is_rpc(&self, number: i32) -> bool {
        matches!(self, Self::Rpc { code, .. } if *code == i64::from(number))
    }
}

impl fmt::Display for ClientFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Lost(why) | Self::Strange(why) => f.write_str(why),
            Self::Status { status, why } => write!(f, "{why} (status {status})"),
            Self::Rpc { code, message, .. } => write!(f, "{} [{code}]", printable(message)),
            Self::Elsewhere(url) => write!(
                f,
                "the card points to {url}, which is not the host that was asked; if that is right, give it as the URL"
            ),
        }
    }
}

impl std::error::Error for ClientFault {}
