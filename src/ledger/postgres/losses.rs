//! Entries that somebody remembers and that the ledger no longer has.
//!
//! Whoever finds that out marks the ledger, and nobody appends to it any more, not even those who remember nothing: the
//! mark is the one that every append asks for anyway. A person says what counts, and a new epoch begins.

use super::link::{Committed, Link};
use super::{Database, PostgresFault, closing, reading, stored};
use crate::ledger::chain::{Head, RunningHash};
use crate::ledger::closing::{Closing, parse};
use crate::timestamp::Timestamp;

const LEDGER: &str = "select closed, topic_id, epoch_since from handoffd_ledger for update";
const NOTE: &str = "insert into handoffd_losses (gateway, sequence, running_hash, entry_time, found_sequence) \
     values ($1, $2, $3, $4, $5) on conflict do nothing";
const CLOSE: &str = "update handoffd_ledger set closed = $1";
const OPEN_AGAIN: &str = "update handoffd_ledger set closed = null";
const LOSSES: &str = "select gateway, sequence, running_hash, found_sequence, to_char(noticed_at at time zone 'UTC', \
     'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') from handoffd_losses where settled_at is null order by noticed_at, sequence";
const SETTLED: &str = "update handoffd_losses set settled_at = clock_timestamp() where settled_at is null";
// Whoever had the mark has appended behind it: the last entry is of the new epoch.
const EPOCH_BEGUN: &str = "update handoffd_ledger set closed = null, epoch_since = \
     (select consensus_timestamp from handoffd_entries order by sequence desc limit 1) where closed = $1";

/// An entry that a gateway has a record of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    pub head: Head,
    /// The ledger's time of it, or a later one; nothing if it is not known.
    pub time: Option<Timestamp>,
}

/// What became of saying that an entry is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Nobody appends to the ledger any more.
    Closed,
    /// It was given up by an epoch that began after it, or is about to.
    GivenUp,
    /// It is there after all.
    NotLost,
}

/// What one gateway had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub gateway: String,
    pub had: Head,
    /// Where the ledger ended when that was noticed.
    pub found: u64,
    pub noticed_at: String,
}

/// How a loss was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// What was missed is there again: nothing is lost, and the ledger is open.
    NothingLost,
    /// What is left counts, and the next gateway that starts begins a new epoch.
    GivenUp,
    /// What is left goes up to another entry than was said. Nothing was changed.
    OtherHead { head: u64 },
    /// It was not closed because of a loss. Nothing was changed.
    NotLost,
}

/// Was everything that is not in the ledger given up since that time?
pub(super) fn is_given_up(epoch_since: Option<&str>, time: Option<Timestamp>) -> bool {
    // A record that says no time may be of the new epoch.
    epoch_since.and_then(Timestamp::parse).zip(time).is_some_and(|(since, time)| time < since)
}

impl Database {
    /// Says that an entry is gone which a gateway has a record of, and closes the ledger; durable when it returns.
    pub(crate) fn note_loss(&self, gateway: &str, had: Remembered) -> Result<Noted, PostgresFault> {
        self.apart(async |link| note(link, self.topic_id(), gateway, had).await)
    }

    /// What was noticed and has not been settled, in the order in which it was.
    pub fn losses(&self) -> Result<Vec<Loss>, PostgresFault> {
        self.ask(async |link| losses(link).await)
    }

    /// Says that what is left counts, up to entry `keep`, which must be its last; or, without a number, that nothing is
    /// lost, if all that was missed is there again.
    pub fn settle_losses(&self, keep: Option<u64>) -> Result<Settlement, PostgresFault> {
        self.apart(async |link| settle(link, self.topic_id(), keep).await)
    }

    /// The epoch that settles a loss has begun: opens the ledger, unless another gateway did so before.
    pub(crate) fn epoch_begun(&self, mark: &Closing) -> Result<(), PostgresFault> {
        let text = mark.to_text();
        self.apart(async |link| {
            link.batch(LOCK).await?;
            link.change(EPOCH_BEGUN, &[&text]).await?;
            committed(link).await
        })
    }

    /// On a new connection: one that lay idle may have broken, and this is not done twice.
    fn apart<T>(
        &self,
        work: impl AsyncFn(&mut Link) -> Result<T, PostgresFault>,
    ) -> Result<T, PostgresFault> {
        self.wait(async {
            let mut link = Link::make(&self.0.address).await?;
            let done = work(&mut link).await?;
            self.give_back(link);
            Ok(done)
        })
    }
}

/// Waits for those who are appending, and whoever comes later waits for what is said here.
const LOCK: &str = "begin; lock table handoffd_entries in share mode";

async fn committed(link: &Link) -> Result<(), PostgresFault> {
    link.batch("set local statement_timeout = 0").await?;
    match link.commit().await {
        Committed::Yes => Ok(()),
        // Whoever asked looks again, and says it again if need be.
        Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
    }
}

async fn note(
    link: &mut Link,
    topic_id: &str,
    gateway: &str,
    had: Remembered,
) -> Result<Noted, PostgresFault> {
    link.batch(LOCK).await?;
    let noted = noted(link, topic_id, gateway, had).await?;
    match noted {
        Noted::Closed => committed(link).await?,
        Noted::GivenUp | Noted::NotLost => link.batch("rollback").await?,
    }
    Ok(noted)
}

/// Looks again, now that nobody appends: what one gateway thinks it saw must not stop all others.
async fn noted(
    link: &mut Link,
    topic_id: &str,
    gateway: &str,
    Remembered { head, time }: Remembered,
) -> Result<Noted, PostgresFault> {
    let row = link.the_row(LEDGER).await?;
    let (closed, topic): (Option<String>, String) = (row.get(0)?, row.get(1)?);
    if topic != topic_id {
        return Err(PostgresFault::Damaged { sequence: 0 });
    }
    if reading::has(link, topic_id, head).await? {
        return Ok(Noted::NotLost);
    }
    let about_to_be =
        closed.as_deref().and_then(parse).is_some_and(|closing| matches!(closing, Closing::Settled { .. }));
    if about_to_be || is_given_up(row.get(2)?, time) {
        return Ok(Noted::GivenUp);
    }
    let (found, _) = reading::head(link, topic_id).await?;
    let time = time.map(Timestamp::to_nanoseconds);
    let (sequence, found) = (stored(head.sequence), found.sequence);
    let hash = head.running_hash.as_bytes().as_slice();
    link.change(NOTE, &[&gateway, &sequence, &hash, &time, &stored(found)]).await?;
    if closed.is_none() {
        let lost = Closing::Lost { gateway: gateway.to_owned(), sequence: head.sequence, found };
        link.change(CLOSE, &[&lost.to_text()]).await?;
    }
    Ok(Noted::Closed)
}

async fn losses(link: &mut Link) -> Result<Vec<Loss>, PostgresFault> {
    let mut losses = Vec::new();
    for row in link.rows(LOSSES, &[]).await? {
        let sequence = row.count(1)?;
        let running_hash = RunningHash::from_slice(row.get(2)?).ok_or(PostgresFault::Damaged { sequence })?;
        let had = Head { sequence, running_hash };
        losses.push(Loss { gateway: row.get(0)?, had, found: row.count(3)?, noticed_at: row.get(4)? });
    }
    Ok(losses)
}

async fn settle(link: &mut Link, topic_id: &str, keep: Option<u64>) -> Result<Settlement, PostgresFault> {
    link.batch(LOCK).await?;
    let settlement = settled(link, topic_id, keep).await?;
    match settlement {
        Settlement::NothingLost | Settlement::GivenUp => committed(link).await?,
        Settlement::OtherHead { .. } | Settlement::NotLost => link.batch("rollback").await?,
    }
    Ok(settlement)
}

async fn settled(link: &mut Link, topic_id: &str, keep: Option<u64>) -> Result<Settlement, PostgresFault> {
    let row = link.the_row(LEDGER).await?;
    let closed = row.get::<Option<&str>>(0)?.map(|text| (parse(text), text.to_owned()));
    match closed {
        Some((Some(Closing::Lost { .. }), _)) => {}
        Some((None, text)) => return Err(PostgresFault::Refused(closing::sentence(&text))),
        Some((Some(_), _)) | None => return Ok(Settlement::NotLost),
    }
    let (head, _) = reading::head(link, topic_id).await?;
    let mut is_whole = true;
    for loss in losses(link).await? {
        is_whole &= reading::has(link, topic_id, loss.had).await?;
    }
    let (change, settlement) = match keep {
        _ if is_whole => (None, Settlement::NothingLost),
        Some(keep) if keep == head.sequence => (Some(given_up(link, head).await?), Settlement::GivenUp),
        Some(_) | None => return Ok(Settlement::OtherHead { head: head.sequence }),
    };
    link.change(SETTLED, &[]).await?;
    match change {
        Some(closing) => link.change(CLOSE, &[&closing.to_text()]).await?,
        None => link.change(OPEN_AGAIN, &[]).await?,
    };
    Ok(settlement)
}

async fn given_up(link: &mut Link, kept: Head) -> Result<Closing, PostgresFault> {
    const TIME_AT: &str = "select consensus_timestamp from handoffd_entries where sequence = $1";
    let time = match link.row(TIME_AT, &[&stored(kept.sequence)]).await? {
        Some(row) => row.get(0)?,
        None => "1970-01-01T00:00:00.000000000Z".to_owned(),
    };
    Ok(Closing::Settled { kept: kept.sequence, running_hash: kept.running_hash.to_string(), time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_older_than_the_epoch_was_given_up_by_it() {
        let at = |text| Timestamp::parse(text);
        let since = Some("2026-02-18T19:38:00.000000002Z");
        assert!(is_given_up(since, at("2026-02-18T19:38:00.000000001Z")));
        assert!(!is_given_up(since, at("2026-02-18T19:38:00.000000002Z")));
        assert!(!is_given_up(since, None), "it may be newer");
        assert!(!is_given_up(None, at("2026-02-18T19:38:00.000000001Z")), "nothing was ever given up");
    }
}
