//! Tokens and keys over HTTP, for an administrator who is not on the machine.
//!
//! The files are changed first and then read again like any other edit, so there is one way for them to come into
//! force, and the ledger says so before the answer leaves.

use std::str::FromStr as _;
use std::sync::Arc;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::App;
use super::call::Call;
use super::endpoint::Answer;
use super::handoffs::json_response;
use super::problem::{Kind, Problem};
use super::token_ask::TokenAsk;
use crate::callers::{Act, Caller, Name, Role, RosterFault, Token, TokenFault, TokenText};
use crate::gateway::{Cause, Hindrance, Part, Put, Reloaded};
use crate::json::Document;
use crate::os::clock;
use crate::proof::{Algorithm, Key, Purpose, Secret};
use crate::timestamp::Timestamp;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewKey {
    key_id: String,
    owner: String,
    purpose: Option<String>,
    algorithm: Option<String>,
    /// Of an hmac-sha256 key: its text is the key.
    secret: Option<zeroize::Zeroizing<String>>,
    /// Of an ed25519 key, in hex.
    public_key: Option<String>,
    not_before: Option<String>,
    not_after: Option<String>,
}

/// A body of ours that is not a TaskSpec.
pub(super) async fn body<T: serde::de::DeserializeOwned>(call: &mut Call) -> Result<T, Problem> {
    let bytes = call.json_body().await?;
    // Read strictly first: a key that stands there twice is not for serde to choose from.
    let document =
        crate::json::read(&bytes, crate::limits::TASK_SPEC).map_err(|fault| Problem::from(&fault))?;
    serde_json::from_value(document.root().to_json()).map_err(|error| {
        Problem::new(Kind::RequestInvalid, error.to_string()).hint("GET /openapi.json has its shape")
    })
}

pub(super) fn wrong(pointer: &str, why: impl std::fmt::Display) -> Problem {
    Problem::new(Kind::RequestInvalid, why.to_string()).at(pointer)
}

fn time(pointer: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let parse = |text| Timestamp::parse(text).ok_or_else(|| wrong(pointer, "not an RFC 3339 date-time"));
    text.map(parse).transpose()
}

/// Changes a part of the rules in its file, then puts it in force, and waits until the ledger has it. The other parts have no
/// say in that: whoever revokes a token need not mend policies first.
async fn change<T: Send + 'static>(
    app: &Arc<App>,
    what: What,
    change: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
    take_back: impl FnOnce(&App, &T) + Send + 'static,
) -> Result<T, Problem> {
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || {
        // A file that is gone would begin again with this change, and take all else out of force.
        if let Some(why) = app.rules.unreadable(what.part()) {
            return Err(hindered(Hindrance::Broken(why)));
        }
        let changed = change(&app);
        // Also where nothing was left to change: who hears that it was done before can rely on it.
        if let Err(problem) = put_in_force(&app, &what) {
            if let Ok(changed) = &changed {
                take_back(&app, changed);
                let _ = reload_now(&app, Some(what.part()), Cause::Noticed);
            }
            return Err(problem);
        }
        changed
    });
    done.await.unwrap_or_else(|_| Err(Problem::new(Kind::NotDurable, "the change could not be made")))
}

/// What takes something away is not taken back.
fn stands<T>(_: &App, _: &T) {}

/// What is changed: the tokens, or the key of this name.
enum What {
    Tokens,
    Key(String),
}

impl What {
    fn part(&self) -> Part {
        match self {
            Self::Tokens => Part::Tokens,
            Self::Key(_) => Part::Keys,
        }
    }
}

impl App {
    /// Says what has come into force, however it came to be read.
    pub fn took_in(&self, reloaded: &Reloaded) {
        self.metrics.reloaded(reloaded.failed.is_none());
        match &reloaded.put {
            Put::Nothing => {}
            Put::Changed { policies } => {
                let digest = self.rules.digest().to_string();
                // Beside others they may not be; what looks at what is shared says so.
                if self.rules.are_in_force() {
                    tracing::info!(policies, digest, "changed rules are in force");
                }
            }
            Put::Waits { digest } => {
                tracing::warn!(%digest, "a changed policy set waits for an operator's yes; the one before it is in force");
            }
        }
    }
}

/// Reads a part of the rules again, or all of them.
fn reload_now(app: &App, part: Option<Part>, cause: Cause) -> Reloaded {
    let reloaded = match part {
        Some(part) => app.rules.reload_part(part, cause),
        None => app.rules.reload(cause),
    };
    app.took_in(&reloaded);
    reloaded
}

/// Reads the part again that was changed. An error if what was changed is not in force by its own file.
fn put_in_force(app: &App, what: &What) -> Result<(), Problem> {
    let reloaded = reload_now(app, Some(what.part()), Cause::Noticed);
    if let Some(hindrance) = reloaded.failed.as_ref().and_then(|failed| failed.hinders(what.part())) {
        return Err(hindered(hindrance));
    }
    match what {
        What::Key(key_id) if !app.rules.key_is_in_force(key_id) => {
            let why = "the keys here are not those in force for all replicas, so a change to them counts nowhere else";
            Err(Problem::new(Kind::RulesDiffer, why).hint(
                "make memory/keyring.json the same as on a replica that is ready, or ask such a replica",
            ))
        }
        _ => Ok(()),
    }
}

fn hindered(hindrance: Hindrance) -> Problem {
    match hindrance {
        Hindrance::Broken(why) => Problem::new(Kind::RulesBroken, why)
            .hint("what was in force before stays in force; correct the file, and it is read again"),
        Hindrance::Unanswered(why) => Problem::new(Kind::NotDurable, why).hint(
            "what was in force stays so, and the files are not to blame; ask again when the database answers",
        ),
        Hindrance::Unrecorded(why) => Problem::new(Kind::NotDurable, why)
            .hint("the files are not to blame, and what they say may count already: look before you ask for it again"),
    }
}

/// `POST /v1/reload`: reads policies, keys and tokens again, now; or one of them.
pub(super) async fn reload(call: Call) -> Answer {
    let app = call.app.clone();
    let asked =
        call.query.text("part").and_then(|name| Part::ALL.into_iter().find(|part| part.name() == name));
    let done = tokio::task::spawn_blocking(move || {
        // Whoever changed keys or tokens says nothing of policies.
        let is_of_policies = asked.is_none_or(|part| part == Part::Policies);
        let cause = if is_of_policies { Cause::Told } else { Cause::Noticed };
        let reloaded = reload_now(&app, asked, cause);
        let mut wanted = Part::ALL.into_iter().filter(|part| asked.is_none_or(|asked| asked == *part));
        let hindered_by =
            reloaded.failed.as_ref().and_then(|failed| wanted.find_map(|part| failed.hinders(part)));
        match hindered_by {
            None => Ok(reloaded),
            Some(hindrance) => Err(hindered(hindrance)),
        }
    });
    let reloaded =
        done.await.unwrap_or_else(|_| Err(Problem::new(Kind::NotDurable, "the files could not be read")))?;
    let digest = call.app.rules.digest().to_string();
    let pending = call.app.rules.pending().map(|pending| pending.digest().to_string());
    let broken = reloaded.failed.map(|failed| failed.broken).unwrap_or_default();
    let broken: Vec<Json> =
        broken.into_iter().map(|(part, why)| json!({"part": part.name(), "why": why})).collect();
    let body = json!({
        "changed": reloaded.put != Put::Nothing,
        "broken": broken,
        "policyDigest": digest,
        "pendingDigest": pending,
        "sequence": call.app.gateway.engine().head(),
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// `GET /v1/tokens`.
pub(super) async fn list_tokens(call: Call) -> Answer {
    let now = clock::now();
    let tokens: Vec<Json> = call.rules.roster.tokens().iter().map(|token| describe(token, now)).collect();
    Ok(json_response(StatusCode::OK, &json!({"tokens": tokens})))
}

/// What may be known of a token.
pub(crate) fn describe(token: &Token, now: Timestamp) -> Json {
    json!({
        "tokenId": token.fingerprint().to_string(),
        "name": token.name().as_str(),
        "role": token.role().as_str(),
        "agentId": token.caller().agent_id(),
        "principal": token.caller().standing().principal(),
        "createdAt": token.created_at(),
        "expiresAt": token.expires_at(),
        "revokedAt": token.revoked_at(),
        "valid": token.is_valid_at(now),
    })
}

fn refused(fault: TokenFault) -> Problem {
    match fault {
        TokenFault::Refused(fault @ (RosterFault::Unknown(_) | RosterFault::AlreadyRevoked(_))) => {
            Problem::new(Kind::NotFound, fault.to_string())
        }
        TokenFault::Refused(fault @ (RosterFault::NameTaken(_) | RosterFault::NameReserved(_))) => {
            Problem::new(Kind::Conflict, fault.to_string()).at("/name")
        }
        TokenFault::Refused(fault) => Problem::new(Kind::Conflict, fault.to_string()),
        other => Problem::new(Kind::NotDurable, other.to_string()),
    }
}

/// The person in whose name a token of this role is made or revoked, nothing for an administrator; an error for whoever
/// may not. A person answers for harnesses, and for no other caller.
fn whose_hand(caller: &Caller, role: Role) -> Result<Option<Name>, Problem> {
    if caller.may(Act::ManageTokens) || role == Role::Harness && caller.may(Act::RegisterHarness) {
        return Ok(caller.human().map(|_| caller.name().clone()));
    }
    let own = caller.role().as_str();
    Err(Problem::new(
        Kind::Forbidden,
        format!("a token of role {own} may not do this for one of role {role}"),
    )
    .hint("it may for tokens of role harness; ask an admin for others"))
}

/// `POST /v1/tokens`.
pub(super) async fn make_token(mut call: Call) -> Answer {
    let ask = |document: &Document<'_>| TokenAsk::read(document, clock::now());
    let TokenAsk { name, standing, expires_at } = call.act(ask).await?;
    let by = whose_hand(call.caller()?, standing.role())?;
    let make = move |app: &App| {
        let files = app.gateway.tokens().by(by);
        let (_, token, text) = files.make(name, standing, clock::now(), expires_at).map_err(refused)?;
        Ok((token, text))
    };
    // A token whose text nobody is told is nobody's.
    let take_back = |app: &App, (token, _): &(Token, TokenText)| {
        let _ = app.gateway.tokens().revoke(&token.fingerprint().to_string(), clock::now());
    };
    let (token, text) = change(&call.app, What::Tokens, make, take_back).await?;
    let mut shown = describe(&token, clock::now());
    if let Some(members) = shown.as_object_mut() {
        members.insert("token".to_owned(), text.expose().into());
        members.insert("sequence".to_owned(), call.app.gateway.engine().head().into());
    }
    Ok(json_response(StatusCode::CREATED, &shown))
}

/// `DELETE /v1/tokens/{token}`.
pub(super) async fn revoke_token(call: Call) -> Answer {
    let which = call.path().to_owned();
    let named = |token: &&Token| token.name().as_str() == which || token.fingerprint().to_string() == which;
    let tokens = call.rules.roster.tokens().iter();
    let found = tokens.filter(|token| token.revoked_at().is_none()).find(named);
    let (which, by) = match found {
        // By its id from here on: a name may be another token's by then.
        Some(token) => (token.fingerprint().to_string(), whose_hand(call.caller()?, token.role())?),
        None if call.caller()?.may(Act::ManageTokens) => (which, None),
        None => return Err(Problem::not_found("token")),
    };
    let revoke = move |app: &App| {
        let files = app.gateway.tokens().by(by);
        let (roster, token) = files.revoke(&which, clock::now()).map_err(refused)?;
        if token.role() == Role::Admin && !roster.has_admin(clock::now()) {
            tracing::warn!(
                "the last admin token was revoked: nobody can manage tokens and keys over HTTP; the next start makes another, and `handoffd token new` here"
            );
        }
        Ok(token)
    };
    let token = change(&call.app, What::Tokens, revoke, stands).await?;
    let mut shown = describe(&token, clock::now());
    if let Some(members) = shown.as_object_mut() {
        members.insert("sequence".to_owned(), call.app.gateway.engine().head().into());
    }
    Ok(json_response(StatusCode::OK, &shown))
}

/// What may be known of a key.
pub(crate) fn describe_key(key: &Key, now: Timestamp) -> Json {
    json!({
        "keyId": key.id(),
        "owner": key.owner(),
        "purpose": key.purpose().name(),
        "algorithm": key.algorithm().name(),
        "notBefore": key.not_before(),
        "notAfter": key.not_after(),
        "valid": key.is_valid_at(now),
    })
}

/// `GET /v1/keys`.
pub(super) async fn list_keys(call: Call) -> Answer {
    let now = clock::now();
    let keys: Vec<Json> =
        call.rules.in_force.keyring.keys().iter().map(|key| describe_key(key, now)).collect();
    Ok(json_response(StatusCode::OK, &json!({"keys": keys})))
}

/// `POST /v1/keys`.
pub(super) async fn add_key(mut call: Call) -> Answer {
    let new: NewKey = body(&mut call).await?;
    let purpose = Purpose::from_str(new.purpose.as_deref().unwrap_or("envelope"))
        .map_err(|why| wrong("/purpose", why))?;
    let algorithm = Algorithm::from_str(new.algorithm.as_deref().unwrap_or("hmac-sha256"))
        .map_err(|why| wrong("/algorithm", why))?;
    let bounds =
        (time("/notBefore", new.not_before.as_deref())?, time("/notAfter", new.not_after.as_deref())?);
    let sound = |text: &str| (1..=128).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    for (pointer, text) in [("/keyId", &new.key_id), ("/owner", &new.owner)] {
        if !sound(text) {
            return Err(wrong(pointer, "1 to 128 characters, no control characters"));
        }
    }
    let key = match (algorithm, new.secret, new.public_key) {
        (Algorithm::HmacSha256, Some(secret), None) => {
            if secret.len() < 16 {
                return Err(wrong("/secret", "a secret has at least 16 characters"));
            }
            Key::hmac(&new.key_id, &new.owner, purpose, Secret::new(secret.as_bytes().to_vec()))
                .ok_or_else(|| wrong("/secret", "not a key"))?
        }
        (Algorithm::HmacSha256, None, None) => {
            return Err(wrong("/secret", "an hmac-sha256 key needs its secret"));
        }
        (Algorithm::HmacSha256, _, Some(_)) => {
            return Err(wrong("/publicKey", "an hmac-sha256 key has none"));
        }
        (Algorithm::Ed25519, None, Some(public)) => {
            Key::ed25519(&new.key_id, &new.owner, purpose, &public)
                .ok_or_else(|| wrong("/publicKey", "not an Ed25519 public key of 64 hex digits"))?
        }
        (Algorithm::Ed25519, Some(_), _) => {
            return Err(wrong("/secret", "the gateway never holds the private half of an ed25519 key"));
        }
        (Algorithm::Ed25519, None, None) => {
            return Err(wrong("/publicKey", "an ed25519 key needs its public half"));
        }
    };
    let key = key.valid_between(bounds.0, bounds.1);
    let (shown, key_id, added) = (describe_key(&key, clock::now()), new.key_id.clone(), new.key_id);
    let add = move |app: &App| {
        let workspace = app.rules.workspace();
        workspace
            .change_keyring(|keyring| keyring.add(key).map_err(|fault| fault.to_string()))
            .map_err(|why| Problem::new(Kind::Conflict, why))
    };
    let take_back = move |app: &App, (): &()| {
        let _ = app.rules.workspace().change_keyring(|keyring| {
            keyring.remove(&key_id);
            Ok(())
        });
    };
    change(&call.app, What::Key(added), add, take_back).await?;
    Ok(json_response(StatusCode::CREATED, &shown))
}

/// `DELETE /v1/keys/{key}`.
pub(super) async fn remove_key(call: Call) -> Answer {
    let which = call.path().to_owned();
    let Some(key) = call.rules.in_force.keyring.get(&which) else { return Err(Problem::not_found("key")) };
    let shown = describe_key(key, clock::now());
    let removed = What::Key(which.clone());
    let remove = move |app: &App| {
        let workspace = app.rules.workspace();
        let removed = workspace.change_keyring(|keyring| {
            if keyring.remove(&which) { Ok(()) } else { Err(format!("there is no key `{which}`")) }
        });
        removed.map_err(|why| Problem::new(Kind::NotFound, why))
    };
    change(&call.app, removed, remove, stands).await?;
    Ok(json_response(StatusCode::OK, &shown))
}
