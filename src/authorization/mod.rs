//! What a person says yes to: grants, which are given beforehand, and approvals, which are given to one handoff.
//!
//! Owns who may say it, for how long, how often, and to what. Both the [`GrantBook`] and the [`Inbox`] are what the
//! ledger's events come to, in order, and nothing else; copying either costs nothing, so that the sequencer can keep
//! one for what is durable, one for what is being written, and one for what it is building.
//!
//! What holds for both:
//!
//! - Only a person speaks for a person ([`Person`]): an operator, by name. Nobody says yes to what is theirs. The
//!   source, the principal and the target of a handoff may not approve it, and so a grant may not be made by its own
//!   principal or by an agent that it names, and does not count for a handoff whose source made it.
//! - An instant equal to an expiry is expired.
//! - A grant is for delegated work. A direct handoff has no principal, so no grant covers it: in live it waits for a
//!   person every time.
//! - A grant is one person's yes, given beforehand. Where a route asks for two people it settles nothing, and both
//!   must look at the handoff itself ([`people_needed`]).
//!
//! Deliberately absent: the judging of the handoff, which is done again when somebody approves it, and the clock.

mod approval;
mod ask;
mod book;
mod grant;
mod inbox;
mod person;
mod reference;
mod refusal;

pub use approval::{
    APPROVAL_BODY, APPROVAL_EXPIRED, APPROVAL_REJECTED, Answer, ApprovalAsk, ApprovalFault, ApprovalGranted,
    ApprovalRejected, ApprovalRequested, people_needed,
};
pub use ask::{GRANT_BODY, GrantFault, grant_ask, may_make};
pub use book::{GrantBook, GrantStanding, Held, Use};
pub use grant::{Grant, GrantRevoked, GrantUsed, Terms};
pub use inbox::{Inbox, Waiting, may_decide};
pub use person::Person;
pub use reference::AuthorizationRef;
pub use refusal::{GrantCode, GrantRefusal};

#[cfg(test)]
mod tests;
