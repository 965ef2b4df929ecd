//! What is in force, read from the workspace: policies, keys and tokens, each of them whole or not at all.
//!
//! What cannot be read leaves what was read before it in force, and says so until it can; the other parts come into force all
//! the same. A policy set that a person has to say yes to waits (`approving.rs`); keys and tokens do not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::approving::{FileList, Pending};
use super::{Gateway, Sharing};
use crate::callers::{Name, Roster, Token, TokenFault, TokenFiles};
use crate::engine::{EngineFault, EngineHandle, InForce, Proposing, TokenFacts, TokenHands};
use crate::ledger::postgres::PostgresFault;
use crate::os::clock;
use crate::policy::{PolicySet, Workspace};
use crate::proof::{Digest, Keyring};
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
        };
        let mut rules = keeper.current();
        let found = rules.in_force.policies.clone();
        let waits = keeper.waits(&found);
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
        self.reload_in_turn()
    }

    pub(super) fn reload_in_turn(&self) -> Reloaded {
        let before = self.current();
        let (found, Unread { broken, unanswered }) = Parts::read(&self.workspace, &self.tokens).over(&before);
        let (put, unrecorded) = match self.try_reload(found, &before, &broken) {
            Ok(put) => (put, None),
            Err(why) => (Put::Nothing, Some(why)),
        };
        let is_well = broken.is_empty() && unanswered.is_none() && unrecorded.is_none();
        let failed = (!is_well).then(|| Failed { at: clock::now(), broken, unanswered, unrecorded });
        self.last().clone_from(&failed);
        Reloaded { put, failed }
    }

    fn try_reload(&self, found: Rules, before: &Rules, broken: &[(Part, String)]) -> Result<Put, String> {
        // Policies that cannot be read propose nothing, and take nothing back that was proposed.
        if broken.iter().any(|(part, _)| *part == Part::Policies) {
            return self.put(found, before, Reading::Kept);
        }
        let (rules, held) = self.hold_back(found, before);
        let put = self.put(rules, before, Reading::Whole)?;
        Ok(match self.pend(held, Proposing::Changed)? {
            Some(digest) => Put::Waits { digest },
            None => put,
        })
    }

    /// Puts rules in force, if they are something else than those before.
    fn put(&self, mut rules: Rules, before: &Rules, reading: Reading) -> Result<Put, String> {
        let policies = rules.in_force.policies.digest() != before.in_force.policies.digest();
        let keyring = rules.in_force.keyring.to_file() != before.in_force.keyring.to_file();
        let roster = rules.roster.to_file() != before.roster.to_file();
        // A replica whose policies are behind and cannot be read has no say in what is in force for the others.
        let is_behind = reading == Reading::Kept && self.engine.differs().is_some();
        let loads = (policies || keyring) && !is_behind;
        if loads {
            self.say_what_is_in_force(&rules).map_err(|fault| fault.to_string())?;
        }
        self.withhold(&mut rules)?;
        let withheld = rules.in_force.withheld != before.in_force.withheld;
        if !policies && !keyring && !roster && !withheld {
            return Ok(Put::Nothing);
        }
        if !policies {
            rules.loaded_at = before.loaded_at;
        }
        // What was changed here is in force for everybody; what was changed elsewhere is so already.
        let recorded = if loads {
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
                Ok(Put::Changed { policies })
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
        let is_new = self.revision.swap(revision, Ordering::AcqRel) != revision;
        if is_new || self.failed().is_some() || self.is_outdated() {
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
    pub(super) fn compare(&self) {
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
    pub(super) fn say_what_is_in_force(&self, rules: &Rules) -> Result<(), PostgresFault> {
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let in_force = &rules.in_force;
        if in_force.consent.is_some() || !self.waits(&in_force.policies) {
            sharing.keep_files(&in_force.policies)?;
        }
        sharing.keep_fingerprints(&rules.in_force.keyring)
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

/// The same keys and tokens, with this policy set.
pub(super) fn with_policies(in_force: &InForce, policies: Arc<PolicySet>) -> InForce {
    let mut other = InForce::of_files(policies, in_force.keyring.clone(), in_force.tokens.clone());
    other.revoked.clone_from(&in_force.revoked);
    other.hands.clone_from(&in_force.hands);
    other
}

/// Were the policies read, or are they kept because they could not be?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Whole,
    Kept,
}

/// What of the rules could not be read.
struct Unread {
    broken: Vec<(Part, String)>,
    /// Why the ledger's database did not tell the tokens that gateways share.
    unanswered: Option<String>,
}

/// The rules as the workspace has them, each part for itself.
struct Parts {
    policies: Result<PolicySet, String>,
    keyring: Result<Keyring, String>,
    roster: Result<Roster, TokenFault>,
}

impl Parts {
    fn read(workspace: &Workspace, tokens: &TokenFiles) -> Self {
        Self {
            policies: workspace.load_policies().map_err(|fault| fault.to_string()),
            keyring: workspace.load_keyring().map_err(|fault| fault.to_string()),
            roster: tokens.load(),
        }
    }

    /// The rules, where there are none before them.
    fn all(self) -> Result<Rules, String> {
        Ok(rules_of(
            Arc::new(self.policies?),
            Arc::new(self.keyring?),
            Arc::new(self.roster.map_err(|fault| fault.to_string())?),
        ))
    }

    /// The rules, with what was there before in the place of each part that cannot be read; and which those are.
    fn over(self, before: &Rules) -> (Rules, Unread) {
        let (mut broken, mut unanswered) = (Vec::new(), None);
        let policies = kept(self.policies, &before.in_force.policies, Part::Policies, &mut broken);
        let keyring = kept(self.keyring, &before.in_force.keyring, Part::Keys, &mut broken);
        let roster = match self.roster {
            Err(fault @ TokenFault::Shared(_)) => {
                unanswered = Some(fault.to_string());
                before.roster.clone()
            }
            read => {
                let read = read.map_err(|fault| fault.to_string());
                kept(read, &before.roster, Part::Tokens, &mut broken)
            }
        };
        (rules_of(policies, keyring, roster), Unread { broken, unanswered })
    }
}

fn kept<T>(read: Result<T, String>, before: &Arc<T>, part: Part, broken: &mut Vec<(Part, String)>) -> Arc<T> {
    match read {
        Ok(read) => Arc::new(read),
        Err(why) => {
            broken.push((part, why));
            before.clone()
        }
    }
}

fn rules_of(policies: Arc<PolicySet>, keyring: Arc<Keyring>, roster: Arc<Roster>) -> Rules {
    let (valid, revoked): (Vec<&Token>, Vec<&Token>) =
        roster.tokens().iter().partition(|token| token.revoked_at().is_none());
    let tokens = valid.into_iter().map(facts).collect();
    let mut in_force = InForce::of_files(policies, keyring, tokens);
    in_force.revoked = revoked.into_iter().map(|token| token.fingerprint().to_string()).collect();
    in_force.hands = hands(&roster);
    Rules { in_force: Arc::new(in_force), roster, loaded_at: clock::now() }
}

/// Who made and revoked tokens, where a person did.
fn hands(roster: &Roster) -> TokenHands {
    let told = |by: fn(&Token) -> Option<&Name>| {
        let tokens = roster.tokens().iter();
        tokens.filter_map(|token| Some((token.fingerprint().to_string(), by(token)?.to_string()))).collect()
    };
    TokenHands { made: told(Token::made_by), revoked: told(Token::revoked_by) }
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
