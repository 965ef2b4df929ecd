//! What is in force, read from the workspace: policies, keys and tokens, all of them or none.
//!
//! A set that cannot be read leaves the one before it in force, and says so until it can.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::callers::{Roster, Token, TokenFiles};
use crate::engine::{EngineFault, EngineHandle, InForce, TokenFacts};
use crate::os::clock;
use crate::policy::Workspace;
use crate::timestamp::Timestamp;

/// All that is in force.
#[derive(Debug, Clone)]
pub struct Rules {
    pub in_force: Arc<InForce>,
    pub roster: Arc<Roster>,
    /// When the policy set that is in force was read.
    pub loaded_at: Timestamp,
}

/// Keeps the rules, and puts new ones in force.
#[derive(Debug)]
pub struct RuleKeeper {
    workspace: Workspace,
    engine: EngineHandle,
    current: RwLock<Rules>,
    /// Why the last attempt failed; nothing if it did not.
    last: Mutex<Option<Failed>>,
    /// Held while an attempt is made, so that they take turns. Not the one above: whoever asks how the last one
    /// went must not wait for a disk that the next one waits for.
    turn: Mutex<()>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub at: Timestamp,
    pub why: String,
}

/// What an attempt to put new rules in force came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reloaded {
    /// They are what was in force before.
    Same,
    /// Another policy set, other keys or tokens.
    Changed {
        policies: bool,
    },
    Failed(Failed),
}

impl RuleKeeper {
    /// Reads the rules and puts them in force. There is nothing to fall back on yet, so they must be good.
    pub fn start(workspace: Workspace, engine: EngineHandle) -> Result<Self, String> {
        let rules = read(&workspace)?;
        engine.put_in_force_and_wait(rules.in_force.clone()).map_err(|fault| fault.to_string())?;
        Ok(Self {
            workspace,
            engine,
            current: RwLock::new(rules),
            last: Mutex::new(None),
            turn: Mutex::new(()),
        })
    }

    /// What is in force now.
    pub fn current(&self) -> Rules {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Why the files are not what is in force, if they are not.
    pub fn failed(&self) -> Option<Failed> {
        self.last().clone()
    }

    fn last(&self) -> MutexGuard<'_, Option<Failed>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again, and puts what they say in force if it is something else. Blocks until the ledger
    /// has it.
    pub fn reload(&self) -> Reloaded {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.try_reload();
        match result {
            Ok(reloaded) => {
                *self.last() = None;
                reloaded
            }
            Err(why) => {
                let failed = Failed { at: clock::now(), why };
                *self.last() = Some(failed.clone());
                Reloaded::Failed(failed)
            }
        }
    }

    fn try_reload(&self) -> Result<Reloaded, String> {
        let mut rules = read(&self.workspace)?;
        let before = self.current();
        let policies = rules.in_force.policies.digest() != before.in_force.policies.digest();
        let keyring = rules.in_force.keyring.to_file() != before.in_force.keyring.to_file();
        let roster = rules.roster.to_file() != before.roster.to_file();
        if !policies && !keyring && !roster {
            return Ok(Reloaded::Same);
        }
        if !policies {
            rules.loaded_at = before.loaded_at;
        }
        let recorded = self.engine.put_in_force_and_wait(rules.in_force.clone());
        match recorded {
            // The sequencer judges by it already; the ledger hears of it with the next batch that succeeds.
            Ok(()) | Err(EngineFault::NotDurable(_)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = rules;
                recorded.map_err(|fault| fault.to_string())?;
                Ok(Reloaded::Changed { policies })
            }
            Err(fault) => Err(fault.to_string()),
        }
    }
}

fn read(workspace: &Workspace) -> Result<Rules, String> {
    let policies = workspace.load_policies().map_err(|fault| fault.to_string())?;
    let keyring = workspace.load_keyring().map_err(|fault| fault.to_string())?;
    let roster = TokenFiles::of(workspace.root()).load().map_err(|fault| fault.to_string())?;
    let tokens = roster.tokens().iter().filter(|token| token.revoked_at().is_none()).map(facts).collect();
    let in_force = InForce::of_files(Arc::new(policies), Arc::new(keyring), tokens);
    Ok(Rules { in_force: Arc::new(in_force), roster: Arc::new(roster), loaded_at: clock::now() })
}

/// What the ledger says of a token.
fn facts(token: &Token) -> TokenFacts {
    TokenFacts {
        agent_id: token.caller().agent_id().map(str::to_owned),
        name: token.name().to_string(),
        principal: token.caller().standing().principal().map(str::to_owned),
        role: token.role().as_str().to_owned(),
        token_id: token.fingerprint().to_string(),
    }
}
