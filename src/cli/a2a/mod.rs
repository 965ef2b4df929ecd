//! `handoffd a2a`: the A2A client. Finds agents, hands them messages, and follows tasks, whoever the agent is.

mod discover;
mod follow;
mod send;
mod show;
mod task;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::client::{ClientFlags, Reach};
use super::printer::Printer;
use super::{Context, Exit, Failure};
use crate::a2a::client::{Client, ClientFault, Hooks};

pub(super) const EXAMPLES: &str = "\
Examples:
  handoffd a2a discover --url https://agent.example
  handoffd a2a send docs/examples/taskspec-minimal.json
  handoffd a2a stream docs/examples/taskspec-minimal.json --json
  handoffd a2a resubscribe hs_20260218_router_0001 --from 4
  handoffd a2a cancel hs_20260218_router_0001

Without --url the workspace's own gateway is asked. The token comes from HANDOFFD_TOKEN; an agent \
that is open to everybody needs none. With --json everything has the shape of A2A 0.3, whatever \
version the agent speaks.

Exit: 0 done or under way, 1 rejected, failed or canceled, 2 not understood, 3 unavailable, 4 it \
waits for an approval or for input.";

/// Talk to an A2A agent: this gateway, or any other.
#[derive(Debug, Args)]
pub(super) struct A2a {
    #[command(flatten)]
    client: ClientFlags,

    /// The version of the protocol: the newest that the agent's card names, or 0.3
    #[arg(long, global = true, value_name = "VERSION", default_value = "newest")]
    protocol: Protocol,

    #[command(subcommand)]
    command: A2aCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Newest,
    #[value(name = "0.3")]
    V0_3,
}

#[derive(Debug, Subcommand)]
enum A2aCommand {
    Discover(discover::Discover),
    Send(send::Send),
    Stream(send::StreamMessage),
    Resubscribe(follow::Resubscribe),
    /// Show a task as it is
    Get(task::Get),
    /// Cancel a task
    Cancel(task::Cancel),
}

impl A2a {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let Reach { agent, url, authorization } = match self.client.reach(context) {
            Ok(reach) => reach,
            Err(nobody) => return nobody.end(context),
        };
        let hooks = Caller { authorization, printer: &context.printer };
        match self.ask(context, agent, &url, &hooks) {
            Ok(exit) => Ok(exit),
            Err(Trouble::Asking(fault)) => Ok(tell_fault(context, &fault)),
            Err(Trouble::Reading(failure)) => Err(failure),
        }
    }

    fn ask(
        &self,
        context: &Context,
        agent: ureq::Agent,
        url: &str,
        hooks: &Caller<'_>,
    ) -> Result<Exit, Trouble> {
        let client = Client::discover(agent, url, hooks)?;
        let client = match self.protocol {
            Protocol::Newest => client,
            Protocol::V0_3 => client.in_0_3()?,
        };
        let exit = match &self.command {
            A2aCommand::Discover(_) => discover::run(context, &client, hooks.authorization.is_some()),
            A2aCommand::Send(command) => command.run(context, &client, &command.message.read()?),
            A2aCommand::Stream(command) => follow::tell(context, client.stream(&command.message.read()?)?),
            A2aCommand::Resubscribe(command) => command.run(context, &client),
            A2aCommand::Get(command) => command.run(context, &client),
            A2aCommand::Cancel(command) => command.run(context, &client),
        };
        Ok(exit?)
    }
}

/// Why there is nothing to show.
enum Trouble {
    Reading(Failure),
    Asking(ClientFault),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Reading(failure)
    }
}

impl From<ClientFault> for Trouble {
    fn from(fault: ClientFault) -> Self {
        Self::Asking(fault)
    }
}

/// Who asks.
struct Caller<'p> {
    authorization: Option<Zeroizing<String>>,
    printer: &'p Printer,
}

impl Hooks for Caller<'_> {
    fn headers(&self) -> Vec<(String, String)> {
        let token = self.authorization.as_ref().map(|text| ("Authorization".to_owned(), text.to_string()));
        token.into_iter().collect()
    }

    fn retrying(&self, why: &str) {
        self.printer.note(&format!("{why}; asking again, which does nothing twice"));
    }
}

/// Says what went wrong, with all that the agent says about it.
fn tell_fault(context: &Context, fault: &ClientFault) -> Exit {
    if let (ClientFault::Rpc { code, message, data }, true) = (fault, context.printer.is_json()) {
        context
            .printer
            .value(&serde_json::json!({"error": {"code": code, "message": message, "data": data}}));
    }
    context.printer.error(&fault.to_string());
    if let ClientFault::Rpc { data: Some(data), .. } = fault {
        for line in show::findings(data) {
            context.printer.say(&line);
        }
    }
    if let ClientFault::Status { status: 401, .. } = fault {
        context.printer.note("put a token that counts into HANDOFFD_TOKEN");
    }
    match fault {
        ClientFault::Unreachable(_) | ClientFault::Lost(_) => Exit::Unavailable,
        ClientFault::Status { status, .. } if *status >= 500 || *status == 429 => Exit::Unavailable,
        // -32603 is what cannot be answered now.
        ClientFault::Rpc { code: -32603, .. } => Exit::Unavailable,
        // -32002: it has ended, and cannot be canceled.
        ClientFault::Rpc { code: -32002, .. } => Exit::Refused,
        ClientFault::Status { .. }
        | ClientFault::Rpc { .. }
        | ClientFault::Elsewhere(_)
        | ClientFault::Strange(_) => Exit::Unusable,
    }
}

/// How a command ends that saw a task in this state last.
fn exit_of(state: Option<&str>) -> Exit {
    match state {
        Some("rejected" | "failed" | "canceled") => Exit::Refused,
        Some("auth-required" | "input-required") => Exit::NeedsApproval,
        _ => Exit::Done,
    }
}

/// The state of a task, as 0.3 says it.
fn state(task: &Json) -> Option<&str> {
    task.pointer("/status/state").and_then(Json::as_str)
}
