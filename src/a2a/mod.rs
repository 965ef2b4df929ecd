//! A2A, the pure half: what clients of protocol 0.3 and 1.0 say, and what they are shown.
//!
//! Owns the reading of JSON-RPC requests and messages, the agent card, and the two shapes of tasks and stream events.
//! A2A is a binding at the boundary and no second model: a task is one Wire stream ([`Life`] folds its events), its
//! states are those of `docs/contracts/agent-wire/v1.1/a2a-task-state-map.json`, and a message that holds a TaskSpec is
//! a handoff like any other. Both versions are read into the same types; which one is spoken only matters at the two
//! ends, in [`Version`].
//!
//! Members that a version does not know are ignored, as the protocol asks; a member that it knows has its type, or the
//! request is refused with a pointer to it. Absent and `null` are the same.
//!
//! Deliberately absent: who a caller is and whose task it is, waiting, push delivery, and the address check of a webhook.
//! The door is `http/a2a/`. The one part with a socket is [`client`], which asks other agents.

mod call;
mod card;
pub mod client;
mod error;
mod events;
mod id;
mod jsonrpc;
mod life;
mod message;
mod method;
mod params;
mod part;
mod push;
mod task;
mod version;

pub use call::{AiParams, Ask, Call, Configuration, ListTasks, Submission};
pub use card::{CARD_SCHEMA, CallerCard, Card, etag};
pub use error::{ErrorCode, Finding, RpcError};
pub use events::{ResumeFault, StreamEvent, Update, resume_from};
pub use id::TaskId;
pub use jsonrpc::{Id, Incoming, Request, body, failed, read_requests, succeeded};
pub use life::Life;
pub use message::{Message, Speaker};
pub use method::Method;
pub use part::{Content, Part};
pub use push::PushConfig;
pub use task::{Shown, canceled, input_required, rejected, send_result, shown_decision};
pub use version::{UnknownVersion, Version};
