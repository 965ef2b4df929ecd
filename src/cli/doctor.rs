//! `handoffd doctor`: everything that could be wrong with a workspace, each with what to do.
//!
//! A check is a function that adds what it finds and returns what to say when it found nothing; one that cannot be made
//! is skipped, and says so. Nothing is changed, and all of it works beside a running daemon.

mod daemon;
mod disk;
mod keys;
mod ledger;
mod rules;
mod serving;

use std::cell::OnceCell;
use std::path::Path;

use clap::Args;
use serde_json::json;

use super::audit::Committed;
use super::printer::{DIM, GREEN, RED, YELLOW};
use super::{Context, Exit, Failure};
use crate::gateway::Files;
use crate::json::printable;
use crate::os::{clock, files};
use crate::policy::{PolicySet, Workspace, WorkspaceFault};
use crate::proof::Keyring;
use crate::settings::Effective;
use crate::timestamp::Timestamp;

/// Look for what could be wrong with the workspace, and say what to do.
///
/// Nothing is changed.
///
/// Exit: 0 nothing fails, 1 something does.
#[derive(Debug, Args)]
pub(super) struct Doctor;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// It could not be looked at, so nobody knows.
    Skip,
    Warn,
    Fail,
}

impl Level {
    /// In the output for people, and for programs.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Skip => ("skip", "skipped"),
            Self::Warn => ("warn", "warn"),
            Self::Fail => ("fail", "fail"),
        }
    }
}

/// One thing that is not as it should be.
#[derive(Debug)]
struct Finding {
    level: Level,
    what: String,
    fix: String,
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    /// The check could not be made, and why. Nothing else is to be said then.
    fn skip(&mut self, why: &str) -> String {
        self.0.push(Finding { level: Level::Skip, what: why.to_owned(), fix: String::new() });
        String::new()
    }

    fn warn(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { level: Level::Warn, what: what.into(), fix: fix.into() });
    }

    fn fail(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Finding { level: Level::Fail, what: what.into(), fix: fix.into() });
    }
}

/// What there is to look at, read once.
struct Ground<'c> {
    workspace: &'c Workspace,
    files: Files,
    policies: Result<PolicySet, WorkspaceFault>,
    keyring: Result<Keyring, WorkspaceFault>,
    free_bytes: std::io::Result<u64>,
    /// Where the ledger is follows from the settings; what is wrong with those is said once.
    has_settings: bool,
    /// How far the ledger has come, or why that is not known.
    ledger: OnceCell<Result<Option<Committed>, String>>,
    /// Whose memory/ is, if that is another user and this one may not look into it.
    stranger_to: Option<u32>,
    now: Timestamp,
}

const AFTER_SETTINGS: &str = "not looked at until the settings can be used";

impl<'c> Ground<'c> {
    fn of(workspace: &'c Workspace) -> Self {
        let memory = workspace.root().join("memory");
        Self {
            files: Files::of(workspace.root()),
            policies: workspace.load_policies(),
            keyring: workspace.load_keyring(),
            free_bytes: files::free_bytes(if memory.is_dir() { &memory } else { workspace.root() }),
            has_settings: Effective::load(workspace.root(), Vec::new()).is_ok(),
            ledger: OnceCell::new(),
            stranger_to: stranger_to(&memory),
            now: clock::now(),
            workspace,
        }
    }

    fn root(&self) -> &Path {
        self.workspace.root()
    }
}

/// Looks at one thing; returns what to say if nothing was found.
type Check = fn(&Ground<'_>, &mut Findings) -> String;

/// What a check needs to find anything out.
enum Needs {
    /// What everybody may read.
    Rules,
    /// To look into memory/, and there these secrets, which are not read while others can read them.
    Memory(&'static [&'static str]),
}

use Needs::{Memory, Rules};

const CHECKS: [(&str, Check, Needs); 20] = [
    ("settings", rules::settings, Rules),
    ("certificates", serving::certificates, Rules),
    ("sink", serving::sink, Rules),
    ("policies", rules::policies, Rules),
    ("routes", rules::routes, Rules),
    ("delegation", rules::delegation, Rules),
    ("references", rules::references, Rules),
    ("user", user, Rules),
    ("keyring", keys::keyring, Memory(&["keyring.json"])),
    ("key owners", keys::owners, Memory(&["keyring.json"])),
    ("signing keys", keys::signing, Memory(&["keyring.json"])),
    ("tokens", keys::tokens, Memory(&["tokens.json"])),
    ("permissions", disk::permissions, Memory(&[])),
    ("room", disk::room, Rules),
    ("leftovers", disk::leftovers, Memory(&[])),
    ("ledger", ledger::ledger, Memory(&[])),
    ("clock", ledger::clock, Memory(&[])),
    ("state", ledger::state, Memory(&[])),
    ("checkpoint", ledger::checkpoint, Memory(&["gateway.key"])),
    ("daemon", daemon::daemon, Memory(&[])),
];

/// What every check came to, in their order.
fn examine(ground: &Ground<'_>) -> Vec<(&'static str, String, Vec<Finding>)> {
    let run = |(name, check, needs): &(&'static str, Check, Needs)| {
        let mut findings = Findings::default();
        let good = match needs.hindrance(ground) {
            Some(why) => findings.skip(&why),
            None => check(ground, &mut findings),
        };
        (*name, good, findings.0)
    };
    CHECKS.iter().map(run).collect()
}

impl Needs {
    /// Why a check would find out nothing but what another one says already.
    fn hindrance(&self, ground: &Ground<'_>) -> Option<String> {
        let Self::Memory(secrets) = self else { return None };
        if ground.stranger_to.is_some() {
            return Some("not looked at as this user".to_owned());
        }
        let memory = ground.root().join("memory");
        let open = secrets.iter().find(|name| files::is_open_to_others(&memory.join(name)))?;
        Some(format!("not looked at while others can read memory/{open}: see permissions"))
    }
}

/// Whose memory/ is, if this process may not read what is its owner's alone.
fn stranger_to(memory: &Path) -> Option<u32> {
    let owner = files::owner(memory).ok()?;
    let secrets = ["gateway.key", "tokens.json", "keyring.json"].map(|name| memory.join(name));
    let mut all = std::iter::once(memory).chain(secrets.iter().map(std::path::PathBuf::as_path));
    let is_shut = |path: &Path| {
        files::may_read(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    all.any(is_shut).then_some(owner)
}

fn user(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let Some(owner) = ground.stranger_to else { return "may read memory/".to_owned() };
    findings.fail(
        format!("memory/ belongs to the user with id {owner}, and this one may not read what is in it"),
        format!("run it as the workspace's user: sudo -u '#{owner}' handoffd doctor"),
    );
    String::new()
}

impl Doctor {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        if !context.workspace.root().is_dir() {
            return Err(Failure(format!("{} is not a directory", context.workspace.root().display())));
        }
        let found = examine(&Ground::of(&context.workspace));
        let count = |level: Level| {
            found.iter().flat_map(|(.., findings)| findings).filter(|finding| finding.level == level).count()
        };
        let (warnings, failures, skipped) = (count(Level::Warn), count(Level::Fail), count(Level::Skip));
        if context.printer.is_json() {
            let mut rows = Vec::new();
            for (name, good, findings) in &found {
                if findings.is_empty() {
                    rows.push(json!({"check": name, "level": "ok", "message": good}));
                }
                for Finding { level, what, fix } in findings {
                    let mut row = json!({"check": name, "level": level.words().1, "message": what});
                    if let Some(members) = row.as_object_mut().filter(|_| !fix.is_empty()) {
                        members.insert("fix".to_owned(), fix.as_str().into());
                    }
                    rows.push(row);
                }
            }
            context.printer.value(&json!({
                "ok": failures == 0,
                "warnings": warnings,
                "failures": failures,
                "skipped": skipped,
                "checks": rows,
            }));
        } else {
            for (name, good, findings) in &found {
                if findings.is_empty() {
                    context.printer.line(&format!("{GREEN}ok{GREEN:#}    {name:<12}  {}", one_line(good)));
                }
                for Finding { level, what, fix } in findings {
                    let style = match level {
                        Level::Skip => DIM,
                        Level::Warn => YELLOW,
                        Level::Fail => RED,
                    };
                    let word = level.words().0;
                    context.printer.line(&format!("{style}{word}{style:#}  {name:<12}  {}", one_line(what)));
                    if !fix.is_empty() {
                        context.printer.line(&format!("      {:<12}  {DIM}{}{DIM:#}", "", one_line(fix)));
                    }
                }
            }
            let mut summary = match (warnings, failures) {
                (0, 0) if skipped > 0 => "nothing wrong was found".to_owned(),
                (0, 0) => "nothing is wrong".to_owned(),
                (warnings, 0) => format!("nothing fails, {warnings} to look at"),
                (warnings, failures) => format!("{failures} to mend, {warnings} to look at"),
            };
            if skipped > 0 {
                summary.push_str(&format!(", {skipped} not looked at"));
            }
            context.printer.line(&format!("\n{summary}"));
        }
        Ok(if failures == 0 { Exit::Done } else { Exit::Refused })
    }
}

/// What names of files and of others' making have in them, in one line.
fn one_line(text: &str) -> String {
    text.lines()
        .map(|line| line.split(' ').map(printable).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests;
