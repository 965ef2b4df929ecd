//! The event types that the gateway writes, and the normalized state each one stands for.

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    TaskCreated,
    GateDecided,
    ApprovalRequested,
    TaskAvailable,
    TaskRejected,
    PolicyLoaded,
    RouteDeclared,
    RouteRemoved,
    StateReplaced,
    TokenCreated,
    TokenRevoked,
    KeyAdded,
    KeyRemoved,
    EpochBegun,
}

/// The normalized state category of a task event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    Submitted,
    AuthRequired,
    Rejected,
}

impl Kind {
    pub const ALL: [Self; 14] = [
        Self::TaskCreated,
        Self::GateDecided,
        Self::ApprovalRequested,
        Self::TaskAvailable,
        Self::TaskRejected,
        Self::PolicyLoaded,
        Self::RouteDeclared,
        Self::RouteRemoved,
        Self::StateReplaced,
        Self::TokenCreated,
        Self::TokenRevoked,
        Self::KeyAdded,
        Self::KeyRemoved,
        Self::EpochBegun,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TaskCreated => "task.created",
            Self::GateDecided => "gate.decided",
            Self::ApprovalRequested => "approval.requested",
            Self::TaskAvailable => "task.available",
            Self::TaskRejected => "task.rejected",
            Self::PolicyLoaded => "policy.loaded",
            Self::RouteDeclared => "route.declared",
            Self::RouteRemoved => "route.removed",
            Self::StateReplaced => "state.replaced",
            Self::TokenCreated => "token.created",
            Self::TokenRevoked => "token.revoked",
            Self::KeyAdded => "key.added",
            Self::KeyRemoved => "key.removed",
            Self::EpochBegun => "epoch.begun",
        }
    }

    /// The category, and whether the stream ends with it; nothing for events that carry no state.
    pub fn state(self) -> Option<(Category, bool)> {
        match self {
            Self::TaskCreated | Self::TaskAvailable => Some((Category::Submitted, false)),
            Self::ApprovalRequested => Some((Category::AuthRequired, false)),
            Self::TaskRejected => Some((Category::Rejected, true)),
            Self::GateDecided
            | Self::PolicyLoaded
            | Self::RouteDeclared
            | Self::RouteRemoved
            | Self::StateReplaced
            | Self::TokenCreated
            | Self::TokenRevoked
            | Self::KeyAdded
            | Self::KeyRemoved
            | Self::EpochBegun => None,
        }
    }
}

impl Category {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::AuthRequired => "auth_required",
            Self::Rejected => "rejected",
        }
    }
}
