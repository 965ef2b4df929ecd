//! The ledger, and whether what remembers it agrees with it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::super::audit::{Committed, found_in};
use super::super::printer::counted;
use super::super::state::published;
use super::super::{Failure, place};
use super::{AFTER_SETTINGS, Findings, Ground};
use crate::gateway::{GatewayFault, hold_ledger, public_key, read_checkpoint};
use crate::ledger::{Entry, Source};
use crate::limits;
use crate::policy::plain;
use crate::state::Published;
use crate::timestamp::Timestamp;

const NONE: &str = "the ledger has no entries yet";
const AFTER_LEDGER: &str = "not looked at until the ledger can be read";

/// How far the ledger has come, looked at once; nothing if it has no entries, and never had any.
fn head<'g>(ground: &'g Ground<'_>) -> Result<Option<&'g Committed>, &'g str> {
    let found = ground.ledger.get_or_init(|| look(ground).map_err(|Failure(why)| why));
    found.as_ref().map(Option::as_ref).map_err(String::as_str)
}

fn look(ground: &Ground<'_>) -> Result<Option<Committed>, Failure> {
    let ledger = place::ledger(ground.root())?;
    // One that is gone looks like one that has not begun: whoever remembers its entries tells them apart.
    if let Err(lost @ GatewayFault::Forgotten { .. }) = hold_ledger(&ground.files, &ledger) {
        return Err(Failure(lost.to_string()));
    }
    let is_empty = match &ledger {
        Source::Files(directory) => is_empty(directory)?,
        Source::Database(_) | Source::Memory(_) => false,
    };
    if is_empty { Ok(None) } else { found_in(ledger) }
}

/// Has it no files? What cannot be looked at may have some.
fn is_empty(directory: &Path) -> Result<bool, Failure> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Failure(format!("{} {}", directory.display(), plain(&error)))),
    }
}

pub(super) fn ledger(ground: &Ground<'_>, findings: &mut Findings) -> String {
    if !ground.has_settings {
        return findings.skip(AFTER_SETTINGS);
    }
    const FIX: &str = "see: handoffd audit verify; docs/ledger.md says what to do";
    const FIX_DATABASE: &str =
        "have the database answer, or correct `[ledger] url`: docs/scale-out.md says what it needs";
    match head(ground) {
        Ok(None) => "has no entries yet".to_owned(),
        Ok(Some(Committed { head, .. })) => {
            format!("{}; nothing here has seen more", counted(head.sequence, "entry", "entries"))
        }
        Err(why) => {
            let fix = if place::is_database(ground.root()) { FIX_DATABASE } else { FIX };
            findings.fail(format!("the ledger cannot be read: {why}"), fix);
            String::new()
        }
    }
}

fn entry(ground: &Ground<'_>, sequence: u64) -> Result<Option<Entry>, String> {
    let ledger = place::ledger(ground.root()).map_err(|Failure(why)| why)?;
    ledger.entry(sequence).map_err(|fault| fault.to_string())
}

pub(super) fn clock(ground: &Ground<'_>, findings: &mut Findings) -> String {
    if !ground.has_settings {
        return findings.skip(AFTER_SETTINGS);
    }
    let last = match head(ground) {
        Ok(None) => return findings.skip(NONE),
        Ok(Some(Committed { head, .. })) => entry(ground, head.sequence),
        // What is wrong with it was said above.
        Err(_) => return findings.skip(AFTER_LEDGER),
    };
    let last = match last {
        Ok(last) => last.and_then(|entry| Timestamp::parse(&entry.consensus_timestamp.to_string())),
        Err(why) => {
            findings.fail(
                format!("the ledger's last entry cannot be read: {why}"),
                "see: handoffd audit verify; docs/ledger.md says what to do",
            );
            return String::new();
        }
    };
    let behind = last.map_or(0, |last| last.seconds_since(ground.now));
    if behind > limits::CLOCK_BEHIND_S {
        findings.fail(
            format!("the clock is {behind} s behind the ledger's last entry"),
            "set the clock right; until then decisions go by the ledger's own time",
        );
    }
    "not behind the ledger's last entry".to_owned()
}

pub(super) fn state(ground: &Ground<'_>, findings: &mut Findings) -> String {
    if !ground.has_settings {
        return findings.skip(AFTER_SETTINGS);
    }
    const RESTORE: &str = "stop the daemon, then: handoffd state restore; or: handoffd state adopt";
    match head(ground) {
        Ok(Some(_)) => {}
        Ok(None) => return findings.skip(NONE),
        Err(_) => return findings.skip(AFTER_LEDGER),
    }
    match published(&ground.files) {
        Ok(Published::AsOf(sequence)) => return format!("what the ledger gives at entry {sequence}"),
        Ok(Published::Missing) => {
            findings.warn(
                "there is no state file, which orchestrators read",
                "start the daemon: it publishes it",
            );
        }
        Ok(Published::Edited { sequence, difference }) => findings.fail(
            format!(
                "the state file is not what the ledger gives at entry {sequence} ({difference}): somebody edited it"
            ),
            RESTORE,
        ),
        Ok(Published::Ahead { sequence }) => findings.fail(
            format!("the state file names entry {sequence}, which the ledger does not have"),
            "the ledger was cut or replaced: bring it back from a backup",
        ),
        Ok(Published::Torn) => findings.warn(
            "the state file ends in the middle",
            "nothing to do: the next start makes it again from the ledger",
        ),
        Ok(Published::Unreadable) => findings.fail("the state file is not a state file", RESTORE),
        Err(Failure(why)) => findings.fail(format!("the state file cannot be compared: {why}"), RESTORE),
    }
    String::new()
}

/// Has nothing followed the ledger here? A copy has a key, but nothing that follows.
fn is_unserved(ground: &Ground<'_>) -> bool {
    let files = &ground.files;
    ![files.state(), files.views()].iter().any(|path| path.exists())
}

pub(super) fn checkpoint(ground: &Ground<'_>, findings: &mut Findings) -> String {
    if !ground.has_settings {
        return findings.skip(AFTER_SETTINGS);
    }
    const TAMPERED: &str = "somebody changed the ledger or the checkpoint; see: handoffd audit verify";
    let head = match head(ground) {
        Ok(Some(Committed { head, .. })) => head,
        Ok(None) => return findings.skip(NONE),
        Err(_) => return findings.skip(AFTER_LEDGER),
    };
    let checkpoint = match read_checkpoint(&ground.files.checkpoint()) {
        Ok(Some(checkpoint)) => checkpoint,
        // It is left every so many entries, and when the daemon stops.
        Ok(None) if head.sequence < limits::CHECKPOINT_ENTRIES => {
            findings.warn(
                "there is no checkpoint yet",
                "the daemon leaves one with its first entries and when it stops; while it runs, handoffd audit checkpoint has one signed to keep elsewhere",
            );
            return String::new();
        }
        // Whoever serves a ledger follows it: one that nobody here has followed was copied or put here.
        Ok(None) if is_unserved(ground) => {
            findings.warn(
                "no gateway has served the ledger here, so there is no checkpoint of it yet",
                "the first start leaves one; handoffd audit verify computes the ledger again",
            );
            return String::new();
        }
        Ok(None) => {
            findings.fail("there is no checkpoint of a ledger that must have one", TAMPERED);
            return String::new();
        }
        Err(fault) => {
            findings.fail(fault.to_string(), TAMPERED);
            return String::new();
        }
    };
    let signed = match public_key(&ground.files) {
        Ok(key) => checkpoint.verify(&key),
        Err(fault) => {
            findings.fail(fault.to_string(), "bring memory/gateway.key back from a backup");
            return String::new();
        }
    };
    let Some(signed) = signed else {
        findings.fail("the checkpoint is not signed by this gateway's key", TAMPERED);
        return String::new();
    };
    let found = entry(ground, signed.sequence).ok().flatten().map(|entry| entry.running_hash);
    if signed.sequence > head.sequence || found != Some(signed.running_hash) {
        findings.fail(
            format!("the checkpoint of entry {} does not agree with the ledger", signed.sequence),
            TAMPERED,
        );
    }
    format!("of entry {}, agrees with the ledger", signed.sequence)
}
