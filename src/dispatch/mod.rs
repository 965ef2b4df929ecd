//! What the target of an allowed handoff receives.
//!
//! Today: the mapping onto the execution plane's envelope, as far as admission must check it. Signing it
//! and handing it to the caller come with the receipts.

pub(crate) mod execution_plane;
