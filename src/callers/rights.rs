//! What a role may do, and which handoffs a caller sees: one table.

use super::role::Role;
use super::token::Caller;

/// Something that a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Submit a handoff, as the caller's own agent; an admin as any, in dev and simulated only.
    Submit,
    /// Ask what the gates would say.
    Check,
    /// Read the handoffs that the caller sees.
    ReadHandoffs,
    ReadAudit,
    ReadState,
    ReadPolicies,
    ReadRoutes,
    ReadMentions,
    /// The inbox of what waits for a person, and the grants.
    ReadApprovals,
    /// Send a lifecycle event; whether this one may is decided by its stream.
    ReportEvent,
    /// Approve or reject what waits for a person.
    Approve,
    /// Say yes or no to a changed policy set.
    ApprovePolicies,
    /// Make and revoke grants.
    Authorize,
    /// Decide gates G0 to G4, roll back, block and unblock routes.
    Promote,
    /// Attach end-to-end evidence to a handoff.
    AttachEvidence,
    /// Stop decisions. Stopping is always safe, so an admin may too.
    Freeze,
    /// Let decisions go on, which a person answers for.
    Unfreeze,
    /// Move the mention phase, and mark false positives.
    MoveMentionPhase,
    /// Make and revoke the tokens of harnesses.
    RegisterHarness,
    /// List, make and revoke the tokens of all roles.
    ManageTokens,
    ManageKeys,
    /// Convert an A2A packet; nothing is read or kept.
    ConvertEvidence,
    /// Speak A2A; what a message may do is asked when it is read.
    SpeakA2a,
    /// Look at the console's pages. What may be done there is asked of each act again.
    OpenConsole,
}

impl Act {
    pub const ALL: [Self; 24] = [
        Self::Submit,
        Self::Check,
        Self::ReadHandoffs,
        Self::ReadAudit,
        Self::ReadState,
        Self::ReadPolicies,
        Self::ReadRoutes,
        Self::ReadMentions,
        Self::ReadApprovals,
        Self::ReportEvent,
        Self::Approve,
        Self::ApprovePolicies,
        Self::Authorize,
        Self::Promote,
        Self::AttachEvidence,
        Self::Freeze,
        Self::Unfreeze,
        Self::MoveMentionPhase,
        Self::RegisterHarness,
        Self::ManageTokens,
        Self::ManageKeys,
        Self::ConvertEvidence,
        Self::SpeakA2a,
        Self::OpenConsole,
    ];

    /// Who may. What speaks for a human is the operator's alone.
    fn roles(self) -> &'static [Role] {
        use Role::{Admin, Agent, Auditor, Harness, Operator, Orchestrator};
        match self {
            Self::Submit => &[Orchestrator, Admin],
            Self::Check => &[Orchestrator, Operator, Admin],
            Self::ReadHandoffs | Self::ReadRoutes | Self::ConvertEvidence | Self::SpeakA2a => &Role::ALL,
            // They show the handoffs of all agents.
            Self::ReadAudit | Self::ReadState => &[Operator, Auditor, Admin],
            // They name people, channels and what may be done in their name.
            Self::ReadPolicies | Self::ReadMentions | Self::ReadApprovals | Self::OpenConsole => {
                &[Operator, Auditor, Admin]
            }
            // An agent its progress, the source or an operator a cancellation.
            Self::ReportEvent => &[Agent, Orchestrator, Operator],
            Self::Approve | Self::ApprovePolicies | Self::Authorize | Self::Promote => &[Operator],
            Self::Unfreeze | Self::MoveMentionPhase => &[Operator],
            Self::AttachEvidence => &[Operator, Harness],
            Self::Freeze | Self::RegisterHarness => &[Operator, Admin],
            Self::ManageTokens | Self::ManageKeys => &[Admin],
        }
    }
}

impl Role {
    pub fn may(self, act: Act) -> bool {
        act.roles().contains(&self)
    }
}

impl Caller {
    pub fn may(&self, act: Act) -> bool {
        self.role().may(act)
    }

    /// The agent whose handoffs the caller sees, if it does not see all.
    pub fn sees_only(&self) -> Option<&str> {
        match self.role() {
            Role::Orchestrator | Role::Agent => self.agent_id(),
            Role::Operator | Role::Harness | Role::Auditor | Role::Admin => None,
        }
    }

    /// Does the caller see a handoff from this agent to that one? One that it does not see looks to it as if
    /// there were none.
    pub fn sees(&self, source_agent: &str, target_agent: &str) -> bool {
        match self.role() {
            Role::Orchestrator => self.agent_id() == Some(source_agent),
            Role::Agent => self.agent_id() == Some(target_agent),
            Role::Operator | Role::Harness | Role::Auditor | Role::Admin => true,
        }
    }
}
