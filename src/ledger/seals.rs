//! What full segments were like when they were last known to be good, so that a start reads through only those that
//! somebody has touched since.
//!
//! A start that took full segments as they lie there would put in force whatever was written into one while nobody was
//! looking; one that read them all would take minutes with a ledger of years. The file system keeps the time of the last
//! change of each file, which nobody can set back, so a file that looks as it did holds what it did.
//!
//! Kept over a restart as two lines: a statement signed with the gateway's key, and the list whose digest it names. What is
//! missing, damaged or unsigned is not used: the segments are read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::chain::Head;
use super::checkpoint::gateway_key_id;
use super::disk::FileIdentity;
use crate::proof::{Digest, Key, Purpose, Seed, object};

/// A full segment, as it was when it held a good part of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// The entry that it follows on; the next one names its file.
    pub(super) after: Head,
    /// Its last entry.
    pub(super) head: Head,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seal {
    pub(super) fn new(after: Head, head: Head, identity: &FileIdentity) -> Self {
        // A device may have another number after a restart.
        let FileIdentity { inode, bytes, modified, changed, .. } = *identity;
        Self { after, head, inode, bytes, modified, changed }
    }
}

/// The seals of a ledger: the log knows them, and somebody keeps them over a restart.
#[derive(Debug, Clone, Default)]
pub struct Seals(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    seals: Vec<Seal>,
    is_new: bool,
    read_through: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    seals: String,
    signature: String,
    topic_id: String,
}

impl Statement {
    /// What is signed: the canonical object without `signature`.
    fn signed_text(&self) -> String {
        object(256, |members| {
            members.text("seals", &self.seals);
            members.text("topic_id", &self.topic_id);
        })
    }
}

impl Seals {
    /// Those in a text, if this gateway (its public key, 64 hex digits) signed it for this ledger; otherwise none.
    pub fn read(text: &str, topic_id: &str, public_hex: &str) -> Self {
        let seals = signed(text, topic_id, public_hex).unwrap_or_default();
        Self(Arc::new(Mutex::new(Known { seals, ..Known::default() })))
    }

    /// The text to keep, if there is something new in it since the last time.
    pub fn news(&self, topic_id: &str, seed: &Seed) -> Option<String> {
        let mut known = self.lock();
        if !std::mem::take(&mut known.is_new) {
            return None;
        }
        let seals = serde_json::to_string(&known.seals).ok()?;
        drop(known);
        let digest = Digest::of(seals.as_bytes()).to_string();
        let mut statement =
            Statement { seals: digest, signature: String::new(), topic_id: topic_id.to_owned() };
        statement.signature = seed.sign(statement.signed_text().as_bytes());
        let statement = serde_json::to_string(&statement).ok()?;
        Some(format!("{statement}\n{seals}\n"))
    }

    /// What was told could not be kept: it is news still.
    pub fn not_kept(&self) {
        self.lock().is_new = true;
    }

    /// How many full segments the log read through when it was opened.
    pub fn read_through(&self) -> usize {
        self.lock().read_through
    }

    /// The last entry of the last segment that has one.
    pub fn newest(&self) -> Option<Head> {
        self.lock().seals.last().map(|seal| seal.head)
    }

    /// The segment that follows on an entry of this number.
    pub(super) fn behind(&self, sequence: u64) -> Option<Seal> {
        let known = self.lock();
        let at = known.seals.binary_search_by_key(&sequence, |seal| seal.after.sequence).ok()?;
        known.seals.get(at).copied()
    }

    /// Does a segment begin with this entry, a full one or the one behind them that is appended to?
    pub(super) fn has_segment(&self, first: u64) -> bool {
        let known = self.lock();
        let last = known.seals.last().map_or(1, |seal| seal.head.sequence + 1);
        let before = first.checked_sub(1);
        let is_full =
            |before: u64| known.seals.binary_search_by_key(&before, |seal| seal.after.sequence).is_ok();
        first == last || before.is_some_and(is_full)
    }

    /// This segment was read through and is good; what is known of the others stays.
    pub(super) fn renew(&self, seal: Seal) {
        let mut known = self.lock();
        let seals = &mut known.seals;
        match seals.binary_search_by_key(&seal.after.sequence, |other| other.after.sequence) {
            Ok(at) => {
                if let Some(other) = seals.get_mut(at) {
                    *other = seal;
                }
            }
            Err(at) => seals.insert(at, seal),
        }
        known.is_new = true;
        known.read_through += 1;
    }

    /// These are all, in order.
    pub(super) fn set(&self, seals: Vec<Seal>) {
        let mut known = self.lock();
        if known.seals != seals {
            (known.seals, known.is_new) = (seals, true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signed(text: &str, topic_id: &str, public_hex: &str) -> Option<Vec<Seal>> {
    let (statement, seals) = text.strip_suffix('\n')?.split_once('\n')?;
    let statement: Statement = serde_json::from_str(statement).ok()?;
    let key = Key::ed25519(&gateway_key_id(public_hex), "gateway", Purpose::Dispatch, public_hex)?;
    key.verify(statement.signed_text().as_bytes(), &statement.signature).ok()?;
    let is_ours =
        statement.topic_id == topic_id && statement.seals == Digest::of(seals.as_bytes()).to_string();
    serde_json::from_str(seals).ok().filter(|_| is_ours)
}
