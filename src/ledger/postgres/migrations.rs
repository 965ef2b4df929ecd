//! The tables: made and changed in steps that only go forward, by one replica at a time.

use super::PostgresFault;
use super::link::{Committed, Link};
use crate::ledger::chain::RunningHash;

/// The steps, in order. One that was released is never changed.
const STEPS: [&str; 4] = [
    include_str!("001_ledger.sql"),
    include_str!("002_push.sql"),
    include_str!("003_nonces.sql"),
    include_str!("004_losses.sql"),
];

/// Who holds it migrates; the number is ours alone ("handoff" in ASCII).
const LOCK: &str = "select pg_advisory_xact_lock(29380524337227366)";

/// Brings the tables up to date, and names a new ledger `new_topic_id`; without one there must be a ledger. Returns the
/// topic.
pub(super) async fn migrate(link: &mut Link, new_topic_id: Option<&str>) -> Result<String, PostgresFault> {
    link.batch("begin").await?;
    match steps(link, new_topic_id).await {
        Ok(topic_id) => match link.commit().await {
            Committed::Yes => Ok(topic_id),
            // All of it or nothing is there; whoever opens the ledger again finds out.
            Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
        },
        Err(fault) => {
            // The transaction is over in any case, at the latest with its connection.
            let _ = link.batch("rollback").await;
            Err(fault)
        }
    }
}

async fn steps(link: &mut Link, new_topic_id: Option<&str>) -> Result<String, PostgresFault> {
    link.batch(LOCK).await?;
    if new_topic_id.is_none()
        && link.the_row("select to_regclass('handoffd_ledger') is null").await?.get(0)?
    {
        return Err(PostgresFault::NoLedger);
    }
    // Also where it is there, making it would ask for the right to make tables.
    if link.the_row("select to_regclass('handoffd_migrations') is null").await?.get(0)? {
        link.batch(
            "create table handoffd_migrations (\
             step integer primary key, applied_at timestamptz not null default now())",
        )
        .await?;
    }
    let done: i32 = link.the_row("select coalesce(max(step), 0) from handoffd_migrations").await?.get(0)?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    if done > STEPS.len() {
        return Err(PostgresFault::Refused(format!(
            "its tables are at step {done}, and this handoffd knows {}: it was used by a newer one",
            STEPS.len()
        )));
    }
    for (n, step) in STEPS.iter().enumerate().skip(done) {
        link.batch(step).await?;
        let n = i32::try_from(n + 1).unwrap_or(i32::MAX);
        link.change("insert into handoffd_migrations (step) values ($1)", &[&n]).await?;
    }
    if let Some(new_topic_id) = new_topic_id {
        let genesis = RunningHash::genesis(new_topic_id);
        link.change(
            "insert into handoffd_ledger (topic_id, genesis) values ($1, $2) on conflict do nothing",
            &[&new_topic_id, &genesis.as_bytes().as_slice()],
        )
        .await?;
    }
    let row = link.the_row("select topic_id, genesis from handoffd_ledger").await?;
    let (topic_id, genesis): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
    if RunningHash::genesis(&topic_id).as_bytes().as_slice() == genesis {
        Ok(topic_id)
    } else {
        Err(PostgresFault::Damaged { sequence: 0 })
    }
}
