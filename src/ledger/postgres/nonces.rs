//! The nonces of signed requests, which count once among all gateways that share a ledger.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Database, PostgresFault};

const SPEND: &str = "insert into handoffd_nonces (mark) select unnest($1::bytea[]) on conflict do nothing \
     returning mark";
const FORGET: &str =
    "delete from handoffd_nonces where spent_at < clock_timestamp() - make_interval(secs => $1)";

impl Database {
    /// Spends nonces, and returns those that nobody had spent before.
    ///
    /// Asked again on a new connection, what was spent on one that broke counts as spent: nothing passes twice.
    pub fn spend_nonces(&self, marks: &BTreeSet<[u8; 16]>) -> Result<BTreeSet<[u8; 16]>, PostgresFault> {
        // In one order for all, so that two gateways do not wait for each other.
        let marks: Vec<&[u8]> = marks.iter().map(<[u8; 16]>::as_slice).collect();
        self.ask(async |link| {
            let rows = link.rows(SPEND, &[&marks]).await?;
            let spent = |row: &super::link::Row| {
                let mark: &[u8] = row.get(0)?;
                mark.try_into().map_err(|_| PostgresFault::Server("a nonce in it is none".to_owned()))
            };
            rows.iter().map(spent).collect()
        })
    }

    /// Forgets what was spent so long ago.
    pub fn forget_nonces(&self, spent_for: Duration) -> Result<(), PostgresFault> {
        self.ask(async |link| link.change(FORGET, &[&spent_for.as_secs_f64()]).await)?;
        Ok(())
    }
}
