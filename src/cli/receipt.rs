//! `handoffd receipt verify`: what a receiver can check without asking the gateway.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::printer::{GREEN, RED};
use super::{Context, Exit, Failure, body_failure, parse_time, read_input};
use crate::dispatch::{Jwks, Presented, ReceiptFault, Verified, verify};
use crate::json::{self, Bounds, printable};
use crate::limits;
use crate::os::clock;
use crate::timestamp::Timestamp;

/// Check receipts of allowed handoffs.
#[derive(Debug, Subcommand)]
pub(super) enum ReceiptCommand {
    Verify(Verify),
}

/// Say whether a receipt holds, and for what.
///
/// The signature, the expiry and that the handoff was allowed are always checked. The payload, the TaskSpec and the
/// target are compared with what is given here; a receiver should give the payload it was sent and its own name.
///
/// Exit: 0 it holds, 1 it does not, 2 unreadable.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// A receipt, or a whole Decision with `receipt` and `dispatch`; `-` is standard input
    #[arg(value_name = "RECEIPT")]
    receipt: PathBuf,

    /// The gateway's public keys: a file, or the URL of its /.well-known/jwks.json
    #[arg(long, value_name = "FILE|URL")]
    jwks: String,

    /// The payload that was sent; taken from the Decision if that is given
    #[arg(long, value_name = "FILE")]
    dispatch: Option<PathBuf>,

    /// The TaskSpec as it was submitted
    #[arg(long, value_name = "FILE")]
    task_spec: Option<PathBuf>,

    /// The agent that was sent the payload
    #[arg(long, value_name = "AGENT")]
    target: Option<String>,

    /// Check as of this time instead of now
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Timestamp>,
}

impl ReceiptCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Verify(verify) => verify.run(context),
        }
    }
}

impl Verify {
    fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let body = read_input(&self.receipt, limits::RECEIPT_FILE.bytes_max)?;
        let document =
            json::read(&body, limits::RECEIPT_FILE).map_err(|fault| body_failure(&self.receipt, &fault))?;
        let root = document.root();
        // A receipt has no member of that name; a Decision without one has nothing to check.
        let (receipt, carried) = match root.get("receipt") {
            Some(receipt) => (receipt, root.get("dispatch")),
            None if root.get("gates").is_some() => {
                let path = self.receipt.display();
                return Err(Failure::new(format!(
                    "{path}: this Decision carries no receipt; only `allowed` does"
                )));
            }
            None => (root, None),
        };
        let keys = self.keys()?;

        let dispatch = Input::read(self.dispatch.as_ref(), limits::RECEIPT_FILE)?;
        let dispatch = dispatch.as_ref().map(Input::document).transpose()?;
        let task_spec = Input::read(self.task_spec.as_ref(), limits::TASK_SPEC)?;
        let task_spec = task_spec.as_ref().map(Input::document).transpose()?;
        let presented = Presented {
            dispatch: dispatch.as_ref().map(json::Document::root).or(carried),
            task_spec: task_spec.as_ref().map(json::Document::root),
            target: self.target.as_deref(),
        };
        let result = verify(receipt, &presented, &keys, self.now.unwrap_or_else(clock::now));
        let compared = [
            ("dispatch", presented.dispatch.is_some()),
            ("taskSpec", presented.task_spec.is_some()),
            ("target", presented.target.is_some()),
        ];
        Ok(report(context, &result, &compared))
    }

    fn keys(&self) -> Result<Jwks, Failure> {
        let name = &self.jwks;
        let body = if name.starts_with("http://") || name.starts_with("https://") {
            fetch(name)?
        } else {
            read_input(name.as_ref(), limits::JWKS.bytes_max)?
        };
        let document =
            json::read(&body, limits::JWKS).map_err(|fault| Failure::new(format!("{name}: {fault}")))?;
        Jwks::read(document.root()).map_err(|fault| Failure::new(format!("{name} {fault}")))
    }
}

/// A file that was read, for documents to borrow from.
struct Input<'p> {
    path: &'p PathBuf,
    bytes: Vec<u8>,
    bounds: Bounds,
}

impl<'p> Input<'p> {
    fn read(path: Option<&'p PathBuf>, bounds: Bounds) -> Result<Option<Self>, Failure> {
        path.map(|path| Ok(Self { path, bytes: read_input(path, bounds.bytes_max)?, bounds })).transpose()
    }

    fn document(&self) -> Result<json::Document<'_>, Failure> {
        json::read(&self.bytes, self.bounds).map_err(|fault| body_failure(self.path, &fault))
    }
}

/// Fetches a key set. It is what the check rests on, so nobody on the way may point elsewhere.
fn fetch(url: &str) -> Result<Vec<u8>, Failure> {
    let failure = |why: String| Failure::new(format!("{url}: {why}"));
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(limits::JWKS_FETCH_S)))
        .max_redirects(0)
        .http_status_as_error(false)
        .build();
    let mut response =
        ureq::Agent::from(config).get(url).call().map_err(|error| failure(error.to_string()))?;
    if response.status() != 200 {
        return Err(failure(format!(
            "the answer is {}; give the URL of the key set itself",
            response.status()
        )));
    }
    let body = response.body_mut().with_config().limit(limits::JWKS.bytes_max as u64);
    body.read_to_vec().map_err(|error| failure(error.to_string()))
}

fn report(
    context: &Context,
    result: &Result<Verified, ReceiptFault>,
    compared: &[(&'static str, bool)],
) -> Exit {
    let printer = &context.printer;
    let names = |wanted: bool| -> Vec<&str> {
        compared.iter().filter(|(_, was)| *was == wanted).map(|(name, _)| *name).collect()
    };
    match result {
        Ok(good) if printer.is_json() => {
            printer.value(&json!({"ok": true, "receipt": good, "compared": names(true)}));
        }
        Ok(good) => {
            printer.line(&format!(
                "{GREEN}good{GREEN:#}  {} for {}, entry {}, until {}",
                printable(&good.handoff_id),
                printable(&good.target),
                good.sequence,
                good.expires_at
            ));
            let missing = names(false);
            if !missing.is_empty() {
                printer.note(&format!("not compared, because not given: {}", missing.join(", ")));
            }
        }
        Err(fault) if printer.is_json() => {
            printer.value(&json!({"ok": false, "fault": fault.kind(), "message": fault.to_string()}));
        }
        Err(fault) => printer.line(&format!("{RED}bad{RED:#}  the receipt does not hold: {fault}")),
    }
    if result.is_ok() { Exit::Done } else { Exit::Refused }
}
