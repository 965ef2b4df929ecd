//! `handoffd token`: who may ask.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::client::{Ask, ClientFlags, segment};
use super::in_force::{is_not_gone, own_token_counts, put_in_force};
use super::printer::{BOLD, DIM};
use super::{Context, Exit, Failure, parse_when, place};
use crate::callers::{Name, Role, Roster, Standing, TokenFault, TokenFiles};
use crate::gateway::Part;
use crate::http::describe_token;
use crate::json::printable;
use crate::os::clock;
use crate::proof::Purpose;
use crate::timestamp::Timestamp;

/// Manage the tokens with which callers say who they are.
#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    New(New),
    /// List the tokens; their text is never shown
    List,
    /// Revoke a token; who shows it is refused from then on
    Revoke(Revoke),
}

/// Make a token and print it, this once.
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

    /// From when the token no longer counts: a time, or how long from now, such as 12h or 30d
    #[arg(long, value_name = "TIME", value_parser = parse_when)]
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
    pub(super) fn run(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        if client.is_remote() {
            return self.run_elsewhere(context, client);
        }
        let files = place::tokens(context)?;
        let counted = own_token_counts(context).unwrap_or(false);
        // Before anything is changed: wrong flags are nobody's business then.
        let gateway = if matches!(self, Self::List) { None } else { client.own(context)? };
        is_not_gone(gateway.as_ref(), Part::Tokens, &files.tokens())?;
        match self {
            Self::New(new) => new.run(context, &files)?,
            Self::List => {
                let (roster, now) = (files.load()?, clock::now());
                let tokens: Vec<Json> =
                    roster.tokens().iter().map(|token| describe_token(token, now)).collect();
                list(context, &tokens);
                return Ok(Exit::Done);
            }
            Self::Revoke(revoke) => revoke.run(context, &files)?,
        }
        put_in_force(context, gateway.as_ref(), Part::Tokens, counted)
    }

    fn run_elsewhere(&self, context: &Context, client: &ClientFlags) -> Result<Exit, Failure> {
        let request = match self {
            Self::New(new) => Some(new.request()?.to_string()),
            Self::List | Self::Revoke(_) => None,
        };
        let client = match client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let answer = match self {
            Self::New(_) => client.ask(Ask::Post(request.as_deref().map(str::as_bytes)), "/v1/tokens"),
            Self::List => client.ask(Ask::Get, "/v1/tokens"),
            Self::Revoke(revoke) => {
                client.ask(Ask::Delete, &format!("/v1/tokens/{}", segment(&revoke.which)))
            }
        };
        let reply = match answer {
            Ok(reply) => reply,
            Err(trouble) => return Ok(trouble.end(context)),
        };
        match self {
            Self::New(_) => tell_new(context, &reply.body),
            Self::List => {
                let tokens = reply.body.get("tokens").and_then(Json::as_array);
                list(context, tokens.map(Vec::as_slice).unwrap_or_default());
            }
            Self::Revoke(_) => tell_revoked(context, &reply.body),
        }
        Ok(Exit::Done)
    }
}

impl New {
    /// Who the token's holder is.
    fn standing(&self) -> Result<Standing, Failure> {
        if self.name.as_str() == Roster::ADMIN {
            return Err(Failure(format!(
                "the name `{}` is for the token in memory/admin.token; take another name",
                Roster::ADMIN
            )));
        }
        Standing::of(self.role, self.agent.as_deref(), self.principal.as_deref())
            .map_err(|fault| Failure(fault.to_string()))
    }

    fn run(&self, context: &Context, files: &TokenFiles) -> Result<(), Failure> {
        let (standing, now) = (self.standing()?, clock::now());
        let (_, token, text) = files.make(self.name.clone(), standing, now, self.expires)?;
        let mut shown = describe_token(&token, now);
        if let Some(members) = shown.as_object_mut() {
            members.insert("token".to_owned(), text.expose().into());
        }
        tell_new(context, &shown);
        Ok(())
    }

    /// What a gateway elsewhere is asked for.
    fn request(&self) -> Result<Json, Failure> {
        self.standing()?;
        let mut request = json!({"name": self.name.as_str(), "role": self.role.as_str()});
        let also = [
            ("agentId", self.agent.clone()),
            ("principal", self.principal.clone()),
            ("expiresAt", self.expires.map(|time| time.to_string())),
        ];
        for (name, value) in also {
            if let (Some(value), Some(members)) = (value, request.as_object_mut()) {
                members.insert(name.to_owned(), value.into());
            }
        }
        Ok(request)
    }
}

fn tell_new(context: &Context, token: &Json) {
    if context.printer.is_json() {
        context.printer.value(token);
    } else {
        context.printer.line(token.get("token").and_then(Json::as_str).unwrap_or_default());
    }
    context.printer.note(&format!(
        "this is the token of {}, {} ({}); it is shown this once and kept nowhere",
        text(token, "name"),
        text(token, "role"),
        text(token, "tokenId")
    ));
}

fn tell_revoked(context: &Context, token: &Json) {
    if context.printer.is_json() {
        context.printer.value(token);
    } else {
        context.printer.line(&format!(
            "revoked {BOLD}{}{BOLD:#}, {} ({})",
            text(token, "name"),
            text(token, "role"),
            text(token, "tokenId")
        ));
    }
}

impl Revoke {
    fn run(&self, context: &Context, files: &TokenFiles) -> Result<(), Failure> {
        let now = clock::now();
        let (roster, token) = files.revoke(&self.which, now)?;
        tell_revoked(context, &describe_token(&token, now));
        // It may be in wrong hands, so it is out at once; whoever did not mean that can make another here.
        if token.role() == Role::Admin && !roster.has_admin(now) {
            context.printer.note(
                "that was the last admin token: nobody can manage tokens and keys over HTTP now. Make another with: handoffd token \
                 new --name NAME --role admin; or start the gateway again, which writes one to memory/admin.token",
            );
        }
        // Its keys sign for nobody now, but would sign for the next token of that name.
        let Ok(keyring) = context.workspace.load_keyring() else { return Ok(()) };
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
        Ok(())
    }
}

fn list(context: &Context, tokens: &[Json]) {
    if context.printer.is_json() {
        context.printer.value(&tokens);
        return;
    }
    if tokens.is_empty() {
        context.printer.line(
            "no tokens yet; make one with: handoffd token new --name NAME --role orchestrator --agent AGENT",
        );
        return;
    }
    let width = |column: &dyn Fn(&Json) -> String| {
        tokens.iter().map(|token| column(token).chars().count()).max().unwrap_or(0)
    };
    let (names, holders) = (width(&|token| text(token, "name")).max(4), width(&holder).max(7));
    context.printer.line(&format!(
        "{DIM}{:20}  {:names$}  {:12}  {:holders$}  valid{DIM:#}",
        "id", "name", "role", "is also"
    ));
    let now = clock::now();
    for token in tokens {
        context.printer.line(&format!(
            "{:20}  {:names$}  {:12}  {:holders$}  {}",
            text(token, "tokenId"),
            text(token, "name"),
            text(token, "role"),
            holder(token),
            validity(token, now)
        ));
    }
}

fn text(token: &Json, name: &str) -> String {
    token.get(name).and_then(Json::as_str).map(printable).unwrap_or_default()
}

/// The agent or the principal that the caller is.
fn holder(token: &Json) -> String {
    let also = [text(token, "agentId"), text(token, "principal")];
    also.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "-".to_owned())
}

fn validity(token: &Json, now: Timestamp) -> String {
    let time = |name: &str| token.get(name).and_then(Json::as_str).and_then(Timestamp::parse);
    match (time("revokedAt"), time("expiresAt")) {
        (Some(at), _) => format!("no, revoked {at}"),
        (None, Some(until)) if until <= now => format!("no, ended {until}"),
        (None, Some(until)) => format!("until {until}"),
        (None, None) => "yes".to_owned(),
    }
}
