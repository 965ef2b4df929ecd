//! What a list may be asked for, and the numbers that stand for it.

use rusqlite::Connection;

use super::event::handoff_stream;
use super::fault::ViewsFault;
use super::query::{By, List, Wanted};
use super::rows::one;
use super::runs;
use super::status::Status;
use super::words::{correlation_of, handoff_of, number_of};
use crate::timestamp::Timestamp;

/// Which handoffs. All that is given must hold, of the handoff as it stands now.
#[derive(Debug, Clone, Copy, Default)]
pub struct HandoffFilter<'f> {
    pub status: Option<Status>,
    /// Source or target.
    pub agent: Option<&'f str>,
    pub route: Option<&'f str>,
    /// As the last `gate.decided` in its stream has it.
    pub decision: Option<&'f str>,
    /// Named by the last event in its stream that names any: a decision, a rejection or a failure.
    pub code: Option<&'f str>,
    pub correlation_id: Option<&'f str>,
    pub handoff_id: Option<&'f str>,
    /// First created at this time or later.
    pub from: Option<Timestamp>,
    /// First created before this time.
    pub to: Option<Timestamp>,
}

/// Which entries. All that is given must hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryFilter<'f> {
    pub kind: Option<&'f str>,
    pub stream_id: Option<&'f str>,
    /// Every attempt at it.
    pub handoff_id: Option<&'f str>,
    pub correlation_id: Option<&'f str>,
    pub code: Option<&'f str>,
    /// Source or target of the attempt that the entry belongs to, or its sender.
    pub agent: Option<&'f str>,
    /// Of that attempt, of the stream, or named by the gateway itself.
    pub route: Option<&'f str>,
    /// Of `gate.decided`.
    pub decision: Option<&'f str>,
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub to: Option<Timestamp>,
}

pub(super) const HANDOFFS: List = List { table: "handoffs", key: "handoff" };
pub(super) const ENTRIES: List = List { table: "entries", key: "sequence" };

/// Filters whose texts have numbers; nothing if one of them stands nowhere in the tables.
type Resolved = Result<Option<Wanted>, ViewsFault>;

/// Puts a filter on the list, or ends with nothing if its text has no number.
macro_rules! want {
    ($wanted:ident, $text:expr, $by:expr, $number:expr) => {
        if let Some(text) = $text {
            let Some(number) = $number(text)? else { return Ok(None) };
            $wanted.push(($by, number));
        }
    };
}

impl HandoffFilter<'_> {
    pub(super) fn resolve(&self, store: &Connection) -> Resolved {
        let word = |text: &str| number_of(store, text);
        let mut wanted = Wanted::new();
        want!(wanted, self.handoff_id, By::Column("handoff"), |id: &str| handoff_of(store, id));
        want!(wanted, self.correlation_id, By::Column("correlation"), |id: &str| correlation_of(store, id));
        want!(wanted, self.code, By::Member("handoff_codes", "code"), word);
        want!(wanted, self.agent, By::Member("handoff_agents", "agent"), word);
        want!(wanted, self.route, By::Column("route"), word);
        want!(wanted, self.status.map(Status::as_str), By::Column("status"), word);
        want!(wanted, self.decision, By::Column("decision"), word);
        Ok(Some(wanted))
    }
}

impl EntryFilter<'_> {
    pub(super) fn resolve(&self, store: &Connection) -> Resolved {
        let word = |text: &str| number_of(store, text);
        let mut wanted = Wanted::new();
        if let Some(stream_id) = self.stream_id {
            match stream(store, stream_id)? {
                None => return Ok(None),
                Some((stream, attempt)) => {
                    wanted.push((By::Column("stream"), stream));
                    wanted.extend(attempt.map(|attempt| (By::Only("attempt"), attempt)));
                }
            }
        }
        want!(wanted, self.handoff_id, By::Column("stream"), |id: &str| handoff_of(store, id));
        want!(wanted, self.correlation_id, By::Column("correlation"), |id: &str| correlation_of(store, id));
        want!(wanted, self.code, By::Member("entry_codes", "code"), word);
        want!(wanted, self.agent, By::Run, word);
        want!(wanted, self.route, By::Run, |key: &str| Ok::<_, ViewsFault>(word(key)?.map(runs::route)));
        want!(wanted, self.decision, By::Column("decision"), word);
        want!(wanted, self.kind, By::Column("kind"), word);
        Ok(Some(wanted))
    }
}

pub(super) const ATTEMPT: &str = "SELECT 1 FROM attempts WHERE handoff = ?1 AND attempt = ?2";
pub(super) const LAST: &str = "SELECT sequence FROM applied WHERE one = 1";
pub(super) const TIME: &str = "SELECT time FROM entries WHERE sequence = ?1";

/// The number of a stream, and the attempt if it is a handoff's.
fn stream(store: &Connection, stream_id: &str) -> Result<Option<(i64, Option<i64>)>, ViewsFault> {
    if let Some((handoff_id, attempt)) = handoff_stream(stream_id)
        && let Some(handoff) = handoff_of(store, handoff_id)?
        && one(store, ATTEMPT, (handoff, attempt), |_| Ok(()))?.is_some()
    {
        return Ok(Some((handoff, Some(i64::from(attempt)))));
    }
    Ok(number_of(store, stream_id)?.map(|word| (-word, None)))
}

/// The first entry at a time or later; one past the last if there is none. Time rises with the sequence, so it
/// is found by halving, a few reads by primary key, and needs no index.
pub(super) fn first_at(store: &Connection, time: Timestamp, last: i64) -> Result<i64, ViewsFault> {
    // A time that cannot be told lies before or after everything.
    let wanted = time.unix_nanoseconds();
    let Some(wanted) = wanted else {
        return Ok(if time < Timestamp::from_unix_nanoseconds(0) { 1 } else { last + 1 });
    };
    let mut statement = store.prepare_cached(TIME)?;
    let (mut low, mut high) = (1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let time: i64 = statement.query_row([middle], |row| row.get(0))?;
        if time < wanted { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// The keys between two times that lie below a cursor, as the lowest and the highest.
pub(super) fn range(
    store: &Connection,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    below: Option<u64>,
) -> Result<(i64, i64), ViewsFault> {
    let last: i64 = one(store, LAST, [], |row| row.get(0))?.unwrap_or(0);
    let lowest = from.map_or(Ok(1), |from| first_at(store, from, last))?;
    let highest = to.map_or(Ok(last + 1), |to| first_at(store, to, last))? - 1;
    // A cursor of a number that no ledger has reached begins at the newest.
    let below = below.map_or(i64::MAX, |below| i64::try_from(below).unwrap_or(i64::MAX));
    Ok((lowest, highest.min(below.saturating_sub(1))))
}
