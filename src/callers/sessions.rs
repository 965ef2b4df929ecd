//! Sessions of people who look at pages: a browser shows a secret instead of a token.
//!
//! In memory only, short-lived, and never more than the token behind them is now: a session whose token was revoked,
//! has expired or may no longer look at pages is over at once, and one whose token was changed has its caller changed. What a browser keeps is a secret of its own, held here by its digest, so the token
//! is nowhere but with its holder. A link is for one session, once, and soon.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use super::rights::Act;
use super::roster::Roster;
use super::token::{Caller, TokenId};
use crate::limits;
use crate::proof::{Digest, to_hex};
use crate::timestamp::Timestamp;

/// What a browser or a link shows.
pub struct SessionSecret(Zeroizing<String>);

impl SessionSecret {
    fn of(random: &[u8; 32]) -> Self {
        Self(Zeroizing::new(to_hex(random)))
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

/// Who looks, and the word that their forms must carry.
#[derive(Clone)]
pub struct Session {
    pub caller: Caller,
    /// Made from the secret, and of no use to find it.
    pub form_word: String,
    pub ends_at: Timestamp,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({})", self.caller.name().as_str())
    }
}

/// Does a look count as use?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A person asked for it, and is still there.
    Person,
    /// A page that is left open keeps itself up to date.
    Page,
}

#[derive(Debug)]
struct Kept {
    token_id: TokenId,
    form_word: String,
    began: Timestamp,
    used: Timestamp,
}

#[derive(Debug)]
struct Link {
    token_id: TokenId,
    until: Timestamp,
}

#[derive(Debug, Default)]
struct Store {
    sessions: HashMap<Digest, Kept>,
    links: HashMap<Digest, Link>,
}

/// All sessions, and the links that lead to new ones.
#[derive(Debug, Default)]
pub struct Sessions {
    store: Mutex<Store>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session for somebody who may look at pages; nothing for anybody else.
    pub fn begin(&self, caller: &Caller, random: &[u8; 32], now: Timestamp) -> Option<SessionSecret> {
        if !caller.may(Act::OpenConsole) {
            return None;
        }
        let secret = SessionSecret::of(random);
        let form_word = form_word(secret.expose());
        let kept = Kept { token_id: caller.token_id(), form_word, began: now, used: now };
        let mut store = self.lock();
        store.sessions.retain(|_, kept| !kept.is_over(now));
        let of_one = |kept: &Kept| kept.token_id == caller.token_id();
        store.make_room(limits::SESSIONS_OF_ONE_TOKEN_MAX, of_one);
        store.make_room(limits::SESSIONS_MAX, |_| true);
        store.sessions.insert(Digest::of(secret.expose().as_bytes()), kept);
        Some(secret)
    }

    /// The session that a secret stands for, if it is not over: whose it is, the roster says each time.
    pub fn find(&self, secret: &str, roster: &Roster, now: Timestamp, look: Look) -> Option<Session> {
        let key = Digest::of(secret.as_bytes());
        let mut store = self.lock();
        let kept = store.sessions.get_mut(&key)?;
        let caller = looker(roster, kept.token_id, now).filter(|_| !kept.is_over(now));
        let Some(caller) = caller else {
            store.sessions.remove(&key);
            return None;
        };
        if look == Look::Person {
            kept.used = kept.used.max(now);
        }
        let ends_at = kept.ends_at();
        Some(Session { caller: caller.clone(), form_word: kept.form_word.clone(), ends_at })
    }

    pub fn end(&self, secret: &str) {
        self.lock().sessions.remove(&Digest::of(secret.as_bytes()));
    }

    /// A link for this caller, and until when it holds; nothing for one who may not look at pages.
    pub fn offer(
        &self,
        caller: &Caller,
        random: &[u8; 32],
        now: Timestamp,
    ) -> Option<(SessionSecret, Timestamp)> {
        if !caller.may(Act::OpenConsole) {
            return None;
        }
        let (secret, until) = (SessionSecret::of(random), now.plus_seconds(limits::SESSION_LINK_S));
        let mut store = self.lock();
        store.links.retain(|_, link| now < link.until);
        if store.links.len() >= limits::SESSIONS_MAX {
            let first = store.links.iter().min_by_key(|(_, link)| link.until).map(|(key, _)| *key);
            first.and_then(|key| store.links.remove(&key));
        }
        store
            .links
            .insert(Digest::of(secret.expose().as_bytes()), Link { token_id: caller.token_id(), until });
        Some((secret, until))
    }

    /// Uses up a link, and says for whom it was.
    pub fn follow(&self, secret: &str, roster: &Roster, now: Timestamp) -> Option<Caller> {
        let link = self.lock().links.remove(&Digest::of(secret.as_bytes()))?;
        looker(roster, link.token_id, now).filter(|_| now < link.until).cloned()
    }
}

impl Store {
    /// Ends the sessions that were not used for the longest time, until there is room for one more.
    fn make_room(&mut self, max: usize, counts: impl Fn(&Kept) -> bool) {
        while self.sessions.values().filter(|kept| counts(kept)).count() >= max {
            let counted = self.sessions.iter().filter(|(_, kept)| counts(kept));
            let Some(idlest) = counted.min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key) else { return };
            self.sessions.remove(&idlest);
        }
    }
}

impl Kept {
    fn ends_at(&self) -> Timestamp {
        let idle = self.used.plus_seconds(limits::SESSION_IDLE_S);
        idle.min(self.began.plus_seconds(limits::SESSION_S))
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.ends_at() <= now
    }
}

/// Whose token it is now, if they may look at pages.
fn looker(roster: &Roster, token_id: TokenId, now: Timestamp) -> Option<&Caller> {
    roster.holder(token_id, now).filter(|caller| caller.may(Act::OpenConsole))
}

fn form_word(secret: &str) -> String {
    let digest = Digest::of(format!("handoffd/form/{secret}").as_bytes());
    to_hex(digest.as_bytes())
}
