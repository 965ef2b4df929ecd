//! Where the daemon's log goes: standard error, as text on a terminal and as JSON lines otherwise.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::Failure;
use crate::settings::{Log, LogFormat};

/// Starts the log. Once in a process.
pub(super) fn start(log: &Log) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&log.level).map_err(|error| Failure(format!("log.level: {error}")))?;
    let terminal = std::io::stderr().is_terminal();
    // A line that cannot be written, because the terminal or whoever read the pipe is gone, is lost: saying so on the same
    // standard error would fail as well, and end whoever wanted to log it.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let as_text = match log.format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => terminal,
    };
    let started = if as_text {
        builder.with_target(false).with_ansi(terminal).try_init()
    } else {
        builder.json().flatten_event(true).with_current_span(false).try_init()
    };
    started.map_err(|error| Failure(format!("the log could not be started: {error}")))
}
