//! `handoffd state`: the published state, and whether it is the ledger's.

use clap::Subcommand;
use serde_json::{Value as Json, json};

use super::audit::{Committed, committed, committed_if_any};
use super::printer::{GREEN, RED};
use super::{Context, Exit, Failure, place};
use crate::gateway::{Files, GatewayFault, WorkspaceLock, hold_settled};
use crate::ledger::Source;
use crate::policy::plain;
use crate::state::{Difference, Published, Publisher, RebuildFault, StateFault, StateView, rebuild};

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
        match self {
            Self::Show => {
                let text = read(&files)?.ok_or_else(|| {
                    Failure(format!("{} does not exist; the daemon publishes it", files.state().display()))
                })?;
                match serde_json::from_str::<serde_json::Value>(&text) {
                    Ok(value) => context.printer.value(&value),
                    Err(_) => context.printer.raw(text.as_bytes()),
                }
                Ok(Exit::Done)
            }
            Self::Verify => Ok(say(context, &compared(&files)?)),
            Self::Adopt(adopt) => adopt.run(context, &files),
            Self::Restore => {
                let _lock = match hold(context, &files, "handoffd state restore") {
                    Ok(lock) => lock,
                    Err(exit) => return Ok(exit),
                };
                // One that cannot be read may tell of more than can be seen of it here.
                read(&files)?;
                let view = restored(&files)?;
                publish(&files, &view)?;
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

/// The workspace for a command that puts the ledger's view in the place of the state file: nobody serves it, and that file is
/// not all that still tells of entries that the ledger has lost. What was said of it otherwise is the exit.
pub(super) fn hold(context: &Context, files: &Files, who: &str) -> Result<WorkspaceLock, Exit> {
    let say = |fault: GatewayFault, exit| {
        context.printer.error(&fault.to_string());
        exit
    };
    let lock = WorkspaceLock::take(&files.lock(), who)
        .map_err(|fault| say(GatewayFault::Lock(fault), Exit::Unavailable))?;
    let ledger = place::ledger(files.workspace()).map_err(|Failure(why)| {
        context.printer.error(&why);
        Exit::Unusable
    })?;
    match hold_settled(files, &ledger) {
        // That file is wrong and nothing else, which is what the command is for.
        Ok(()) | Err(GatewayFault::StateEdited { .. }) => Ok(lock),
        Err(fault @ GatewayFault::Forgotten { .. }) => Err(say(fault, Exit::Refused)),
        Err(fault) => Err(say(fault, Exit::Unusable)),
    }
}

/// What the state file says; nothing if there is none.
pub(super) fn read(files: &Files) -> Result<Option<String>, Failure> {
    Publisher::new(files.state()).read().map_err(|error| unusable(files, &error))
}

pub(super) fn publish(files: &Files, view: &StateView) -> Result<(), Failure> {
    let published = Publisher::new(files.state()).publish(|text| view.render_into(text));
    published.map(drop).map_err(|error| unusable(files, &error))
}

fn unusable(files: &Files, error: &std::io::Error) -> Failure {
    Failure(GatewayFault::StateUnusable { path: files.state(), why: plain(error) }.to_string())
}

/// What the workspace's state file is, measured by its ledger.
pub(super) fn compared(files: &Files) -> Result<Compared, Failure> {
    compared_if_reducible(files)?.map_err(|fault| Failure(fault.to_string()))
}

/// The same; the inner error is an entry that gives no state, which is a finding, not a failure.
pub(super) fn compared_if_reducible(files: &Files) -> Result<Result<Compared, StateFault>, Failure> {
    let text = read(files)?;
    let Committed { topic_id, head, ledger } = committed(files)?;
    let entries = ledger.entries(1, head.sequence).map_err(|fault| Failure(fault.to_string()))?;
    match rebuild(&topic_id, entries, text.as_deref()) {
        Ok((view, published)) => {
            let last = view.head().sequence;
            Ok(Ok(Compared { published, last, is_there: files.state().exists() }))
        }
        Err(RebuildFault::State(fault)) => Ok(Err(fault)),
        Err(RebuildFault::Entries(fault)) => Err(Failure(fault.to_string())),
    }
}

pub(super) fn published(files: &Files) -> Result<Published, Failure> {
    compared(files).map(|compared| compared.published)
}

/// What a state file is, and the ledger's last entry.
pub(super) struct Compared {
    pub(super) published: Published,
    pub(super) last: u64,
    /// Is there a file, even if there is nothing in it?
    is_there: bool,
}

impl Compared {
    /// In which way it is not what the ledger gives; nothing if it is.
    pub(super) fn differs(&self) -> Option<String> {
        Some(match &self.published {
            Published::AsOf(_) => return None,
            Published::Missing if self.is_there => {
                "holds nothing of this ledger; the next start makes it again".to_owned()
            }
            Published::Missing => "is not there; the next start makes it".to_owned(),
            Published::Edited { sequence, difference } => {
                format!("is not what the ledger gives at entry {sequence}: {difference}")
            }
            Published::Ahead { sequence } => {
                let last = self.last;
                format!("names entry {sequence}, and the ledger ends at entry {last}: at /ledger/sequence")
            }
            Published::Torn => "ends in the middle; the next start makes it again".to_owned(),
            Published::Unreadable => "is not a state file".to_owned(),
        })
    }

    /// The entry that it is the state of, if it is any.
    pub(super) fn sequence(&self) -> Option<u64> {
        match self.published {
            Published::AsOf(sequence) => Some(sequence),
            _ => None,
        }
    }

    /// Adds where the file leaves the ledger's view to what a command says with `--json`; a side that has nothing there
    /// is null.
    pub(super) fn point_at(&self, said: &mut serde_json::Value) {
        let at = match &self.published {
            Published::Edited { sequence, difference: Difference::At { pointer, expected, found } } => {
                json!({"entry": sequence, "pointer": pointer, "expected": expected, "found": found})
            }
            Published::Edited { sequence, difference: Difference::Form } => json!({"entry": sequence}),
            Published::Ahead { sequence } => {
                let (expected, found) = (self.last.to_string(), sequence.to_string());
                json!({"entry": sequence, "pointer": "/ledger/sequence", "expected": expected, "found": found})
            }
            Published::AsOf(_) | Published::Missing | Published::Torn | Published::Unreadable => return,
        };
        if let (Some(said), Json::Object(at)) = (said.as_object_mut(), at) {
            said.extend(at);
        }
    }
}

/// The state as the ledger gives it, and what the published text is.
pub(super) fn made_again(files: &Files, published: Option<&str>) -> Result<(StateView, Published), Failure> {
    let Committed { topic_id, head, ledger } = committed(files)?;
    reduced(&ledger, &topic_id, head.sequence, published)
}

/// The state as the ledger gives it now; before the first entry, an empty one.
fn restored(files: &Files) -> Result<StateView, Failure> {
    match committed_if_any(files)? {
        Some(Committed { topic_id, head, ledger }) => {
            reduced(&ledger, &topic_id, head.sequence, None).map(|(view, _)| view)
        }
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

fn say(context: &Context, found: &Compared) -> Exit {
    let differs = found.differs();
    let text = match (&found.published, &differs) {
        (Published::AsOf(sequence), _) => format!("the file is what the ledger gives at entry {sequence}"),
        (_, Some(how)) => format!("the file {how}"),
        (_, None) => "the file is what the ledger gives".to_owned(),
    };
    let good = differs.is_none();
    if context.printer.is_json() {
        let mut said = json!({"verified": good, "message": text});
        found.point_at(&mut said);
        context.printer.value(&said);
    } else {
        let (style, word) = if good { (GREEN, "good") } else { (RED, "bad") };
        context.printer.line(&format!("{style}{word}{style:#}  {text}"));
    }
    if good { Exit::Done } else { Exit::Refused }
}
