//! Bodies that are under way: how they are read, and what they may take in memory, all together and of one sender.
//!
//! A body is counted as it comes in, until its request is answered. Whoever is not known yet has room of its own, so that
//! strangers cannot take it from callers; and nobody has all of it, so that one who sends without end only shuts itself out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use bytes::BytesMut;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::App;
use super::problem::{Kind, Problem};
use crate::callers::TokenId;
use crate::limits;

/// What a request may carry to an endpoint that takes no body: `{}`, and some room around it.
pub(super) const NO_BODY_BYTES_MAX: usize = 16;

/// The room that there is for bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    callers: Arc<Pool>,
    signers: Arc<Pool>,
    nobody: Arc<Pool>,
}

impl Default for Bodies {
    fn default() -> Self {
        let pool = |all_max, one_max| Arc::new(Pool { all_max, one_max, taken: Mutex::default() });
        Self {
            callers: pool(limits::BODIES_BYTES_MAX, limits::BODIES_OF_ONE_CALLER_BYTES_MAX),
            signers: pool(
                limits::UNVERIFIED_BODIES_BYTES_MAX,
                limits::UNVERIFIED_BODIES_OF_ONE_KEY_BYTES_MAX,
            ),
            nobody: pool(limits::NOBODYS_BODIES_BYTES_MAX, limits::NOBODYS_BODIES_BYTES_MAX),
        }
    }
}

impl Bodies {
    /// Room for what this caller sends.
    pub(super) fn of_caller(&self, token_id: TokenId) -> Room {
        Room::in_pool(&self.callers, Sender::Caller(token_id))
    }

    /// Room for a body that is signed with this key, or so it says.
    pub(super) fn of_key(&self, key_id: &str) -> Room {
        Room::in_pool(&self.signers, Sender::Key(key_id.into()))
    }

    /// Room for what anybody may send.
    pub(super) fn of_nobody(&self) -> Room {
        Room::in_pool(&self.nobody, Sender::Nobody)
    }
}

impl App {
    /// Reads the form that a page was sent with. Who sent it is found out later.
    pub(crate) async fn read_form(&self, body: Body, headers: &HeaderMap) -> Result<Bytes, Problem> {
        let patience = self.settings.server.request_timeout;
        let room = self.bodies.of_nobody();
        room.read(body, headers, limits::CONSOLE_FORM_BYTES_MAX, patience).await
    }
}

/// Whose body it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Sender {
    Caller(TokenId),
    Key(Arc<str>),
    Nobody,
}

#[derive(Debug)]
struct Pool {
    all_max: usize,
    one_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_sender: HashMap<Sender, usize>,
}

/// What the body of one request takes; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    pool: Arc<Pool>,
    sender: Sender,
    bytes: AtomicUsize,
}

impl Room {
    fn in_pool(pool: &Arc<Pool>, sender: Sender) -> Self {
        Self { pool: pool.clone(), sender, bytes: AtomicUsize::new(0) }
    }

    /// Takes so much more.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Problem> {
        if bytes == 0 {
            return Ok(());
        }
        let Pool { all_max, one_max, taken } = &*self.pool;
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = taken.by_sender.get(&self.sender).copied().unwrap_or(0) + bytes;
        if of_one > *one_max {
            return Err(full("this sender", *one_max));
        }
        if taken.all + bytes > *all_max {
            return Err(full("all senders", *all_max));
        }
        taken.all += bytes;
        taken.by_sender.insert(self.sender.clone(), of_one);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        Ok(())
    }

    /// Reads a body to its end, within bounds of size and time.
    pub(super) async fn read(
        &self,
        body: Body,
        headers: &HeaderMap,
        bytes_max: usize,
        patience: Duration,
    ) -> Result<Bytes, Problem> {
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
            return Err(too_large(bytes_max));
        }
        let reading = self.gather(Limited::new(body, bytes_max), bytes_max);
        let late = |_| Err(Problem::new(Kind::Timeout, "the body took too long to arrive"));
        tokio::time::timeout(patience, reading).await.unwrap_or_else(late)
    }

    /// One piece stays as it came; several are copied together, for one that came in crumbs would be kept as crumbs.
    async fn gather(&self, mut body: Limited<Body>, bytes_max: usize) -> Result<Bytes, Problem> {
        let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    too_large(bytes_max)
                } else {
                    Problem::new(Kind::RequestInvalid, "the body ended before it was whole")
                }
            })?;
            // What follows a body is not asked for.
            let Ok(piece) = frame.into_data() else { continue };
            self.take(piece.len())?;
            if first.is_empty() {
                first = piece;
                continue;
            }
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&piece);
        }
        Ok(if rest.is_empty() { first } else { rest.freeze() })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes == 0 {
            return;
        }
        let mut taken = self.pool.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= bytes;
        if let Some(of_one) = taken.by_sender.get_mut(&self.sender) {
            *of_one -= bytes;
            if *of_one == 0 {
                taken.by_sender.remove(&self.sender);
            }
        }
    }
}

/// A body that is larger than what this request may carry.
pub(super) fn too_large(bytes_max: usize) -> Problem {
    if bytes_max <= NO_BODY_BYTES_MAX {
        return no_body();
    }
    Problem::new(Kind::TooLarge, format!("the body has more than {bytes_max} bytes"))
        .hint("send less; a TaskSpec carries references and facts, not the work itself")
}

/// A body where none is taken.
pub(super) fn no_body() -> Problem {
    Problem::new(Kind::TooLarge, "this endpoint takes no body").hint("send the request without one")
}

fn full(whose: &str, bytes_max: usize) -> Problem {
    Problem::new(Kind::BodiesFull, format!("the bodies that {whose} may send at once have {bytes_max} bytes"))
        .hint("send it again when others have been answered")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(all_max: usize, one_max: usize) -> Arc<Pool> {
        Arc::new(Pool { all_max, one_max, taken: Mutex::default() })
    }

    fn room(pool: &Arc<Pool>, name: &str) -> Room {
        Room::in_pool(pool, Sender::Key(name.into()))
    }

    #[test]
    fn there_is_room_for_so_much_of_one_and_so_much_of_all_and_it_is_given_back() {
        let pool = pool(10, 6);
        let is_full =
            |took: Result<(), Problem>| took.is_err_and(|problem| problem.kind() == Kind::BodiesFull);
        let (first, second) = (room(&pool, "one"), room(&pool, "one"));
        assert!(first.take(4).is_ok() && second.take(2).is_ok());
        assert!(is_full(second.take(1)), "it has its share");
        let other = room(&pool, "other");
        assert!(other.take(4).is_ok(), "which leaves room for others");
        assert!(is_full(other.take(1)), "until there is none");
        assert!(is_full(room(&pool, "third").take(1)));
        drop(first);
        assert!(second.take(4).is_ok());
        drop((second, other));
        let taken = pool.taken.lock().unwrap();
        assert_eq!((taken.all, taken.by_sender.len()), (0, 0));
    }
}
