//! One part of the rules by itself: the others stay as they are in force, whatever their files say by now.
//!
//! Whoever revokes a token does not mean the policies that somebody else is in the middle of writing. And whoever wants
//! no token or no key to count says so in the file: one that is gone says nothing.

use std::sync::{Arc, PoisonError};

use super::super::parts::rules_of;
use super::{Cause, Failed, Part, Put, Reloaded, RuleKeeper, Rules};
use crate::callers::{Roster, TokenFault, TokenFiles};
use crate::os::clock;
use crate::policy::{Workspace, WorkspaceFault};
use crate::proof::Keyring;

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
        self.keep_in_mind(&failed);
        Reloaded { put, failed: (!failed.is_well()).then_some(failed) }
    }

    /// Why a change of this part could not be one of what is in force: its file is broken, or gone.
    pub fn unreadable(&self, part: Part) -> Option<String> {
        match self.read_part(part, &self.current()) {
            Err(Unread::Broken(why)) => Some(why),
            Ok(_) | Err(Unread::Unanswered(_)) => None,
        }
    }

    /// What replicas share and could not be recorded for the other parts is still to be tried again.
    fn keep_in_mind(&self, failed: &Failed) {
        let mut last = self.last();
        let before = last.take().and_then(|last| last.unrecorded).filter(|_| self.sharing.is_some());
        let kept = Failed { unrecorded: failed.unrecorded.clone().or(before), ..failed.clone() };
        *last = (!kept.is_well()).then_some(kept);
    }

    /// What the last attempt says of the other parts, which this one does not look at.
    fn failed_otherwise(&self, part: Part) -> Failed {
        let last = self.failed();
        let broken =
            last.iter().flat_map(|last| &last.broken).filter(|(of, _)| *of != part).cloned().collect();
        let unanswered = last.and_then(|last| last.unanswered).filter(|_| part != Part::Tokens);
        Failed { at: clock::now(), broken, unanswered, unrecorded: None }
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
            Part::Keys => {
                let read = keyring_after(&keyring, &self.workspace);
                keyring = Arc::new(read.map_err(|fault| broken(&fault))?);
            }
            Part::Tokens => {
                roster = Arc::new(roster_after(&roster, &self.tokens).map_err(|fault| match fault {
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

/// The keyring as its file has it, where this one was in force before.
pub(in crate::gateway) fn keyring_after(
    before: &Keyring,
    workspace: &Workspace,
) -> Result<Keyring, WorkspaceFault> {
    let found = workspace.load_keyring_if_any()?;
    let gone =
        || WorkspaceFault::Keyring { path: workspace.keyring_path(), why: gone(before.keys().len(), "key") };
    found.or_else(|| before.keys().is_empty().then(Keyring::default)).ok_or_else(gone)
}

/// The roster as its file has it, where this one was in force before.
pub(in crate::gateway) fn roster_after(before: &Roster, tokens: &TokenFiles) -> Result<Roster, TokenFault> {
    let found = tokens.load_if_any()?;
    let gone = || TokenFault::Io { path: tokens.tokens(), why: gone(before.tokens().len(), "token") };
    found.or_else(|| before.tokens().is_empty().then(Roster::default)).ok_or_else(gone)
}

fn gone(had: usize, what: &str) -> String {
    let plural = if had == 1 { "" } else { "s" };
    format!(
        "is gone, and had {had} {what}{plural} in it: put it back from a backup; to have one count no longer, use `handoffd \
         {what}`"
    )
}
