//! What of the rules that were read comes into force, and for whom.
//!
//! Beside other gateways a part comes into force for all only if it was changed here, and in the place of what was here
//! before: a replica that is behind, or whose files come one after the other, must not have its old rules, or a mixture that
//! nobody wrote, decide for everybody. What is not put in force joins what is, and if it is not the same, nothing is decided
//! here until it is.

use std::sync::Arc;

use super::rules::{Cause, Part, Put, RuleKeeper, Rules, with_policies};
use crate::engine::{EngineFault, Loading, Proposing, Putting};
use crate::ledger::postgres::PostgresFault;

impl RuleKeeper {
    pub(super) fn try_reload(
        &self,
        found: Rules,
        before: &Rules,
        broken: &[(Part, String)],
        cause: Cause,
    ) -> Result<Put, String> {
        // Policies that cannot be read propose nothing, and take nothing back that was proposed.
        if broken.iter().any(|(part, _)| *part == Part::Policies) {
            return self.put(found, before, cause);
        }
        let found = if cause == Cause::Looked { self.as_far_as_in_force(found, before)? } else { found };
        let (rules, held) = self.hold_back(found, before);
        let put = self.put(rules, before, cause)?;
        Ok(match self.pend(held, Proposing::Changed)? {
            Some(digest) => Put::Waits { digest },
            None => put,
        })
    }

    /// Only what is in force already of what changed here: whoever watches the files, or is told, sees to the rest.
    fn as_far_as_in_force(&self, found: Rules, before: &Rules) -> Result<Rules, String> {
        let Some(sharing) = &self.sharing else { return Ok(found) };
        let (has_policies, has_keys) = self.engine.has_parts_of(&found.in_force);
        let mut in_force = with_policies(&found.in_force, found.in_force.policies.clone());
        // A set that waits for a person comes into force by nothing else.
        if !has_policies && !self.asks_first {
            in_force.policies = before.in_force.policies.clone();
        }
        let differing = sharing.differing_keys(&in_force.keyring).map_err(|fault| fault.to_string())?;
        if !has_keys || !differing.is_empty() {
            in_force.keyring = before.in_force.keyring.clone();
        }
        Ok(Rules { in_force: Arc::new(in_force), ..found })
    }

    /// Puts rules in force, if they are something else than those before.
    pub(super) fn put(&self, mut rules: Rules, before: &Rules, cause: Cause) -> Result<Put, String> {
        let policies = rules.in_force.policies.digest() != before.in_force.policies.digest();
        let keyring = rules.in_force.keyring.to_file() != before.in_force.keyring.to_file();
        let roster = rules.roster.to_file() != before.roster.to_file();
        let over =
            |changed: bool| if changed { Loading::Over(before.in_force.clone()) } else { Loading::Not };
        let is_meant = cause == Cause::Told && rules.in_force.policies.digest() != self.agreed();
        let putting = Putting {
            policies: if is_meant { Loading::OverAnything } else { over(policies) },
            keys: over(keyring),
        };
        let loads = self.engine.would_load(&rules.in_force, &putting);
        self.say_what_is_in_force(&rules, loads).map_err(|fault| fault.to_string())?;
        self.withhold(&mut rules)?;
        let withheld = rules.in_force.withheld != before.in_force.withheld;
        if !policies && !keyring && !roster && !withheld && loads == (false, false) {
            return Ok(Put::Nothing);
        }
        if !policies {
            rules.loaded_at = before.loaded_at;
        }
        self.record(rules, putting)?;
        Ok(Put::Changed { policies })
    }

    fn record(&self, rules: Rules, putting: Putting) -> Result<(), String> {
        let recorded = self.engine.put_and_wait(rules.in_force.clone(), putting);
        match recorded {
            // Others may be changing them too: it is tried again before anybody goes by it.
            Err(fault @ EngineFault::NotDurable(_)) if self.sharing.is_some() => Err(fault.to_string()),
            // The sequencer judges by it already; the ledger hears of it with the next batch that succeeds.
            Ok(()) | Err(EngineFault::NotDurable(_)) => {
                self.set(rules);
                recorded.map_err(|fault| fault.to_string())
            }
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// Are the rules here those that the ledger says are in force?
    pub fn are_in_force(&self) -> bool {
        self.engine.differs().is_none()
    }

    /// Is the key of this name here what it is for everybody?
    pub fn key_is_in_force(&self, key_id: &str) -> bool {
        self.sharing.is_none() || !self.engine.key_differs(&self.current().in_force.keyring, key_id)
    }

    /// Lets others know what the policies, and the keys, consist of that are being put in force here.
    pub(super) fn say_what_is_in_force(
        &self,
        Rules { in_force, .. }: &Rules,
        (policies, keys): (bool, bool),
    ) -> Result<(), PostgresFault> {
        let Some(sharing) = &self.sharing else { return Ok(()) };
        if policies && (in_force.consent.is_some() || !self.waits(&in_force.policies)) {
            sharing.keep_files(&in_force.policies)?;
        }
        if keys { sharing.keep_fingerprints(&in_force.keyring) } else { Ok(()) }
    }

    /// Keys that others have under the same name with another secret would let the same handoff pass here and not there.
    pub(super) fn withhold(&self, rules: &mut Rules) -> Result<(), String> {
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let in_force = &rules.in_force;
        let differing = sharing.differing_keys(&in_force.keyring).map_err(|fault| fault.to_string())?;
        if !differing.is_empty() {
            let why = format!(
                "memory/keyring.json has other secrets than those in force: {}",
                differing.join(", ")
            );
            let mut withheld = with_policies(in_force, in_force.policies.clone());
            withheld.withheld = Some(why);
            rules.in_force = Arc::new(withheld);
        }
        Ok(())
    }
}
