//! Agent Wire v1.1: events as the gateway writes them and as others send them, and what they come to.
//!
//! Owns the envelope, ids, stream names, the schemas and contracts of `docs/`, and the reducer. An event that the
//! gateway makes becomes text once, and that text is what the ledger hashes, so it is canonical (RFC 8785) from the
//! start. One that somebody sends is read strictly ([`Envelope::parse`]) before anybody looks at what it says, and
//! its place is judged by the [`Reducer`], which is a function of the events before it and of nothing else.
//!
//! Deliberately absent: time (a lease that has ended is an event like any other), who a caller is, and the ledger's
//! own metadata, which is not part of an event.

mod contracts;
mod envelope;
mod event;
mod fact;
mod fault;
mod id;
mod kind;
mod lifecycle;
mod own;
mod reducer;
mod schemas;
mod sent;
mod state;
mod step;
mod task;

pub use contracts::{
    A2aState, A2aUpdate, CONTRACT_TEXTS, ContractFault, ContractTexts, Contracts, EventRule, NoTransition,
};
pub use envelope::{Contents, Envelope};
pub use event::{Event, EventTooLarge, Lineage, Payload, Sender, SenderClass};
pub use fact::{Fact, FactFault};
pub use fault::{WireCode, WireFault};
pub use id::{StreamId, StreamKind, Ulid, WireId};
pub use kind::{Category, Kind, UnknownKind};
pub use lifecycle::{Halt, Parties, Side, may_send};
pub use own::{ProjectState, RouteState};
pub use reducer::{Applied, Reducer};
pub use schemas::wire_schemas;
pub use sent::SentEvent;
pub use state::{State, UnknownState};
pub use step::Admitted;
pub use task::{Artifact, ContextState, Mark, TaskState};

#[cfg(test)]
pub(crate) mod tests;
