//! `handoffd state adopt`: takes routing edits over from an edited state file.

use std::io::IsTerminal as _;

use clap::Args;
use serde_json::{Value as Json, json};

use super::printer::{DIM, GREEN, RED, YELLOW};
use super::{Context, Exit, Failure};
use crate::gateway::Files;
use crate::json::printable;
use crate::os::files::replace_public;
use crate::policy::ROUTES_PATH;
use crate::state::{Adoption, Published, adopt};

/// Take routing edits over from an edited file; the daemon must not be running.
///
/// Edits of a route's capability, primaryAgentId and fallbackAgentId go into policies/routes.json, as if they had
/// been made there, and the ledger records them when the policies are loaded. Everything else that was edited is
/// listed and not adopted: no stage is raised, nothing is unblocked, no audit row is dropped. Then the ledger's view
/// is put back.
///
/// Exit: 0 adopted or nothing was edited, 1 nothing could be adopted or you said no.
#[derive(Debug, Args)]
pub(super) struct Adopt {
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

impl Adopt {
    pub(super) fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let _lock = match super::state::hold(context, files, "handoffd state adopt") {
            Ok(lock) => lock,
            Err(exit) => return Ok(exit),
        };
        let shown = files.state().display().to_string();
        let text = super::state::read(files)?;
        let text =
            text.ok_or_else(|| Failure(format!("{shown} does not exist; there is nothing to adopt")))?;
        let (view, published) = super::state::made_again(files, Some(&text))?;
        let sequence = match published {
            Published::Edited { sequence, .. } => sequence,
            Published::AsOf(_) | Published::Missing => {
                self.say(context, None, "nothing was edited");
                return Ok(Exit::Done);
            }
            Published::Ahead { .. } | Published::Torn | Published::Unreadable => {
                return Err(Failure(format!(
                    "{shown} cannot be compared with the ledger; `handoffd state restore` puts the ledger's view back"
                )));
            }
        };
        let as_of = super::state::made_again_at(files, sequence)?;
        let read = |text: &str, what: &str| {
            serde_json::from_str::<Json>(text).map_err(|error| Failure(format!("{what}: {error}")))
        };
        let (edited, ledger) = (read(&text, &shown)?, read(&as_of.render(), "the ledger's view")?);
        // The set must be whole before it is changed, so that what is wrong afterwards is the edit's fault.
        context.workspace.load_policies()?;
        // Where a link leads, it stays a link.
        let path = context.workspace.root().join(ROUTES_PATH).canonicalize()?;
        let routes =
            std::fs::read_to_string(&path).map_err(|error| Failure(format!("{ROUTES_PATH}: {error}")))?;
        let adoption = adopt(&edited, &ledger, &read(&routes, ROUTES_PATH)?);
        if adoption.changes.is_empty() {
            self.say(
                context,
                Some(&adoption),
                "nothing to adopt; `handoffd state restore` puts the ledger's view back",
            );
            return Ok(Exit::Refused);
        }
        let mut changed =
            serde_json::to_string_pretty(&adoption.routes).map_err(|error| Failure(error.to_string()))?;
        changed.push('\n');
        context.workspace.check_routes(changed.as_bytes())?;
        if !self.yes && !self.confirmed(context, &adoption)? {
            return Ok(Exit::Refused);
        }
        // First the policy: if it ends here, the edit is still in the state file and adopting again finds it done.
        replace_public(&path, changed.as_bytes())
            .map_err(|error| Failure(format!("{ROUTES_PATH}: {error}")))?;
        super::state::publish(files, &view)?;
        let message = format!("adopted into {ROUTES_PATH}; the state file is the ledger's again");
        self.say(context, self.yes.then_some(&adoption), &message);
        Ok(Exit::Done)
    }

    fn confirmed(&self, context: &Context, adoption: &Adoption) -> Result<bool, Failure> {
        if context.printer.is_json() || !std::io::stdin().is_terminal() {
            return Err(Failure::new(
                "nobody can be asked here; look at the edits with a terminal, or give --yes",
            ));
        }
        show(context, adoption);
        context.printer.line(&format!("Write this to {ROUTES_PATH}? [y/N]"));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn say(&self, context: &Context, adoption: Option<&Adoption>, message: &str) {
        if !context.printer.is_json() {
            if let Some(adoption) = adoption {
                show(context, adoption);
            }
            context.printer.line(message);
            return;
        }
        let (mut changes, mut left) = (Vec::new(), Vec::new());
        for change in adoption.iter().flat_map(|adoption| &adoption.changes) {
            let (from, to) = (&change.from, &change.to);
            changes.push(json!({"route": change.route_key, "field": change.field, "from": from, "to": to}));
        }
        for edit in adoption.iter().flat_map(|adoption| &adoption.left) {
            left.push(json!({"pointer": edit.pointer, "why": edit.why}));
        }
        context.printer.value(&json!({"adopted": changes, "notAdopted": left, "message": message}));
    }
}

fn show(context: &Context, adoption: &Adoption) {
    for change in &adoption.changes {
        let (route, field) = (printable(&change.route_key), change.field);
        let (from, to) = (printable(&change.from.to_string()), printable(&change.to.to_string()));
        context.printer.line(&format!("{RED}- {route} {field}: {from}{RED:#}"));
        context.printer.line(&format!("{GREEN}+ {route} {field}: {to}{GREEN:#}"));
    }
    for edit in &adoption.left {
        let pointer = printable(&edit.pointer);
        context.printer.line(&format!("{YELLOW}not adopted{YELLOW:#} {pointer}  {DIM}{}{DIM:#}", edit.why));
    }
}
