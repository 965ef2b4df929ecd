//! One try to append: on the turn that was kept, on the connection that there is, or on a new one.

use super::link::Link;
use super::standing::why_refused;
use super::transaction::{Ended, Outcome, Place, Rows, begin, begin_and_put, put};
use super::{Database, PostgresFault, reading};
use crate::ledger::chain::Head;

/// A transaction that has begun, and the last entry that it saw.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) link: Link,
    pub(super) last: Head,
}

/// What an append can begin with.
pub(super) struct Ways {
    pub(super) turn: Option<Turn>,
    pub(super) kept: Option<Link>,
    /// Nobody is expected to come first.
    pub(super) is_alone: bool,
}

/// How it went, with the connection where that is of use.
pub(super) enum Attempt {
    Committed(Link),
    /// Others went first; it is its turn now, and what it was built on is there.
    TooLate(Turn),
    Ended(Option<Link>, Ended),
}

/// One transaction, on the connection that there is, or on a new one if that broke while nobody used it.
pub(super) async fn attempt(
    database: &Database,
    rows: &Rows<'_>,
    place: Place<'_>,
    ways: Ways,
) -> Result<Attempt, PostgresFault> {
    let Ways { mut turn, mut kept, is_alone } = ways;
    let mut is_new = false;
    loop {
        let (mut link, outcome) = match (turn.take(), kept.take()) {
            (Some(Turn { mut link, last }), _) => {
                let outcome = put_on(&mut link, rows, place, last).await;
                (link, outcome)
            }
            (None, kept) => {
                is_new |= kept.is_none();
                let mut link = match kept {
                    Some(link) => link,
                    None => Link::make(&database.0.address).await?,
                };
                let outcome = if is_alone {
                    begin_and_put(&mut link, rows, place).await
                } else {
                    match begin(&link, place.topic_id).await {
                        Ok(last) => put_on(&mut link, rows, place, last).await,
                        Err(fault) => Outcome::Failed(fault),
                    }
                };
                (link, outcome)
            }
        };
        return Ok(match outcome {
            Outcome::Committed => Attempt::Committed(link),
            Outcome::TooLate(last) if reading::has(&mut link, place.topic_id, place.after).await? => {
                Attempt::TooLate(Turn { link, last })
            }
            Outcome::TooLate(_) => {
                link.batch("rollback").await?;
                let why = why_refused(&mut link, place.topic_id, place.after, place.mark).await?;
                Attempt::Ended(Some(link), Ended::Found(why))
            }
            Outcome::Refused => {
                let why = why_refused(&mut link, place.topic_id, place.after, place.mark).await?;
                Attempt::Ended(Some(link), Ended::Found(why))
            }
            Outcome::Unknown(why) => Attempt::Ended(None, Ended::Unknown(why)),
            // `commit` was not sent on it.
            Outcome::Failed(PostgresFault::Unreachable(_)) if !is_new => continue,
            Outcome::Failed(fault) => return Err(fault),
        });
    }
}

/// Puts, unless it is too late for that.
async fn put_on(link: &mut Link, rows: &Rows<'_>, place: Place<'_>, last: Head) -> Outcome {
    if last.sequence > place.after.sequence { Outcome::TooLate(last) } else { put(link, rows, place).await }
}
