//! Where a handoff stands, by the last event in its stream that says so.

use crate::wire::{Contracts, Kind};

pub use crate::wire::{State as Status, UnknownState as UnknownStatus};

/// The state that an event of this type leads to; nothing for events that carry no state.
///
/// Whether the event was in order is not asked again: the ledger took it.
pub(super) fn after(kind: &str) -> Option<Status> {
    Contracts::embedded().state_after(kind.parse::<Kind>().ok()?)
}
