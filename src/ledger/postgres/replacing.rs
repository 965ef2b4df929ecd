//! Making room for a copy in a database that a gateway was served on by mistake.

use std::time::Duration;

use super::link::{Committed, Link};
use super::{Database, PostgresFault};
use crate::ledger::chain::RunningHash;
use crate::ledger::closing::Closing;
use crate::limits;
use crate::wire::Kind;

/// What a gateway writes by itself when it starts on a ledger that is empty, or when its own files change. Everything else
/// is there because somebody wanted something.
const BY_ITSELF: [Kind; 8] = [
    Kind::PolicyLoaded,
    Kind::RouteDeclared,
    Kind::RouteRemoved,
    Kind::TokenCreated,
    Kind::TokenRevoked,
    Kind::KeyAdded,
    Kind::KeyRemoved,
    Kind::StateReplaced,
];

const FOUND: &str = "select (select topic_id from handoffd_ledger), count(*), \
     count(*) filter (where wire::json ->> 'type' <> all ($1)), \
     (select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() \
      and application_name = 'handoffd'), \
     (select closed from handoffd_ledger) from handoffd_entries";
const EMPTY: &str = "delete from handoffd_entries; delete from handoffd_bodies; delete from handoffd_checkpoints; \
     delete from handoffd_shared; delete from handoffd_push; delete from handoffd_tellers; delete from handoffd_nonces; \
     delete from handoffd_losses";
const RENAME: &str = "update handoffd_ledger set topic_id = $1, genesis = $2, closed = $3, epoch_since = null, \
     revision = revision + 1";

/// A ledger that stands where another one shall go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub topic_id: String,
    pub entries: u64,
    /// Those that no gateway writes by itself.
    pub wanted: u64,
    /// Connections of other processes.
    pub connections: u64,
    pub closed: bool,
}

impl Taken {
    /// May it be deleted?
    pub fn is_replaceable(&self) -> bool {
        self.wanted == 0 && self.connections == 0 && !self.closed
    }
}

impl Database {
    /// What is in it.
    pub(crate) fn taken(&self) -> Result<Taken, PostgresFault> {
        // Connections of this process are none that somebody else has.
        self.idle().clear();
        self.ask(async |link| taken_at_rest(link).await)
    }

    /// Empties the ledger, if nobody has wanted anything of it, and gives it another name and a mark, so that only who
    /// knows that appends to it. It has to be opened again.
    pub(crate) fn replace(&self, topic_id: &str, mark: &Closing) -> Result<Taken, PostgresFault> {
        let (genesis, mark) = (RunningHash::genesis(topic_id), mark.to_text());
        self.idle().clear();
        self.wait(async {
            let mut link = Link::make(&self.0.address).await?;
            taken_at_rest(&mut link).await?;
            // Nobody reads or writes meanwhile, and what is looked at is what is deleted.
            link.batch("begin; lock table handoffd_entries in access exclusive mode").await?;
            let taken = taken(&mut link).await?;
            if !taken.is_replaceable() {
                link.batch("rollback").await?;
                return Ok(taken);
            }
            link.batch(EMPTY).await?;
            link.change(RENAME, &[&topic_id, &genesis.as_bytes().as_slice(), &mark]).await?;
            link.batch("set local statement_timeout = 0").await?;
            match link.commit().await {
                Committed::Yes => Ok(taken),
                // All of it or nothing was done; whoever does it again finds out.
                Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
            }
        })
    }
}

/// The same, once connections that were closed are gone: a server needs a moment to let go of one, and whoever closed it
/// would be taken for somebody who is still there.
async fn taken_at_rest(link: &mut Link) -> Result<Taken, PostgresFault> {
    const PAUSE: Duration = Duration::from_millis(limits::PG_RETRY_MS);
    let mut found = taken(link).await?;
    for _ in 0..limits::PG_LEAVING_LOOKS {
        if found.connections == 0 {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        found = taken(link).await?;
    }
    Ok(found)
}

async fn taken(link: &mut Link) -> Result<Taken, PostgresFault> {
    let by_itself: Vec<&str> = BY_ITSELF.iter().map(|kind| kind.as_str()).collect();
    let row = link.row(FOUND, &[&by_itself]).await?;
    let row = row.ok_or_else(|| PostgresFault::Server("the answer has no rows".to_owned()))?;
    Ok(Taken {
        topic_id: row.get(0)?,
        entries: row.count(1)?,
        wanted: row.count(2)?,
        connections: row.count(3)?,
        closed: row.get::<Option<&str>>(4)?.is_some(),
    })
}
