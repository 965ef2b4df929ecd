//! So many requests a second for each caller, with some in hand for a burst; and so many streams at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::callers::TokenId;
use crate::limits;
use crate::settings::Server;

/// Token buckets, one for each caller; off unless it is configured.
#[derive(Debug)]
pub(super) struct Limiter {
    rate: Option<Rate>,
    buckets: Mutex<HashMap<TokenId, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    burst: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Limiter {
    pub(super) fn new(server: &Server) -> Self {
        let rate = server
            .requests_per_second
            .map(|rate| Rate { per_second: rate as f64, burst: server.request_burst.max(1) as f64 });
        Self { rate, buckets: Mutex::default() }
    }

    /// Takes one request out of a caller's bucket, or says how long to wait. There are no more buckets than
    /// tokens.
    pub(super) fn take(&self, caller: TokenId, now: Instant) -> Result<(), Duration> {
        self.take_turns(caller, 1.0, |_| 1.0, now)
    }

    /// Takes so many more for a request that carries several. Whoever asks for more than a full bucket holds must come with
    /// a full one, and owes the rest: it waits longer for the next.
    pub(super) fn take_more(&self, caller: TokenId, more: usize, now: Instant) -> Result<(), Duration> {
        let more = more as f64;
        // The request itself has been taken by then, and is taken again when it is sent again.
        self.take_turns(caller, more, |burst| more.min(burst - 1.0), now).map_err(|wait| {
            wait + self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate.per_second))
        })
    }

    fn take_turns(
        &self,
        caller: TokenId,
        turns: f64,
        needed: impl FnOnce(f64) -> f64,
        now: Instant,
    ) -> Result<(), Duration> {
        let Some(rate) = self.rate else { return Ok(()) };
        let needed = needed(rate.burst);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(caller).or_insert(Bucket { left: rate.burst, at: now });
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + passed * rate.per_second).min(rate.burst);
        bucket.at = now;
        if bucket.left >= needed {
            bucket.left -= turns;
            return Ok(());
        }
        Err(Duration::from_secs_f64((needed - bucket.left) / rate.per_second))
    }
}

/// The streams that each caller follows; all that are nobody's together.
#[derive(Debug, Clone, Default)]
pub(super) struct Following(Arc<Mutex<HashMap<Option<TokenId>, usize>>>);

/// A stream that is followed, until this is dropped.
#[derive(Debug)]
pub(super) struct Follows {
    all: Following,
    caller: Option<TokenId>,
}

impl Following {
    /// Does this caller follow as many as it may?
    pub(super) fn is_full(&self, caller: Option<TokenId>) -> bool {
        let followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followed.get(&caller).is_some_and(|of_caller| *of_caller >= limits::STREAMS_OF_ONE_CALLER_MAX)
    }

    /// One more for this caller.
    pub(super) fn begin(&self, caller: Option<TokenId>) -> Follows {
        let mut followed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *followed.entry(caller).or_default() += 1;
        Follows { all: self.clone(), caller }
    }
}

impl Drop for Follows {
    fn drop(&mut self) {
        let mut followed = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_caller) = followed.get_mut(&self.caller) {
            *of_caller -= 1;
            if *of_caller == 0 {
                followed.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(requests_per_second: Option<usize>, request_burst: usize) -> Limiter {
        Limiter::new(&Server { requests_per_second, request_burst, ..Server::default() })
    }

    fn caller(text: &str) -> TokenId {
        let text = format!("hd_adm_{text:A<43}");
        TokenId::of_text(&text).unwrap()
    }

    #[test]
    fn a_bucket_runs_dry_and_fills_again_and_is_nobody_elses() {
        let (limiter, now) = (limiter(Some(10), 3), Instant::now());
        let (one, other) = (caller("one"), caller("other"));
        for _ in 0..3 {
            assert_eq!(limiter.take(one, now), Ok(()));
        }
        assert_eq!(limiter.take(one, now), Err(Duration::from_millis(100)));
        assert_eq!(limiter.take(other, now), Ok(()));
        let later = now + Duration::from_millis(101);
        assert_eq!(limiter.take(one, later), Ok(()));
        assert!(limiter.take(one, later).is_err());
    }

    #[test]
    fn a_request_that_carries_many_takes_as_many_and_owes_what_no_bucket_holds() {
        let (limiter, now, caller) = (limiter(Some(10), 5), Instant::now(), caller("one"));
        let carry = |items: usize, at: Instant| {
            limiter.take(caller, at)?;
            limiter.take_more(caller, items - 1, at)
        };
        assert_eq!(carry(3, now), Ok(()));
        // Two are left: the request takes one of them, and needs three when it is sent again.
        assert_eq!(carry(3, now), Err(Duration::from_millis(200)));
        let later = now + Duration::from_millis(201);
        assert_eq!(carry(3, later), Ok(()));
        // More than there is room for: only with all that there is.
        assert!(carry(25, later).is_err());
        let full = later + Duration::from_secs(1);
        assert_eq!(carry(25, full), Ok(()));
        // It owes 20, and the next one needs one.
        assert_eq!(limiter.take(caller, full), Err(Duration::from_millis(2_100)));
        assert_eq!(limiter.take(caller, full + Duration::from_millis(2_101)), Ok(()));
    }

    #[test]
    fn nobody_is_limited_unless_it_is_configured() {
        let (limiter, now) = (limiter(None, 1), Instant::now());
        assert!((0..1_000).all(|_| limiter.take(caller("x"), now).is_ok()));
    }
}
