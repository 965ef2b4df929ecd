//! `handoffd ledger copy`: a ledger from files to a database, and back.

use clap::Args;
use serde_json::json;

use super::printer::{GREEN, Progress, counted};
use super::{Context, Exit, Failure};
use crate::gateway::{MoveFault, Moved, Moving, Place, Replacing, Served, move_ledger};
use crate::ledger::AppendFault;
use crate::ledger::postgres::PostgresFault;

/// Copy the ledger to a database or back, and let the copy take its place.
///
/// Entries, bodies and checkpoints are copied as they are, so everything that was ever signed still verifies. The
/// source is closed for writing and stays so; the target can be used once it has been verified. A copy that was cut
/// short goes on where it was when the command is run again.
///
/// Exit: 0 copied, 1 the two ledgers do not fit, 2 unreadable, 3 in use or not reachable.
#[derive(Debug, Args)]
pub(super) struct Copy {
    /// What to copy: a workspace's directory, or a postgres:// URL
    #[arg(long, value_name = "PLACE", value_parser = parse_place)]
    from: Place,

    /// Where to: the same
    #[arg(long, value_name = "PLACE", value_parser = parse_place)]
    to: Place,

    /// Delete another ledger in the target's database, if a gateway was started on it by mistake and it has no
    /// decision and nothing else that somebody asked for
    #[arg(long)]
    replace: bool,

    /// Copy from a database although gateways are served on it: they refuse every decision from then on
    #[arg(long)]
    even_if_served: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "what clap takes as a parser returns a result")]
fn parse_place(text: &str) -> Result<Place, String> {
    Ok(Place::from(text))
}

impl Copy {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        // Here and not when it is parsed: what cannot be parsed is shown as it was written, with its password.
        for (flag, place) in [("--from", &self.from), ("--to", &self.to)] {
            if is_other_url(place) {
                return Err(Failure(format!("{flag} takes a workspace's directory or a postgres:// URL")));
            }
        }
        if is_same(&self.from, &self.to) {
            return Err(Failure::new("source and target are the same"));
        }
        let mut bars = Bars { context, copying: None, verifying: None };
        let replacing = if self.replace { Replacing::Yes } else { Replacing::No };
        let [from, to] = [&self.from, &self.to].map(|place| place.anchored(context.workspace.root()));
        let served = if self.even_if_served { Served::Close } else { Served::Refuse };
        let moved = move_ledger(&from, &to, replacing, served, &mut |so_far| bars.tell(so_far));
        drop(bars);
        match moved {
            Ok(moved) => {
                said(context, &moved);
                Ok(Exit::Done)
            }
            Err(fault) => match exit(&fault) {
                Exit::Unusable => Err(Failure(fault.to_string())),
                exit => {
                    context.printer.error(&fault.to_string());
                    Ok(exit)
                }
            },
        }
    }
}

/// A URL with a typo would be a directory of that name, and the ledger would be moved there.
fn is_other_url(place: &Place) -> bool {
    matches!(place, Place::Workspace(path) if path.to_string_lossy().contains("://"))
}

fn is_same(from: &Place, to: &Place) -> bool {
    match (from, to) {
        (Place::Workspace(from), Place::Workspace(to)) => {
            let real = std::fs::canonicalize(from).ok();
            from == to || (real.is_some() && real == std::fs::canonicalize(to).ok())
        }
        // `postgres` and `postgresql` are one scheme.
        (Place::Database(from), Place::Database(to)) => {
            from.split_once("://").map(|(_, rest)| rest) == to.split_once("://").map(|(_, rest)| rest)
        }
        _ => false,
    }
}

/// One bar after the other.
struct Bars<'c> {
    context: &'c Context,
    copying: Option<Progress>,
    verifying: Option<Progress>,
}

impl Bars<'_> {
    fn tell(&mut self, so_far: Moving) {
        let printer = &self.context.printer;
        match so_far {
            Moving::Copying { done, all } => {
                self.copying.get_or_insert_with(|| printer.progress("copying the ledger")).tell(done, all);
            }
            Moving::Verifying { done, all } => {
                self.copying = None;
                self.verifying.get_or_insert_with(|| printer.progress("verifying the copy")).tell(done, all);
            }
        }
    }
}

fn said(context: &Context, moved: &Moved) {
    let Moved { from, to, topic_id, head, resumed_at, bodies, checkpoints } = moved;
    if context.printer.is_json() {
        context.printer.value(&json!({
            "from": from,
            "to": to,
            "topicId": topic_id,
            "entries": head.sequence,
            "runningHash": head.running_hash.to_string(),
            "resumedAt": resumed_at,
            "bodies": bodies,
            "checkpoints": checkpoints,
        }));
        return;
    }
    context.printer.line(&format!(
        "{GREEN}copied{GREEN:#}  {} entries of {topic_id} and {bodies} bodies to {to}\n        \
         verified, {}, running hash {}\n        \
         {from} is closed for writing; the copy takes its place",
        head.sequence,
        counted(*checkpoints, "checkpoint", "checkpoints"),
        head.running_hash,
    ));
}

fn exit(fault: &MoveFault) -> Exit {
    match fault {
        MoveFault::Lock(_)
        | MoveFault::SourceServed { .. }
        | MoveFault::Database(
            PostgresFault::Unreachable(_) | PostgresFault::Refused(_) | PostgresFault::NoLedger,
        )
        | MoveFault::Append(AppendFault::NotDurable(_) | AppendFault::Unsettled(_)) => Exit::Unavailable,
        MoveFault::SourceClosed { .. }
        | MoveFault::TargetInUse(_)
        | MoveFault::TargetDiffers { .. }
        | MoveFault::TargetTaken { .. }
        | MoveFault::NotReplaced(_)
        | MoveFault::SourceDamaged { .. }
        | MoveFault::OtherHead
        | MoveFault::Unsound(_)
        | MoveFault::Append(_)
        | MoveFault::Database(_) => Exit::Refused,
        MoveFault::Gateway(_)
        | MoveFault::Open(_)
        | MoveFault::Entries(_)
        | MoveFault::Io { .. }
        | MoveFault::Restored(_)
        | MoveFault::Empty(_) => Exit::Unusable,
    }
}
