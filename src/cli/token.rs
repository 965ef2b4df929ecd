//! `handoffd token`: who may ask.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::printer::{BOLD, DIM};
use super::{Context, Exit, Failure, parse_time};
use crate::callers::{Name, Role, Roster, Standing, Token, TokenFault, TokenFiles};
use crate::os::clock;
use crate::proof::Purpose;
use crate::timestamp::Timestamp;

/// Manage the tokens with which callers say who they are.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token and print it, this once
    New(New),
    /// List the tokens; their text is never shown
    List,
    /// Revoke a token; who shows it is refused from then on
    Revoke(Revoke),
}

/// Make a token.
///
/// Standard output is the token alone. It is shown this once: only its hash is kept, in memory/tokens.json.
#[derive(Debug, Args)]
pub(super) struct New {
    /// The token's name; an operator's is the name of a person
    #[arg(long, value_name = "NAME")]
    name: Name,

    /// orchestrator, agent, operator, harness, auditor or admin
    #[arg(long, value_name = "ROLE")]
    role: Role,

    /// The agent as which an orchestrator submits, or to which an agent's handoffs go
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// The principal that an operator also is, such as user:rita
    #[arg(long, value_name = "ID")]
    principal: Option<String>,

    /// From when the token no longer counts
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expires: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The token's name, or its id (tok_…)
    #[arg(value_name = "NAME|ID")]
    which: String,
}

impl From<TokenFault> for Failure {
    fn from(fault: TokenFault) -> Self {
        Self(fault.to_string())
    }
}

impl TokenCommand {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let files = TokenFiles::of(context.workspace.root());
        match self {
            Self::New(new) => new.run(context, &files),
            Self::List => list(context, &files),
            Self::Revoke(revoke) => revoke.run(context, &files),
        }
    }
}

impl New {
    fn run(&self, context: &Context, files: &TokenFiles) -> Result<Exit, Failure> {
        if self.name.as_str() == Roster::ADMIN {
            return Err(Failure(format!(
                "the name `{}` is for the token in memory/admin.token; take another name",
                Roster::ADMIN
            )));
        }
        let standing = Standing::of(self.role, self.agent.as_deref(), self.principal.as_deref())
            .map_err(|fault| Failure(fault.to_string()))?;
        let now = clock::now();
        let (_, token, text) = files.make(self.name.clone(), standing, now, self.expires)?;
        if context.printer.is_json() {
            let mut shown = describe(&token, now);
            if let Some(members) = shown.as_object_mut() {
                members.insert("token".to_owned(), text.expose().into());
            }
            context.printer.value(&shown);
        } else {
            context.printer.line(text.expose());
        }
        context.printer.note(&format!(
            "this is the token of {}, {} ({}); it is shown this once and kept nowhere",
            token.name(),
            token.role(),
            token.fingerprint()
        ));
        Ok(Exit::Done)
    }
}

impl Revoke {
    fn run(&self, context: &Context, files: &TokenFiles) -> Result<Exit, Failure> {
        let now = clock::now();
        let (_, token) = files.revoke(&self.which, now)?;
        if context.printer.is_json() {
            context.printer.value(&describe(&token, now));
        } else {
            context.printer.line(&format!(
                "revoked {BOLD}{}{BOLD:#}, {} ({})",
                token.name(),
                token.role(),
                token.fingerprint()
            ));
        }
        // Its keys sign for nobody now, but would sign for the next token of that name.
        let keyring = context.workspace.load_keyring()?;
        for key in keyring.keys() {
            if key.purpose() == Purpose::Request && key.owner() == token.name().as_str() {
                context.printer.note(&format!(
                    "key `{}` signs requests of {} and is refused until a token has that name again; to remove it: handoffd key remove {}",
                    key.id(),
                    token.name(),
                    key.id()
                ));
            }
        }
        Ok(Exit::Done)
    }
}

fn list(context: &Context, files: &TokenFiles) -> Result<Exit, Failure> {
    let roster = files.load()?;
    let now = clock::now();
    if context.printer.is_json() {
        context.printer.value(&roster.tokens().iter().map(|token| describe(token, now)).collect::<Vec<_>>());
        return Ok(Exit::Done);
    }
    if roster.tokens().is_empty() {
        context.printer.line(
            "no tokens yet; make one with: handoffd token new --name NAME --role orchestrator --agent AGENT",
        );
        return Ok(Exit::Done);
    }
    let width = |column: fn(&Token) -> &str| {
        roster.tokens().iter().map(|token| column(token).chars().count()).max().unwrap_or(0)
    };
    let (names, holders) = (width(|token| token.name().as_str()).max(4), width(holder).max(7));
    context.printer.line(&format!(
        "{DIM}{:20}  {:names$}  {:12}  {:holders$}  valid{DIM:#}",
        "id", "name", "role", "is also"
    ));
    for token in roster.tokens() {
        context.printer.line(&format!(
            "{:20}  {:names$}  {:12}  {:holders$}  {}",
            token.fingerprint().to_string(),
            token.name().as_str(),
            token.role().as_str(),
            holder(token),
            validity(token, now)
        ));
    }
    Ok(Exit::Done)
}

/// The agent or the principal that the caller is.
fn holder(token: &Token) -> &str {
    let standing = token.caller().standing();
    standing.agent_id().or(standing.principal()).unwrap_or("-")
}

fn validity(token: &Token, now: Timestamp) -> String {
    match (token.revoked_at(), token.expires_at()) {
        (Some(at), _) => format!("no, revoked {at}"),
        (None, Some(until)) if until <= now => format!("no, ended {until}"),
        (None, Some(until)) => format!("until {until}"),
        (None, None) => "yes".to_owned(),
    }
}

fn describe(token: &Token, now: Timestamp) -> Json {
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
