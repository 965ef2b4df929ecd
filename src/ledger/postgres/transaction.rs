//! One transaction: rows that go in on top of a running hash, whole or not at all.

use std::borrow::Cow;

use super::link::{Committed, Link};
use super::{PostgresFault, stored};
use crate::ledger::AppendFault;
use crate::ledger::batch::Batch;
use crate::ledger::chain::{Head, RunningHash};
use crate::proof::Digest;

/// Everybody who appends has this lock on the table, so whoever takes a stronger one sees all that was appended and
/// nothing that is being appended. No statement is timed out: a cancel during `commit` would end the wait for a
/// synchronous standby, and not the commit. The wait for another writer is still limited, by `lock_timeout`. The last
/// setting is there only within the transaction: a statement that was sent behind a beginning that failed finds it missing.
const BEGIN: &str = "begin; set local statement_timeout = 0; set local handoffd.appends = 'yes'; \
     lock table handoffd_entries in row exclusive mode";

/// The last entry, seen by whoever has the turn: nobody who takes turns appends behind it.
const LAST: &str =
    "select sequence, encode(running_hash, 'hex') from handoffd_entries order by sequence desc limit 1";

// The last entry by its maximum, which is read off the index; whether there are later ones may read all there are. `fsync`
// can be turned off beneath a connection that is in use, and what was put then would be acknowledged from memory.
const PUT_ENTRIES: &str = "insert into handoffd_entries (sequence, consensus_timestamp, running_hash, wire, ends_batch) \
     select * from unnest($1::bigint[], $2::text[], $3::bytea[], $4::text[], $5::boolean[]) \
     where current_setting('handoffd.appends', true) = 'yes' and current_setting('fsync') <> 'off' \
     and (select closed from handoffd_ledger) is not distinct from $6 and case when $7::bigint = 0 \
     then exists (select from handoffd_ledger where genesis = $8) \
     else exists (select from handoffd_entries where sequence = $7 and running_hash = $8) end \
     and coalesce((select max(sequence) from handoffd_entries), 0) = $7";
// Only behind entries that went in: whoever came too late keeps a transaction in which nothing has happened.
const PUT_BODIES: &str = "insert into handoffd_bodies (sequence, place, digest, body) \
     select * from unnest($1::bigint[], $2::integer[], $3::bytea[], $4::bytea[]) \
     where exists (select from handoffd_entries where sequence = $5 and running_hash = $6)";
const NOTIFY: &str = "select pg_notify($1, $2) \
     where exists (select from handoffd_entries where sequence = $3 and running_hash = $4)";

/// The channel on which a ledger's new heads are told. A channel is seen in the whole database, and other ledgers may be
/// in other schemas of it.
pub(super) fn channel(topic_id: &str) -> String {
    let hash = Head::genesis(topic_id).running_hash.to_string();
    format!("handoffd_{}", hash.get(..16).unwrap_or_default())
}

/// Batches in columns.
#[derive(Default)]
pub(super) struct Rows<'b> {
    sequences: Vec<i64>,
    timestamps: Vec<&'b str>,
    hashes: Vec<&'b [u8]>,
    wires: Vec<&'b str>,
    ends: Vec<bool>,
    bodies: Bodies<'b>,
}

#[derive(Default)]
struct Bodies<'b> {
    sequences: Vec<i64>,
    places: Vec<i32>,
    digests: Vec<Vec<u8>>,
    bodies: Vec<Cow<'b, [u8]>>,
}

impl<'b> Rows<'b> {
    pub(super) fn of(batches: &'b [Batch]) -> Self {
        let mut rows = Self::default();
        for batch in batches {
            for entry in batch.entries() {
                rows.sequences.push(stored(entry.sequence));
                rows.timestamps.push(&entry.consensus_timestamp);
                rows.hashes.push(entry.running_hash.as_bytes());
                rows.wires.push(&entry.wire);
                rows.ends.push(entry.sequence == batch.head().sequence);
            }
            batch.bodies(|sequence, place, digest: Digest, body| {
                rows.bodies.sequences.push(stored(sequence));
                rows.bodies.places.push(i32::try_from(place).unwrap_or(i32::MAX));
                rows.bodies.digests.push(digest.as_bytes().to_vec());
                rows.bodies.bodies.push(match body {
                    Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                    Cow::Owned(text) => Cow::Owned(text.into_bytes()),
                });
            });
        }
        rows
    }
}

/// How a transaction went.
pub(super) enum Outcome {
    Committed,
    /// Others have appended behind the entry that it was built on, up to this one. Nothing has happened in the transaction,
    /// and it is still open.
    TooLate(Head),
    /// The condition did not hold; nothing was committed.
    Refused,
    /// Nothing was committed.
    Failed(PostgresFault),
    /// `commit` was sent, and not plainly answered.
    Unknown(String),
}

/// What is left to be dealt with after a transaction.
pub(super) enum Ended {
    Found(AppendFault),
    Unknown(String),
}

/// Begins a transaction and waits for its turn to append. Turns are taken in the order in which they were asked for, so
/// that no replica starves; what may be appended is not said by them but by the running hash. Returns the last entry.
pub(super) async fn begin(link: &Link, topic_id: &str) -> Result<Head, PostgresFault> {
    begun(link.text_row(&beginning(topic_id)).await?, topic_id)
}

fn beginning(topic_id: &str) -> String {
    let hash = Head::genesis(topic_id).running_hash;
    let key = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes));
    format!("{BEGIN}; select pg_advisory_xact_lock({key}); {LAST}")
}

/// The last entry in the answer to a beginning.
fn begun(last: Option<Vec<String>>, topic_id: &str) -> Result<Head, PostgresFault> {
    let Some(last) = last else { return Ok(Head::genesis(topic_id)) };
    let read = |(sequence, hash): (&str, &str)| {
        Some(Head { sequence: sequence.parse().ok()?, running_hash: RunningHash::from_hex(hash)? })
    };
    let pair = last.first().zip(last.get(1)).map(|(sequence, hash)| (sequence.as_str(), hash.as_str()));
    pair.and_then(read).ok_or(PostgresFault::Damaged { sequence: 0 })
}

/// Where a batch goes.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) topic_id: &'p str,
    /// What it was built on.
    pub(super) after: Head,
    /// Its last entry.
    pub(super) head: Head,
    pub(super) mark: Option<&'p str>,
}

/// Begins, waits for its turn and puts, all sent at once: what the first answers is only of interest to whoever is too late.
pub(super) async fn begin_and_put(link: &mut Link, rows: &Rows<'_>, place: Place<'_>) -> Outcome {
    let (begun_with, put) = match statements(link, rows, place, Some(&beginning(place.topic_id))).await {
        Ok(answers) => answers,
        Err(fault) => return failed(link, fault).await,
    };
    match begun(begun_with, place.topic_id) {
        Ok(last) if !put && last.sequence > place.after.sequence => Outcome::TooLate(last),
        Ok(_) => end(link, put).await,
        Err(fault) => Outcome::Failed(fault),
    }
}

/// Everything from the beginning up to `commit`, and `commit`.
pub(super) async fn put(link: &mut Link, rows: &Rows<'_>, place: Place<'_>) -> Outcome {
    match statements(link, rows, place, None).await {
        Ok((_, put)) => end(link, put).await,
        Err(fault) => failed(link, fault).await,
    }
}

async fn failed(link: &mut Link, fault: PostgresFault) -> Outcome {
    match fault {
        PostgresFault::Taken => end(link, false).await,
        fault => Outcome::Failed(fault),
    }
}

async fn end(link: &mut Link, put: bool) -> Outcome {
    match put {
        true => match link.commit().await {
            Committed::Yes => Outcome::Committed,
            Committed::Unknown(why) => Outcome::Unknown(why),
        },
        // `commit` was never sent, so nothing can come of it: not even on a connection that is lost.
        false => match link.batch("rollback").await {
            Ok(()) => Outcome::Refused,
            Err(fault) => Outcome::Failed(fault),
        },
    }
}

/// What the beginning answered, if there is one, and whether the condition held. All is sent together; should the first
/// put nothing, the others do nothing.
async fn statements(
    link: &mut Link,
    rows: &Rows<'_>,
    place: Place<'_>,
    beginning: Option<&str>,
) -> Result<(Option<Vec<String>>, bool), PostgresFault> {
    let Place { topic_id, after, head, mark } = place;
    let hash = after.running_hash.as_bytes().as_slice();
    let Rows { sequences, timestamps, hashes, wires, ends, bodies } = rows;
    let (after, told) = (stored(after.sequence), format!("{} {}", head.sequence, head.running_hash));
    let (texts, channel): (Vec<&[u8]>, _) =
        (bodies.bodies.iter().map(AsRef::as_ref).collect(), channel(topic_id));
    let (last, last_hash) = (stored(head.sequence), head.running_hash.as_bytes().as_slice());
    let (begun, counts) = link
        .changes(
            beginning,
            &[
                (PUT_ENTRIES, &[sequences, timestamps, hashes, wires, ends, &mark, &after, &hash]),
                (
                    PUT_BODIES,
                    &[&bodies.sequences, &bodies.places, &bodies.digests, &texts, &last, &last_hash],
                ),
                (NOTIFY, &[&channel, &told, &last, &last_hash]),
            ],
        )
        .await?;
    Ok((begun, counts.first() == Some(&(sequences.len() as u64))))
}
