//! What is in force, read from the workspace: policies, keys and tokens, each of them whole or not at all.
//!
//! What cannot be read leaves what was read before it in force, and says so until it can; the other parts come into force all
//! the same. A policy set that a person has to say yes to waits (`approving.rs`); keys and tokens do not.

pub(super) mod part;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::approving::{FileList, Pending};
use super::looks::Looks;
use super::parts::{Parts, Unread};
use super::{Gateway, Sharing};
use crate::callers::{Roster, TokenFiles};
use crate::engine::{EngineHandle, InForce, Proposing};
use crate::os::clock;
use crate::policy::{PolicySet, Workspace};
use crate::proof::Digest;
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
    pub(super) workspace: Workspace,
    pub(super) engine: EngineHandle,
    pub(super) tokens: TokenFiles,
    pub(super) sharing: Option<Sharing>,
    current: RwLock<Rules>,
    /// The set that the current one took the place of, if that was since the start: what only its digest is kept of cannot
    /// be compared.
    replaced: Mutex<Option<Arc<PolicySet>>>,
    /// Why the last attempt failed; nothing if it did not.
    last: Mutex<Option<Failed>>,
    /// Held while an attempt is made, so that they take turns. Not the one above: whoever asks how the last one
    /// went must not wait for a disk that the next one waits for.
    pub(super) turn: Mutex<()>,
    /// Does a changed policy set come into force with a person's yes only?
    pub(super) asks_first: bool,
    /// The set that the files have and that waits for that yes.
    pub(super) pending: Mutex<Option<Arc<Pending>>>,
    /// What the set in force consists of, for the next start.
    pub(super) file_list: FileList,
    /// The revision of what is shared that was read last.
    revision: AtomicU64,
    /// Why nothing may be decided by what is here, as of the last look at what is shared.
    differs: Mutex<Option<String>>,
    /// The policy set that was here when it was last the one in force. Beside others, one that came after it and is not in
    /// force comes into force when somebody says so.
    agreed: Mutex<Digest>,
    /// Why the last attempt that could not be recorded was made.
    owed: Mutex<Cause>,
    looks: Looks,
}

/// Why the files are read again: what that is good for grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Others changed something that is shared. The files may be in the middle of a change, and are not what is asked about.
    Looked,
    /// The files changed.
    Noticed,
    /// Somebody says that the policies are as they are meant to be.
    Told,
}

/// What becomes of the rules of a gateway that starts beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starting {
    /// If the ledger says that others are in force, it decides nothing until they are the same.
    Join,
    /// They are in force for all.
    Load,
}

/// A part of the rules. Each is read, whole or not at all, and comes into force by itself: a token that was revoked is out,
/// whatever has become of the policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Policies,
    Keys,
    Tokens,
}

impl Part {
    pub const ALL: [Self; 3] = [Self::Policies, Self::Keys, Self::Tokens];

    pub fn name(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::Keys => "keys",
            Self::Tokens => "tokens",
        }
    }
}

/// An attempt that failed, as a whole or in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub at: Timestamp,
    /// What cannot be read, and why; what it said before stays in force.
    pub broken: Vec<(Part, String)>,
    /// Why the tokens that gateways share are not known: the ledger's database did not answer. No file is to blame.
    pub unanswered: Option<String>,
    /// Why what could be read is not known to be in force for good.
    pub unrecorded: Option<String>,
}

/// Why a part is not in force as its files have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hindrance {
    Broken(String),
    /// Tokens that gateways share, and the ledger's database did not answer.
    Unanswered(String),
    Unrecorded(String),
}

impl Failed {
    /// What keeps this part out of force; nothing if it is in force.
    pub fn hinders(&self, part: Part) -> Option<Hindrance> {
        let broken = self.broken.iter().find(|(broken, _)| *broken == part);
        let broken = broken.map(|(_, why)| Hindrance::Broken(why.clone()));
        let unanswered = self.unanswered.clone().filter(|_| part == Part::Tokens).map(Hindrance::Unanswered);
        broken.or(unanswered).or_else(|| self.unrecorded.clone().map(Hindrance::Unrecorded))
    }

    fn is_well(&self) -> bool {
        self.broken.is_empty() && self.unanswered.is_none() && self.unrecorded.is_none()
    }

    /// Everything that is wrong, in one text.
    pub fn why(&self) -> String {
        let broken = self.broken.iter().map(|(_, why)| why.as_str());
        broken
            .chain(self.unanswered.as_deref())
            .chain(self.unrecorded.as_deref())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// What an attempt to put new rules in force came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloaded {
    pub put: Put,
    pub failed: Option<Failed>,
}

/// What has come into force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// Nothing but what was in force before.
    Nothing,
    /// Another policy set, other keys or tokens.
    Changed { policies: bool },
    /// Another policy set was found, and waits for a person's yes. Keys and tokens are in force all the same.
    Waits { digest: Digest },
}

impl RuleKeeper {
    /// Reads the rules and puts them in force. There is nothing to fall back on yet, so they must be good.
    pub fn start(workspace: Workspace, gateway: &Gateway, starting: Starting) -> Result<Self, String> {
        let (engine, tokens) = (gateway.engine().clone(), gateway.tokens());
        let sharing = gateway.sharing().cloned();
        let asks_first = engine.asks_first();
        let file_list = FileList::of(gateway.files());
        let rules = Parts::read(&workspace, &tokens).all()?;
        let agreed = Mutex::new(rules.in_force.policies.digest());
        let rules = RwLock::new(rules);
        let keeper = Self {
            workspace,
            engine,
            tokens,
            sharing,
            current: rules,
            replaced: Mutex::new(None),
            last: Mutex::new(None),
            turn: Mutex::new(()),
            asks_first,
            pending: Mutex::new(None),
            file_list,
            revision: AtomicU64::new(0),
            differs: Mutex::new(None),
            agreed,
            owed: Mutex::new(Cause::Looked),
            looks: Looks::default(),
        };
        let mut rules = keeper.current();
        let found = rules.in_force.policies.clone();
        let waits = keeper.waits(&found);
        if starting == Starting::Load {
            keeper.say_what_is_in_force(&rules, (true, true)).map_err(|fault| fault.to_string())?;
        }
        keeper.withhold(&mut rules)?;
        let put = match starting {
            Starting::Load => keeper.engine.put_in_force_and_wait(rules.in_force.clone()),
            Starting::Join => keeper.engine.join_and_wait(rules.in_force.clone()),
        };
        put.map_err(|fault| fault.to_string())?;
        keeper.set(rules);
        // Beside others a replica with other files does not mean them, unless it says so.
        if waits && (keeper.sharing.is_none() || starting == Starting::Load) {
            keeper.pend(Some(found), Proposing::Found)?;
        }
        keeper.compare();
        Ok(keeper)
    }

    /// Goes by these from now on.
    pub(super) fn set(&self, rules: Rules) {
        if self.asks_first && !self.waits(&rules.in_force.policies) {
            self.file_list.keep(&rules.in_force.policies);
        }
        let digest = rules.in_force.policies.digest();
        let before =
            std::mem::replace(&mut *self.current.write().unwrap_or_else(PoisonError::into_inner), rules);
        if before.in_force.policies.digest() != digest {
            *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(before.in_force.policies.clone());
        }
    }

    /// The set that was here before the current one; nothing if that was before the start.
    pub fn replaced(&self) -> Option<Arc<PolicySet>> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is in force now.
    pub fn current(&self) -> Rules {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn owed(&self) -> MutexGuard<'_, Cause> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn agreed(&self) -> Digest {
        *self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub fn reload(&self, cause: Cause) -> Reloaded {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.reload_in_turn(cause)
    }

    pub(super) fn reload_in_turn(&self, cause: Cause) -> Reloaded {
        let before = self.current();
        let read = Parts::read_again(&before, &self.workspace, &self.tokens);
        let (found, Unread { broken, unanswered }) = read.over(&before);
        let cause = cause.max(*self.owed());
        let (put, unrecorded) = match self.try_reload(found, &before, &broken, cause) {
            Ok(put) => (put, None),
            Err(why) => (Put::Nothing, Some(why)),
        };
        *self.owed() = if unrecorded.is_some() { cause } else { Cause::Looked };
        let failed = Failed { at: clock::now(), broken, unanswered, unrecorded };
        let failed = (!failed.is_well()).then_some(failed);
        self.last().clone_from(&failed);
        Reloaded { put, failed }
    }
}

impl RuleKeeper {
    /// Looks at what is shared with other gateways: whether tokens or keys were changed there, and whether what is here is
    /// what is in force. Asks a server; whoever cannot reach it finds out elsewhere.
    pub fn look_at_shared(&self) {
        let Some(sharing) = &self.sharing else { return };
        let look = self.looks.begin();
        let Ok(revision) = sharing.revision() else { return };
        let is_new = self.revision.swap(revision, Ordering::AcqRel) != revision;
        if is_new || self.failed().is_some() || self.is_outdated() {
            let _ = sharing.look_at_public_keys();
            self.reload(Cause::Looked);
        }
        if self.failed().is_none_or(|failed| failed.unanswered.is_none()) {
            self.looks.answered(look);
        }
        self.compare();
    }

    /// Waits until the tokens here are those that others may have made or revoked before this; at once where there are no
    /// others. False if that cannot be found out now.
    pub async fn know_shared_tokens(&self) -> bool {
        self.sharing.is_none() || self.looks.next().await
    }

    /// Why nothing may be decided by what is here.
    pub fn differs(&self) -> Option<String> {
        self.differs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Finds out whether what is here is what is in force, and in which file it differs.
    pub(super) fn compare(&self) {
        let Some(sharing) = &self.sharing else { return };
        let (rules, why) = (self.current(), self.engine.differs());
        let policies = &rules.in_force.policies;
        if self.engine.policy_digest() == Some(policies.digest()) {
            *self.agreed.lock().unwrap_or_else(PoisonError::into_inner) = policies.digest();
        }
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
}

/// The same keys and tokens, with this policy set.
pub(super) fn with_policies(in_force: &InForce, policies: Arc<PolicySet>) -> InForce {
    let mut other = InForce::of_files(policies, in_force.keyring.clone(), in_force.tokens.clone());
    other.revoked.clone_from(&in_force.revoked);
    other.hands.clone_from(&in_force.hands);
    other
}
