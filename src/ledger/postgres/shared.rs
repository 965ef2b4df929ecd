//! What replicas share beside the log: small documents by kind and name, and the checkpoints that were signed.
//!
//! What is in them is for others to say. A change is made only to what its maker has read, so two replicas that change
//! the same thing at once do not undo each other. Nothing is ever removed: a token that was revoked says so.

use super::link::{Committed, Link, Row};
use super::{Database, PostgresFault, stored};
use crate::ledger::Checkpoint;

/// Kinds of documents. A name is never given another meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKind {
    /// The roster: the hash of each token and what it may do, or that it was revoked.
    Token,
    /// The public half of a gateway's key.
    GatewayKey,
    /// The fingerprints of the keys in force, which every replica must have.
    KeyFingerprint,
    /// The digests of the files that the policy set in force consists of.
    PolicyFiles,
}

impl SharedKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::GatewayKey => "gateway-key",
            Self::KeyFingerprint => "key-fingerprint",
            Self::PolicyFiles => "policy-files",
        }
    }
}

/// A document that replicas share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    pub name: String,
    pub document: String,
    /// Grows with every change of anything that is shared.
    pub revision: u64,
}

/// Why a document was not changed.
#[derive(Debug)]
pub enum SharedFault {
    /// It is no longer what it was when it was read: read it again.
    Changed,
    Database(PostgresFault),
}

impl std::fmt::Display for SharedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed => write!(f, "another replica has changed it meanwhile"),
            Self::Database(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for SharedFault {}

const ALL: &str = "select name, document, revision from handoffd_shared where kind = $1 order by name";
const REVISION: &str = "select revision from handoffd_ledger";
const NEXT_REVISION: &str = "update handoffd_ledger set revision = revision + 1 returning revision";
const ADD: &str = "insert into handoffd_shared (kind, name, document, revision) values ($1, $2, $3, $4) \
     on conflict do nothing";
const REPLACE: &str = "update handoffd_shared set document = $3, revision = $4 \
     where kind = $1 and name = $2 and revision = $5";
const KEEP_CHECKPOINT: &str = "insert into handoffd_checkpoints (key_id, sequence, document) values ($1, $2, $3) \
     on conflict (key_id) do update set sequence = excluded.sequence, document = excluded.document \
     where handoffd_checkpoints.sequence <= excluded.sequence";
const CHECKPOINTS: &str = "select document from handoffd_checkpoints order by sequence, key_id";

/// What shall become of a document.
enum Change<'c> {
    Add(&'c str),
    Replace(&'c str, u64),
}

impl Database {
    /// All documents of a kind, by name.
    pub fn shared(&self, kind: SharedKind) -> Result<Vec<Shared>, PostgresFault> {
        self.ask(async |link| {
            let rows = link.rows(ALL, &[&kind.as_str()]).await?;
            let document =
                |row: &Row| Ok(Shared { name: row.get(0)?, document: row.get(1)?, revision: row.count(2)? });
            rows.iter().map(document).collect()
        })
    }

    /// The revision of the last change of anything that is shared; whoever has read at it has read everything.
    pub fn shared_revision(&self) -> Result<u64, PostgresFault> {
        self.ask(async |link| revision(link, REVISION).await)
    }

    /// Adds a document that is not there yet.
    pub fn add_shared(&self, kind: SharedKind, name: &str, document: &str) -> Result<u64, SharedFault> {
        self.change_shared(kind, name, &Change::Add(document))
    }

    /// Replaces a document as it was at a revision.
    pub fn replace_shared(
        &self,
        kind: SharedKind,
        name: &str,
        document: &str,
        as_of: u64,
    ) -> Result<u64, SharedFault> {
        self.change_shared(kind, name, &Change::Replace(document, as_of))
    }

    fn change_shared(&self, kind: SharedKind, name: &str, change: &Change<'_>) -> Result<u64, SharedFault> {
        let changed = self.wait(async {
            // A new connection: one that lay idle may have broken, and this is not done twice.
            let mut link = Link::make(&self.0.address).await?;
            let changed = apply(&mut link, kind.as_str(), name, change).await?;
            self.give_back(link);
            Ok(changed)
        });
        changed.map_err(SharedFault::Database)?.ok_or(SharedFault::Changed)
    }

    /// Keeps a checkpoint, unless a newer one of the same key is kept already.
    pub fn keep_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), PostgresFault> {
        let document =
            serde_json::to_string(checkpoint).map_err(|error| PostgresFault::Server(error.to_string()))?;
        let sequence = stored(checkpoint.sequence);
        self.ask(async |link| {
            link.change(KEEP_CHECKPOINT, &[&checkpoint.key_id, &sequence, &document]).await
        })?;
        Ok(())
    }

    /// The newest checkpoint of each key, the newest of all last. Whether they are signed is for the reader to see.
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>, PostgresFault> {
        let documents = self.ask(async |link| {
            let rows = link.rows(CHECKPOINTS, &[]).await?;
            rows.iter().map(|row| row.get(0)).collect::<Result<Vec<String>, _>>()
        })?;
        let read = |text: &String| serde_json::from_str(text);
        let read: Result<_, _> = documents.iter().map(read).collect();
        read.map_err(|_| PostgresFault::Server("a checkpoint in it is none".to_owned()))
    }
}

async fn revision(link: &mut Link, sql: &'static str) -> Result<u64, PostgresFault> {
    link.the_row(sql).await?.count(0)
}

/// The new revision; nothing if the document was not as it was read.
async fn apply(
    link: &mut Link,
    kind: &str,
    name: &str,
    change: &Change<'_>,
) -> Result<Option<u64>, PostgresFault> {
    link.batch("begin").await?;
    let next = revision(link, NEXT_REVISION).await?;
    let changed = match change {
        Change::Add(document) => link.change(ADD, &[&kind, &name, document, &stored(next)]).await?,
        Change::Replace(document, as_of) => {
            link.change(REPLACE, &[&kind, &name, document, &stored(next), &stored(*as_of)]).await?
        }
    };
    if changed == 0 {
        link.batch("rollback").await?;
        return Ok(None);
    }
    link.batch("set local statement_timeout = 0").await?;
    match link.commit().await {
        Committed::Yes => Ok(Some(next)),
        // Whoever asked reads again and sees.
        Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
    }
}
