//! Grants: made and revoked by people, used by handoffs that become allowed.

use super::act::Asking;
use super::sequencer::Sequencer;
use super::{EngineFault, EngineHandle};
use crate::authorization::{
    AuthorizationRef, GrantBook, GrantFault, GrantRevoked, GrantUsed, Held, Terms, may_make,
};
use crate::ledger::BatchBuilder;
use crate::timestamp::Timestamp;
use crate::wire::{Kind, Sender};

/// A grant as it stands after an act, and the entry that made it so.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    pub held: Held,
    pub sequence: u64,
}

impl EngineHandle {
    /// Makes a grant of these terms, if this person may.
    pub fn grant(&self, terms: Terms, by: Asking) -> Result<Result<Granted, GrantFault>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| sequencer.grant(&terms, &by, batch))
    }

    /// Takes a grant back.
    pub fn revoke_grant(
        &self,
        name: String,
        reason: Option<String>,
        by: Asking,
    ) -> Result<Result<Granted, GrantFault>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| {
            sequencer.revoke_grant(&name, reason.as_deref(), &by, batch)
        })
    }

    /// All grants that are kept.
    pub fn grants(&self) -> GrantBook {
        self.standing(|standing| standing.grants.clone())
    }

    /// When the ledger's epoch began, if it was restored: what people said before it is void.
    pub fn void_before(&self) -> Option<Timestamp> {
        self.standing(|standing| standing.epoch.as_ref().map(|epoch| epoch.since))
    }
}

impl Sequencer {
    fn grant(
        &mut self,
        terms: &Terms,
        by: &Asking,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<Granted, GrantFault>, EngineFault> {
        let Some(person) = by.person() else { return Ok(Err(GrantFault::NotHuman)) };
        let now = batch.time(self.now());
        if let Err(fault) = may_make(person, terms).and_then(|()| self.building().grants.room(now)) {
            return Ok(Err(fault));
        }
        let name = AuthorizationRef::new(now.unix_milliseconds(), self.random());
        let noted = self.note_own(Kind::AuthorizationCreated, by.sender(), batch, |payload| {
            terms.write(name, person.principal(), payload);
        })?;
        Ok(Ok(self.granted(&name.to_string(), noted.sequence)?))
    }

    fn revoke_grant(
        &mut self,
        name: &str,
        reason: Option<&str>,
        by: &Asking,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<Granted, GrantFault>, EngineFault> {
        let authorization_ref = match self.building().grants.may_revoke(name) {
            Ok(authorization_ref) => authorization_ref,
            Err(fault) => return Ok(Err(fault)),
        };
        let revoked = GrantRevoked { authorization_ref, reason: reason.map(str::to_owned) };
        let noted =
            self.note_own(Kind::AuthorizationRevoked, by.sender(), batch, |payload| revoked.write(payload))?;
        Ok(Ok(self.granted(name, noted.sequence)?))
    }

    fn granted(&self, name: &str, sequence: u64) -> Result<Granted, EngineFault> {
        let held = self.building().grants.find(name).cloned();
        let held = held.ok_or_else(|| EngineFault::NotDurable("the grant is not there".to_owned()))?;
        Ok(Granted { held, sequence })
    }

    /// Takes a use of a grant for a handoff that becomes allowed.
    pub(super) fn use_grant(
        &mut self,
        name: &str,
        handoff_id: &str,
        remaining: u32,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<(), EngineFault> {
        let unknown = || EngineFault::NotDurable("the grant is not there".to_owned());
        let authorization_ref = name.parse().map_err(|_| unknown())?;
        let used = GrantUsed { authorization_ref, handoff_id: handoff_id.to_owned(), remaining };
        self.note_own(Kind::AuthorizationUsed, Sender::System, batch, |payload| used.write(payload)).map(drop)
    }
}
