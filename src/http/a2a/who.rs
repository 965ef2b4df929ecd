//! Who speaks A2A: a caller with a token, or anybody on this machine where the operator allows that.

use std::sync::Arc;

use crate::a2a::{ErrorCode, Finding, RpcError};
use crate::callers::{Act, Caller, Role};
use crate::contract::Mode;
use crate::engine::Asker;
use crate::http::call::Call;
use crate::http::events::side_of;
use crate::http::handoffs::{Purpose, asker};
use crate::http::reads::may_see;
use crate::policy::PolicySet;
use crate::views::{AttemptRow, SeenBy};
use crate::wire::{Sender, Side};

#[derive(Debug, Clone)]
pub(super) enum Who {
    Caller(Caller),
    Anonymous,
}

/// Under which name an anonymous caller's messages are claimed.
const ANONYMOUS: &str = "anonymous";

impl Who {
    pub(super) fn of(call: &Call) -> Self {
        call.caller.clone().map_or(Self::Anonymous, Self::Caller)
    }

    /// Whose token it is, where one was shown.
    pub(super) fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Caller(caller) => Some(caller),
            Self::Anonymous => None,
        }
    }

    /// Refuses what this one may not do. What is an operator's is never an anonymous caller's.
    pub(super) fn must(&self, act: Act) -> Result<(), RpcError> {
        let (may, role) = match self {
            Self::Caller(caller) => (caller.may(act), caller.role().as_str()),
            Self::Anonymous => (matches!(act, Act::Submit | Act::ReadHandoffs | Act::ReportEvent), ANONYMOUS),
        };
        // It acts in the name of the sources that it submits as.
        let may = may
            || matches!((self, act), (Self::Caller(caller), Act::ReportEvent) if caller.role() == Role::Admin);
        if may {
            return Ok(());
        }
        let message = format!("a caller of role {role} may not do this");
        let finding = Finding {
            code: Some("AUTH_FORBIDDEN".to_owned()),
            pointer: "/method".to_owned(),
            message: message.clone(),
            hint: Some("use a token of a role that may".to_owned()),
        };
        Err(RpcError { findings: vec![finding], ..RpcError::new(ErrorCode::UnsupportedOperation, message) })
    }

    /// In whose name it submits.
    pub(super) fn asker(&self) -> Asker {
        match self {
            Self::Caller(caller) => asker(caller, Purpose::Submit),
            Self::Anonymous => Asker::AnySourceButLive,
        }
    }

    /// Whose messageIds its messages have: the agent's or, where there is none, the token's. An agent as a source is
    /// another caller than the same agent as a target, which must not see what the source began.
    pub(super) fn name(&self) -> Arc<str> {
        match self {
            Self::Anonymous => ANONYMOUS.into(),
            Self::Caller(caller) => {
                let name = caller.agent_id().unwrap_or(caller.name().as_str());
                format!("{}:{name}", caller.role()).into()
            }
        }
    }

    /// As whom the ledger knows it.
    pub(super) fn sender(&self) -> Arc<str> {
        match self {
            Self::Anonymous => Sender::System.to_string().into(),
            Self::Caller(caller) => caller.wire_sender().to_string().into(),
        }
    }

    /// For which side of a handoff it speaks; whoever may submit as any source, for the source.
    pub(super) fn side(&self) -> Side {
        self.caller().map_or(Side::Source, side_of)
    }

    /// As whom it says something in the stream of a handoff, or cancels it: who may submit as any source may take
    /// that back as any source, and neither of it for live work.
    pub(super) fn voice_in(&self, row: &AttemptRow) -> Arc<str> {
        let any_source = match self {
            Self::Anonymous => true,
            Self::Caller(caller) => caller.role() == Role::Admin,
        };
        match row.source_agent.as_deref() {
            Some(source) if any_source && row.mode.as_deref() != Some(Mode::Live.as_str()) => {
                Sender::Agent(source).to_string().into()
            }
            _ => self.sender(),
        }
    }

    /// Does it see an attempt? Of an anonymous caller that is asked elsewhere: what it handed over itself.
    pub(super) fn sees(&self, row: &AttemptRow, policies: &PolicySet) -> bool {
        self.caller().is_some_and(|caller| may_see(caller, row, policies))
    }

    /// Does it see what other callers began?
    pub(super) fn sees_all(&self) -> bool {
        matches!(self, Self::Caller(caller) if caller.sees_only().is_none())
    }

    /// Which tasks it is shown in a list; `name` is its own.
    pub(super) fn list<'w>(&'w self, name: &'w str) -> SeenBy<'w> {
        match self {
            Self::Anonymous => SeenBy::Speaker(name),
            Self::Caller(caller) => match (caller.role(), caller.sees_only()) {
                (Role::Agent, Some(agent)) => SeenBy::Target { agent, caller: name },
                (_, Some(agent)) => SeenBy::Source { agent, caller: name },
                (_, None) => SeenBy::All,
            },
        }
    }
}
