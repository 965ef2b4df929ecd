//! Push notifications: clients that want to be told about a task at an address of theirs.
//!
//! Owns which addresses may be dialled ([`Guard`]), who is to be told what ([`Book`], durable, one small document for each
//! task on a [`Shelf`]), and the telling ([`Courier`]): every update of a task, in order, at least once, to each of its
//! configs, until its receiver says yes or has had its time. What is told comes from an [`Updates`], which reads tasks; how
//! it went is told to an [`Observer`]. Gateways that share a ledger share a [`SharedShelf`], and each config is told by one of
//! them at a time.
//!
//! What a client gave as token and credentials goes to the address that it is for, and nowhere else: not into the ledger,
//! not into a log, not into an answer, and not beyond the end of the task. Deliberately absent: HTTP as the gateway serves
//! it, whose task it is, and JSON-RPC.

mod book;
mod courier;
mod guard;
mod letter;
mod owner;
mod registration;
mod shared;
mod shared_book;
mod shelf;
mod stored;
mod telling;

pub use book::{Book, BookFault};
pub use courier::{Attempt, Courier, Observer, Outcome, Pace, Unreadable, Updates};
pub use guard::{Guard, Target, Unfit};
pub use letter::SIGNATURE_HEADER;
pub use owner::Owner;
pub use registration::{Delivery, Registration};
pub use shared::SharedShelf;
pub use shelf::{FileShelf, Kept, Shelf};
pub use telling::Telling;
