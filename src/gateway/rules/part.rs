//! One part of the rules by itself: the others stay as they are in force, whatever their files say by now.
//!
//! Whoever revokes a token does not mean the policies that somebody else is in the middle of writing.

use std::sync::{Arc, PoisonError};

use super::super::parts::rules_of;
use super::{Cause, Failed, Part, Put, Reloaded, RuleKeeper, Rules};
use crate::callers::TokenFault;
use crate::os::clock;

/// Why a part could not be read.
enum Unread {
    Broken(String),
    /// The ledger's database did not tell the tokens that gateways share.
    Unanswered(String),
}

impl RuleKeeper {
    /// Reads one part again, and puts what it says in force if it is something else. Blocks until the ledger has it.
    pub fn reload_part(&self, part: Part, cause: Cause) -> Reloaded {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = if part == Part::Policies { cause.max(*self.owed()) } else { cause };
        let before = self.current();
        let mut failed = self.failed_otherwise(part);
        let put = match self.read_part(part, &before) {
            Ok(found) => match self.try_part(part, found, &before, cause) {
                Ok(put) => {
                    if part == Part::Policies {
                        *self.owed() = Cause::Looked;
                    }
                    put
                }
                Err(why) => {
                    let owed = cause.max(*self.owed());
                    *self.owed() = owed;
                    failed.unrecorded = Some(why);
                    Put::Nothing
                }
            },
            Err(Unread::Broken(why)) => {
                failed.broken.push((part, why));
                Put::Nothing
            }
            Err(Unread::Unanswered(why)) => {
                failed.unanswered = Some(why);
                Put::Nothing
            }
        };
        let failed = (!failed.is_well()).then_some(failed);
        self.last().clone_from(&failed);
        Reloaded { put, failed }
    }

    /// What the last attempt says of the other parts, which this one does not look at.
    fn failed_otherwise(&self, part: Part) -> Failed {
        let last = self.failed();
        let broken = last.iter().flat_map(|last| &last.broken).filter(|(of, _)| *of != part).cloned().collect();
        // What could not be recorded beside others is tried again with all parts; a gateway alone does so by itself.
        let unrecorded = last.as_ref().and_then(|last| last.unrecorded.clone()).filter(|_| self.sharing.is_some());
        let unanswered = last.and_then(|last| last.unanswered).filter(|_| part != Part::Tokens);
        Failed { at: clock::now(), broken, unanswered, unrecorded }
    }

    fn read_part(&self, part: Part, before: &Rules) -> Result<Rules, Unread> {
        let Rules { in_force, roster, .. } = before;
        let (mut policies, mut keyring) = (in_force.policies.clone(), in_force.keyring.clone());
        let mut roster = roster.clone();
        let broken = |fault: &dyn std::fmt::Display| Unread::Broken(fault.to_string());
        match part {
            Part::Policies => {
                policies = Arc::new(self.workspace.load_policies().map_err(|fault| broken(&fault))?);
            }
            Part::Keys => keyring = Arc::new(self.workspace.load_keyring().map_err(|fault| broken(&fault))?),
            Part::Tokens => {
                roster = Arc::new(self.tokens.load().map_err(|fault| match fault {
                    TokenFault::Shared(_) => Unread::Unanswered(fault.to_string()),
                    fault => broken(&fault),
                })?);
            }
        }
        Ok(rules_of(policies, keyring, roster))
    }

    /// Policies that were not read propose nothing, and take nothing back that was proposed.
    fn try_part(&self, part: Part, found: Rules, before: &Rules, cause: Cause) -> Result<Put, String> {
        match part {
            Part::Policies => self.try_reload(found, before, &[], cause),
            Part::Keys | Part::Tokens => self.put(found, before, cause),
        }
    }
}
