//! Moving a ledger from a workspace's files to a database, or back.
//!
//! The target is closed until its copy has been verified, and the source is closed from before its last entry was
//! read: at no moment can both be appended to. A move that was cut short goes on where it was when it is made again.

mod ends;

use std::path::{Path, PathBuf};

use super::{GatewayFault, LockFault};
use crate::ledger::postgres::{PostgresFault, Taken, anchored};
use crate::ledger::verify::Finding;
use crate::ledger::{AppendFault, Batch, Closing, EntriesFault, Head, OpenFault};
use crate::limits;
use ends::End;

/// Where a ledger is.
#[derive(Clone)]
pub enum Place {
    Workspace(PathBuf),
    /// A URL, which may have a password in it.
    Database(String),
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Workspace(path) => write!(f, "Workspace({})", path.display()),
            Self::Database(_) => f.write_str("Database([secret])"),
        }
    }
}

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: String,
    pub to: String,
    pub topic_id: String,
    pub head: Head,
    /// Entries that were there already when the move began.
    pub resumed_at: u64,
    /// Bodies in the copy.
    pub bodies: u64,
    /// Checkpoints that the copy was held against.
    pub checkpoints: usize,
}

/// How far a move has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moving {
    Copying { done: u64, all: u64 },
    Verifying { done: u64, all: u64 },
}

/// Why a ledger was not moved. A target that was begun stays closed.
#[derive(Debug)]
pub enum MoveFault {
    Lock(LockFault),
    Gateway(GatewayFault),
    Open(OpenFault),
    Entries(EntriesFault),
    Database(PostgresFault),
    Append(AppendFault),
    Io {
        path: PathBuf,
        why: String,
    },
    /// There is nothing to move.
    Empty(String),
    /// The source was restored from a backup and has not said so in its ledger yet.
    Restored(PathBuf),
    /// Gateways are served on the source, from under which it would be taken.
    SourceServed {
        place: String,
        gateways: u64,
    },
    /// The source is half of a move, or was moved elsewhere.
    SourceClosed {
        place: String,
        why: Closing,
    },
    /// The target has entries and is open: somebody may be using it.
    TargetInUse(String),
    /// The target has another ledger.
    TargetTaken {
        place: String,
        taken: Taken,
    },
    /// Only a database can be emptied.
    NotReplaced(String),
    /// The target has another ledger, or another entry than the source, or more of them.
    TargetDiffers {
        place: String,
        sequence: u64,
    },
    /// An entry of the source does not follow from the one before it.
    SourceDamaged {
        sequence: u64,
    },
    /// The copy verifies, and ends with another entry.
    OtherHead,
    /// The copy does not verify.
    Unsound(Finding),
}

impl std::fmt::Display for MoveFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lock(fault) => write!(f, "{fault}"),
            Self::Gateway(fault) => write!(f, "{fault}"),
            Self::Open(fault) => write!(f, "{fault}"),
            Self::Entries(fault) => write!(f, "{fault}"),
            Self::Database(fault) => write!(f, "{fault}"),
            Self::Append(fault) => write!(f, "{fault}"),
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Empty(place) => write!(f, "{place} has no entries yet"),
            Self::Restored(path) => write!(
                f,
                "{} is there: the workspace was restored from a backup, and its new epoch has not begun; start it once, then copy",
                path.display()
            ),
            Self::SourceServed { place, gateways } => write!(
                f,
                "{gateways} gateway(s) are served on the ledger in {place}, and would be refused every decision from then on; stop \
                 them first, or say `--even-if-served`"
            ),
            Self::SourceClosed { place, why } => write!(f, "the ledger in {place} cannot be copied: {why}"),
            Self::TargetInUse(place) => {
                write!(f, "the ledger in {place} has entries and is open: somebody may be using it")
            }
            Self::TargetTaken { place, taken } => {
                let Taken { topic_id, entries, wanted, connections, closed } = taken;
                let topic_id = crate::json::printable(topic_id);
                write!(f, "{place} has another ledger, `{topic_id}`, with {entries} entries: ")?;
                match (wanted, connections, closed) {
                    (0, 0, false) => write!(
                        f,
                        "none of them is a decision or anything else that somebody asked for, so a gateway was started on it and \
                         never used; `--replace` deletes it and copies into its place"
                    ),
                    (0, connections, false) => write!(
                        f,
                        "none of them is a decision or anything else that somebody asked for, but there are {connections} \
                         connections to it; stop the gateways that are served on it, then `--replace` deletes it"
                    ),
                    (0, _, true) => {
                        write!(f, "it is closed, and not replaced; give a database or a schema of its own")
                    }
                    (wanted, ..) => write!(
                        f,
                        "{wanted} of them are decisions or something else that somebody asked for, so it is never replaced; give a \
                         database or a schema of its own"
                    ),
                }
            }
            Self::NotReplaced(place) => {
                write!(
                    f,
                    "{place} is a workspace: only a ledger in a database is replaced, and this one would be gone"
                )
            }
            Self::TargetDiffers { place, sequence: 0 } => write!(f, "{place} has another ledger"),
            Self::TargetDiffers { place, sequence } => {
                write!(
                    f,
                    "entry {sequence} in {place} is not in the ledger that is to be copied; nothing was changed"
                )
            }
            Self::SourceDamaged { sequence } => {
                write!(
                    f,
                    "entry {sequence} does not follow from the one before it; the copy ends before it and stays closed"
                )
            }
            Self::OtherHead => {
                write!(
                    f,
                    "the copy ends with another entry than the ledger that was copied, and stays closed"
                )
            }
            Self::Unsound(finding) => write!(f, "the copy does not verify and stays closed: {finding}"),
        }
    }
}

impl std::error::Error for MoveFault {}

impl From<PostgresFault> for MoveFault {
    fn from(fault: PostgresFault) -> Self {
        Self::Database(fault)
    }
}

/// What to do with a database that has another ledger, of which nobody has wanted anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacing {
    No,
    Yes,
}

/// What to do with a source that gateways are served on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// It is left as it is.
    Refuse,
    /// It is closed under them.
    Close,
}

/// Copies a ledger with its bodies and checkpoints, verifies the copy, and opens it in the source's place.
pub fn move_ledger(
    from: &Place,
    to: &Place,
    replacing: Replacing,
    served: Served,
    tell: &mut dyn FnMut(Moving),
) -> Result<Moved, MoveFault> {
    let source = End::source(from)?;
    let gateways = source.gateways_served()?;
    if gateways > 0 && served == Served::Refuse {
        return Err(MoveFault::SourceServed { place: source.shown(), gateways });
    }
    let (topic_id, head) = source.committed()?.ok_or_else(|| MoveFault::Empty(source.shown()))?;
    let mut target = End::target(to, &topic_id)?;
    if let Some(why) = source.closed()? {
        let same = Closing::Copied { to: target.shown() };
        if why != same {
            return Err(MoveFault::SourceClosed { place: source.shown(), why });
        }
    }
    if let Some(taken) = target.taken(&topic_id)? {
        target = match (replacing, to) {
            (Replacing::Yes, Place::Database(url)) => {
                target.replace(url, &topic_id, &Closing::Unfinished { from: source.shown() })?
            }
            (Replacing::Yes, Place::Workspace(_)) => return Err(MoveFault::NotReplaced(target.shown())),
            (Replacing::No, _) => return Err(target.is_taken(taken)),
        };
    }
    let resumed_at = target.committed()?.map_or(Head::genesis(&topic_id), |(_, head)| head);
    if resumed_at.sequence > 0 {
        if target.closed()?.is_none() {
            return Err(MoveFault::TargetInUse(target.shown()));
        }
        if !source.has(resumed_at)? {
            return Err(MoveFault::TargetDiffers { place: target.shown(), sequence: resumed_at.sequence });
        }
    }
    let known = source.checkpoints()?;
    // Nothing was changed so far. The target first: should this end here, it is the target that cannot be used.
    let unfinished = Closing::Unfinished { from: source.shown() };
    target.set_closed(Some(&unfinished))?;
    source.set_closed(Some(&Closing::Copied { to: target.shown() }))?;
    // Whoever was appending has been waited for, or waits and will find the mark: this head is the last.
    let (_, head) = source.committed()?.unwrap_or((topic_id.clone(), head));

    let mut writer = target.writer(&topic_id, &unfinished)?;
    let mut waiting: Vec<Batch> = Vec::new();
    let (mut on, mut last_timestamp) = (resumed_at, writer.last_timestamp());
    for batch in source.batches(resumed_at.sequence)? {
        let batch = batch?.again(&topic_id, on, last_timestamp);
        let batch = batch.map_err(|sequence| MoveFault::SourceDamaged { sequence })?;
        (on, last_timestamp) = (batch.head(), Some(batch.last_timestamp()));
        waiting.push(batch);
        if waiting.iter().map(|batch| batch.text().len()).sum::<usize>() >= limits::MOVE_BYTES {
            writer.append(&mut waiting)?;
            tell(Moving::Copying { done: on.sequence, all: head.sequence });
        }
    }
    writer.append(&mut waiting)?;
    drop(writer);

    let bodies = target.verify(&topic_id, head, &known, tell)?;
    target.keep(&known)?;
    target.set_closed(None)?;
    let (from, to) = (source.shown(), target.shown());
    let (resumed_at, checkpoints) = (resumed_at.sequence, known.len());
    Ok(Moved { from, to, topic_id, head, resumed_at, bodies, checkpoints })
}

impl Place {
    /// The same, with paths in a URL made from a workspace.
    #[must_use]
    pub fn anchored(&self, workspace: &Path) -> Self {
        match self {
            Self::Workspace(path) => Self::Workspace(path.clone()),
            Self::Database(url) => Self::Database(anchored(url, workspace)),
        }
    }
}

/// The place that somebody wrote on the command line.
impl From<&str> for Place {
    fn from(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Self::Database(text.to_owned())
        } else {
            Self::Workspace(Path::new(text).to_owned())
        }
    }
}
