//! `memory/orchestration-state.json`: what the ledger's events come to, published atomically.
//!
//! [`StateView`] is core: entries in, the document out, the same on every machine. [`Publisher`] is the hand that
//! puts it where orchestrators read it. The file is a view: it can be deleted, and is made again.

mod adopt;
mod difference;
mod event;
mod follow;
mod fragments;
mod publish;
mod rebuild;
mod snapshot;
mod view;

pub use adopt::{Adoption, NotAdopted, RouteChange, adopt};
pub use difference::Difference;
pub use follow::{StateFollower, StateWatch};
pub use publish::{Publisher, Replaced};
pub use rebuild::{Published, RebuildFault, names_entry, rebuild, rebuild_from};
pub use snapshot::{named_key, open_snapshot, seal_snapshot, signed_head};
pub use view::{StateFault, StateView};

#[cfg(test)]
mod tests;
