//! What became of a batch whose commit was not answered.

use std::time::Duration;

use tokio::time::Instant;

use super::address::Address;
use super::link::{Committed, Link};
use super::{PostgresFault, pause, stored};
use crate::ledger::chain::Head;

const HASH_AT: &str = "select running_hash from handoffd_entries where sequence = $1";

/// A batch that may have been committed or not.
#[derive(Debug)]
pub(super) struct Pending {
    /// Its last entry: the running hash stands for all of it.
    pub(super) head: Head,
    /// How its commit ended.
    pub(super) why: String,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Landed,
    /// It is not there, and never will be.
    NotLanded,
}

/// Tries until it is known; nothing if it is not known in time.
pub(super) async fn settle(address: &Address, pending: &Pending, within: Duration) -> Option<Settled> {
    let until = Instant::now() + within;
    loop {
        match tokio::time::timeout_at(until, settle_once(address, pending)).await {
            Ok(Ok(settled)) => return Some(settled),
            Ok(Err(_)) if Instant::now() < until => pause().await,
            Ok(Err(_)) | Err(_) => return None,
        }
    }
}

/// On a connection of its own: the old one may still be at work for a server that nobody hears.
pub(super) async fn settle_once(address: &Address, pending: &Pending) -> Result<Settled, PostgresFault> {
    let mut link = Link::make(address).await?;
    // INVARIANT (everybody who appends has the table's lock): the transaction in question had its insert answered
    // before its commit was sent, so it has the lock until it has ended, one way or the other.
    link.batch("begin; lock table handoffd_entries in share mode").await?;
    let row = link.row(HASH_AT, &[&stored(pending.head.sequence)]).await?;
    let hash = row.map(|row| row.get::<Vec<u8>>(0)).transpose()?;
    if hash.as_deref() != Some(pending.head.running_hash.as_bytes().as_slice()) {
        return Ok(Settled::NotLanded);
    }
    // A commit can be seen before a synchronous standby has it, if the wait for the standby was cut short. One that
    // is written later waits for both.
    link.change("update handoffd_ledger set settled = $1", &[&stored(pending.head.sequence)]).await?;
    link.batch("set local statement_timeout = 0").await?;
    match link.commit().await {
        Committed::Yes => Ok(Settled::Landed),
        Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
    }
}
