//! Who is being served on a ledger: each gateway holds a lock for as long as its connection lasts, with all others.
//!
//! Nothing that is appended rests on it. It is for people who are about to take the ledger away from under them.

use super::link::Link;
use super::{Database, PostgresFault};

// Of the table and not of its name: ledgers in other schemas of the database have their own. The first number is ours alone.
const SERVE: &str = "select pg_advisory_lock_shared(1751213670, to_regclass('handoffd_ledger')::oid::bigint::bit(32)::integer)";
const SERVERS: &str = "select count(distinct pid) from pg_locks where locktype = 'advisory' and granted \
     and database = (select oid from pg_database where datname = current_database()) \
     and classid = 1751213670 and objid = to_regclass('handoffd_ledger')::oid and objsubid = 2";

/// Says for as long as this connection lasts that a gateway is served.
pub(super) async fn say_so(link: &mut Link) -> Result<(), PostgresFault> {
    link.batch(SERVE).await
}

impl Database {
    /// How many gateways are served on it now, other processes' and this one's.
    pub fn gateways_served(&self) -> Result<u64, PostgresFault> {
        self.ask(async |link| link.the_row(SERVERS).await?.count(0))
    }
}
