//! A shelf that gateways share: the tables of their ledger's database, and a lease that says who tells.
//!
//! Every config is told by one gateway at a time: by the one that took it in, until it is gone, and then by another. Who is
//! gone is for the database's clock to say. Before each notification the gateway asks whether the config is still its own
//! for as long as the notification may take. Everything here asks a server, and waits for it.

use std::io;
use std::time::Duration;

use super::book::BookFault;
use super::owner::Owner;
use super::registration::Registration;
use super::stored;
use crate::a2a::TaskId;
use crate::ledger::postgres::{Database, PostgresFault, PushProgress, PushSet, PushTeller, PushTurn};
use crate::limits;

/// The configs of all gateways that share a ledger.
#[derive(Debug)]
pub struct SharedShelf {
    database: Database,
    teller: PushTeller,
    /// How long one notification may take.
    timeout: Duration,
}

impl SharedShelf {
    /// The shelf as the gateway with this key has it; `session` is another one after every start.
    pub fn open(database: Database, gateway: &str, session: &str, timeout: Duration) -> io::Result<Self> {
        let lease = timeout + Duration::from_millis(limits::PUSH_LEASE_MORE_MS);
        let teller = PushTeller { holder: session.to_owned(), gateway: gateway.to_owned(), lease };
        database.begin_telling(&teller).map_err(io_fault)?;
        Ok(Self { database, teller, timeout })
    }

    /// Returns what gave way, and the number behind which it is told.
    pub(super) fn set(&self, registration: &Registration) -> Result<(Option<Registration>, u64), BookFault> {
        let set = self.database.set_push(&stored::to_row(registration), &self.teller);
        match set.map_err(|fault| BookFault::Io(io_fault(fault)))? {
            PushSet::Full(whose) => Err(BookFault::Full(whose)),
            PushSet::Kept { replaced, delivered } => {
                Ok((replaced.as_ref().and_then(stored::from_row), delivered))
            }
        }
    }

    /// Takes in one that a gateway had for itself.
    pub(super) fn add(&self, registration: &Registration) -> io::Result<()> {
        self.database.add_push(&stored::to_row(registration)).map_err(io_fault)
    }

    pub(super) fn remove(
        &self,
        task: &TaskId,
        owner: &Owner,
        config_id: &str,
    ) -> io::Result<Option<Registration>> {
        let row = self.database.remove_push(&task.to_string(), owner.as_str(), config_id);
        Ok(row.map_err(io_fault)?.as_ref().and_then(stored::from_row))
    }

    pub(super) fn list(&self, task: &TaskId, owner: &Owner) -> io::Result<Vec<Registration>> {
        let rows = self.database.push_of(&task.to_string(), owner.as_str()).map_err(io_fault)?;
        Ok(rows.iter().filter_map(stored::from_row).collect())
    }

    /// Writes down how far telling has come, and says that it goes on; the ids of what it holds now.
    pub(super) fn hold(&self, told: &[(String, PushProgress)]) -> io::Result<Vec<String>> {
        self.database.hold_push(&self.teller, told).map_err(io_fault)
    }

    /// Those of these that it holds; by its name alone if it cannot be read.
    pub(super) fn held(&self, ids: &[String]) -> io::Result<Vec<Result<Registration, String>>> {
        let rows = self.database.held_push(&self.teller, ids).map_err(io_fault)?;
        Ok(rows.into_iter().map(|row| stored::from_row(&row).ok_or(row.push_id)).collect())
    }

    /// May a config be told now?
    pub(super) fn turn(&self, push_id: &str) -> PushTurn {
        // Who cannot ask does not know.
        self.database.push_turn(&self.teller, push_id, self.timeout).unwrap_or(PushTurn::Later)
    }

    /// False if it was not for this gateway to end.
    pub(super) fn end(&self, registration: &Registration) -> io::Result<bool> {
        self.database.end_push(&self.teller, &stored::to_row(registration)).map_err(io_fault)
    }

    /// Drops what ended long ago.
    pub(super) fn forget(&self) -> io::Result<()> {
        let shown = Duration::from_secs(limits::PUSH_ENDED_SHOWN_S.unsigned_abs());
        self.database.forget_push(shown).map_err(io_fault)
    }

    /// Leaves what it holds to others.
    pub(super) fn let_go(&self) -> io::Result<()> {
        self.database.end_telling(&self.teller).map_err(io_fault)
    }
}

fn io_fault(fault: PostgresFault) -> io::Error {
    io::Error::other(fault)
}
