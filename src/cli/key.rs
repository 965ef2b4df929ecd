//! `handoffd key`: the keys that prove who signed.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::client::{Ask, ClientFlags, NoClient, segment};
use super::in_force::{is_not_gone, put_in_force};
use super::printer::{BOLD, DIM};
use super::{Context, Exit, Failure, parse_when, read_input};
use crate::gateway::Part;
use crate::http::describe_key;
use crate::json::printable;
use crate::limits;
use crate::os::{clock, files, random};
use crate::policy::{Workspace, plain};
use crate::proof::{Algorithm, Key, Purpose, Secret, Seed, to_hex};
use crate::timestamp::Timestamp;

/// Manage the keys that prove who signed.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    Add(Add),
    /// List the keys; secrets are never shown
    List,
    /// Remove a key; what it signed is refused from then on
    Remove(Remove),
}

/// Add a key: from a file, a public key, or a new one.
///
/// Without --secret-file or --public-key a new key is made. An hmac-sha256 secret stays in memory/keyring.json; of an
/// ed25519 key only the public half does, and a new private half is written to a file of its own for its owner to
/// take away. Through --url only a public key can be added: secrets are given to a gateway on its own machine.
#[derive(Debug, Args)]
pub(super) struct Add {
    /// Whose key it is: a principal such as user:main, or a route's owner
    #[arg(long, value_name = "ID", value_parser = bounded)]
    owner: String,

    /// The key's id, which proofs name
    #[arg(long, value_name = "KEYID", value_parser = bounded)]
    id: String,

    /// hmac-sha256 or ed25519
    #[arg(long, value_name = "ALGORITHM", default_value = "hmac-sha256")]
    alg: Algorithm,

    /// What the key is for: envelope, dispatch or request
    #[arg(long, value_name = "PURPOSE", default_value = "envelope")]
    purpose: Purpose,

    /// The secret, or the Ed25519 seed: the file's bytes without one final newline; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "public_key")]
    secret_file: Option<PathBuf>,

    /// The public half of an ed25519 key, 64 hex digits
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,

    /// From when the key counts: a time, or how long from now, such as 1h
    #[arg(long, value_name = "TIME", value_parser = parse_when)]
    not_before: Option<Timestamp>,

    /// From when it no longer counts: a time, or how long from now, such as 90d
    #[arg(long, value_name = "TIME", value_parser = parse_when)]
    not_after: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(super) struct Remove {
    /// The key's id
    id: String,
}

fn bounded(text: &str) -> Result<String, String> {
    let sound = (1..=128).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if sound { Ok(text.to_owned()) } else { Err("1 to 128 characters, no control characters".to_owned()) }
}

/// A key that is not in the ring yet.
struct NewKey {
    key: Key,
    /// The text of a new private half, which its owner must be given.
    private_half: Option<zeroize::Zeroizing<Vec<u8>>>,
}

impl KeyCommand {
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        if client.is_remote() {
            return self.run_elsewhere(context, client);
        }
        // Before anything is changed: wrong flags are nobody's business then.
        let gateway = if matches!(self, Self::List) { None } else { client.own(context)? };
        is_not_gone(gateway.as_ref(), Part::Keys, &context.workspace.keyring_path())?;
        match self {
            Self::Add(add) => add.run(context)?,
            Self::List => {
                let (keyring, now) = (context.workspace.load_keyring()?, clock::now());
                list(context, &keyring.keys().iter().map(|key| describe_key(key, now)).collect::<Vec<_>>());
                return Ok(Exit::Done);
            }
            Self::Remove(remove) => remove.run(context)?,
        }
        put_in_force(context, gateway.as_ref(), Part::Keys, false)
    }

    fn run_elsewhere(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let connected = client.connect(context);
        let body = match self {
            Self::Add(add) => Some(add.request()?.to_string()),
            Self::List | Self::Remove(_) => None,
        };
        let answer = match connected {
            Err(nobody) => return NoClient::end(nobody, context),
            Ok(client) => match self {
                Self::Add(_) => client.ask(Ask::Post(body.as_deref().map(str::as_bytes)), "/v1/keys"),
                Self::List => client.ask(Ask::Get, "/v1/keys"),
                Self::Remove(remove) => client.ask(Ask::Delete, &format!("/v1/keys/{}", segment(&remove.id))),
            },
        };
        let reply = match answer {
            Ok(reply) => reply,
            Err(trouble) => return Ok(trouble.end(context)),
        };
        match self {
            Self::Add(add) => add.tell(context, &reply.body),
            Self::List => {
                let keys = reply.body.get("keys").and_then(Json::as_array);
                list(context, keys.map(Vec::as_slice).unwrap_or_default());
            }
            Self::Remove(remove) => remove.tell(context),
        }
        Ok(Exit::Done)
    }
}

impl Add {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let workspace = &context.workspace;
        let (mut shown, mut seed_file) = (Json::Null, None);
        let changed = workspace.change_keyring(|keyring| {
            if keyring.get(&self.id).is_some() {
                return Err(format!(
                    "there is a key `{}` already; ids are never used again for another key",
                    self.id
                ));
            }
            let NewKey { key, private_half } = self.make().map_err(|Failure(why)| why)?;
            let key = key.valid_between(self.not_before, self.not_after);
            shown = describe_key(&key, clock::now());
            keyring.add(key).map_err(|fault| format!("the keyring {fault}"))?;
            if let Some(seed) = private_half {
                let path = seed_path(workspace, &self.id);
                files::create_private(&path, &seed)
                    .map_err(|error| format!("{}: {}", path.display(), plain(&error)))?;
                seed_file = Some(path);
            }
            Ok(())
        });
        changed.map_err(Failure)?;
        self.tell(context, &shown);
        if let Some(path) = seed_file {
            context.printer.note(&format!(
                "its private half is in {}; it belongs to {}, and the gateway does not need it",
                path.display(),
                self.owner
            ));
        }
        Ok(())
    }

    fn tell(&self, context: &Context, shown: &Json) {
        if context.printer.is_json() {
            context.printer.value(shown);
        } else {
            context.printer.line(&format!(
                "added {BOLD}{}{BOLD:#}, {} key of {} for {}",
                self.id,
                self.alg.name(),
                self.owner,
                self.purpose.name()
            ));
        }
    }

    /// What a gateway elsewhere is asked for.
    fn request(&self) -> Result<Json, Failure> {
        let (Algorithm::Ed25519, Some(public_key)) = (self.alg, &self.public_key) else {
            return Err(Failure::new(
                "through --url only a public key can be added: --alg ed25519 --public-key HEX; add a secret on the \
                 gateway's own machine",
            ));
        };
        let mut request = json!({
            "keyId": self.id,
            "owner": self.owner,
            "purpose": self.purpose.name(),
            "algorithm": self.alg.name(),
            "publicKey": public_key,
        });
        for (name, time) in [("notBefore", self.not_before), ("notAfter", self.not_after)] {
            if let (Some(time), Some(members)) = (time, request.as_object_mut()) {
                members.insert(name.to_owned(), time.to_string().into());
            }
        }
        Ok(request)
    }

    fn make(&self) -> Result<NewKey, Failure> {
        let secret = self.secret_file.as_deref().map(read_secret).transpose()?;
        let mut private_half = None;
        let key = match (self.alg, secret, &self.public_key) {
            (Algorithm::HmacSha256, _, Some(_)) => {
                return Err(Failure::new("--public-key is for --alg ed25519"));
            }
            (Algorithm::HmacSha256, secret, None) => {
                let secret = match secret {
                    Some(secret) => secret,
                    None => Secret::new(random::secret_bytes::<32>()?.to_vec()),
                };
                Key::hmac(&self.id, &self.owner, self.purpose, secret)
                    .ok_or_else(|| Failure::new("the secret is empty"))?
            }
            (Algorithm::Ed25519, _, Some(public)) => {
                Key::ed25519(&self.id, &self.owner, self.purpose, public).ok_or_else(|| {
                    Failure::new("--public-key is not an Ed25519 public key of 64 lower-case hex digits")
                })?
            }
            (Algorithm::Ed25519, Some(secret), None) => {
                let seed = Seed::from_secret(&secret).ok_or_else(|| {
                    Failure::new(
                        "the secret file is not an Ed25519 seed: 32 bytes, or 64 lower-case hex digits",
                    )
                })?;
                self.public_half(&seed)?
            }
            (Algorithm::Ed25519, None, None) => {
                let bytes = random::secret_bytes::<32>()?;
                let mut text = zeroize::Zeroizing::new(to_hex(bytes.as_slice()).into_bytes());
                text.push(b'\n');
                private_half = Some(text);
                self.public_half(&Seed::from_bytes(&bytes))?
            }
        };
        Ok(NewKey { key, private_half })
    }

    fn public_half(&self, seed: &Seed) -> Result<Key, Failure> {
        Key::ed25519(&self.id, &self.owner, self.purpose, &seed.public_hex())
            .ok_or_else(|| Failure::new("the seed gives a weak key"))
    }
}

impl Remove {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let changed = context.workspace.change_keyring(|keyring| {
            if keyring.remove(&self.id) { Ok(()) } else { Err(format!("there is no key `{}`", self.id)) }
        });
        changed.map_err(Failure)?;
        self.tell(context);
        Ok(())
    }

    fn tell(&self, context: &Context) {
        if context.printer.is_json() {
            context.printer.value(&json!({"removed": self.id}));
        } else {
            context.printer.line(&format!("removed {BOLD}{}{BOLD:#}", self.id));
        }
    }
}

fn list(context: &Context, keys: &[Json]) {
    if context.printer.is_json() {
        context.printer.value(&keys);
        return;
    }
    if keys.is_empty() {
        context.printer.line("no keys yet; add one with: handoffd key add --owner user:main --id KEYID");
        return;
    }
    let text =
        |key: &Json, name: &str| key.get(name).and_then(Json::as_str).map(printable).unwrap_or_default();
    let width = |name: &str| keys.iter().map(|key| text(key, name).chars().count()).max().unwrap_or(0);
    let (ids, owners) = (width("keyId").max(2), width("owner").max(5));
    context.printer.line(&format!(
        "{DIM}{:ids$}  {:owners$}  {:8}  {:11}  valid{DIM:#}",
        "id", "owner", "purpose", "algorithm"
    ));
    let now = clock::now();
    for key in keys {
        context.printer.line(&format!(
            "{:ids$}  {:owners$}  {:8}  {:11}  {}",
            text(key, "keyId"),
            text(key, "owner"),
            text(key, "purpose"),
            text(key, "algorithm"),
            validity(key, now)
        ));
    }
}

fn validity(key: &Json, now: Timestamp) -> String {
    let time = |name: &str| key.get(name).and_then(Json::as_str).and_then(Timestamp::parse);
    match (time("notBefore"), time("notAfter")) {
        (Some(from), _) if now < from => format!("from {from} on"),
        (_, Some(until)) if until <= now => format!("no, ended {until}"),
        (_, Some(until)) => format!("until {until}"),
        (_, None) => "yes".to_owned(),
    }
}

/// Where a new Ed25519 private half is left for its owner.
pub(super) fn seed_path(workspace: &Workspace, key_id: &str) -> PathBuf {
    let name: String = key_id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' })
        .collect();
    workspace.root().join(format!("memory/{name}.ed25519"))
}

/// Reads a secret from a file, or from standard input for `-`.
pub(super) fn read_secret(path: &Path) -> Result<Secret, Failure> {
    read_input(path, limits::WORKSPACE_FILE.bytes_max).map(Secret::from_file_bytes)
}
