//! Why an event is refused. A refused event changes nothing.

use std::fmt;

use super::kind::Kind;
use crate::json::{pointer, printable};

/// Contract: a code is never renamed and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WireCode {
    /// It is not an event of this protocol: no strict JSON, or against a schema.
    Invalid,
    TooLarge,
    /// It stands in a stream where it does not belong.
    Stream,
    /// Its sender may not send it.
    Sender,
    /// The stream is not open to reports: its route is frozen or blocked, or it was rolled back.
    Halted,
    /// Its id was used before in the stream.
    Duplicate,
    /// Its number is not the next one in the stream.
    Sequence,
    /// The stream has ended.
    Terminal,
    /// The event does not follow from the state that the task is in.
    Transition,
    /// It refers to artifacts that are not as it says.
    Artifact,
}

impl WireCode {
    pub const ALL: [Self; 10] = [
        Self::Invalid,
        Self::TooLarge,
        Self::Stream,
        Self::Sender,
        Self::Halted,
        Self::Duplicate,
        Self::Sequence,
        Self::Terminal,
        Self::Transition,
        Self::Artifact,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "WIRE_INVALID",
            Self::TooLarge => "WIRE_TOO_LARGE",
            Self::Stream => "WIRE_STREAM",
            Self::Sender => "WIRE_SENDER",
            Self::Halted => "WIRE_HALTED",
            Self::Duplicate => "WIRE_DUPLICATE",
            Self::Sequence => "WIRE_SEQUENCE",
            Self::Terminal => "WIRE_TERMINAL",
            Self::Transition => "WIRE_TRANSITION",
            Self::Artifact => "WIRE_ARTIFACT",
        }
    }
}

impl fmt::Display for WireCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireFault {
    pub code: WireCode,
    /// JSON pointer into the event; empty for the whole of it.
    pub pointer: String,
    pub message: String,
    /// What the sender can do next.
    pub hint: Option<String>,
    /// The file and the place in it of the schema's rule that is broken, if it is one.
    pub rule: Option<String>,
}

impl WireFault {
    pub(super) fn new(
        code: WireCode,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (pointer, message, hint) = (pointer.into(), message.into(), Some(hint.into()));
        Self { code, pointer, message, hint, rule: None }
    }

    /// Some events are the gateway's to write, whoever they speak of.
    pub fn not_for_callers(kind: Kind) -> Self {
        let message = format!("{kind} is not for callers to report");
        let hint = "report what became of the work; what is decided about it has endpoints of its own";
        Self::new(WireCode::Sender, "/type", message, hint)
    }

    pub fn other_stream(stream_id: &str) -> Self {
        let message = "the event stands in another stream than the handoff that it is sent to";
        let hint = format!("send `{}`", printable(stream_id));
        Self::new(WireCode::Stream, "/stream/stream_id", message, hint)
    }

    pub fn id_taken(wire_id: &str) -> Self {
        let message = format!("`{}` stands for another event of this stream", printable(wire_id));
        Self::new(WireCode::Duplicate, "/wire_id", message, "give every event an id of its own")
    }

    pub fn other_sender(sender: &str) -> Self {
        let message = "the event names another sender than the caller is";
        Self::new(WireCode::Sender, "/sender", message, format!("send `{}`", printable(sender)))
    }

    pub fn stream_full(events_max: u64) -> Self {
        let message = format!("the stream has {events_max} events, which is all it may have");
        Self::new(WireCode::Sequence, "/stream/stream_seq", message, "end the task")
    }

    /// Is it about the number in the stream?
    pub fn is_sequence(&self) -> bool {
        self.code == WireCode::Sequence
    }

    /// The same, about one item of what the pointer names.
    pub(super) fn item(mut self, index: usize) -> Self {
        pointer::push(&mut self.pointer, &index.to_string());
        self
    }
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, pointer, message, .. } = self;
        let at = if pointer.is_empty() { "the event" } else { pointer };
        write!(f, "{code} at {at}: {message}")
    }
}

impl std::error::Error for WireFault {}
