//! The kill switch, and its end.

use super::act::Asking;
use super::sequencer::Sequencer;
use super::{EngineFault, EngineHandle};
use crate::freeze::{Freeze, FreezeAsk, FreezeLifted, FreezeSet, Freezes, NotFrozen};
use crate::ledger::BatchBuilder;
use crate::wire::{Kind, Sender};

/// What became of a freeze.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    pub freeze: Freeze,
    /// The entry from which on it holds, or no longer does.
    pub from_sequence: u64,
    /// It held before; nothing was written.
    pub held_before: bool,
}

impl EngineHandle {
    /// Stops what the scope names; what is decided after this is refused. `by` is a person, or the name of an
    /// administrator's token.
    pub fn freeze(&self, ask: FreezeAsk, by: Asking) -> Result<Frozen, EngineFault> {
        self.ask_whatever_and_wait(move |sequencer, batch| sequencer.freeze(&ask, &by, batch))
    }

    /// Lets go on what exactly this scope stopped.
    pub fn unfreeze(&self, ask: FreezeAsk, by: Asking) -> Result<Result<Frozen, NotFrozen>, EngineFault> {
        self.ask_and_wait(move |sequencer, batch| sequencer.unfreeze(&ask, &by, batch))
    }

    /// What is frozen.
    pub fn freezes(&self) -> Freezes {
        self.standing(|standing| standing.freezes.clone())
    }
}

impl Sequencer {
    pub(super) fn freeze(
        &mut self,
        ask: &FreezeAsk,
        by: &Asking,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Frozen, EngineFault> {
        let FreezeAsk { scope, reason } = ask;
        if let Some(freeze) = self.building().freezes.find(scope) {
            return Ok(Frozen {
                freeze: freeze.clone(),
                from_sequence: freeze.from_sequence,
                held_before: true,
            });
        }
        let set_by = (by.sender() == Sender::System).then(|| by.name().to_owned());
        let set = FreezeSet {
            mode: scope.mode,
            reason: reason.clone(),
            route_key: scope.route_key.clone(),
            set_by,
        };
        let noted = self.note_own(Kind::FreezeSet, by.sender(), batch, |payload| set.write(payload))?;
        let freeze = self.building().freezes.find(scope).cloned();
        let freeze = freeze.ok_or_else(|| EngineFault::NotDurable("the freeze did not hold".to_owned()))?;
        Ok(Frozen { freeze, from_sequence: noted.sequence, held_before: false })
    }

    fn unfreeze(
        &mut self,
        ask: &FreezeAsk,
        by: &Asking,
        batch: &mut BatchBuilder<'_>,
    ) -> Result<Result<Frozen, NotFrozen>, EngineFault> {
        let FreezeAsk { scope, reason } = ask;
        let freeze = match self.building().freezes.may_lift(scope) {
            Ok(freeze) => freeze.clone(),
            Err(fault) => return Ok(Err(fault)),
        };
        let lifted =
            FreezeLifted { mode: scope.mode, reason: reason.clone(), route_key: scope.route_key.clone() };
        let noted = self.note_own(Kind::FreezeLifted, by.sender(), batch, |payload| lifted.write(payload))?;
        Ok(Ok(Frozen { freeze, from_sequence: noted.sequence, held_before: true }))
    }
}
