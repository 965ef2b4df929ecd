//! `handoffd submit`: hands TaskSpecs in, one or many, and says what was decided.
//!
//! Many go out in batches over one connection. What is asked again after a lost answer carries the same
//! idempotencyKey, so it is decided once; and a batch that is too large for the gateway is halved.

mod intake;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value as Json, json};

use super::client::{Ask, Client, ClientFlags, Trouble};
use super::sign::parse_seconds;
use super::{Context, Exit, Failure};
use crate::json::printable;
use crate::limits::{self, CLIENT_WAIT_S};
use intake::{Intake, Item};

/// Submit TaskSpecs to the gateway, and print what was decided.
///
/// Several are sent in batches; a table says what became of each. An answer that was lost is asked for again, and
/// nothing is decided twice.
///
/// Exit, the gravest of all: 0 allowed, 1 denied or expired, 2 unreadable, 3 unavailable, 4 needs approval.
#[derive(Debug, Args)]
pub(super) struct Submit {
    /// TaskSpec files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Each line of the files is a TaskSpec; with --json, each line of the output is a Decision
    #[arg(long)]
    lines: bool,

    /// Only ask what would be decided: nothing is claimed, written or dispatched
    #[arg(long)]
    check: bool,

    /// Wait this long for a person's answer where one is needed, such as 30s or 10m; each TaskSpec is then a request of
    /// its own
    #[arg(long, value_name = "TIME", value_parser = parse_wait, conflicts_with = "check")]
    wait: Option<u64>,

    #[command(flatten)]
    client: ClientFlags,
}

/// `90`, `90s`, `10m` or `1h` in seconds, up to a day.
fn parse_wait(text: &str) -> Result<u64, String> {
    let seconds = parse_seconds(text)?;
    match u64::try_from(seconds) {
        Ok(seconds @ 1..=86_400) => Ok(seconds),
        _ => Err("between 1 second and 1 day".to_owned()),
    }
}

/// What became of one TaskSpec.
#[derive(Debug)]
struct Outcome {
    name: String,
    /// Nothing where no answer names one.
    handoff_id: Option<String>,
    what: What,
    codes: Vec<String>,
    /// The Decision, or what there is instead; kept only while somebody wants to see it.
    answer: Json,
}

/// In the order in which they count for the exit code, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Allowed,
    NeedsApproval,
    Expired,
    Denied,
    Unreadable,
    /// The gateway said nothing of it, and why not: a token that does not count, or is not for this.
    TurnedAway,
    /// Nobody knows: there was no answer.
    Unknown,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::NeedsApproval => "needs_approval",
            Self::Expired => "expired",
            Self::Denied => "denied",
            Self::Unreadable => "unreadable",
            Self::TurnedAway => "turned_away",
            Self::Unknown => "unknown",
        }
    }

    const ALL: [Self; 7] = [
        Self::Allowed,
        Self::NeedsApproval,
        Self::Expired,
        Self::Denied,
        Self::Unreadable,
        Self::TurnedAway,
        Self::Unknown,
    ];

    fn exit(self) -> Exit {
        match self {
            Self::Allowed => Exit::Done,
            Self::NeedsApproval => Exit::NeedsApproval,
            Self::Expired | Self::Denied => Exit::Refused,
            Self::Unreadable | Self::TurnedAway => Exit::Unusable,
            Self::Unknown => Exit::Unavailable,
        }
    }
}

impl Outcome {
    /// Reads a Decision.
    fn decided(name: String, answer: Json) -> Option<Self> {
        let text = |name: &str| answer.get(name).and_then(Json::as_str);
        let word = text("decision")?;
        let what = What::ALL.into_iter().find(|what| *what <= What::Denied && what.as_str() == word)?;
        let handoff_id = text("handoffId").map(printable);
        let mut codes: Vec<String> = Vec::new();
        for reason in answer.get("reasons").and_then(Json::as_array).into_iter().flatten() {
            let code = reason.get("code").and_then(Json::as_str).map(printable).unwrap_or_default();
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        if answer.get("replayed") == Some(&Json::Bool(true)) {
            codes.push("(replayed)".to_owned());
        }
        Some(Self { name, handoff_id, what, codes, answer })
    }

    fn without(name: String, what: What, why: &str) -> Self {
        let answer = json!({"file": name, "decision": null, "error": why});
        Self { name, handoff_id: None, what, codes: Vec::new(), answer }
    }
}

/// Why the rest is not sent.
enum Stop {
    Trouble(Trouble),
    Strange,
}

impl Submit {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        if self.files.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Failure::new("standard input can be read once; give `-` once"));
        }
        let client = match self.client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let mut sending = Sending {
            submit: self,
            context,
            client,
            outcomes: Vec::new(),
            sent: 0,
            explains: !context.printer.is_json(),
        };
        let mut intake = Intake::new(&self.files, self.lines);
        let mut bar = context.printer.progress(if self.check { "checking" } else { "submitting" });
        let mut stopped = None;
        loop {
            let chunk = intake.chunk();
            if chunk.is_empty() {
                break;
            }
            if let Err(stop) = sending.send(chunk) {
                stopped = Some(stop);
                break;
            }
            let (done, all) = intake.progress();
            if all > limits::CLIENT_EXPLAINED_MAX as u64 {
                bar.tell(done, all);
            }
        }
        drop(bar);
        sending.end(stopped)
    }
}

struct Sending<'c> {
    submit: &'c Submit,
    context: &'c Context,
    client: Client,
    outcomes: Vec<Outcome>,
    sent: usize,
    explains: bool,
}

impl Sending<'_> {
    /// Sends what can be read, and keeps an outcome for each, in order.
    fn send(&mut self, chunk: Vec<Item>) -> Result<(), Stop> {
        let mut readable = Vec::new();
        for item in chunk {
            match item.body {
                Ok(body) => readable.push((item.name, body)),
                Err(why) => {
                    self.send_all(std::mem::take(&mut readable))?;
                    self.context.printer.error(&why);
                    self.keep(Outcome::without(item.name, What::Unreadable, &why));
                }
            }
        }
        self.send_all(readable)
    }

    fn send_all(&mut self, mut bodies: Vec<(String, Vec<u8>)>) -> Result<(), Stop> {
        if !self.submit.check && self.submit.wait.is_none() && bodies.len() > 1 {
            return self.send_batch(bodies);
        }
        for (name, body) in bodies.drain(..) {
            match self.ask(&body) {
                Ok(answer) => {
                    let outcome = Outcome::decided(name, answer).ok_or(Stop::Strange)?;
                    self.keep(outcome);
                }
                Err(Trouble::Told { status: 400 | 413, why }) => {
                    let why = format!("{name}: {why}");
                    self.context.printer.error(&why);
                    self.keep(Outcome::without(name, What::Unreadable, &why));
                }
                Err(trouble) => {
                    self.keep(Outcome::without(name, unanswered(&trouble), &trouble.to_string()));
                    return Err(Stop::Trouble(trouble));
                }
            }
        }
        Ok(())
    }

    /// Asks for one, and again while it waits for a person and there is time: it is decided once, however often it is
    /// asked for.
    fn ask(&self, body: &[u8]) -> Result<Json, Trouble> {
        let path = if self.submit.check { "/v1/handoffs/check" } else { "/v1/handoffs" };
        let Some(wait) = self.submit.wait else {
            return Ok(self.client.ask_patiently(Ask::Post(Some(body)), path, self.context)?.body);
        };
        let until = Instant::now() + Duration::from_secs(wait);
        let mut first = None;
        loop {
            let left = until.saturating_duration_since(Instant::now()).as_secs().clamp(1, CLIENT_WAIT_S);
            let path = format!("{path}?wait={left}s");
            let mut answer = self.client.ask_patiently(Ask::Post(Some(body)), &path, self.context)?.body;
            // The second time we ask is still the first that anybody hears of.
            let replayed = answer.get("replayed").cloned().unwrap_or_default();
            let first = first.get_or_insert(replayed);
            if let Some(replayed) = answer.get_mut("replayed") {
                replayed.clone_from(first);
            }
            let waits = answer.get("decision").and_then(Json::as_str) == Some(What::NeedsApproval.as_str());
            if !waits || Instant::now() >= until {
                return Ok(answer);
            }
        }
    }

    fn send_batch(&mut self, mut bodies: Vec<(String, Vec<u8>)>) -> Result<(), Stop> {
        // Each was read as one document, so putting commas between them makes a list of them.
        let texts: Vec<&[u8]> = bodies.iter().map(|(_, body)| body.as_slice()).collect();
        let batch = [b"[", texts.join(&b","[..]).as_slice(), b"]"].concat();
        match self.client.ask_patiently(Ask::Post(Some(&batch)), "/v1/handoffs/batch", self.context) {
            Ok(mut reply) => {
                let decisions = match reply.body.get_mut("decisions").map(Json::take) {
                    Some(Json::Array(decisions)) if decisions.len() == bodies.len() => decisions,
                    _ => return Err(Stop::Strange),
                };
                for ((name, _), decision) in bodies.into_iter().zip(decisions) {
                    let outcome = Outcome::decided(name, decision).ok_or(Stop::Strange)?;
                    self.keep(outcome);
                }
                Ok(())
            }
            // Too large for this gateway, or one of them is nothing to it: nothing was decided.
            Err(Trouble::Told { status: 400 | 413, .. }) => {
                let rest = bodies.split_off(bodies.len() / 2);
                self.send_all(bodies)?;
                self.send_all(rest)
            }
            Err(trouble) => {
                let what = unanswered(&trouble);
                for (name, _) in bodies {
                    self.keep(Outcome::without(name, what, &trouble.to_string()));
                }
                Err(Stop::Trouble(trouble))
            }
        }
    }

    fn keep(&mut self, mut outcome: Outcome) {
        self.sent += 1;
        let printer = &self.context.printer;
        if printer.is_json() && self.submit.lines {
            let mut line = outcome.answer.to_string();
            line.push('\n');
            printer.stream(&line);
        }
        self.explains &= self.sent <= limits::CLIENT_EXPLAINED_MAX;
        if !self.explains && (!printer.is_json() || self.submit.lines) {
            outcome.answer = Json::Null;
        }
        self.outcomes.push(outcome);
    }

    fn end(self, stopped: Option<Stop>) -> Result<Exit, Failure> {
        let printer = &self.context.printer;
        if printer.is_json() {
            let mut answers = self.outcomes.iter().map(|outcome| &outcome.answer);
            match (self.submit.lines, self.submit.files.len(), answers.len()) {
                (true, ..) => {}
                (false, 1, 1) => printer.value(&answers.next()),
                _ => printer.value(&answers.collect::<Vec<_>>()),
            }
        } else {
            printer.line(table::table(&self.outcomes, self.explains).trim_end());
        }
        let worst = self.outcomes.iter().map(|outcome| outcome.what).max();
        match stopped {
            None => Ok(worst.map_or(Exit::Done, What::exit)),
            Some(Stop::Strange) => {
                let base = self.client.base();
                printer.error(&format!("{base} does not answer as a gateway does; is it one?"));
                Ok(Exit::Unavailable)
            }
            Some(Stop::Trouble(trouble)) => {
                let exit = trouble.end(self.context);
                if exit == Exit::Unavailable && !self.submit.check {
                    printer.note(
                        "send all of them again when it is back: what was decided is not decided twice",
                    );
                }
                Ok(exit)
            }
        }
    }
}

fn unanswered(trouble: &Trouble) -> What {
    match trouble.exit() {
        Exit::Unavailable => What::Unknown,
        _ => What::TurnedAway,
    }
}
