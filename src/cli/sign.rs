//! `handoffd sign`: signs the envelope of a delegated TaskSpec.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value as Json;

use super::key::{read_secret, seed_path};
use super::{Context, Exit, Failure, body_failure, parse_time, read_task_spec};
use crate::json;
use crate::limits;
use crate::os::clock;
use crate::policy::Workspace;
use crate::proof::{Algorithm, Key, Keyring, Purpose, Seed};
use crate::sealing::{Seal, Signer, seal};
use crate::timestamp::Timestamp;

/// Sign the envelope of a delegated TaskSpec and print the TaskSpec.
///
/// Sets the envelope's ttl and proof, and audit.delegation to match. Nothing is submitted.
#[derive(Debug, Args)]
pub(super) struct Sign {
    /// The TaskSpec; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The key to sign with; needed when the principal has several
    #[arg(long, value_name = "KEYID")]
    key_id: Option<String>,

    /// How long the envelope shall hold, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration, conflicts_with = "keep_ttl")]
    ttl: i64,

    /// Keep the ttl that the envelope has
    #[arg(long)]
    keep_ttl: bool,

    /// Tie the envelope to this handoff, its intent and its mention
    #[arg(long)]
    bind: bool,

    /// Sign as of this time instead of now
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Timestamp>,

    /// The principal's private Ed25519 key, if it is not where `key add` put it; `-` is standard input
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl Sign {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let body = read_task_spec(&self.file)?;
        let document =
            json::read(&body, limits::TASK_SPEC).map_err(|fault| body_failure(&self.file, &fault))?;
        let mut spec = document.root().to_json();
        let keyring = context.workspace.load_keyring()?;
        let now = self.now.unwrap_or_else(clock::now);
        let key = self.key(&keyring, &spec, now)?;
        let seed = match key.algorithm() {
            Algorithm::HmacSha256 => None,
            Algorithm::Ed25519 => Some(self.seed(&context.workspace, key)?),
        };
        let signer = match &seed {
            None => Signer::Shared(key),
            Some(seed) => Signer::Private { key_id: key.id(), seed },
        };
        let ttl = (!self.keep_ttl).then(|| (now, now.plus_seconds(self.ttl)));
        seal(&mut spec, &Seal { signer, ttl, bind: self.bind })
            .map_err(|why| Failure(format!("{}: {why}", self.file.display())))?;
        context.printer.value(&spec);
        Ok(Exit::Done)
    }

    /// The key that is named, or the only one that the principal has.
    fn key<'k>(&self, keyring: &'k Keyring, spec: &Json, now: Timestamp) -> Result<&'k Key, Failure> {
        let principal =
            spec.pointer("/authorship/envelope/principal/id").and_then(Json::as_str).ok_or_else(|| {
                Failure(format!(
                    "{}: there is no authorship.envelope.principal.id; only a delegated TaskSpec is signed",
                    self.file.display()
                ))
            })?;
        let shown = json::printable(principal);
        if let Some(id) = &self.key_id {
            let key = keyring.get(id).ok_or_else(|| {
                Failure(format!(
                    "there is no key `{id}`; add one with: handoffd key add --owner {shown} --id {id}"
                ))
            })?;
            if key.owner() != principal {
                return Err(Failure(format!(
                    "key `{id}` belongs to `{}`, not to the principal `{shown}`",
                    key.owner()
                )));
            }
            if key.purpose() != Purpose::Envelope {
                return Err(Failure(format!(
                    "key `{id}` is for purpose {}, not envelope",
                    key.purpose().name()
                )));
            }
            return Ok(key);
        }
        let own: Vec<&Key> = keyring
            .keys()
            .iter()
            .filter(|key| {
                key.owner() == principal && key.purpose() == Purpose::Envelope && key.is_valid_at(now)
            })
            .collect();
        match own.as_slice() {
            [key] => Ok(key),
            [] => Err(Failure(format!(
                "`{shown}` has no key for envelopes that counts now; add one with: handoffd key add --owner {shown} --id KEYID"
            ))),
            several => {
                let ids: Vec<&str> = several.iter().map(|key| key.id()).collect();
                Err(Failure(format!(
                    "`{shown}` has several keys ({}); name one with --key-id",
                    ids.join(", ")
                )))
            }
        }
    }

    fn seed(&self, workspace: &Workspace, key: &Key) -> Result<Seed, Failure> {
        let default = seed_path(workspace, key.id());
        let path: &Path = self.secret_file.as_deref().unwrap_or(&default);
        let secret = read_secret(path)?;
        let seed = Seed::from_secret(&secret)
            .ok_or_else(|| Failure(format!("{}: is not an Ed25519 seed of 64 hex digits", path.display())))?;
        let public = Key::ed25519(key.id(), key.owner(), key.purpose(), &seed.public_hex());
        let probe = seed.sign(b"handoffd");
        // A seed of another key would sign well and be refused everywhere.
        if public.is_none() || key.verify(b"handoffd", &probe).is_err() {
            return Err(Failure(format!(
                "{}: is not the private half of key `{}`",
                path.display(),
                key.id()
            )));
        }
        Ok(seed)
    }
}

/// `90`, `90s`, `10m`, `1h` or `1d` in seconds.
fn parse_duration(text: &str) -> Result<i64, String> {
    match parse_seconds(text)? {
        seconds @ 1..=31_536_000 => Ok(seconds),
        _ => Err("between 1 second and 365 days".to_owned()),
    }
}

/// A number of seconds, minutes, hours or days, in seconds.
pub(super) fn parse_seconds(text: &str) -> Result<i64, String> {
    const WRONG: &str = "not a time such as 90s, 10m or 1h";
    let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        None => (text, 1),
        Some(at) => match text.split_at(at) {
            (digits, "s") => (digits, 1),
            (digits, "m") => (digits, 60),
            (digits, "h") => (digits, 3600),
            (digits, "d") => (digits, 86_400),
            _ => return Err(WRONG.to_owned()),
        },
    };
    let count: i64 = digits.parse().map_err(|_| WRONG.to_owned())?;
    Ok(count.saturating_mul(unit))
}
