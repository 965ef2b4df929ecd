//! What replicas of one ledger share beside it: the roster, public keys, and what tells rules that differ apart.
//!
//! What is in force is said by the ledger. The documents here only let a replica find its tokens, and name the file that
//! makes it differ from the others. Everything here asks a server, and waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::callers::{SharedRoster, TokenFiles};
use crate::ledger::postgres::{Database, PostgresFault, SharedFault, SharedKind};
use crate::ledger::{Checkpoint, Source, gateway_key_id};
use crate::policy::PolicySet;
use crate::proof::Keyring;

/// The one document of a kind that has one.
const ONLY: &str = "in-force";

/// How often a change is tried that others come before.
const TRIES: usize = 5;

/// The shared tables, as a gateway uses them.
#[derive(Debug, Clone)]
pub struct Sharing {
    database: Database,
    /// The public keys of all gateways, as of the last look.
    public_keys: Arc<Mutex<Vec<String>>>,
    /// Up to where this gateway's checkpoints are in the database, as far as it knows.
    checkpoint: Arc<AtomicU64>,
}

impl Sharing {
    /// Nothing where the ledger is not shared.
    pub fn of(ledger: &Source) -> Option<Self> {
        match ledger {
            Source::Database(database) => {
                let database = database.clone();
                Some(Self { database, public_keys: Arc::default(), checkpoint: Arc::default() })
            }
            Source::Files(_) | Source::Memory(_) => None,
        }
    }

    /// The tables themselves, for what has a form of its own in them.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// The tokens of a workspace whose gateway has this public key.
    pub fn tokens(&self, files: TokenFiles, public_key: &str) -> TokenFiles {
        let id = gateway_key_id(public_key);
        files.sharing(Arc::new(StoredRoster(self.database.clone())), id.get(3..11).unwrap_or_default())
    }

    /// Grows with every change of anything that is shared.
    pub(super) fn revision(&self) -> Result<u64, PostgresFault> {
        self.database.shared_revision()
    }

    /// Lets others know this gateway's public key, and looks at theirs.
    pub(super) fn share_public_key(&self, public_key: &str) -> Result<(), PostgresFault> {
        self.put(SharedKind::GatewayKey, &gateway_key_id(public_key), public_key)?;
        self.look_at_public_keys()
    }

    pub(super) fn look_at_public_keys(&self) -> Result<(), PostgresFault> {
        let keys = self.database.shared(SharedKind::GatewayKey)?;
        // A key is what its name says it is, or it is none.
        let sound = keys.into_iter().filter(|key| gateway_key_id(&key.document) == key.name);
        let sound = sound.map(|key| key.document).collect();
        *self.public_keys.lock().unwrap_or_else(PoisonError::into_inner) = sound;
        Ok(())
    }

    pub(super) fn public_keys(&self) -> Vec<String> {
        self.public_keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves a checkpoint where a copy of the ledger finds it.
    pub(super) fn keep_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), PostgresFault> {
        if self.checkpoint.load(Ordering::Acquire) < checkpoint.sequence {
            self.database.keep_checkpoint(checkpoint)?;
            self.checkpoint.fetch_max(checkpoint.sequence, Ordering::AcqRel);
        }
        Ok(())
    }

    /// The files of a set that are not those of the set in force; nothing if nobody has said which those are.
    pub(super) fn differing_files(&self, policies: &PolicySet) -> Result<Vec<String>, PostgresFault> {
        let Some(theirs) = self.map(SharedKind::PolicyFiles)? else { return Ok(Vec::new()) };
        Ok(differing(&files_of(policies), &theirs))
    }

    /// The files of the set in force, as somebody has said them.
    pub(super) fn files_in_force(&self) -> Result<Option<BTreeMap<String, String>>, PostgresFault> {
        self.map(SharedKind::PolicyFiles)
    }

    /// Says which files the set in force consists of.
    pub(super) fn keep_files(&self, policies: &PolicySet) -> Result<(), PostgresFault> {
        self.put(SharedKind::PolicyFiles, ONLY, &text_of(&files_of(policies)))
    }

    /// The keys of a ring that others have under the same name with another secret.
    pub(super) fn differing_keys(&self, keyring: &Keyring) -> Result<Vec<String>, PostgresFault> {
        let Some(theirs) = self.map(SharedKind::KeyFingerprint)? else { return Ok(Vec::new()) };
        let own = self.fingerprints(keyring);
        Ok(own
            .into_iter()
            .filter(|(id, own)| theirs.get(id).is_some_and(|its| its != own))
            .map(|(id, _)| id)
            .collect())
    }

    /// Says what the keys in force are.
    pub(super) fn keep_fingerprints(&self, keyring: &Keyring) -> Result<(), PostgresFault> {
        self.put(SharedKind::KeyFingerprint, ONLY, &text_of(&self.fingerprints(keyring)))
    }

    /// Has anybody said what the keys in force are?
    pub(super) fn has_fingerprints(&self) -> Result<bool, PostgresFault> {
        self.map(SharedKind::KeyFingerprint).map(|map| map.is_some())
    }

    fn fingerprints(&self, keyring: &Keyring) -> BTreeMap<String, String> {
        let fingerprint =
            |key: &crate::proof::Key| (key.id().to_owned(), key.fingerprint(self.database.topic_id()));
        keyring.keys().iter().map(fingerprint).collect()
    }

    fn map(&self, kind: SharedKind) -> Result<Option<BTreeMap<String, String>>, PostgresFault> {
        let found = self.database.shared(kind)?.into_iter().find(|document| document.name == ONLY);
        let Some(found) = found else { return Ok(None) };
        let unsound = |_| PostgresFault::Server("a shared document is none of ours".to_owned());
        serde_json::from_str(&found.document).map(Some).map_err(unsound)
    }

    /// Puts a document in the place of what is there.
    fn put(&self, kind: SharedKind, name: &str, text: &str) -> Result<(), PostgresFault> {
        for _ in 0..TRIES {
            let found = self.database.shared(kind)?.into_iter().find(|document| document.name == name);
            let put = match found {
                Some(found) if found.document == text => return Ok(()),
                Some(found) => self.database.replace_shared(kind, name, text, found.revision),
                None => self.database.add_shared(kind, name, text),
            };
            match put {
                Ok(_) => return Ok(()),
                Err(SharedFault::Changed) => {}
                Err(SharedFault::Database(fault)) => return Err(fault),
            }
        }
        Err(PostgresFault::Server("others change the same document all the time".to_owned()))
    }
}

fn files_of(policies: &PolicySet) -> BTreeMap<String, String> {
    policies.files().iter().map(|(path, digest)| (path.clone(), digest.to_string())).collect()
}

fn text_of(map: &BTreeMap<String, String>) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

/// The names that are not the same in both.
fn differing(these: &BTreeMap<String, String>, those: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = these.keys().chain(those.keys()).collect();
    names.into_iter().filter(|name| these.get(*name) != those.get(*name)).cloned().collect()
}

/// The roster in the shared tables.
#[derive(Debug)]
struct StoredRoster(Database);

impl SharedRoster for StoredRoster {
    fn read(&self) -> Result<Option<(String, u64)>, String> {
        let all = self.0.shared(SharedKind::Token).map_err(|fault| fault.to_string())?;
        let found = all.into_iter().find(|document| document.name == ONLY);
        Ok(found.map(|found| (found.document, found.revision)))
    }

    fn replace(&self, text: &str, as_of: Option<u64>) -> Result<bool, String> {
        let replaced = match as_of {
            Some(as_of) => self.0.replace_shared(SharedKind::Token, ONLY, text, as_of),
            None => self.0.add_shared(SharedKind::Token, ONLY, text),
        };
        match replaced {
            Ok(_) => Ok(true),
            Err(SharedFault::Changed) => Ok(false),
            Err(SharedFault::Database(fault)) => Err(fault.to_string()),
        }
    }
}
