//! `handoffd audit`: the ledger, as auditors take it away.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::printer::{DIM, GREEN, RED, counted};
use super::state::Compared;
use super::{Context, Exit, Failure, parse_time, place, read_input};
use crate::gateway::{Files, GatewayFault, OtherCheckpoint, hold_ledger, public_key, read_other_checkpoints};
use crate::json;
use crate::ledger::{Head, OpenFault, Source, verify};
use crate::limits;
use crate::policy::plain;
use crate::state::{Published, StateFault};
use crate::timestamp::Timestamp;
use crate::views::{Cursor, EntryFilter, Reader, Rebuild, ViewsFault, compare};

/// Inspect the ledger; works beside a running daemon.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Print every entry as JSON lines: the exact text that was hashed, and its proof metadata
    Export(Export),
    /// List entries, the newest first
    List(List),
    /// Show one entry
    Show(Show),
    Tail(super::tail::AuditTail),
    Verify(Verify),
    /// Print a signed checkpoint to keep elsewhere: of the newest entry if a gateway runs, otherwise the last one
    Checkpoint,
}

/// Compute everything again: the chain, the checkpoint, the state file, the views.
///
/// Shares no code with what writes the ledger. Without --export: the workspace's segments, its own checkpoint, the
/// state file, and the views.
///
/// Exit: 0 good, 1 a difference was found, 2 unreadable.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Verify an export instead of the workspace's ledger; `-` is standard input
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,

    /// A checkpoint that the ledger must agree with, kept elsewhere
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,

    /// The gateway's public key, 64 hex digits; the workspace's own if not given
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Begin with this entry
    #[arg(long, value_name = "SEQUENCE", default_value_t = 1)]
    from: u64,
}

/// List entries, the newest first. All filters that are given must hold.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only this event type, such as gate.decided
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Only this handoff, every attempt at it
    #[arg(long, value_name = "ID")]
    handoff: Option<String>,

    /// Only this correlationId
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,

    /// Only entries of handoffs from or to this agent, and those that it sent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only entries of handoffs on this route, of the route itself, and what names it
    #[arg(long, value_name = "ROUTE")]
    route: Option<String>,

    /// Only entries with this code
    #[arg(long, value_name = "CODE")]
    code: Option<String>,

    /// Only decisions of this kind
    #[arg(long, value_name = "DECISION", value_parser = ["allowed", "denied", "expired", "needs_approval"])]
    decision: Option<String>,

    /// Only entries from this time on
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,

    /// Only entries before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,

    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,

    /// Where the page before this one ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<Cursor>,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The entry's sequence number
    sequence: u64,
}

/// What to do where the views cannot be asked.
const NO_VIEWS: &str = "`handoffd serve` makes the views from the ledger when it starts, and `handoffd audit tail --from 1 \
                        --no-follow` reads the ledger itself";

/// How far a ledger has come.
pub(super) struct Committed {
    pub(super) topic_id: String,
    pub(super) head: Head,
    pub(super) ledger: Source,
}

/// Why there is nothing to read: the ledger has no entries yet, or it has lost those that something else has seen.
fn nothing_there(files: &Files) -> Failure {
    match hold_ledger(files, &Source::files(&files.ledger())) {
        Err(lost @ GatewayFault::Forgotten { .. }) => Failure(lost.to_string()),
        _ => Failure(format!("{} has no entries yet", files.ledger().display())),
    }
}

/// The committed part of the workspace's ledger.
pub(super) fn committed(files: &Files) -> Result<Committed, Failure> {
    committed_in(place::ledger(files.workspace())?, files)
}

/// The same; nothing if there are no entries.
pub(super) fn committed_if_any(files: &Files) -> Result<Option<Committed>, Failure> {
    found_in(place::ledger(files.workspace())?)
}

fn committed_in(ledger: Source, files: &Files) -> Result<Committed, Failure> {
    found_in(ledger)?.ok_or_else(|| nothing_there(files))
}

/// How far it has come; nothing if there are no entries.
pub(super) fn found_in(ledger: Source) -> Result<Option<Committed>, Failure> {
    let found = ledger.end().map_err(|fault| Failure(fault.to_string()))?;
    Ok(found.map(|(topic_id, head)| Committed { topic_id, head, ledger }))
}

impl AuditCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let files = Files::of(context.workspace.root());
        match self {
            Self::Export(export) => export.run(context, &files),
            Self::List(list) => list.run(context, &files),
            Self::Show(show) => show.run(context, &files),
            Self::Tail(tail) => tail.run(context, &files),
            Self::Verify(verify) => verify.run(context, &files),
            Self::Checkpoint => super::checkpoint::run(context, &files),
        }
    }
}

impl Export {
    fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        // What was left behind by a copy can still be taken away, so that the two can be compared.
        let (ledger, left_behind) = place::ledger_or_left_behind(files.workspace())?;
        if let Some(why) = &left_behind {
            context.printer.note(why);
        }
        let is_left_behind = left_behind.is_some();
        let whole = ledger.clone();
        let found = found_in(ledger)?;
        if let Some(Committed { topic_id, head, ledger }) = &found {
            let entries = ledger.entries(self.from, head.sequence);
            for entry in entries.map_err(|fault| Failure(fault.to_string()))? {
                let entry = entry.map_err(|fault| Failure(fault.to_string()))?;
                context.printer.raw(entry.to_line(topic_id).as_bytes());
            }
        }
        // All that is left is printed; whoever takes it away is told that it is not all. Of a copy others have seen more.
        if !is_left_behind && let Err(lost @ GatewayFault::Forgotten { .. }) = hold_ledger(files, &whole) {
            context.printer.error(&lost.to_string());
            return Ok(Exit::Refused);
        }
        found.map(|_| Exit::Done).ok_or_else(|| nothing_there(files))
    }
}

impl List {
    fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let Committed { head, .. } = committed(files)?;
        if !files.views().is_file() {
            let path = files.views();
            let (path, count) = (path.display(), head.sequence);
            return Err(Failure(format!(
                "{path} is missing, and the ledger has {count} entries; {NO_VIEWS}"
            )));
        }
        let filter = EntryFilter {
            kind: self.kind.as_deref(),
            stream_id: None,
            handoff_id: self.handoff.as_deref(),
            correlation_id: self.correlation.as_deref(),
            code: self.code.as_deref(),
            agent: self.agent.as_deref(),
            route: self.route.as_deref(),
            decision: self.decision.as_deref(),
            from: self.from,
            to: self.to,
        };
        let unusable = |fault: ViewsFault| {
            let what_to_do =
                if matches!(fault, ViewsFault::NeedsRebuild(_)) { NO_VIEWS } else { "try again" };
            Failure(format!("{}: {fault}; {what_to_do}", files.views().display()))
        };
        let reader = Reader::open(&files.views()).map_err(unusable)?;
        if !wait_for_views(&reader, head) {
            let message =
                format!("the list does not go up to entry {}, the ledger's last; {NO_VIEWS}", head.sequence);
            context.printer.note(&message);
        }
        let page = reader.entries(&filter, self.cursor, self.limit).map_err(unusable)?;
        if context.printer.is_json() {
            context
                .printer
                .value(&json!({"entries": page.rows, "next": page.next.map(|next| next.to_string())}));
            return Ok(Exit::Done);
        }
        if page.rows.is_empty() {
            context.printer.line("no entries");
        }
        for row in &page.rows {
            let what = row.decision.as_deref().unwrap_or_default();
            let codes = row.codes.join(" ");
            context.printer.line(
                format!(
                    "{:>8}  {DIM}{}{DIM:#}  {:<18}  {}  {what} {codes}",
                    row.sequence,
                    row.consensus_timestamp,
                    row.kind,
                    json::printable(&row.stream_id)
                )
                .trim_end(),
            );
        }
        if let Some(next) = page.next {
            context.printer.line(&format!("{DIM}more with --cursor {next}{DIM:#}"));
        }
        Ok(Exit::Done)
    }
}

/// A running daemon's views gather for a moment: what is in the ledger already should be in the list too. False if
/// it does not come.
fn wait_for_views(reader: &Reader, head: Head) -> bool {
    for _ in 0..20 {
        if !matches!(reader.entry(head.sequence), Ok(None)) {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    false
}

impl Verify {
    fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let mut checkpoints = Vec::new();
        let own = files.checkpoint();
        let kept = self.checkpoint.as_deref().or((self.export.is_none() && own.is_file()).then_some(&own));
        if let Some(path) = kept {
            match self.read_checkpoint(path, files)? {
                Ok(checkpoint) => checkpoints.push(checkpoint),
                Err(finding) => {
                    let what = format!("{}: {finding}", path.display());
                    return Ok(bad(context, &what, Some(&finding)));
                }
            }
        }
        if self.checkpoint.is_none() && self.export.is_none() {
            let path = files.other_checkpoints();
            let others = read_other_checkpoints(&path).map_err(|fault| Failure(fault.to_string()))?;
            match others.iter().map(OtherCheckpoint::verified).collect::<Result<Vec<_>, _>>() {
                Ok(others) => checkpoints.extend(others),
                Err(finding) => {
                    let what = format!("{}: {finding}", path.display());
                    return Ok(bad(context, &what, Some(&finding)));
                }
            }
        }
        let result = match &self.export {
            Some(path) if path == Path::new("-") => {
                verify::verify_export(std::io::stdin().lock(), &checkpoints)
            }
            Some(path) => {
                let file = std::fs::File::open(path)
                    .map_err(|error| Failure(format!("{}: {}", path.display(), plain(&error))))?;
                verify::verify_export(std::io::BufReader::new(file), &checkpoints)
            }
            None => match place::ledger(files.workspace())? {
                Source::Files(directory) if !directory.is_dir() => {
                    if let Some(lost) = lost(context, files) {
                        return lost;
                    }
                    // What was signed of a ledger that is gone is as missing as from one that is empty.
                    verify::verify_export(std::io::empty(), &checkpoints)
                }
                Source::Files(directory) => {
                    let mut bar = context.printer.progress("verifying the ledger");
                    verify::verify_segments(&directory, &checkpoints, &mut |progress| {
                        bar.tell(progress.bytes_done, progress.bytes);
                    })
                }
                ledger @ (Source::Database(_) | Source::Memory(_)) => {
                    let Committed { topic_id, head, ledger } = committed_in(ledger, files)?;
                    ledger.verify(&topic_id, head.sequence, &checkpoints, &mut |_| {})
                }
            },
        };
        let report = match result {
            Ok(report) => report,
            Err(finding) => return Ok(bad(context, &finding.to_string(), Some(&finding))),
        };
        if self.export.is_none()
            && let Some(lost) = lost(context, files)
        {
            return lost;
        }
        if report.entries == 0 {
            return Err(nothing_there(files));
        }
        let state = match self.export {
            Some(_) => None,
            None => match super::state::compared_if_reducible(files)? {
                Err(fault) => return Ok(bad_entry(context, &fault)),
                Ok(compared) => Some(compared),
            },
        };
        if let Some(compared) = &state
            && !matches!(compared.published, Published::AsOf(_) | Published::Missing)
        {
            return Ok(bad_state(context, compared));
        }
        let views = match self.export {
            None => compare_views(context, files)?,
            Some(_) => Ok(None),
        };
        let views = match views {
            Ok(views) => views,
            Err(finding) => return Ok(bad(context, &finding, None)),
        };
        if context.printer.is_json() {
            context.printer.value(&json!({
                "verified": true,
                "topicId": report.topic_id,
                "entries": report.entries,
                "runningHash": report.last_running_hash,
                "bodies": report.bodies,
                "batches": report.batches,
                "uncommittedTailBytes": report.uncommitted_tail_bytes,
                "checkpoints": checkpoints.len(),
                "stateSequence": state.as_ref().and_then(Compared::sequence),
                "viewsSequence": views,
            }));
        } else {
            let topic_id = report.topic_id.unwrap_or_default();
            let hash = report.last_running_hash.unwrap_or_default();
            context.printer.line(&format!(
                "{GREEN}good{GREEN:#}  {} entries of {topic_id}, {}, running hash {hash}{}",
                report.entries,
                counted(checkpoints.len(), "checkpoint", "checkpoints"),
                state.as_ref().map(how_far).unwrap_or_default()
            ));
        }
        Ok(Exit::Done)
    }

    /// A checkpoint with its signature verified; the inner error is a finding, not a failure.
    fn read_checkpoint(
        &self,
        path: &Path,
        files: &Files,
    ) -> Result<Result<verify::Checkpoint, verify::Finding>, Failure> {
        let bytes = read_input(path, limits::WORKSPACE_FILE.bytes_max)?;
        let claimed = match verify::Checkpoint::parse(&bytes) {
            Ok(claimed) => claimed,
            Err(finding) => return Ok(Err(finding)),
        };
        let public_key = match &self.public_key {
            Some(public_key) => public_key.clone(),
            None => public_key(files).map_err(|fault| Failure(format!("{fault}; give --public-key")))?,
        };
        let mut keys = verify::PublicKeys::default();
        keys.add(claimed.key_id(), &public_key)
            .map_err(|error| Failure(format!("--public-key is {error}")))?;
        Ok(claimed.verify(&keys))
    }
}

/// Makes the views again from the ledger and compares them with the file, up to the entry that it has come to;
/// nothing if there is none, for it can be deleted at any time. The inner error is a finding, not a failure.
fn compare_views(context: &Context, files: &Files) -> Result<Result<Option<u64>, String>, Failure> {
    if !files.views().is_file() {
        return Ok(Ok(None));
    }
    let Committed { topic_id, ledger, .. } = committed(files)?;
    let mut bar = context.printer.progress("comparing the views");
    let (mut through, mut unread) = (0, None);
    let result = compare(&files.views(), &topic_id, |sequence| {
        through = sequence;
        let entries = ledger.entries(1, sequence).map_err(|fault| unread = Some(fault));
        let unread = &mut unread;
        let bar = &mut bar;
        entries.into_iter().flatten().map_while(move |entry| {
            let entry = entry.map_err(|fault| *unread = Some(fault)).ok()?;
            bar.tell(entry.sequence, sequence);
            Some(entry)
        })
    });
    drop(bar);
    if let Some(fault) = unread {
        return Err(Failure(fault.to_string()));
    }
    match result {
        Ok(None) => Ok(Ok(Some(through))),
        Ok(Some(difference)) => Ok(Err(difference.to_string())),
        // Nothing was ever put into it, such as where a disk was full at the first start.
        Err(ViewsFault::NeedsRebuild(Rebuild::Unmade)) => Ok(Ok(None)),
        Err(ViewsFault::NeedsRebuild(why)) => Ok(Err(format!("{}: {why}", files.views().display()))),
        Err(fault) => Err(Failure(format!("{}: {fault}", files.views().display()))),
    }
}

/// Says what is different. Only the ledger and its checkpoints have findings with codes; the state file and the views
/// follow from them.
fn bad(context: &Context, what: &str, finding: Option<&verify::Finding>) -> Exit {
    if context.printer.is_json() {
        let mut told = json!({"verified": false, "finding": what});
        if let (Some(verify::Finding { segment, line, sequence, kind }), Some(told)) =
            (finding, told.as_object_mut())
        {
            let known = [
                ("code", Some(Json::from(kind.code()))),
                ("segment", segment.clone().map(Json::from)),
                ("line", line.map(Json::from)),
                ("entry", sequence.map(Json::from)),
            ];
            told.extend(known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        context.printer.value(&told);
    } else {
        let code = finding.map(|finding| format!(" ({})", finding.kind.code())).unwrap_or_default();
        context.printer.line(&format!("{RED}bad{RED:#}  {what}{code}"));
    }
    Exit::Refused
}

/// Says what the ledger lacks that something else in the workspace has seen; nothing if that is nothing.
fn lost(context: &Context, files: &Files) -> Option<Result<Exit, Failure>> {
    let ledger = match place::ledger(files.workspace()) {
        Ok(ledger) => ledger,
        Err(failure) => return Some(Err(failure)),
    };
    match hold_ledger(files, &ledger) {
        // An edited state file is the state file's finding.
        Ok(()) | Err(GatewayFault::StateEdited { .. }) => None,
        Err(lost @ GatewayFault::Forgotten { .. }) => {
            let finding = match &lost {
                GatewayFault::Forgotten {
                    fault: OpenFault::Truncated { sequence: entries, expected: sequence },
                    ..
                } => Some(verify::Finding {
                    segment: None,
                    line: None,
                    sequence: Some(*sequence),
                    kind: verify::FindingKind::Truncated { entries: *entries, sequence: *sequence },
                }),
                _ => None,
            };
            Some(Ok(bad(context, &lost.to_string(), finding.as_ref())))
        }
        Err(fault) => Some(Err(Failure(fault.to_string()))),
    }
}

/// Where the state file is not at the ledger's last entry; a start brings it there, and so does a gateway that runs.
fn how_far(state: &Compared) -> String {
    match state.sequence() {
        None => ", state: missing".to_owned(),
        Some(sequence) if sequence < state.last => format!(", state: at {sequence} of {}", state.last),
        Some(_) => String::new(),
    }
}

/// The chain is whole, and an entry is none that a gateway writes.
fn bad_entry(context: &Context, fault: &StateFault) -> Exit {
    if !context.printer.is_json() {
        return bad(context, &fault.to_string(), None);
    }
    context.printer.value(&json!({
        "verified": false,
        "finding": fault.to_string(),
        "entry": fault.sequence,
    }));
    Exit::Refused
}

fn bad_state(context: &Context, compared: &Compared) -> Exit {
    let what = format!("the state file {}", compared.differs().unwrap_or_default());
    if !context.printer.is_json() {
        return bad(context, &what, None);
    }
    let mut said = json!({"verified": false, "finding": what});
    compared.point_at(&mut said);
    context.printer.value(&said);
    Exit::Refused
}

impl Show {
    fn run(&self, context: &Context, files: &Files) -> Result<Exit, Failure> {
        let Committed { topic_id, head, ledger } = committed(files)?;
        let missing =
            || Failure(format!("there is no entry {}; the ledger has {}", self.sequence, head.sequence));
        if !(1..=head.sequence).contains(&self.sequence) {
            return Err(missing());
        }
        let entry = ledger.entry(self.sequence).map_err(|fault| Failure(fault.to_string()))?;
        let entry = entry.ok_or_else(missing)?;
        let wire: Json = serde_json::from_str(&entry.wire).map_err(|error| Failure(error.to_string()))?;
        context.printer.value(&json!({
            "hcs": {
                "topic_id": topic_id,
                "sequence_number": entry.sequence,
                "consensus_timestamp": entry.consensus_timestamp,
                "running_hash": entry.running_hash.to_string(),
            },
            "wire": wire,
        }));
        Ok(Exit::Done)
    }
}
