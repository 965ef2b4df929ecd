//! The policy set: routes, delegation policies and the files that TaskSpecs refer to, as one immutable
//! snapshot with a digest.
//!
//! [`PolicySet`] is core: it is made from file contents and never touches the disk again. `load` is the
//! hand that reads a workspace; a set is taken whole or not at all, with every fault named by file,
//! pointer and reason.

mod agents;
mod changes;
mod delegation;
mod load;
mod names;
mod outline;
mod reach;
mod references;
mod routes;
mod set;

pub use agents::AgentNames;
pub use changes::{Change, ChangeKind, FieldChange, changes, fields};
pub use delegation::DelegationPolicy;
pub(crate) use load::plain;
pub use load::{Workspace, WorkspaceFault};
pub use names::Names;
pub use outline::{Section, outline};
pub use reach::Reach;
pub(crate) use references::names_a_version;
pub use references::{InputSchema, Reference, ReferenceFault, ReferenceFile, References};
pub use routes::{Profile, Route, Stage};
pub use set::{PolicyFault, PolicySet, ROUTES_PATH};

#[cfg(test)]
mod tests;
