//! Sees to it that a changed file is in force before the command returns, where a gateway serves the workspace.

use std::path::Path;

use serde_json::Value as Json;

use super::client::{Ask, Client, Trouble};
use super::{Context, Exit, Failure, place};
use crate::gateway::Part;
use crate::json::printable;
use crate::os::clock;
use crate::settings::{Effective, PolicyReload};

/// Has the workspace's gateway read its files again, and waits until the ledger has what changed. Nothing to do
/// where none runs: the next one starts with the files as they are. `part` is what was changed, and `counted` is whether the
/// token that this command shows counted before.
pub(super) fn put_in_force(
    context: &Context,
    gateway: Option<&Client>,
    part: Part,
    counted: bool,
) -> Result<Exit, Failure> {
    let Some(client) = gateway else { return Ok(Exit::Done) };
    let target = format!("/v1/reload?part={}", part.name());
    let trouble = match client.ask_patiently(Ask::Post(None), &target, context) {
        Ok(reply) => {
            let broken = reply.body.get("broken").and_then(Json::as_array);
            for other in broken.into_iter().flatten() {
                let text =
                    |name: &str| other.get(name).and_then(Json::as_str).map(printable).unwrap_or_default();
                context.printer.note(&format!(
                    "it is in force, though the gateway still goes by the {} of before, for those here cannot be read: {}",
                    text("part"),
                    text("why")
                ));
            }
            return Ok(Exit::Done);
        }
        // The gateway watches the files too, and was faster: it no longer knows the token that was just revoked.
        Err(Trouble::Told { status: 401, .. }) if counted && !own_token_counts(context)? => {
            return Ok(Exit::Done);
        }
        Err(trouble) => trouble,
    };
    let base = client.base();
    match trouble {
        // It cannot be asked by this command, and still reads what changes.
        Trouble::Shut(why) | Trouble::Lost(why) if reads_by_itself(context) => {
            context.printer.note(&format!("the file is changed; the gateway could not be told: {why}"));
            context.printer.note(&format!(
                "the gateway at {base} looks at the file by itself, several times a second, and goes by it; /readyz says if it cannot"
            ));
            Ok(Exit::Done)
        }
        trouble => {
            context.printer.error(&format!(
                "the file is changed, but it is not known whether the gateway at {base} goes by it: {trouble}"
            ));
            context
                .printer
                .note("it reads changed files by itself, and on SIGHUP; /readyz says if it cannot");
            Ok(Exit::Unavailable)
        }
    }
}

/// Refuses to begin a file again that is gone, where the gateway goes by what was in it: all that would be out of force.
pub(super) fn is_not_gone(gateway: Option<&Client>, part: Part, file: &Path) -> Result<(), Failure> {
    let Some(client) = gateway.filter(|_| !file.exists()) else { return Ok(()) };
    match client.ask(Ask::Post(None), &format!("/v1/reload?part={}", part.name())) {
        Err(Trouble::Told { status: 409, why }) => Err(Failure(why)),
        // Nothing was in it; or the gateway cannot be asked, and what comes of it is said below.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// As far as this command can know: the gateway may have been told otherwise by its own environment.
fn reads_by_itself(context: &Context) -> bool {
    let effective = Effective::load(context.workspace.root(), Vec::new());
    effective.is_ok_and(|effective| effective.settings.policy.reload == PolicyReload::Auto)
}

/// Does the token in memory/admin.token count, as the files are now?
pub(super) fn own_token_counts(context: &Context) -> Result<bool, Failure> {
    let files = place::tokens(context)?;
    let (roster, now) = (files.load()?, clock::now());
    let text = files.read_admin()?;
    Ok(text.is_some_and(|text| roster.find(&text, now).is_some()))
}
