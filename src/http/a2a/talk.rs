//! One request to `/rpc` or `/stream`: who speaks, under which rules, and how they want to be answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::who::Who;
use crate::a2a::{RpcError, TaskId};
use crate::gateway::Rules;
use crate::http::App;
use crate::http::call::Call;
use crate::http::spans::Span;
use crate::limits;
use crate::os::{clock, random};
use crate::policy::PolicySet;
use crate::wire::Ulid;

pub(super) struct Talk {
    pub(super) app: Arc<App>,
    pub(super) rules: Rules,
    pub(super) policies: Arc<PolicySet>,
    pub(super) who: Who,
    /// Whose messageIds its messages have.
    pub(super) name: Arc<str>,
    pub(super) traceparent: Option<String>,
    /// Where the request leaves its marks, if it is traced.
    pub(super) span: Option<Arc<Span>>,
    pub(super) last_event_id: Option<String>,
    /// Whether the client takes a stream for an answer.
    pub(super) takes_streams: bool,
    /// Until when its messages wait for their tasks, all of them together: what is waited for is answered as it is before
    /// the request is given up.
    pub(super) waits_until: Instant,
}

impl Talk {
    pub(super) fn of(call: Call) -> Self {
        let who = Who::of(&call);
        let policies = call.policies();
        let text = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            name: who.name(),
            who,
            policies,
            traceparent: call.trace.incoming.clone(),
            span: call.trace.span.clone(),
            last_event_id: text("last-event-id").map(str::to_owned),
            takes_streams: text("accept").is_some_and(|accept| accept.contains("text/event-stream")),
            waits_until: Instant::now() + patience(call.app.settings.server.request_timeout),
            rules: call.rules,
            app: call.app,
        }
    }

    /// How long there is to wait still.
    pub(super) fn patience(&self) -> Duration {
        self.waits_until.saturating_duration_since(Instant::now())
    }

    /// Nobody asks: somebody is told, under the rules as they are now.
    pub(super) fn in_the_name_of(app: Arc<App>, who: Who) -> Self {
        let rules = app.rules.current();
        Self {
            policies: rules.in_force.policies.clone(),
            name: who.name(),
            who,
            rules,
            app,
            traceparent: None,
            span: None,
            last_event_id: None,
            takes_streams: false,
            waits_until: Instant::now(),
        }
    }

    /// The same, for whoever tells of a task after the request is answered.
    pub(super) fn again(&self) -> Self {
        Self {
            app: self.app.clone(),
            rules: self.rules.clone(),
            policies: self.policies.clone(),
            who: self.who.clone(),
            name: self.name.clone(),
            traceparent: self.traceparent.clone(),
            // The request has been answered by then.
            span: None,
            last_event_id: None,
            takes_streams: self.takes_streams,
            waits_until: self.waits_until,
        }
    }

    /// The name of a new task that has no TaskSpec, or of a context.
    pub(super) fn new_id() -> Result<Ulid, RpcError> {
        let bytes = random::secret_bytes::<10>().map_err(|_| {
            RpcError::new(crate::a2a::ErrorCode::Internal, "there is no randomness to name it by")
        })?;
        Ok(Ulid::new(clock::now().unix_milliseconds(), *bytes))
    }

    pub(super) fn new_task() -> Result<TaskId, RpcError> {
        Self::new_id().map(TaskId::Asked)
    }
}

/// Half of a request's time at most: the rest is for deciding, and for reading what became of it.
fn patience(request_timeout: Duration) -> Duration {
    Duration::from_secs(limits::A2A_WAIT_S).min(request_timeout / 2)
}
