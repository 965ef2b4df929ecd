//! The head of a request, weighed before anything else is looked at.
//!
//! The HTTP library refuses what does not fit its buffer with an answer of its own, which has no body and none of the
//! headers that our answers have. So its buffer is twice what is taken here, and whoever sends a little too much is
//! told so in our words.

use axum::http::request::Parts;

use super::problem::{Kind, Problem};

/// What the HTTP library is given room for, so that the bound on the head is ours to enforce.
pub(super) fn room_for(bytes_max: usize) -> usize {
    bytes_max.saturating_mul(2).max(8 * 1024)
}

/// May the head be so long?
pub(crate) fn weigh(parts: &Parts, bytes_max: usize) -> Result<(), Problem> {
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
