//! A message in both versions' shapes, and the TaskSpec in it.
//!
//! A handoff is a data part that holds a TaskSpec. One that is quoted inside a text is talk: nobody should move money by
//! mentioning how.

use std::fmt;

use serde_json::{Map, Value as Json, json};

use super::error::RpcError;
use super::params::Params;
use super::part::{Content, Part};
use super::version::Version;
use crate::json::{Value, printable, read};
use crate::limits;
use crate::proof::{Digest, canonical_json};
use crate::wire::SenderClass;

/// Who speaks: the client, or the agent that it talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Agent,
}

impl Speaker {
    pub fn as_str(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::User, Version::V0_3) => "user",
            (Self::User, Version::V1_0) => "ROLE_USER",
            (Self::Agent, Version::V0_3) => "agent",
            (Self::Agent, Version::V1_0) => "ROLE_AGENT",
        }
    }
}

/// A message, whichever version it came in.
#[derive(Clone, PartialEq)]
pub struct Message {
    pub message_id: String,
    pub role: Speaker,
    pub context_id: Option<String>,
    /// As it was sent: whether there is such a task is not asked here.
    pub task_id: Option<String>,
    pub reference_task_ids: Vec<String>,
    pub parts: Vec<Part>,
    pub metadata: Option<Json>,
    pub extensions: Vec<String>,
}

impl Message {
    /// Reads a message at its place in a request, or says what is wrong with it.
    pub fn read(version: Version, value: Value<'_>, place: &str) -> Result<Self, RpcError> {
        let message = Params::of(value, place)?;
        if version == Version::V0_3
            && let Some(kind) = message.text("kind")?.filter(|kind| *kind != "message")
        {
            let text = format!("`{}` is not the kind of a message", printable(kind));
            return Err(RpcError::params(message.at("kind"), text, "the `kind` is `message`"));
        }
        let hint = "a messageId of your own makes it safe to send the message again";
        let message_id = message.needed_id("messageId", hint)?;
        let role = read_role(version, &message)?;
        let context_id = message.id("contextId")?;
        let task_id = message.id("taskId")?;
        let reference_task_ids = message.texts("referenceTaskIds", limits::A2A_REFERENCES_MAX)?;
        let parts = message.list("parts")?;
        if parts.is_empty() || parts.len() > limits::A2A_PARTS_MAX {
            let text = format!("the message has {} parts", parts.len());
            let hint = format!("send 1 to {} parts", limits::A2A_PARTS_MAX);
            return Err(RpcError::params(message.at("parts"), text, hint));
        }
        let parts: Result<Vec<Part>, RpcError> =
            parts.into_iter().map(|(part, place)| Part::read(version, part, place)).collect();
        Ok(Self {
            message_id: message_id.to_owned(),
            role,
            context_id: context_id.map(str::to_owned),
            task_id: task_id.map(str::to_owned),
            reference_task_ids,
            parts: parts?,
            metadata: message.free("metadata")?,
            extensions: message.texts("extensions", limits::A2A_REFERENCES_MAX)?,
        })
    }

    /// A message as it is kept beside the ledger.
    pub fn from_kept(text: &str) -> Option<Self> {
        let document = read(text.as_bytes(), limits::A2A_BODY).ok()?;
        Self::read(Version::V1_0, document.root(), "").ok()
    }

    /// The text that is kept of it, whose digest is [`Message::content_digest`].
    pub fn to_kept(&self) -> String {
        String::from_utf8(canonical_json(&self.to_json(Version::V1_0))).unwrap_or_default()
    }

    /// Stands for one whose words are no longer kept.
    pub fn without_words(message_id: &str) -> Self {
        Self { role: Speaker::User, ..Self::from_agent(message_id, Vec::new()) }
    }

    /// A message of ours.
    pub(super) fn from_agent(message_id: &str, parts: Vec<Part>) -> Self {
        Self { role: Speaker::Agent, ..Self::from_user(message_id, parts) }
    }

    /// A message of somebody who asks.
    pub fn from_user(message_id: &str, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.to_owned(),
            role: Speaker::User,
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            parts,
            metadata: None,
            extensions: Vec::new(),
        }
    }

    /// The same, as part of a task.
    #[must_use]
    pub fn in_task(mut self, task_id: &str, context_id: &str) -> Self {
        self.task_id = Some(task_id.to_owned());
        self.context_id = Some(context_id.to_owned());
        self
    }

    /// As a version has it. The form of 1.0 is also the one that is kept: it holds everything, and [`Message::read`] gives
    /// it back.
    pub fn to_json(&self, version: Version) -> Json {
        let mut message = Map::new();
        if version == Version::V0_3 {
            message.insert("kind".to_owned(), json!("message"));
        }
        message.insert("messageId".to_owned(), json!(self.message_id));
        message.insert("role".to_owned(), json!(self.role.as_str(version)));
        message.extend(self.context_id.as_ref().map(|id| ("contextId".to_owned(), json!(id))));
        message.extend(self.task_id.as_ref().map(|id| ("taskId".to_owned(), json!(id))));
        let parts: Vec<Json> = self.parts.iter().map(|part| part.to_json(version)).collect();
        message.insert("parts".to_owned(), json!(parts));
        for (name, list) in [("referenceTaskIds", &self.reference_task_ids), ("extensions", &self.extensions)]
        {
            if !list.is_empty() {
                message.insert(name.to_owned(), json!(list));
            }
        }
        message.extend(self.metadata.as_ref().map(|metadata| ("metadata".to_owned(), metadata.clone())));
        Json::Object(message)
    }

    /// What a messageId stands for: the same digest is the same message, in either version's shape.
    pub fn content_digest(&self) -> Digest {
        Digest::of(&canonical_json(&self.to_json(Version::V1_0)))
    }

    /// The TaskSpec that the message hands over, with the number of its part.
    ///
    /// An object is taken for one if it says a `taskSpecVersion`, or has both an `intent` and a `routing`: one that
    /// misses its version is decided on, and refused with reasons, rather than taken for talk.
    pub fn task_spec(&self) -> Result<Option<(usize, &Json)>, RpcError> {
        let mut found = self.parts.iter().enumerate().filter_map(|(n, part)| match &part.content {
            Content::Data(data) if is_task_spec(data) => Some((n, data)),
            _ => None,
        });
        let Some((n, spec)) = found.next() else { return Ok(None) };
        if let Some((second, _)) = found.next() {
            return Err(RpcError::params(
                format!("/params/message/parts/{second}/data"),
                "the message holds a second TaskSpec",
                "one message is one handoff; send another message, with a messageId of its own",
            ));
        }
        let correlation_id = spec.get("correlationId").and_then(Json::as_str);
        // A message that goes on with a task stands in that task's context, whatever its TaskSpec says.
        if self.task_id.is_none()
            && let (Some(context), Some(correlation)) = (self.context_id.as_deref(), correlation_id)
            && context != correlation
        {
            return Err(RpcError::params(
                "/params/message/contextId",
                format!(
                    "the context is `{}`, the TaskSpec's is `{}`",
                    printable(context),
                    printable(correlation)
                ),
                "the context of a handoff is its correlationId; send that, or leave the contextId out",
            ));
        }
        Ok(Some((n, spec)))
    }

    /// What to send instead, for a message that holds no TaskSpec.
    pub fn what_is_missing(&self) -> &'static str {
        let quoted = |part: &Part| matches!(&part.content, Content::Text(text) if text.contains("\"taskSpecVersion\""));
        if self.parts.iter().any(quoted) {
            "a TaskSpec inside a text is not a handoff; send it as a data part of this task"
        } else {
            "send the TaskSpec of the handoff as a data part of this task; docs/schemas/task-spec.schema.json is its contract"
        }
    }

    /// The payload of the `message.sent` that records it: digests and lengths, none of the words.
    pub fn sent_payload(&self, version: Version, by: SenderClass) -> Json {
        let role = match by {
            SenderClass::Human => "human",
            SenderClass::Agent | SenderClass::Runner => "agent",
            SenderClass::System => "system",
        };
        let parts: Vec<Json> = self.parts.iter().map(recorded).collect();
        json!({
            "message_id": self.message_id,
            "metadata": {
                "a2a.content": self.content_digest().to_string(),
                "a2a.version": version.as_str(),
            },
            "parts": parts,
            "role": role,
        })
    }
}

/// Shows which message it is, not what it says.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} {:?})", printable(&self.message_id), self.parts)
    }
}

fn read_role(version: Version, message: &Params<'_>) -> Result<Speaker, RpcError> {
    const HINT: &str = "who sends is the user: `user` in 0.3, `ROLE_USER` in 1.0";
    let Some(role) = message.text("role")? else { return Err(message.missing("role", HINT)) };
    [Speaker::User, Speaker::Agent].into_iter().find(|speaker| speaker.as_str(version) == role).ok_or_else(
        || RpcError::params(message.at("role"), format!("`{}` is no role", printable(role)), HINT),
    )
}

fn is_task_spec(data: &Json) -> bool {
    data.get("taskSpecVersion").is_some() || (data.get("intent").is_some() && data.get("routing").is_some())
}

/// A part as the ledger has it. A file is data: what is recorded is the digest of its description or bytes.
fn recorded(part: &Part) -> Json {
    match &part.content {
        Content::Text(text) => {
            json!({"kind": "text", "digest": Digest::of(text.as_bytes()).to_string(), "bytes": text.len()})
        }
        Content::Data(data) => {
            json!({"kind": "data", "digest": Digest::of(&canonical_json(data)).to_string()})
        }
        Content::Url(_) | Content::Raw(_) => {
            let canonical = canonical_json(&part.to_json(Version::V1_0));
            json!({"kind": "data", "digest": Digest::of(&canonical).to_string()})
        }
    }
}
