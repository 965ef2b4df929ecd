//! The state made again from the ledger, compared with what was published.

use serde::Deserialize;

use super::difference::Difference;
use super::view::{StateFault, StateView};
use crate::ledger::{EntriesFault, Entry};

/// What a published file is, measured by the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// There is none, or it is empty, or of a ledger that never had an entry.
    Missing,
    /// It ends in the middle, as a power cut leaves it: nobody gains anything by that, so it is made again.
    Torn,
    /// It is what the ledger gives at this entry.
    AsOf(u64),
    /// It is not what the ledger gives at the entry it names: somebody edited it.
    Edited { sequence: u64, difference: Difference },
    /// It names an entry that the ledger does not have.
    Ahead { sequence: u64 },
    /// It is not a state file at all.
    Unreadable,
}

/// Why the state could not be made again.
#[derive(Debug)]
pub enum RebuildFault {
    Entries(EntriesFault),
    State(StateFault),
}

impl std::fmt::Display for RebuildFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Entries(fault) => write!(f, "{fault}"),
            Self::State(fault) => write!(f, "{fault}"),
        }
    }
}

impl std::error::Error for RebuildFault {}

#[derive(Deserialize)]
struct Document {
    ledger: Place,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    sequence: u64,
    running_hash: Option<String>,
}

/// The entry that a published text names, if it is one.
pub fn names_entry(published: &str) -> Option<u64> {
    serde_json::from_str::<Document>(published).ok().map(|document| document.ledger.sequence)
}

/// Is it the state before the first entry, whatever the ledger is called? It holds no facts. A ledger has its name only
/// when it has an entry, so a start that came to nothing leaves the state of a name that the next start does not know.
fn is_blank(published: &str) -> bool {
    let Ok(Document { ledger }) = serde_json::from_str(published) else { return false };
    let blank = StateView::empty("");
    let own = blank.head().running_hash.to_string();
    ledger.running_hash.is_some_and(|named| blank.render().replace(&own, &named) == published)
}

/// Is it the beginning of a document, or one with zeros where a part of it was? JSON has none anywhere.
fn is_torn(published: &str) -> bool {
    let is_cut =
        || serde_json::from_str::<serde::de::IgnoredAny>(published).is_err_and(|error| error.is_eof());
    published.contains('\0') || published.starts_with('{') && is_cut()
}

/// Reduces all entries, and says what the published text is.
pub fn rebuild(
    topic_id: &str,
    entries: impl Iterator<Item = Result<Entry, EntriesFault>>,
    published: Option<&str>,
) -> Result<(StateView, Published), RebuildFault> {
    rebuild_from(StateView::empty(topic_id), entries, published)
}

/// Reduces the entries behind a view that is known to be right, and says what the published text is. A text that
/// names an entry before the view's cannot be told from there.
pub fn rebuild_from(
    mut view: StateView,
    entries: impl Iterator<Item = Result<Entry, EntriesFault>>,
    published: Option<&str>,
) -> Result<(StateView, Published), RebuildFault> {
    let named = published.map(|text| names_entry(text).ok_or(()));
    let mut as_published = None;
    let mut compare = |view: &StateView| {
        if let (Some(text), Some(Ok(sequence))) = (published, &named)
            && view.head().sequence == *sequence
        {
            let rendered = view.render();
            as_published =
                Some(if rendered == text { Ok(()) } else { Err(Difference::between(&rendered, text)) });
        }
    };
    compare(&view);
    for entry in entries {
        view.apply(&entry.map_err(RebuildFault::Entries)?).map_err(RebuildFault::State)?;
        compare(&view);
    }
    let published = match (named, as_published) {
        (None, _) => Published::Missing,
        (Some(Err(_)), _) if published.is_some_and(is_torn) => Published::Torn,
        (Some(Err(_)), _) => Published::Unreadable,
        (Some(Ok(sequence)), None) => Published::Ahead { sequence },
        (Some(Ok(sequence)), Some(Ok(()))) => Published::AsOf(sequence),
        (Some(Ok(_)), Some(Err(_))) if published.is_some_and(is_blank) => Published::Missing,
        (Some(Ok(sequence)), Some(Err(difference))) => Published::Edited { sequence, difference },
    };
    Ok((view, published))
}
