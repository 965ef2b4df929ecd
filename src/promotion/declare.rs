//! What follows for a route when a routing table is loaded.

use super::definition::Definition;
use super::event::PhaseEvent;
use super::record::RouteRecord;
use super::stage::Stage;
use crate::policy::Route;

/// How a route differs from what the ledger says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteChange {
    /// It is new, or back.
    Declared(Definition),
    /// Something of it is different that the gates do not depend on.
    Redeclared(Definition),
    /// Its primary, its profile or its capability is another one: it starts again in dev.
    Redefined { from: Stage, definition: Definition },
    /// The table does not have it any more.
    Removed,
}

/// What follows for a route from what the routing table now says of it; nothing if the ledger says the same.
///
/// While a rollback has pinned a definition, that one counts and not the table's. A route that is not in the table is
/// removed all the same: taking a route away is always allowed.
pub fn declare(record: &RouteRecord, table: Option<&Route>) -> Option<RouteChange> {
    let Some(route) = table else {
        return record.declared.is_some().then_some(RouteChange::Removed);
    };
    let definition = record.pin.as_ref().map_or_else(|| Definition::of(route), |pin| pin.definition.clone());
    if record.declared.is_none() {
        return Some(RouteChange::Declared(definition));
    }
    match record.definition() {
        Some(known) if *known == definition => None,
        Some(known) if known.digest != definition.digest => {
            Some(RouteChange::Redefined { from: record.stage, definition })
        }
        _ => Some(RouteChange::Redeclared(definition)),
    }
}

impl RouteChange {
    /// What is to be written, in one group.
    pub fn events(self) -> Vec<PhaseEvent> {
        match self {
            Self::Declared(definition) | Self::Redeclared(definition) => {
                vec![PhaseEvent::Declared(Box::new(definition))]
            }
            Self::Redefined { from, definition } => {
                let digest = definition.digest;
                vec![PhaseEvent::Declared(Box::new(definition)), PhaseEvent::Reset { from, digest }]
            }
            Self::Removed => vec![PhaseEvent::Removed],
        }
    }
}
