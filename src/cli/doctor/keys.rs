//! Keys and tokens: whether they can be read, and whether they still count.

use std::path::Path;

use super::super::printer::counted;
use super::super::{Failure, place};
use super::{AFTER_SETTINGS, Findings, Ground};
use crate::callers::TokenFiles;
use crate::gateway::Sharing;
use crate::limits;
use crate::proof::Purpose;

/// A token that ends sooner than this is worth a word: its holder has to be given another one.
const TOKEN_ENDS_S: i64 = 7 * 86_400;

const AFTER: &str = "not looked at until the keyring and the policy set can be read";

pub(super) fn keyring(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let keyring = match &ground.keyring {
        Ok(keyring) => keyring,
        Err(fault) => {
            findings.fail(fault.to_string(), "mend the file, or bring it back from a backup");
            return String::new();
        }
    };
    for key in keyring.keys() {
        let Some(until) = key.not_after() else { continue };
        let (id, fix) =
            (key.id(), format!("add its successor with: handoffd key add --owner {}", key.owner()));
        if until <= ground.now {
            findings
                .warn(format!("key `{id}` ended {until}"), format!("{fix}; then: handoffd key remove {id}"));
        } else if until.seconds_since(ground.now) < limits::DOCTOR_KEY_ENDS_S {
            findings.warn(format!("key `{id}` ends {until}"), fix);
        }
    }
    format!("{}; none ends soon", counted(keyring.keys().len(), "key", "keys"))
}

pub(super) fn owners(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let (Ok(keyring), Ok(policies)) = (&ground.keyring, &ground.policies) else {
        return findings.skip(AFTER);
    };
    for key in keyring.keys().iter().filter(|key| key.purpose() == Purpose::Envelope) {
        let mut all = policies.policy_refs().filter_map(|path| policies.policy(path));
        if !all.any(|policy| policy.principals.cover(key.owner())) {
            findings.warn(
                format!("key `{}` belongs to `{}`, who is a principal of no policy", key.id(), key.owner()),
                format!("add the principal to a policy, or: handoffd key remove {}", key.id()),
            );
        }
    }
    "every owner of an envelope key is a principal".to_owned()
}

pub(super) fn signing(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let (Ok(keyring), Ok(policies)) = (&ground.keyring, &ground.policies) else {
        return findings.skip(AFTER);
    };
    for (route_key, route) in policies.routes() {
        let Some(id) = &route.signing_key_id else { continue };
        let is_there = keyring
            .get(id)
            .is_some_and(|key| key.purpose() == Purpose::Dispatch && key.is_valid_at(ground.now));
        if is_there {
            continue;
        }
        let what = format!("route `{route_key}` signs with key `{id}`, which does not count for that");
        let fix = format!("handoffd key add --purpose dispatch --owner {} --id {id}", route.primary_agent_id);
        // Without a signature it may still be dispatched where none is demanded.
        if route.require_signature == Some(true) {
            findings.fail(what, fix);
        } else {
            findings.warn(what, fix);
        }
    }
    "every route has the key that it signs with".to_owned()
}

pub(super) fn tokens(ground: &Ground<'_>, findings: &mut Findings) -> String {
    if !ground.has_settings {
        return findings.skip(AFTER_SETTINGS);
    }
    let files = match place::ledger(ground.root()).map(|ledger| Sharing::of(&ledger)) {
        // Whose admin is which is of no consequence here.
        Ok(Some(sharing)) => sharing.tokens(TokenFiles::of(ground.root()), ""),
        Ok(None) => TokenFiles::of(ground.root()),
        Err(Failure(why)) => {
            findings.fail(why, "see [ledger] url");
            return String::new();
        }
    };
    let roster = match files.load_if_any() {
        Ok(Some(roster)) => roster,
        // A daemon's first start makes it.
        Ok(None) => {
            return match ground.files.trace_of_service() {
                None => "none yet; the daemon makes the first".to_owned(),
                Some(trace) => lost(findings, &files, &trace),
            };
        }
        Err(fault) => {
            findings.fail(fault.to_string(), "mend the file, or bring it back from a backup");
            return String::new();
        }
    };
    let valid = || roster.tokens().iter().filter(|token| token.is_valid_at(ground.now));
    if !roster.has_admin(ground.now) {
        findings.warn("no admin's token counts", "start the daemon again: it makes one");
        return String::new();
    }
    for token in valid() {
        let Some(until) = token.expires_at().filter(|until| until.seconds_since(ground.now) < TOKEN_ENDS_S)
        else {
            continue;
        };
        let (name, role) = (token.name(), token.role());
        findings.warn(
            format!("the token `{name}` of role {role} ends {until}"),
            "give its holder another one with: handoffd token new",
        );
    }
    // Commands on this machine use it where they are given no other.
    match files.read_admin() {
        Ok(Some(text)) if roster.find(&text, ground.now).is_none() => findings.warn(
            "the token in memory/admin.token does not count (it is unknown, was revoked, or has ended), so commands that use \
             it are refused",
            "give a token that counts with HANDOFFD_TOKEN; or delete memory/admin.token and start the daemon again: it \
             makes another",
        ),
        Ok(_) => {}
        // That others can read it is for another check to say.
        Err(fault) => return findings.skip(&format!("whose token memory/admin.token holds is not known: {fault}")),
    }
    format!("{} in force", counted(valid().count(), "token is", "tokens are"))
}

/// There were tokens, and the file is gone.
fn lost(findings: &mut Findings, files: &TokenFiles, trace: &Path) -> String {
    findings.fail(
        format!(
            "{} is gone, and this workspace has been served before ({} is there): a gateway that runs keeps to the tokens \
             before, and a start lets in nobody but a new admin",
            files.tokens().display(),
            trace.display()
        ),
        "put it back from a backup; or start the daemon and make new tokens",
    );
    String::new()
}
