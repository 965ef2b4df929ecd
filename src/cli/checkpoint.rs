//! `handoffd audit checkpoint`: a signed checkpoint to keep elsewhere.
//!
//! Only a gateway signs: it knows what it has appended, and this command would have to take the files' word for it.

use super::client::{Ask, ClientFlags, workspace_flag};
use super::{Context, Exit, Failure, place};
use crate::gateway::{Files, GatewayFault, hold_ledger, read_checkpoint};
use crate::limits;

/// Prints one of the newest entry where a gateway runs, and otherwise the one that was left last.
pub(super) fn run(context: &Context, files: &Files) -> Result<Exit, Failure> {
    if let Some(client) = ClientFlags::default().own(context)? {
        return Ok(match client.ask(Ask::Get, "/v1/audit/checkpoint") {
            Ok(reply) => {
                context.printer.value(&reply.body);
                Exit::Done
            }
            Err(trouble) => match lost(files) {
                Some(why) => {
                    context.printer.error(&why);
                    Exit::Refused
                }
                None => trouble.end(context),
            },
        });
    }
    let left = read_checkpoint(&files.checkpoint()).map_err(|fault| Failure(fault.to_string()))?;
    let Some(checkpoint) = left else {
        return Err(Failure(format!(
            "there is no checkpoint yet: one is left with the first entries, after every {} and when the gateway \
             stops; one that runs signs one for whoever asks, so start it with: handoffd serve{}",
            limits::CHECKPOINT_ENTRIES,
            workspace_flag(context)
        )));
    };
    context.printer.value(&checkpoint);
    Ok(Exit::Done)
}

/// What the ledger lacks, where that is why nobody can sign how far it goes.
fn lost(files: &Files) -> Option<String> {
    let ledger = place::ledger(files.workspace()).ok()?;
    match hold_ledger(files, &ledger) {
        Err(lost @ GatewayFault::Forgotten { .. }) => Some(lost.to_string()),
        _ => None,
    }
}
