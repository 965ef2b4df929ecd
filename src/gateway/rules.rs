//! What is in force, read from the workspace: policies, keys and tokens, all of them or none.
//!
//! A set that cannot be read leaves the one before it in force, and says so until it can.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::{Gateway, Sharing};
use crate::callers::{Roster, Token, TokenFiles};
use crate::engine::{EngineFault, EngineHandle, InForce, TokenFacts};
use crate::ledger::postgres::PostgresFault;
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
    tokens: TokenFiles,
    sharing: Option<Sharing>,
    current: RwLock<Rules>,
    /// Why the last attempt failed; nothing if it did not.
    last: Mutex<Option<Failed>>,
    /// Held while an attempt is made, so that they take turns. Not the one above: whoever asks how the last one
    /// went must not wait for a disk that the next one waits for.
    turn: Mutex<()>,
    /// The revision of what is shared that was read last.
    revision: AtomicU64,
    /// Why nothing may be decided by what is here, as of the last look at what is shared.
    differs: Mutex<Option<String>>,
}

/// What becomes of the rules of a gateway that starts beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starting {
    /// If the ledger says that others are in force, it decides nothing until they are the same.
    Join,
    /// They are in force for all.
    Load,
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
    pub fn start(workspace: Workspace, gateway: &Gateway, starting: Starting) -> Result<Self, String> {
        let (engine, tokens) = (gateway.engine().clone(), gateway.tokens());
        let sharing = gateway.sharing().cloned();
        let rules = read(&workspace, &tokens)?;
        let rules = RwLock::new(rules);
        let keeper = Self {
            workspace,
            engine,
            tokens,
            sharing,
            current: rules,
            last: Mutex::new(None),
            turn: Mutex::new(()),
            revision: AtomicU64::new(0),
            differs: Mutex::new(None),
        };
        let mut rules = keeper.current();
        if starting == Starting::Load {
            keeper.say_what_is_in_force(&rules).map_err(|fault| fault.to_string())?;
        }
        keeper.withhold(&mut rules)?;
        let put = match starting {
            Starting::Load => keeper.engine.put_in_force_and_wait(rules.in_force.clone()),
            Starting::Join => keeper.engine.join_and_wait(rules.in_force.clone()),
        };
        put.map_err(|fault| fault.to_string())?;
        keeper.set(rules);
        keeper.compare();
        Ok(keeper)
    }

    fn set(&self, rules: Rules) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = rules;
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
        let mut rules = read(&self.workspace, &self.tokens)?;
        let before = self.current();
        let policies = rules.in_force.policies.digest() != before.in_force.policies.digest();
        let keyring = rules.in_force.keyring.to_file() != before.in_force.keyring.to_file();
        let roster = rules.roster.to_file() != before.roster.to_file();
        if policies || keyring {
            self.say_what_is_in_force(&rules).map_err(|fault| fault.to_string())?;
        }
        self.withhold(&mut rules)?;
        let withheld = rules.in_force.withheld != before.in_force.withheld;
        if !policies && !keyring && !roster && !withheld {
            return Ok(Reloaded::Same);
        }
        if !policies {
            rules.loaded_at = before.loaded_at;
        }
        // What was changed here is in force for everybody; what was changed elsewhere is so already.
        let recorded = if policies || keyring {
            self.engine.put_in_force_and_wait(rules.in_force.clone())
        } else {
            self.engine.join_and_wait(rules.in_force.clone())
        };
        match recorded {
            // Others may be changing them too: it is tried again before anybody goes by it.
            Err(fault @ EngineFault::NotDurable(_)) if self.sharing.is_some() => Err(fault.to_string()),
            // The sequencer judges by it already; the ledger hears of it with the next batch that succeeds.
            Ok(()) | Err(EngineFault::NotDurable(_)) => {
                self.set(rules);
                recorded.map_err(|fault| fault.to_string())?;
                Ok(Reloaded::Changed { policies })
            }
            Err(fault) => Err(fault.to_string()),
        }
    }
}

impl RuleKeeper {
    /// Looks at what is shared with other gateways: whether tokens or keys were changed there, and whether what is here is
    /// what is in force. Asks a server; whoever cannot reach it finds out elsewhere.
    pub fn look_at_shared(&self) {
        let Some(sharing) = &self.sharing else { return };
        let Ok(revision) = sharing.revision() else { return };
        if self.revision.swap(revision, Ordering::AcqRel) != revision || self.failed().is_some() {
            let _ = sharing.look_at_public_keys();
            self.reload();
        }
        self.compare();
    }

    /// Why nothing may be decided by what is here.
    pub fn differs(&self) -> Option<String> {
        self.differs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finds out whether what is here is what is in force, and in which file it differs.
    fn compare(&self) {
        let Some(sharing) = &self.sharing else { return };
        let (rules, why) = (self.current(), self.engine.differs());
        let policies = &rules.in_force.policies;
        let found = match why {
            Some(why) => Some(match sharing.differing_files(policies) {
                Ok(files) if !files.is_empty() => format!("{why}; these files differ: {}", files.join(", ")),
                _ => why,
            }),
            None => {
                // Whoever goes by what is in force can say what it consists of.
                let _ = sharing.keep_files(policies);
                if matches!(sharing.has_fingerprints(), Ok(false)) {
                    let _ = sharing.keep_fingerprints(&rules.in_force.keyring);
                }
                None
            }
        };
        *self.differs.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Lets others know what the rules consist of that are being put in force here.
    fn say_what_is_in_force(&self, rules: &Rules) -> Result<(), PostgresFault> {
        let Some(sharing) = &self.sharing else { return Ok(()) };
        sharing.keep_files(&rules.in_force.policies)?;
        sharing.keep_fingerprints(&rules.in_force.keyring)
    }

    /// Keys that others have under the same name with another secret would let the same handoff pass here and not there.
    fn withhold(&self, rules: &mut Rules) -> Result<(), String> {
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let in_force = &rules.in_force;
        let differing = sharing.differing_keys(&in_force.keyring).map_err(|fault| fault.to_string())?;
        if !differing.is_empty() {
            let why = format!(
                "memory/keyring.json has other secrets than those in force: {}",
                differing.join(", ")
            );
            let mut withheld = InForce::of_files(
                in_force.policies.clone(),
                in_force.keyring.clone(),
                in_force.tokens.clone(),
            );
            withheld.revoked.clone_from(&in_force.revoked);
            withheld.withheld = Some(why);
            rules.in_force = Arc::new(withheld);
        }
        Ok(())
    }
}

fn read(workspace: &Workspace, tokens: &TokenFiles) -> Result<Rules, String> {
    let policies = workspace.load_policies().map_err(|fault| fault.to_string())?;
    let keyring = workspace.load_keyring().map_err(|fault| fault.to_string())?;
    let roster = tokens.load().map_err(|fault| fault.to_string())?;
    let (valid, revoked): (Vec<&Token>, Vec<&Token>) =
        roster.tokens().iter().partition(|token| token.revoked_at().is_none());
    let tokens = valid.into_iter().map(facts).collect();
    let mut in_force = InForce::of_files(Arc::new(policies), Arc::new(keyring), tokens);
    in_force.revoked = revoked.into_iter().map(|token| token.fingerprint().to_string()).collect();
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
