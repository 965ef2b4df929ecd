//! The one place that writes to standard output and standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};

use crate::gates::{Decision, Outcome};

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const GREEN: Style = AnsiColor::Green.on_default().bold();
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// So many of something, in words for people: `1 route`, `3 routes`.
pub(super) fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    format!("{count} {}", if count == N::from(1) { one } else { many })
}

/// Prints text for people or JSON for programs; colour only on a terminal.
#[derive(Debug)]
pub(super) struct Printer {
    json: bool,
}

impl Printer {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// A line, or several, on standard output.
    pub(super) fn line(&self, text: &str) {
        ignore_closed_pipe(writeln!(anstream::stdout().lock(), "{text}"));
    }

    /// A value as JSON on standard output.
    pub(super) fn value(&self, value: &impl serde::Serialize) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        ignore_closed_pipe(writeln!(anstream::stdout().lock(), "{text}"));
    }

    /// Bytes as they are on standard output.
    pub(super) fn raw(&self, bytes: &[u8]) {
        ignore_closed_pipe(io::stdout().lock().write_all(bytes));
    }

    /// Text that somebody may be waiting for, at once. False if nobody reads it any more.
    pub(super) fn stream(&self, text: &str) -> bool {
        let mut out: Box<dyn io::Write> = match self.json {
            true => Box::new(io::stdout().lock()),
            false => Box::new(anstream::stdout().lock()),
        };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
    }

    pub(super) fn error(&self, message: &str) {
        ignore_closed_pipe(writeln!(anstream::stderr().lock(), "{RED}error:{RED:#} {message}"));
    }

    /// A bar on standard error, if that is a terminal.
    pub(super) fn progress(&self, what: &'static str) -> Progress {
        Progress { what, shown: io::stderr().is_terminal().then_some(u64::MAX) }
    }

    /// Text for people on standard error.
    pub(super) fn say(&self, text: &str) {
        ignore_closed_pipe(writeln!(anstream::stderr().lock(), "{text}"));
    }

    pub(super) fn note(&self, message: &str) {
        ignore_closed_pipe(writeln!(anstream::stderr().lock(), "{YELLOW}note:{YELLOW:#} {message}"));
    }
}

/// How far some long work has come; wiped when it is done.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    /// The percentage that is on the screen; nothing if nobody is looking.
    shown: Option<u64>,
}

impl Progress {
    pub(super) fn tell(&mut self, done: u64, all: u64) {
        let Some(shown) = &mut self.shown else { return };
        let percent = (done.saturating_mul(100)).checked_div(all).unwrap_or(100).min(100);
        if percent != *shown {
            *shown = percent;
            let filled = "#".repeat((percent / 5) as usize);
            ignore_closed_pipe(write!(
                anstream::stderr().lock(),
                "\r{} [{filled:<20}] {percent:>3}%",
                self.what
            ));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some_and(|shown| shown != u64::MAX) {
            ignore_closed_pipe(write!(anstream::stderr().lock(), "\r\x1b[2K"));
        }
    }
}

/// A reader that went away (`| head`) is not an error of ours.
fn ignore_closed_pipe(result: io::Result<()>) {
    drop(result);
}

pub(super) fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Pass => format!("{GREEN}pass{GREEN:#}"),
        Outcome::Fail => format!("{RED}fail{RED:#}"),
        Outcome::NotApplicable => format!("{DIM}not applicable{DIM:#}"),
    }
}

pub(super) fn decision(decision: Decision) -> String {
    let style = match decision {
        Decision::Allowed => GREEN,
        Decision::Denied | Decision::Expired => RED,
        Decision::NeedsApproval => YELLOW,
    };
    format!("{style}{}{style:#}", decision.as_str())
}
