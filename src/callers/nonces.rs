//! The nonces of signed requests: each counts once.
//!
//! A nonce is remembered as long as its request could be verified again, which is until its timestamp is
//! older than the skew. Nothing is forgotten to make room: a full store refuses. In memory only, so a
//! request that was signed before this began is refused, and so is one whose timestamp an earlier process may have
//! taken for that key, which runs ahead of this if its sender's clock does. `taken.rs` knows those; `gateway/nonces.rs` keeps
//! them in a file, and has gateways that share a ledger ask each other beside this, by the same marks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::request::{RequestFault, Verified};
use super::taken::Taken;
use super::token::{Caller, TokenId};
use crate::limits;
use crate::proof::Digest;
use crate::timestamp::Timestamp;

/// The nonces that were used, of all keys.
#[derive(Debug)]
pub struct Nonces {
    since: Timestamp,
    before: Taken,
    bounds: NonceBounds,
    store: Mutex<Store>,
}

/// How many nonces are remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct NonceBounds {
    pub(super) all_max: usize,
    /// One busy caller must not use up what the others need.
    pub(super) key_max: usize,
}

#[derive(Debug, Default)]
struct Store {
    used: HashSet<Mark>,
    /// What is forgotten together: by the second in which the request was signed.
    by_second: BTreeMap<u64, Vec<(Arc<str>, Mark)>>,
    by_key: HashMap<Arc<str>, usize>,
    /// Requests signed before this second have been forgotten, so none of them is taken, also when the clock
    /// is set back.
    horizon_s: u64,
}

/// Half of a digest of key and nonce: two that collide by chance refuse a request, and never let one pass.
type Mark = [u8; 16];

impl Verified<'_> {
    /// The id of the token that it speaks for.
    pub fn token_id(&self) -> TokenId {
        self.caller.token_id()
    }

    /// What its nonce is remembered by.
    pub fn mark(&self) -> [u8; 16] {
        mark(self.key_id, self.nonce)
    }

    /// The key that it is signed with, and when it says that it was.
    pub fn signed(&self) -> (&str, Timestamp) {
        (self.key_id, self.signed_at)
    }
}

impl Nonces {
    /// An empty store that begins now, behind what was taken before.
    pub fn since(now: Timestamp, before: Taken) -> Self {
        let bounds = NonceBounds { all_max: limits::NONCES_MAX, key_max: limits::NONCES_OF_ONE_KEY_MAX };
        Self::bounded(now, before, bounds)
    }

    pub(super) fn bounded(now: Timestamp, before: Taken, bounds: NonceBounds) -> Self {
        Self { since: now, before, bounds, store: Mutex::default() }
    }

    /// Uses up a verified request's nonce, and says who asks.
    pub fn spend<'r>(&self, request: Verified<'r>, now: Timestamp) -> Result<&'r Caller, RequestFault> {
        let second = second(request.signed_at);
        let mark = request.mark();
        // Every change below leaves the store sound, so one that a panic left behind is still good.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.forget(now);
        let was_taken = self.before.covers(request.key_id, request.signed_at);
        if was_taken || request.signed_at < self.since || second < store.horizon_s {
            return Err(RequestFault::TimestampForgotten);
        }
        if store.used.contains(&mark) {
            return Err(RequestFault::NonceReused);
        }
        let of_key = store.by_key.get(request.key_id).copied().unwrap_or(0);
        if store.used.len() >= self.bounds.all_max || of_key >= self.bounds.key_max {
            return Err(RequestFault::TooManyNonces);
        }
        store.remember(request.key_id, second, mark);
        Ok(request.caller)
    }

    /// Until when requests of a caller are refused whose clock is right, because this one was ahead: when the gateway started,
    /// or when it took requests. Nothing if no caller is refused for longer than it may be after any start.
    pub fn shut_until(&self, now: Timestamp) -> Option<Timestamp> {
        let usual = now.plus_seconds(limits::SKEW_S + limits::SIGNED_UNTIL_AHEAD_S);
        let until = self.before.last().map_or(self.since, |last| last.max(self.since));
        Some(until).filter(|until| *until > usual)
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        let store = self.store.lock().unwrap();
        assert_eq!(store.used.len(), store.by_key.values().sum::<usize>());
        assert_eq!(store.used.len(), store.by_second.values().map(Vec::len).sum::<usize>());
        store.used.len()
    }
}

impl Store {
    fn remember(&mut self, key_id: &str, second: u64, mark: Mark) {
        let key = match self.by_key.get_key_value(key_id) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(key_id),
        };
        self.used.insert(mark);
        *self.by_key.entry(Arc::clone(&key)).or_default() += 1;
        self.by_second.entry(second).or_default().push((key, mark));
    }

    /// Forgets what the timestamp alone refuses by now.
    fn forget(&mut self, now: Timestamp) {
        let skew_s = limits::SKEW_S.unsigned_abs();
        self.horizon_s = self.horizon_s.max(second(now).saturating_sub(skew_s));
        while let Some(first) = self.by_second.first_entry()
            && *first.key() < self.horizon_s
        {
            for (key, mark) in first.remove() {
                self.used.remove(&mark);
                if let Some(count) = self.by_key.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        self.by_key.remove(&key);
                    }
                }
            }
        }
    }
}

fn second(at: Timestamp) -> u64 {
    at.unix_milliseconds() / 1000
}

fn mark(key_id: &str, nonce: &str) -> Mark {
    // A nonce has no line break, so no other key and nonce give this text.
    let digest = Digest::of(format!("{nonce}\n{key_id}").as_bytes());
    let mut mark = Mark::default();
    for (to, from) in mark.iter_mut().zip(digest.as_bytes()) {
        *to = *from;
    }
    mark
}
