//! The event types of the protocol, and the normalized state each one stands for.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::contracts::Contracts;

/// Each type with its name on the wire and the schema of its own.
macro_rules! kinds {
    ($($kind:ident: $name:literal, $schema:literal;)*) => {
        /// The type of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The file name and the text of the event's schema.
            pub(super) fn schema(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$kind => (
                        concat!($schema, ".schema.json"),
                        include_str!(concat!("../../docs/schemas/agent-wire/v1.1/", $schema, ".schema.json")),
                    ),)*
                }
            }
        }
    };
}

kinds! {
    TaskCreated: "task.created", "task-created";
    TaskAvailable: "task.available", "task-available";
    TaskRejected: "task.rejected", "task-rejected";
    TaskClaimed: "task.claimed", "task-claimed";
    TaskStarted: "task.started", "task-started";
    TaskBlocked: "task.blocked", "task-blocked";
    ArtifactReady: "artifact.ready", "artifact-ready";
    TaskComplete: "task.complete", "task-complete";
    TaskFailed: "task.failed", "task-failed";
    TaskCancelled: "task.cancelled", "task-cancelled";
    GateDecided: "gate.decided", "gate-decided";
    ApprovalRequested: "approval.requested", "approval-requested";
    ApprovalGranted: "approval.granted", "approval-granted";
    ApprovalRejected: "approval.rejected", "approval-rejected";
    AuthorizationCreated: "authorization.created", "authorization-created";
    AuthorizationUsed: "authorization.used", "authorization-used";
    AuthorizationRevoked: "authorization.revoked", "authorization-revoked";
    PromotionDecided: "promotion.decided", "promotion-decided";
    PromotionAdvanced: "promotion.advanced", "promotion-advanced";
    PromotionReset: "promotion.reset", "promotion-reset";
    PromotionEvidence: "promotion.evidence", "promotion-evidence";
    PromotionCanary: "promotion.canary", "promotion-canary";
    RollbackExecuted: "rollback.executed", "rollback-executed";
    RollbackLifted: "rollback.lifted", "rollback-lifted";
    RouteDeclared: "route.declared", "route-declared";
    RouteRemoved: "route.removed", "route-removed";
    FreezeSet: "freeze.set", "freeze-set";
    FreezeLifted: "freeze.lifted", "freeze-lifted";
    PolicyLoaded: "policy.loaded", "policy-loaded";
    PolicyProposed: "policy.proposed", "policy-proposed";
    PolicyApproved: "policy.approved", "policy-approved";
    PolicyRejected: "policy.rejected", "policy-rejected";
    MentionChanged: "mention.changed", "mention-changed";
    MentionObserved: "mention.observed", "mention-observed";
    MentionMarked: "mention.marked", "mention-marked";
    TokenCreated: "token.created", "token-created";
    TokenRevoked: "token.revoked", "token-revoked";
    KeyAdded: "key.added", "key-added";
    KeyRemoved: "key.removed", "key-removed";
    StateReplaced: "state.replaced", "state-replaced";
    EpochBegun: "epoch.begun", "epoch-begun";
    PushCreated: "push.created", "push-created";
    PushRemoved: "push.removed", "push-removed";
    MessageSent: "message.sent", "message-sent";
}

impl Kind {
    /// The category, and whether the stream ends with it; nothing for events that carry no state.
    pub fn state(self) -> Option<(Category, bool)> {
        Contracts::embedded().state(self)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no type of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownKind;

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text).ok_or(UnknownKind)
    }
}

impl<'d> Deserialize<'d> for Kind {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(|UnknownKind| D::Error::custom(format!("`{name}` is no type of event")))
    }
}

/// The normalized state category of a task event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Submitted,
    AuthRequired,
    Working,
    InputRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl Category {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::AuthRequired => "auth_required",
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
        }
    }
}
