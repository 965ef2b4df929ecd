//! Requests that the gateway itself makes to the web: to webhooks, and to a model gateway.
//!
//! INVARIANT (dialled is what was checked): a name is looked up once for each request, whoever asks says yes or no to
//! what it led to, and the connection goes to those very addresses. A name that answers differently the second time gains
//! nothing. Redirects are never followed, and no proxy of the environment is used: either would lead elsewhere unseen.
//!
//! Every request has one time limit for all of it and a bound on the answer, and a connection of its own. Deliberately
//! absent: which addresses are fit, which is for whoever asks to say, and what an answer means.

mod address;
mod client;
mod names;
mod trace;

pub use address::{AddressFault, WebAddress};
pub use client::{Client, ClientFault, Post, Reply, WebFault};
pub use names::{Names, SystemNames};
pub use trace::next_span;

#[cfg(test)]
mod tests;
