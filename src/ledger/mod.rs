//! The ledger: entries in a hash chain, and the logs that make them durable.
//!
//! Core: [`RunningHash`], [`Head`], [`Batch`]. Hands: [`SegmentLog`] (files), through a [`Disk`] that tests can
//! make fail, [`postgres`] (a database that several gateways share), and [`MemoryLog`] (gone at the end). One conditional
//! append is the whole protocol: `append(after, batch)` succeeds only if the head is still `after`, and returns only when
//! the batch is durable. Whichever it is, [`Source`] reads it back.
//!
//! Deliberately absent: what an entry means. The verifier shares no code with what is written here.

mod batch;
mod bodies;
mod chain;
mod checkpoint;
mod closing;
mod copy;
mod disk;
mod entries;
mod follow;
mod journal;
mod line;
mod memory;
pub mod postgres;
mod purge;
mod recorded;
mod recovery;
mod seals;
mod search;
mod segments;
mod source;
mod stirring;
mod tail;
pub mod verify;

pub use batch::{Batch, BatchBuilder, EntryMeta};
pub use bodies::read_body;
pub use chain::{Head, RunningHash};
pub use checkpoint::{Checkpoint, gateway_key_id};
pub use closing::Closing;
pub(crate) use closing::parse as parse_closing;
pub use copy::{CopyFault, copy_segments};
pub use disk::{Disk, DiskFile, FileIdentity, FilePlace, RealDisk, Room, Space};
pub use entries::{Entries, EntriesFault, Entry};
pub use follow::{Follower, Notice};
pub use journal::journaled;
pub use memory::{MemoryLog, MemoryStore};
pub use purge::{PurgeFault, PurgeMode, Purged, purge_bodies};
pub(crate) use recorded::{Part, Recorded, RecordedSegments};
pub use recovery::{OpenFault, Torn};
pub use seals::Seals;
pub use segments::{SegmentLog, has_remains, inspect, name_of_log};
pub use source::{Source, SourceEntries};
pub use tail::Tail;

/// A durable, ordered log with one writer.
pub trait Log: Send {
    /// The log's own name; part of every hash.
    fn topic_id(&self) -> &str;

    /// The last entry that is durable.
    fn head(&self) -> Head;

    /// What becomes of what is appended.
    fn keeping(&self) -> Keeping {
        Keeping::Alone
    }

    /// Makes a batch durable on top of `after`, whole or not at all.
    ///
    /// After an error nothing of the batch may be acknowledged. It is cut off again at once, or before the next
    /// append; should the process die before either could be done, a whole batch may be found on restart, as if
    /// only its answer had been lost. A retry then finds its decision: that is what idempotency keys are for.
    fn append(&mut self, after: Head, batch: &Batch) -> Result<(), AppendFault>;

    /// Could a batch be appended now, as far as can be told without writing one? Mends what a failed append left
    /// behind, if it can.
    fn check(&mut self) -> Result<(), AppendFault>;

    /// What others have appended behind `after`, in order, as much as is read at once; nothing where nobody else does.
    fn behind(&mut self, after: Head) -> Result<Vec<Entry>, AppendFault> {
        let _ = after;
        Ok(Vec::new())
    }

    /// Sees to it that everything up to an entry that was read is as durable as what was appended here; without one, that
    /// something still could be. What others append may be seen before it is wherever it has to be.
    fn secure(&mut self, through: Option<u64>) -> Result<Secure, AppendFault> {
        let _ = through;
        Ok(Secure::Now)
    }

    /// A log whose append came too late may keep its turn, so that the next one does not. This gives it up.
    fn pass(&mut self) {}

    /// What tells that others may have appended; nothing where nobody else does.
    fn bell(&self) -> Option<Box<dyn Bell>> {
        None
    }
}

/// How it is known that something is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secure {
    /// More would be, too.
    Now,
    /// By what was found before, which says nothing of more; or it was asked a moment ago, and is what it was found to be then.
    Before,
}

/// Tells when others may have appended.
pub trait Bell: Send {
    /// Waits until they may have, but not for long. The entry that they are said to have reached, if it is said.
    fn wait(&mut self) -> Option<u64>;
}

/// How a log keeps what is appended to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// For ever, and nobody else appends to it.
    Alone,
    /// For ever, and others append to it too.
    Shared,
    /// Until the process ends.
    Volatile,
}

/// Why a batch was not appended.
#[derive(Debug)]
pub enum AppendFault {
    /// The head is no longer where the batch was built on.
    Conflict { head: Head },
    /// The disk did not take it. The next append tries to mend what this one left behind.
    NotDurable(std::io::Error),
    /// Somebody else changed the log's files. Nothing more is written.
    Tampered(String),
    /// The entry that the batch was built on is no longer there, or another one is: the log has lost its end. Nothing
    /// more is written.
    HeadGone { after: Head, found: Head },
    /// The same, and a new epoch has begun without it. Whoever remembers the entry has to forget it, and start again.
    GivenUp { after: Head },
    /// A copy takes the log's place.
    Closed(String),
    /// Whether the batch was committed is not known, and could not be found out. Nothing is appended before it is;
    /// if it was committed, the next append conflicts with it.
    Unsettled(String),
}

impl std::fmt::Display for AppendFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict { head } => write!(f, "the ledger has moved on to entry {}", head.sequence),
            Self::NotDurable(error) => write!(f, "the ledger could not be written: {error}"),
            Self::HeadGone { after, found } => f.write_str(&postgres::gone(after.sequence, found.sequence)),
            Self::GivenUp { after } => write!(
                f,
                "entry {}, which this gateway had, was given up, and the loss is settled: start the gateway again, and it goes on with what the ledger has",
                after.sequence
            ),
            Self::Closed(why) => write!(f, "the ledger is closed: {why}"),
            Self::Unsettled(why) => {
                write!(f, "whether the ledger was written is not known yet: {why}")
            }
            Self::Tampered(what) => write!(f, "the ledger was changed by somebody else: {what}"),
        }
    }
}

impl std::error::Error for AppendFault {}

#[cfg(test)]
mod tests;
