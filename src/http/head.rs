//! The head of a request, looked at before anything else.
//!
//! One that two readers could understand differently is refused: whoever stands before the gateway may have gone by the other
//! reading.
//!
//! The HTTP library refuses what does not fit its buffer with an answer of its own, which has no body and none of the
//! headers that our answers have. So its buffer is twice what is taken here, and whoever sends a little too much is
//! told so in our words.

use axum::http::request::Parts;
use axum::http::{HeaderName, Version, header};

use super::problem::{Kind, Problem};
use crate::callers::{KEY_ID_HEADER, NONCE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};

/// What the HTTP library is given room for, so that the bound on the head is ours to enforce.
pub(super) fn room_for(bytes_max: usize) -> usize {
    bytes_max.saturating_mul(2).max(8 * 1024)
}

const KEY_ID: HeaderName = HeaderName::from_static(KEY_ID_HEADER);
const NONCE: HeaderName = HeaderName::from_static(NONCE_HEADER);
const TIMESTAMP: HeaderName = HeaderName::from_static(TIMESTAMP_HEADER);
const SIGNATURE: HeaderName = HeaderName::from_static(SIGNATURE_HEADER);

/// Headers of which a request has one at most.
static SINGLE: [HeaderName; 7] =
    [header::HOST, header::AUTHORIZATION, header::CONTENT_TYPE, KEY_ID, NONCE, TIMESTAMP, SIGNATURE];

/// Those of a signed request, which say who asks as a token does.
static SIGNED: [HeaderName; 4] = [KEY_ID, NONCE, TIMESTAMP, SIGNATURE];

/// Is the head one that can be gone by: not too long, and with one reading?
pub(crate) fn examine(parts: &Parts, bytes_max: usize) -> Result<(), Problem> {
    weigh(parts, bytes_max)?;
    let named = |name: &HeaderName| parts.headers.get_all(name).iter().count();
    if parts.version == Version::HTTP_11 && named(&header::HOST) == 0 {
        return Err(Problem::new(Kind::HeadInvalid, "a request in HTTP/1.1 needs the header Host")
            .at("Host")
            .hint("send the header Host with the name and the port that the gateway is asked at"));
    }
    if let Some(name) = SINGLE.iter().find(|name| named(name) > 1) {
        return Err(Problem::new(Kind::HeadInvalid, format!("the header {name} is there more than once"))
            .at(name.as_str())
            .hint("send it once; nobody can say which one is meant"));
    }
    match SIGNED.iter().find(|name| named(name) > 0) {
        Some(name) if named(&header::AUTHORIZATION) > 0 => {
            let message = format!("Authorization and {name} both say who asks");
            Err(Problem::new(Kind::HeadInvalid, message)
                .at("Authorization")
                .hint("show a token, or sign the request; nobody can say which one is meant"))
        }
        _ => Ok(()),
    }
}

/// May the head be so long?
fn weigh(parts: &Parts, bytes_max: usize) -> Result<(), Problem> {
    // As it is written in HTTP/1: a line for the request, and one for each header.
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let request = parts.method.as_str().len() + target + "  HTTP/1.1\r\n".len();
    let headers =
        parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let bytes = headers.fold(request, usize::saturating_add);
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Problem::new(
        Kind::HeadTooLarge,
        format!("the address and the headers have {bytes} bytes, and {bytes_max} are taken"),
    )
    .hint("send fewer or shorter headers; `server.header_bytes_max` sets the bound"))
}
