//! Why the views cannot answer. None of it is an answer to a sender: the ledger still has everything.

use std::fmt;

/// What went wrong.
#[derive(Debug)]
pub enum ViewsFault {
    /// The file is of no use: delete it and apply the ledger again.
    NeedsRebuild(Rebuild),
    /// An entry that is not the next one.
    OutOfOrder { expected: u64, found: u64 },
    /// An entry that is no Wire event, or whose time cannot be told.
    BadEntry { sequence: u64, what: &'static str },
    /// SQLite could not do it: the disk is full, or somebody else holds the file.
    Store(rusqlite::Error),
    /// The file could not be deleted.
    Io(std::io::Error),
}

/// Why a file is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuild {
    Damaged(String),
    /// Nothing was put into it yet.
    Unmade,
    /// A later handoffd made it.
    Newer {
        found: i64,
        known: i64,
    },
    /// It follows another ledger.
    Foreign {
        topic_id: String,
    },
    /// A rebuild was cut short, or is going on.
    Unfinished,
}

impl fmt::Display for ViewsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsRebuild(why) => write!(f, "the views must be rebuilt: {why}"),
            Self::OutOfOrder { expected, found } => {
                write!(f, "the views wait for entry {expected}, not for entry {found}")
            }
            Self::BadEntry { sequence, what } => write!(f, "entry {sequence}: {what}"),
            Self::Store(error) => write!(f, "the views could not be read or written: {error}"),
            Self::Io(error) => write!(f, "the views could not be deleted: {error}"),
        }
    }
}

impl fmt::Display for Rebuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(what) => write!(f, "the file is damaged ({what})"),
            Self::Unmade => f.write_str("its tables have not been made yet"),
            Self::Newer { found, known } => write!(f, "the file is of version {found}, newer than {known}"),
            Self::Foreign { topic_id } => write!(f, "the file follows the ledger `{topic_id}`"),
            Self::Unfinished => f.write_str("a rebuild has not come to its end"),
        }
    }
}

impl std::error::Error for ViewsFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::NeedsRebuild(_) | Self::OutOfOrder { .. } | Self::BadEntry { .. } => None,
        }
    }
}

impl From<rusqlite::Error> for ViewsFault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{ConstraintViolation, DatabaseCorrupt, NotADatabase, Unknown};
        match &error {
            // The statements are fixed: one that does not fit the tables, or rows that do not fit together,
            // mean that the file is not as it was written. `Unknown` is what SQLite says of the former.
            rusqlite::Error::SqliteFailure(failure, _)
                if matches!(failure.code, ConstraintViolation | DatabaseCorrupt | NotADatabase | Unknown) =>
            {
                damaged(error)
            }
            // A page that should be there and is not, in the file or in its journal: waiting makes none longer.
            rusqlite::Error::SqliteFailure(failure, _)
                if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ =>
            {
                damaged(error)
            }
            rusqlite::Error::SqlInputError { .. }
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::QueryReturnedNoRows => damaged(error),
            _ => Self::Store(error),
        }
    }
}

pub(super) fn damaged(what: impl fmt::Display) -> ViewsFault {
    ViewsFault::NeedsRebuild(Rebuild::Damaged(what.to_string()))
}
