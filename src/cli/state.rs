//! `handoffd state`: the published state, and whether it is the ledger's.

use clap::Subcommand;
use serde_json::json;

use super::audit::{Committed, committed, committed_if_any, nothing_yet};
use super::printer::{GREEN, RED};
use super::{Context, Exit, Failure};
use crate::gateway::{Files, WorkspaceLock};
use crate::ledger::Source;
use crate::state::{Difference, Published, Publisher, StateView, names_entry, rebuild};

/// Show, verify, restore or adopt the published state.
#[derive(Debug, Subcommand)]
pub(super) enum StateCommand {
    /// Print memory/orchestration-state.json
    Show,
    /// Say whether the file is what the ledger gives
    Verify,
    /// Put the ledger's view back in place of an edited file; the daemon must not be running
    Restore,
    Adopt(super::adopt::Adopt),
}

impl StateCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let files = Files::of(context.workspace.root());
        let publisher = Publisher::new(files.state());
        let published =
            publisher.read().map_err(|error| Failure(format!("{}: {error}", files.state().display())))?;
        match self {
            Self::Show => {
                let text = published.ok_or_else(|| {
                    Failure(format!("{} does not exist; the daemon publishes it", files.state().display()))
                })?;
                match serde_json::from_str::<serde_json::Value>(&text) {
                    Ok(value) => context.printer.value(&value),
                    Err(_) => context.printer.raw(text.as_bytes()),
                }
                Ok(Exit::Done)
            }
            Self::Verify => {
                let (_, found) = made_again(&files, published.as_deref())?;
                Ok(say(context, &found))
            }
            Self::Adopt(adopt) => adopt.run(context, &files),
            Self::Restore => {
                let _lock = WorkspaceLock::take(&files.lock(), "handoffd state restore")
                    .map_err(|fault| Failure(fault.to_string()))?;
                let view = restored(&files, published.as_deref())?;
                Publisher::new(files.state()).publish(|text| view.render_into(text))?;
                let sequence = view.head().sequence;
                if context.printer.is_json() {
                    context.printer.value(&json!({"restored": true, "sequence": sequence}));
                } else {
                    context
                        .printer
                        .line(&format!("{GREEN}restored{GREEN:#} from the ledger, up to entry {sequence}"));
                }
                Ok(Exit::Done)
            }
        }
    }
}

/// What the workspace's state file is, measured by its ledger.
pub(super) fn published(files: &Files) -> Result<Published, Failure> {
    let text = Publisher::new(files.state()).read()?;
    made_again(files, text.as_deref()).map(|(_, published)| published)
}

/// The state as the ledger gives it, and what the published text is.
pub(super) fn made_again(files: &Files, published: Option<&str>) -> Result<(StateView, Published), Failure> {
    let Committed { topic_id, head, ledger } = committed(files)?;
    reduced(&ledger, &topic_id, head.sequence, published)
}

/// The state as the ledger gives it now. Before the first entry that is an empty one; but a file that names an entry may
/// be all that still tells of a ledger that is gone, and stays.
fn restored(files: &Files, published: Option<&str>) -> Result<StateView, Failure> {
    match committed_if_any(files)? {
        Some(Committed { topic_id, head, ledger }) => {
            reduced(&ledger, &topic_id, head.sequence, None).map(|(view, _)| view)
        }
        None if published.and_then(names_entry).is_some_and(|named| named > 0) => Err(nothing_yet(files)),
        None => Ok(StateView::empty("")),
    }
}

/// The state as the ledger gives it at an entry.
pub(super) fn made_again_at(files: &Files, sequence: u64) -> Result<StateView, Failure> {
    let Committed { topic_id, ledger, .. } = committed(files)?;
    reduced(&ledger, &topic_id, sequence, None).map(|(view, _)| view)
}

fn reduced(
    ledger: &Source,
    topic_id: &str,
    through: u64,
    published: Option<&str>,
) -> Result<(StateView, Published), Failure> {
    let entries = ledger.entries(1, through).map_err(|fault| Failure(fault.to_string()))?;
    rebuild(topic_id, entries, published).map_err(|fault| Failure(fault.to_string()))
}

/// Adds where the file leaves the ledger's view to what a command says with `--json`; a side that has nothing there
/// is null.
pub(super) fn point_at(found: &Published, said: &mut serde_json::Value) {
    if let Published::Edited { difference: Difference::At { pointer, expected, found }, .. } = found
        && let Some(members) = said.as_object_mut()
    {
        members.insert("pointer".to_owned(), json!(pointer));
        members.insert("expected".to_owned(), json!(expected));
        members.insert("found".to_owned(), json!(found));
    }
}

fn say(context: &Context, found: &Published) -> Exit {
    let (good, text) = match found {
        Published::AsOf(sequence) => (true, format!("the file is what the ledger gives at entry {sequence}")),
        Published::Missing => (false, "there is no state file".to_owned()),
        Published::Edited { sequence, difference } => {
            (false, format!("the file is not what the ledger gives at entry {sequence}: {difference}"))
        }
        Published::Ahead { sequence } => {
            (false, format!("the file names entry {sequence}, which the ledger does not have"))
        }
        Published::Torn => (false, "the file ends in the middle; the next start makes it again".to_owned()),
        Published::Unreadable => (false, "the file is not a state file".to_owned()),
    };
    if context.printer.is_json() {
        let mut said = json!({"verified": good, "message": text});
        point_at(found, &mut said);
        context.printer.value(&said);
    } else {
        let (style, word) = if good { (GREEN, "good") } else { (RED, "bad") };
        context.printer.line(&format!("{style}{word}{style:#}  {text}"));
    }
    if good { Exit::Done } else { Exit::Refused }
}
