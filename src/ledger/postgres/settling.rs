//! What became of a batch whose commit was not answered.

use std::time::Duration;

use tokio::time::Instant;

use super::address::Address;
use super::link::{Committed, Link};
use super::{Database, PostgresFault, pause, stored};
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
    write(&mut link, pending.head.sequence).await?;
    Ok(Settled::Landed)
}

async fn write(link: &mut Link, sequence: u64) -> Result<(), PostgresFault> {
    link.change("update handoffd_ledger set settled = $1", &[&stored(sequence)]).await?;
    link.batch("set local statement_timeout = 0").await?;
    match link.commit().await {
        Committed::Yes => Ok(()),
        Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
    }
}

/// Proves that what can be seen of a ledger is on its synchronous standby: by a write that waits for both.
pub(super) fn prove(database: &Database, sequence: u64, within: Duration) -> Result<(), PostgresFault> {
    let proof = async {
        let mut link = database.link().await?;
        // Others may be waiting for the same standby, with the row in hand.
        link.batch("begin; set local lock_timeout = 1000").await?;
        write(&mut link, sequence).await?;
        database.give_back(link);
        Ok(())
    };
    database.wait(async {
        let proof = tokio::time::timeout(within, proof).await;
        let ended = proof.unwrap_or_else(|_| Err(PostgresFault::Unreachable(NO_STANDBY.to_owned())));
        ended.map_err(|fault| match fault {
            PostgresFault::Unreachable(why) if why != NO_STANDBY => {
                PostgresFault::Unreachable(format!("{why}; {UNPROVEN}"))
            }
            PostgresFault::Server(why) => PostgresFault::Unreachable(format!("{NO_STANDBY} ({why})")),
            fault => fault,
        })
    })
}

const NO_STANDBY: &str = "no synchronous standby has acknowledged a write in time, so what can be seen may be lost; see \
     synchronous_standby_names, and that a standby is connected";
const UNPROVEN: &str = "whether a synchronous standby has what can be seen is not known";
