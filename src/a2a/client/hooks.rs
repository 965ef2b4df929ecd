//! What the user of the client has a say in: headers, and what is tried again.

use crate::limits;

/// An answer that is no success, as a hook sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// What `Retry-After` says, if it says seconds.
    pub retry_after_s: Option<u64>,
    /// How often it has been asked before.
    pub retries: u32,
}

impl Answer {
    /// Is this something that passes by itself?
    pub fn is_passing(&self) -> bool {
        matches!(self.status, 408 | 425 | 429 | 502 | 503 | 504)
    }
}

/// Whoever uses the client, asked at the points where it may decide.
pub trait Hooks {
    /// The headers of the next request. Asked before every one, so that a token can be renewed in between.
    fn headers(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Is the same request to be sent again after this answer?
    fn should_retry(&self, answer: &Answer) -> bool {
        answer.is_passing()
    }

    /// How often a request is sent again, and a stream resumed without anything new having come.
    fn max_retries(&self) -> u32 {
        limits::CLIENT_TRIES_MAX
    }

    /// Something is tried again: for those who want to tell.
    fn retrying(&self, _why: &str) {}
}

/// No headers, and what passes by itself is tried again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Hooks for Plain {}
