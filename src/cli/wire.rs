//! `handoffd wire`: Agent Wire events checked and reduced, offline.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value as Json, json};

use super::printer::{BOLD, DIM, GREEN, RED};
use super::{Context, Exit, Failure, read_input};
use crate::json::{Value, printable, read};
use crate::limits;
use crate::wire::{Applied, ContextState, Contracts, Envelope, Reducer, TaskState, WireFault};

/// Check Agent Wire events, and reduce them to state.
#[derive(Debug, Subcommand)]
pub(super) enum WireCommand {
    Validate(Validate),
    Reduce(Reduce),
}

/// Say whether events are valid: which schema, which rule, where.
///
/// A file is one event, a JSON array of them, JSON lines, or what `audit export` prints.
///
/// Exit: 0 all are valid, 1 one is not, 2 unreadable.
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// Files of events; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Reduce events to the state of each stream.
///
/// A file is a JSON array of events, JSON lines, or what `audit export` prints. An event that may not come where it
/// stands changes nothing and is listed.
///
/// Exit: 0 all were taken in, 1 one was not, 2 unreadable.
#[derive(Debug, Args)]
pub(super) struct Reduce {
    /// A file of events in order; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl WireCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Validate(validate) => validate.run(context),
            Self::Reduce(reduce) => reduce.run(context),
        }
    }
}

impl Validate {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let printer = &context.printer;
        let mut rows = Vec::new();
        let mut exit = Exit::Done;
        for path in &self.files {
            let shown = path.display().to_string();
            let bytes = read_input(path, limits::WIRE_FILE.bytes_max)?;
            for (n, text) in events(path, &bytes)?.iter().enumerate() {
                let result = Envelope::parse(text);
                if result.is_err() {
                    exit = Exit::Refused;
                }
                if printer.is_json() {
                    let kind = result.as_ref().ok().map(|envelope| envelope.kind().as_str());
                    let faults: Vec<Json> =
                        result.as_ref().err().into_iter().flatten().map(to_json).collect();
                    let valid = faults.is_empty();
                    rows.push(json!({
                        "file": shown, "event": n + 1, "valid": valid, "type": kind, "reasons": faults,
                    }));
                } else {
                    printer.line(report(&shown, n + 1, &result).trim_end());
                }
            }
        }
        if printer.is_json() {
            printer.value(&rows);
        }
        Ok(exit)
    }
}

impl Reduce {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let bytes = read_input(&self.file, limits::WIRE_FILE.bytes_max)?;
        let contracts = Contracts::embedded();
        let mut reducer = Reducer::new(contracts);
        let (mut closed, mut rejected) = (Vec::new(), Vec::new());
        for (n, text) in events(&self.file, &bytes)?.iter().enumerate() {
            let applied = match Envelope::parse(text) {
                Ok(envelope) => reducer.apply(&envelope).map_err(|fault| vec![fault]),
                Err(faults) => Err(faults),
            };
            match applied {
                Ok(Applied::Open) => {}
                Ok(Applied::Closed(task)) => closed.push(*task),
                Err(faults) => rejected.push((n + 1, faults)),
            }
        }
        let mut tasks: Vec<&TaskState> = reducer.open_tasks().chain(&closed).collect();
        tasks.sort_by(|a, b| a.stream_id.cmp(&b.stream_id));
        if context.printer.is_json() {
            context.printer.value(&reduced(contracts, &reducer, &tasks, &rejected));
        } else {
            context.printer.line(told(contracts, &tasks, &rejected).trim_end());
        }
        Ok(if rejected.is_empty() { Exit::Done } else { Exit::Refused })
    }
}

/// The texts of the events in a file.
fn events<'b>(path: &Path, bytes: &'b [u8]) -> Result<Vec<Cow<'b, str>>, Failure> {
    let failure = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let text = std::str::from_utf8(bytes).map_err(|_| failure("it is not UTF-8".to_owned()))?;
    if text.trim().is_empty() {
        return Err(failure("there is no event in it".to_owned()));
    }
    if text.trim_start().starts_with('[') {
        let document = read(bytes, limits::WIRE_FILE).map_err(|fault| failure(fault.to_string()))?;
        return Ok(document.root().items().map(|item| unwrapped(item, Cow::Owned(to_text(item)))).collect());
    }
    let mut texts = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match read(line.as_bytes(), limits::WIRE_FILE) {
            Ok(document) => texts.push(unwrapped(document.root(), Cow::Borrowed(line))),
            // Then it is one event over several lines, or nothing that can be read.
            Err(_) if texts.is_empty() => {
                let document = read(bytes, limits::WIRE_FILE).map_err(|fault| failure(fault.to_string()))?;
                return Ok(vec![unwrapped(document.root(), Cow::Borrowed(text))]);
            }
            Err(fault) => return Err(failure(format!("line {}: {fault}", texts.len() + 1))),
        }
    }
    Ok(texts)
}

/// The event inside an entry of the ledger; any other value as it is.
fn unwrapped<'t>(value: Value<'_>, text: Cow<'t, str>) -> Cow<'t, str> {
    match (value.get("hcs"), value.get("wire").and_then(Value::as_str)) {
        (Some(_), Some(wire)) => Cow::Owned(wire.to_owned()),
        _ => text,
    }
}

fn to_text(value: Value<'_>) -> String {
    value.to_json().to_string()
}

fn to_json(fault: &WireFault) -> Json {
    let WireFault { code, pointer, message, hint, rule } = fault;
    json!({"code": code.as_str(), "path": pointer, "message": message, "hint": hint, "rule": rule})
}

fn report(path: &str, n: usize, result: &Result<Envelope<'_>, Vec<WireFault>>) -> String {
    let mut text = String::new();
    match result {
        Ok(envelope) => {
            let _ = writeln!(text, "{GREEN}valid{GREEN:#}    {path}:{n}  {}", envelope.kind());
        }
        Err(faults) => {
            let _ = writeln!(text, "{RED}invalid{RED:#}  {path}:{n}");
            faults.iter().for_each(|fault| tell(&mut text, fault));
        }
    }
    text
}

fn tell(text: &mut String, fault: &WireFault) {
    let WireFault { code, pointer, message, hint, rule } = fault;
    let at = if pointer.is_empty() { "the event" } else { pointer };
    let _ = writeln!(text, "  {RED}{code}{RED:#} at {}", printable(at));
    let _ = writeln!(text, "    {message}");
    if let Some(hint) = hint {
        let _ = writeln!(text, "    {DIM}hint:{DIM:#} {hint}");
    }
    if let Some(rule) = rule {
        let _ = writeln!(text, "    {DIM}rule:{DIM:#} {rule}");
    }
}

fn reduced(
    contracts: &Contracts,
    reducer: &Reducer<'_>,
    tasks: &[&TaskState],
    rejected: &[(usize, Vec<WireFault>)],
) -> Json {
    let streams: Map<String, Json> =
        tasks.iter().map(|task| (task.stream_id.clone(), task.to_json(contracts))).collect();
    let contexts: Map<String, Json> = ContextState::of(tasks.iter().copied(), contracts)
        .into_iter()
        .map(|(name, state)| (name.to_owned(), state.to_json()))
        .collect();
    let projects: Map<String, Json> =
        reducer.projects().map(|(name, _, state)| (name.to_owned(), state.to_json())).collect();
    let routes: Map<String, Json> =
        reducer.routes().map(|(name, _, state)| (name.to_owned(), state.to_json())).collect();
    let rejected: Vec<Json> = rejected
        .iter()
        .map(|(n, faults)| json!({"event": n, "reasons": faults.iter().map(to_json).collect::<Vec<_>>()}))
        .collect();
    json!({
        "streams": streams, "contexts": contexts, "projects": projects, "routes": routes, "rejected": rejected,
    })
}

fn told(contracts: &Contracts, tasks: &[&TaskState], rejected: &[(usize, Vec<WireFault>)]) -> String {
    let mut text = String::new();
    for task in tasks {
        let state = task.to_json(contracts);
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}", printable(&task.stream_id));
        for member in ["task_state", "terminal", "artifact_count", "artifact_ids", "blocked", "verification"]
        {
            let value = match state.get(member) {
                Some(Json::String(word)) => word.clone(),
                Some(Json::Null) | None => "-".to_owned(),
                Some(value) => value.to_string(),
            };
            let _ = writeln!(text, "  {member:<14} {value}");
        }
    }
    for (n, faults) in rejected {
        let _ = writeln!(text, "{RED}refused{RED:#}  event {n}");
        faults.iter().for_each(|fault| tell(&mut text, fault));
    }
    text
}
