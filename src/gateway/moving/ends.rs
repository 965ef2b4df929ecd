//! The two ends of a move: a workspace's files, or a database.

use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::{MoveFault, Moving, Place};
use crate::gateway::closed::{closed, set_closed};
use crate::gateway::opened::settle_journal;
use crate::gateway::remembering::hold_before_leaving;
use crate::gateway::{
    Files, OtherCheckpoint, WorkspaceLock, checkpoints, gateway_seed, public_key, read_checkpoint,
    read_other_checkpoints,
};
use crate::ledger::postgres::{Database, PostgresFault, PostgresLog, SharedFault, SharedKind, Taken};
use crate::ledger::verify;
use crate::ledger::{
    Batch, Closing, Entries, Head, Log as _, Part, RealDisk, Recorded, RecordedSegments, SegmentLog,
    gateway_key_id, inspect,
};
use crate::timestamp::Timestamp;

/// A checkpoint whose signature was verified, and the key that it was verified with.
pub(super) struct Known {
    kept: OtherCheckpoint,
    verified: verify::Checkpoint,
}

impl Known {
    fn of(kept: OtherCheckpoint) -> Result<Self, MoveFault> {
        let verified = kept.verified().map_err(MoveFault::Unsound)?;
        Ok(Self { kept, verified })
    }
}

/// One end of a move, held while it lasts.
pub(super) enum End {
    Files { files: Files, _lock: WorkspaceLock },
    Stored(Database),
}

impl End {
    pub(super) fn source(place: &Place) -> Result<Self, MoveFault> {
        match place {
            Place::Workspace(root) => {
                let files = Files::of(root);
                if !files.ledger().is_dir() {
                    return Err(MoveFault::Empty(files.ledger().display().to_string()));
                }
                // The epoch that is to begin would be forgotten, and with it what it makes void.
                if files.restored().exists() {
                    return Err(MoveFault::Restored(files.restored()));
                }
                let held = Self::hold(files.clone())?;
                hold_before_leaving(&files).map_err(MoveFault::Gateway)?;
                Ok(held)
            }
            Place::Database(url) => Ok(Self::Stored(Database::open_existing(url)?)),
        }
    }

    pub(super) fn target(place: &Place, topic_id: &str) -> Result<Self, MoveFault> {
        match place {
            Place::Workspace(root) => {
                let files = Files::of(root);
                files.make_directories().map_err(MoveFault::Gateway)?;
                Self::hold(files)
            }
            Place::Database(url) => Ok(Self::Stored(Database::open(url, topic_id)?)),
        }
    }

    /// Another ledger that is there already; what is known of it only where it could be replaced.
    pub(super) fn taken(&self, topic_id: &str) -> Result<Option<Option<Taken>>, MoveFault> {
        match self {
            Self::Files { files, .. } => {
                let found = inspect(&files.ledger()).map_err(MoveFault::Open)?;
                Ok(found.is_some_and(|(its, _)| its != topic_id).then_some(None))
            }
            Self::Stored(database) if database.topic_id() == topic_id => Ok(None),
            Self::Stored(database) => Ok(Some(Some(database.taken()?))),
        }
    }

    pub(super) fn is_taken(&self, taken: Option<Taken>) -> MoveFault {
        match taken {
            Some(taken) => MoveFault::TargetTaken { place: self.shown(), taken },
            None => MoveFault::TargetDiffers { place: self.shown(), sequence: 0 },
        }
    }

    /// Deletes the other ledger, if nobody has wanted anything of it.
    pub(super) fn replace(self, url: &str, topic_id: &str, mark: &Closing) -> Result<Self, MoveFault> {
        let Self::Stored(database) = &self else { return Err(MoveFault::NotReplaced(self.shown())) };
        let taken = database.replace(topic_id, mark)?;
        if !taken.is_replaceable() {
            return Err(self.is_taken(Some(taken)));
        }
        Ok(Self::Stored(Database::open(url, topic_id)?))
    }

    fn hold(files: Files) -> Result<Self, MoveFault> {
        let lock = WorkspaceLock::take(&files.lock(), "ledger copy").map_err(MoveFault::Lock)?;
        settle_journal(&files).map_err(MoveFault::Gateway)?;
        Ok(Self::Files { files, _lock: lock })
    }

    /// How it is named in marks and to people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Files { files, .. } => {
                let path = files.ledger();
                std::fs::canonicalize(&path).unwrap_or(path).display().to_string()
            }
            Self::Stored(database) => database.to_string(),
        }
    }

    /// The topic and the last entry; nothing if there is none.
    pub(super) fn committed(&self) -> Result<Option<(String, Head)>, MoveFault> {
        match self {
            Self::Files { files, .. } => inspect(&files.ledger()).map_err(MoveFault::Open),
            Self::Stored(database) => {
                let (head, _) = database.head()?;
                Ok((head.sequence > 0).then(|| (database.topic_id().to_owned(), head)))
            }
        }
    }

    pub(super) fn has(&self, head: Head) -> Result<bool, MoveFault> {
        match self {
            Self::Files { files, .. } => {
                let mut entries = Entries::read(&files.ledger(), head.sequence, head.sequence)
                    .map_err(MoveFault::Entries)?;
                let entry = entries.next().transpose().map_err(MoveFault::Entries)?;
                Ok(entry.is_some_and(|entry| entry.running_hash == head.running_hash))
            }
            Self::Stored(database) => Ok(database.has(head)?),
        }
    }

    pub(super) fn closed(&self) -> Result<Option<Closing>, MoveFault> {
        match self {
            Self::Files { files, .. } => closed(files).map_err(MoveFault::Gateway),
            Self::Stored(database) => Ok(database.closed()?),
        }
    }

    /// How many gateways somebody else serves on it; the files of a workspace are held, so there is none.
    pub(super) fn gateways_served(&self) -> Result<u64, MoveFault> {
        match self {
            Self::Files { .. } => Ok(0),
            Self::Stored(database) => Ok(database.gateways_served()?),
        }
    }

    pub(super) fn set_closed(&self, closing: Option<&Closing>) -> Result<(), MoveFault> {
        match self {
            Self::Files { files, .. } => set_closed(files, closing).map_err(MoveFault::Gateway),
            Self::Stored(database) => Ok(database.set_closed(closing)?),
        }
    }

    pub(super) fn batches(
        &self,
        after: u64,
    ) -> Result<Box<dyn Iterator<Item = Result<Recorded, MoveFault>>>, MoveFault> {
        Ok(match self {
            Self::Files { files, .. } => {
                let batches = RecordedSegments::after(&files.ledger(), after).map_err(MoveFault::Entries)?;
                Box::new(batches.map(|batch| batch.map_err(MoveFault::Entries)))
            }
            Self::Stored(database) => {
                Box::new(database.batches(after).map(|batch| batch.map_err(MoveFault::Database)))
            }
        })
    }

    pub(super) fn writer(&self, topic_id: &str, mark: &Closing) -> Result<Writer, MoveFault> {
        Ok(match self {
            Self::Files { files, .. } => {
                // From its first entry on, a ledger without a key is one that has lost it.
                if files.has_had_no_key() {
                    gateway_seed(&files.gateway_key()).map_err(MoveFault::Gateway)?;
                }
                let opened = SegmentLog::open(Arc::new(RealDisk), &files.ledger(), topic_id, &[]);
                Writer::Files(Box::new(opened.map_err(MoveFault::Open)?.0))
            }
            Self::Stored(database) => {
                Writer::Stored(Box::new(PostgresLog::open_marked(database, &[], Some(mark))?))
            }
        })
    }

    /// The checkpoints that are kept with the ledger and whose key is known.
    pub(super) fn checkpoints(&self) -> Result<Vec<Known>, MoveFault> {
        match self {
            Self::Files { files, .. } => {
                let mut kept =
                    read_other_checkpoints(&files.other_checkpoints()).map_err(MoveFault::Gateway)?;
                if let Some(checkpoint) = read_checkpoint(&files.checkpoint()).map_err(MoveFault::Gateway)? {
                    let public_key = public_key(files).map_err(MoveFault::Gateway)?;
                    kept.push(OtherCheckpoint { checkpoint, public_key });
                }
                kept.into_iter().map(Known::of).collect()
            }
            Self::Stored(database) => {
                let keys = database.shared(SharedKind::GatewayKey)?;
                let mut known = Vec::new();
                for checkpoint in database.checkpoints()? {
                    if let Some(key) = keys.iter().find(|key| key.name == checkpoint.key_id) {
                        known.push(Known::of(OtherCheckpoint {
                            checkpoint,
                            public_key: key.document.clone(),
                        })?);
                    }
                }
                Ok(known)
            }
        }
    }

    /// Computes everything again, with code that shares nothing with what wrote it, and returns how many bodies there
    /// are, each with the digest that it says it has.
    pub(super) fn verify(
        &self,
        topic_id: &str,
        head: Head,
        known: &[Known],
        tell: &mut dyn FnMut(Moving),
    ) -> Result<u64, MoveFault> {
        let checkpoints: Vec<verify::Checkpoint> = known.iter().map(|known| known.verified.clone()).collect();
        let (report, bodies) = match self {
            Self::Files { files, .. } => {
                let mut tell = |so_far: verify::Progress| {
                    tell(Moving::Verifying { done: so_far.bytes_done, all: so_far.bytes });
                };
                let report = verify::verify_segments(&files.ledger(), &checkpoints, &mut tell);
                let report = report.map_err(MoveFault::Unsound)?;
                let bodies = report.bodies;
                (report, bodies)
            }
            Self::Stored(database) => {
                let batches = Box::new(database.batches(0));
                let mut fault = None;
                let mut text = ExportText {
                    batches,
                    topic_id,
                    text: io::Cursor::default(),
                    bodies: 0,
                    fault: &mut fault,
                    tell: &mut |done| {
                        tell(Moving::Verifying { done, all: head.sequence });
                    },
                };
                let report =
                    verify::verify_export(BufReader::with_capacity(256 * 1024, &mut text), &checkpoints);
                let bodies = text.bodies;
                if let Some(fault) = fault {
                    return Err(MoveFault::Database(fault));
                }
                (report.map_err(MoveFault::Unsound)?, bodies)
            }
        };
        let hash = head.running_hash.to_string();
        if report.entries != head.sequence || report.last_running_hash.as_ref() != Some(&hash) {
            return Err(MoveFault::OtherHead);
        }
        Ok(bodies)
    }

    /// Keeps the checkpoints of the source, where they can be verified.
    pub(super) fn keep(&self, known: &[Known]) -> Result<(), MoveFault> {
        match self {
            Self::Files { files, .. } => {
                let own = public_key(files).ok().map(|key| gateway_key_id(&key));
                // A gateway takes only what its own key signed for its checkpoint; the others stand beside it.
                let kept = known.iter().map(|known| known.kept.clone());
                let (ours, others): (Vec<_>, Vec<_>) =
                    kept.partition(|kept| Some(&kept.checkpoint.key_id) == own.as_ref());
                let path = files.other_checkpoints();
                let io =
                    |path: PathBuf| move |error: io::Error| MoveFault::Io { path, why: error.to_string() };
                checkpoints::write_others(&path, &others).map_err(io(path))?;
                let Some(OtherCheckpoint { checkpoint, .. }) = ours.last() else { return Ok(()) };
                let path = files.checkpoint();
                checkpoints::write(&path, checkpoint).map_err(io(path))
            }
            Self::Stored(database) => {
                for Known { kept: OtherCheckpoint { checkpoint, public_key }, .. } in known {
                    match database.add_shared(SharedKind::GatewayKey, &checkpoint.key_id, public_key) {
                        // A key is named after itself, so the one that is there is the same.
                        Ok(_) | Err(SharedFault::Changed) => {}
                        Err(SharedFault::Database(fault)) => return Err(fault.into()),
                    }
                    database.keep_checkpoint(checkpoint)?;
                }
                Ok(())
            }
        }
    }
}

pub(super) enum Writer {
    Files(Box<SegmentLog>),
    Stored(Box<PostgresLog>),
}

impl Writer {
    pub(super) fn last_timestamp(&self) -> Option<Timestamp> {
        match self {
            Self::Files(log) => log.last_timestamp(),
            Self::Stored(log) => log.last_timestamp(),
        }
    }

    pub(super) fn append(&mut self, batches: &mut Vec<Batch>) -> Result<(), MoveFault> {
        match self {
            Self::Files(log) => {
                for batch in batches.iter() {
                    log.append(batch.after(), batch).map_err(MoveFault::Append)?;
                }
            }
            Self::Stored(log) => {
                if let Some(first) = batches.first() {
                    log.append_all(first.after(), batches).map_err(MoveFault::Append)?;
                }
            }
        }
        batches.clear();
        Ok(())
    }
}

/// What `audit export` would print of a database, for the verifier; counts the bodies that it passes.
struct ExportText<'e> {
    batches: Box<dyn Iterator<Item = Result<Recorded, PostgresFault>>>,
    topic_id: &'e str,
    text: io::Cursor<Vec<u8>>,
    bodies: u64,
    fault: &'e mut Option<PostgresFault>,
    tell: &'e mut dyn FnMut(u64),
}

impl Read for ExportText<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.text.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let recorded = match self.batches.next() {
                None => return Ok(0),
                Some(Ok(recorded)) => recorded,
                Some(Err(fault)) => {
                    let error = io::Error::other(fault.to_string());
                    *self.fault = Some(fault);
                    return Err(error);
                }
            };
            let mut text = Vec::new();
            for part in &recorded.parts {
                match part {
                    Part::Body(..) => self.bodies += 1,
                    Part::Entry(entry) => text.extend_from_slice(entry.to_line(self.topic_id).as_bytes()),
                }
            }
            (self.tell)(recorded.last_sequence().unwrap_or(0));
            self.text = io::Cursor::new(text);
        }
    }
}
