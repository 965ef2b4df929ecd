//! `handoffd ledger settle`: what to do with a database that has lost entries.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::{Value as Json, json};

use super::printer::{GREEN, RED, counted};
use super::{Context, Exit, Failure, place};
use crate::gateway::{Files, LostAct, LostEntries, lost_entries};
use crate::ledger::postgres::{Database, Loss, Settlement};
use crate::ledger::{Closing, Head, Source};
use crate::os::clock;

/// How many of the lost decisions are shown to people.
const SHOWN: usize = 20;

/// Say what a database has lost, and which history counts.
///
/// A database that was put back from a backup, or that lost its end in a failover, is closed by the first gateway
/// that misses an entry: nobody appends to it any more. This shows who misses what, which decisions of it this
/// workspace has seen, and what else people did there. If all of it is there again, it opens the ledger. If the
/// entries cannot be found, `--keep` gives them up: what is left counts, and the next gateway that starts begins a
/// new epoch, in which envelopes, mentions and grants from before are void.
///
/// Freezes, revocations and the like among the lost entries are forgotten. So that epoch begins with a freeze of
/// everything, which a person lifts when they were done again. Tokens that this workspace has seen revoked are
/// revoked again at once.
///
/// Exit: 0 nothing to settle, or settled; 1 to be settled; 2 unreadable; 3 settled, but a token could not be revoked
/// again.
#[derive(Debug, Args)]
pub(super) struct Settle {
    /// Give up the lost entries. ENTRY is the last one that is left: naming it shows that you know what is lost
    #[arg(long, value_name = "ENTRY")]
    keep: Option<u64>,
}

impl Settle {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let root = context.workspace.root();
        let Source::Database(database) = place::ledger(root)? else {
            return Err(Failure::new(
                "the ledger of this workspace is in files, where there is nothing to settle; for one in a database set \
                 HANDOFFD_LEDGER_URL or `[ledger] url` in handoffd.toml",
            ));
        };
        let failed = |fault: crate::ledger::postgres::PostgresFault| Failure(fault.to_string());
        let losses = database.losses().map_err(failed)?;
        // Asked before it is settled: afterwards nothing is missed any more.
        let found = Found {
            closed: database.closed().map_err(failed)?,
            head: database.head().map_err(failed)?.0,
            // What cannot be read says nothing; who misses what is in the database.
            lost: lost_entries(&Files::of(root), &database).unwrap_or_default(),
            losses,
        };
        let settlement = database.settle_losses(self.keep).map_err(failed)?;
        let revoked = match &settlement {
            Settlement::GivenUp => found.revoke_again(context),
            Settlement::NothingLost | Settlement::OtherHead { .. } | Settlement::NotLost => Vec::new(),
        };
        if context.printer.is_json() {
            context.printer.value(&found.to_json(&database, &settlement, &revoked));
        } else {
            context.printer.line(&found.said(&database, &settlement, self.keep, &revoked));
        }
        if revoked.iter().any(|one| one.fault.is_some()) {
            return Ok(Exit::Unavailable);
        }
        Ok(match settlement {
            Settlement::OtherHead { .. } => Exit::Refused,
            Settlement::NotLost if self.keep.is_some() => Exit::Refused,
            Settlement::NothingLost | Settlement::GivenUp | Settlement::NotLost => Exit::Done,
        })
    }
}

/// How it was when it was asked.
struct Found {
    closed: Option<Closing>,
    head: Head,
    losses: Vec<Loss>,
    lost: Option<LostEntries>,
}

/// A token that was to be revoked again.
struct Revoked {
    token: String,
    fault: Option<String>,
}

impl Found {
    /// Tokens that somebody revoked in the lost entries count again in the roster that is left: they are revoked anew, before
    /// any gateway starts on it. What became of each.
    fn revoke_again(&self, context: &Context) -> Vec<Revoked> {
        let acts = self.lost.iter().flat_map(|lost| &lost.acts);
        let ids: BTreeSet<&str> = acts.filter_map(|act| act.revoked_token.as_deref()).collect();
        if ids.is_empty() {
            return Vec::new();
        }
        // The ledger is settled whatever becomes of it, so what fails is said and hides nothing.
        let files = place::tokens(context).map_err(|Failure(why)| why);
        let revoke = |id: &str| {
            let files = files.as_ref().map_err(Clone::clone)?;
            files.revoke_if_it_counts(id, clock::now()).map_err(|fault| fault.to_string())
        };
        ids.into_iter().map(|id| Revoked { token: id.to_owned(), fault: revoke(id).err() }).collect()
    }

    fn to_json(&self, database: &Database, settlement: &Settlement, revoked: &[Revoked]) -> Json {
        let missed = |loss: &Loss| {
            json!({
                "gateway": loss.gateway,
                "sequence": loss.had.sequence,
                "runningHash": loss.had.running_hash.to_string(),
                "found": loss.found,
                "noticedAt": loss.noticed_at,
            })
        };
        let lost = |lost: &LostEntries| {
            let decision = |row: &crate::views::EntryRow| {
                json!({"sequence": row.sequence, "handoffId": row.handoff_id, "decision": row.decision,
                       "at": row.consensus_timestamp})
            };
            let act = |act: &LostAct| json!({"sequence": act.sequence, "type": act.kind, "by": act.by, "what": act.what, "redo": act.redo});
            json!({"after": lost.after, "through": lost.through,
                   "decisions": lost.decisions.iter().map(decision).collect::<Vec<_>>(),
                   "acts": lost.acts.iter().map(act).collect::<Vec<_>>()})
        };
        let tokens = |wanted: &dyn Fn(&&Revoked) -> bool| {
            revoked.iter().filter(wanted).map(|one| one.token.clone()).collect::<Vec<_>>()
        };
        json!({
            "database": database.to_string(),
            "topicId": database.topic_id(),
            "closed": self.closed.as_ref().map(ToString::to_string),
            "left": {"sequence": self.head.sequence, "runningHash": self.head.running_hash.to_string()},
            "missed": self.losses.iter().map(missed).collect::<Vec<_>>(),
            "seenHere": self.lost.as_ref().map(lost),
            "revokedAgain": tokens(&|one| one.fault.is_none()),
            "notRevoked": tokens(&|one| one.fault.is_some()),
            "settled": match settlement {
                Settlement::NothingLost => "nothingLost",
                Settlement::GivenUp => "givenUp",
                Settlement::OtherHead { .. } => "no",
                Settlement::NotLost => "nothingToSettle",
            },
        })
    }

    fn said(
        &self,
        database: &Database,
        settlement: &Settlement,
        keep: Option<u64>,
        revoked: &[Revoked],
    ) -> String {
        let Head { sequence, running_hash } = self.head;
        let head = match settlement {
            Settlement::NotLost => {
                let why = self.closed.as_ref().map_or_else(
                    || format!("the ledger in {database} is open and ends at entry {sequence}"),
                    |closed| format!("the ledger in {database} is closed: {closed}"),
                );
                return format!("{GREEN}nothing to settle{GREEN:#}  {why}");
            }
            Settlement::NothingLost => {
                format!(
                    "{GREEN}nothing is lost{GREEN:#}  all that was missed is there again; the ledger is open"
                )
            }
            Settlement::GivenUp => format!(
                "{GREEN}settled{GREEN:#}  what came after entry {sequence} and is not there is given up\n         \
                 start the gateways again: the first one begins a new epoch and freezes everything, and each puts aside what it\n         \
                 remembers of it; do again what has to hold, then: handoffd freeze lift --all --reason …"
            ),
            Settlement::OtherHead { head } => match keep {
                Some(keep) => format!(
                    "{RED}not settled{RED:#}  what is left ends at entry {head}, and not at {keep}; nothing was changed"
                ),
                None => {
                    format!("{RED}to be settled{RED:#}  {database} has lost entries, and nothing is appended")
                }
            },
        };
        let mut text = format!("{head}\n\n  left    up to entry {sequence}, running hash {running_hash}\n");
        for Loss { gateway, had, found, noticed_at } in &self.losses {
            text.push_str(&format!(
                "  missed  entry {} by gateway {}, running hash {}; when it noticed, at {noticed_at}, the last one was {found}\n",
                had.sequence,
                crate::json::printable(gateway),
                had.running_hash,
            ));
        }
        text.push_str(&self.seen_here());
        for Revoked { token, fault } in revoked {
            text.push_str(&match fault {
                None => format!("  revoked {token} again\n"),
                Some(fault) => format!("  {RED}not revoked{RED:#} {token}: {fault}; do it before you start a gateway: handoffd token revoke {token}\n"),
            });
        }
        if matches!(settlement, Settlement::OtherHead { .. }) {
            text.push_str(&format!(
                "\nIf the entries can be found (another standby, a newer backup), put that database in the place of this one,\n\
                 or the rows back into it, and run this again. If they are gone for good: `handoffd ledger settle --keep {sequence}`\n\
                 gives them up, and a new epoch begins: envelopes, mentions and grants from before it are void, and everything is\n\
                 frozen until somebody lifts that. Run this in the workspaces of all gateways first: each shows what it has seen."
            ));
        }
        text
    }

    fn seen_here(&self) -> String {
        let Some(LostEntries { after, through, decisions, acts }) = &self.lost else {
            return "  seen    this workspace has seen none of it; ask in those of the gateways that miss something\n".to_owned();
        };
        let mut text = format!(
            "  seen    entries {} to {through} by this workspace, with {}{}\n",
            after + 1,
            if decisions.len() >= crate::limits::VIEW_PAGE_ROWS_MAX { "more than " } else { "" },
            counted(decisions.len(), "decision", "decisions")
        );
        for row in decisions.iter().take(SHOWN) {
            let (id, decision) = (row.handoff_id.as_deref(), row.decision.as_deref());
            text.push_str(&format!(
                "          {} {} at entry {}, {}\n",
                crate::json::printable(id.unwrap_or("?")),
                decision.unwrap_or("?"),
                row.sequence,
                row.consensus_timestamp
            ));
        }
        if decisions.len() > SHOWN {
            text.push_str("          and older ones; `--json` has more of them\n");
        }
        for LostAct { sequence, by, what, redo, .. } in acts {
            text.push_str(&format!(
                "  {RED}undone{RED:#}  entry {sequence}: {by} {what}\n          {redo}\n"
            ));
        }
        text
    }
}
