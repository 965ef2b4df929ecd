//! One config, and how far its telling has come.

use serde_json::{Map, Value as Json, json};

use super::owner::Owner;
use crate::a2a::{PushConfig, TaskId, Version};
use crate::limits;
use crate::timestamp::Timestamp;

/// A config of a task.
#[derive(Debug, Clone)]
pub struct Registration {
    /// What the ledger calls it.
    pub push_id: String,
    pub task: TaskId,
    /// The client's name for it, one of its task's.
    pub config_id: String,
    pub config: PushConfig,
    /// The version that it was set in, and is told in.
    pub version: Version,
    pub owner: Owner,
    pub created_at: Timestamp,
    /// The number of the last update that its receiver has taken; what comes behind it is still to be told.
    pub delivered: u64,
    pub delivery: Delivery,
    /// Since the gateway started.
    pub attempts: u64,
}

/// Where the telling stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Whatever comes is told.
    Active,
    /// The last try failed; there will be another.
    Retrying { why: String, at: Timestamp },
    /// The task has ended and all of it was told.
    Done { at: Timestamp },
    /// Its receiver had its time, or may not be told any more. Nothing is told until it is set again.
    Failed { why: String, at: Timestamp },
}

impl Delivery {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retrying { .. } => "retrying",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
        }
    }

    /// Is there anything left to tell?
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Active | Self::Retrying { .. })
    }

    /// When it ended.
    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Done { at } | Self::Failed { at, .. } => Some(*at),
            Self::Active | Self::Retrying { .. } => None,
        }
    }
}

impl Registration {
    /// A config that was just set. Told is what comes from number `from` on.
    pub fn new(
        push_id: String,
        task: TaskId,
        mut config: PushConfig,
        version: Version,
        owner: Owner,
        now: Timestamp,
        from: u64,
    ) -> Self {
        // Who sets one without a name means the one that there is.
        let config_id = config.id.clone().unwrap_or_else(|| task.to_string());
        config.id = Some(config_id.clone());
        Self {
            push_id,
            task,
            config_id,
            config,
            version,
            owner,
            created_at: now,
            delivered: from.saturating_sub(1),
            delivery: Delivery::Active,
            attempts: 0,
        }
    }

    /// Can what the client gave stand in a header? Nothing is dropped in silence later.
    pub fn check_headers(config: &PushConfig) -> Result<(), &'static str> {
        let fit = |bytes: &[u8]| {
            bytes.len() <= limits::PUSH_SECRET_BYTES_MAX
                && bytes.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic())
        };
        let is_word = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        };
        if config.token.as_ref().is_some_and(|token| !fit(token.expose())) {
            return Err("token");
        }
        if config.credentials.as_ref().is_some_and(|secret| !fit(secret.expose()))
            || config.scheme.as_ref().is_some_and(|scheme| !is_word(scheme))
        {
            return Err("authentication");
        }
        Ok(())
    }

    /// As its owner is shown it: the config, and how its telling goes.
    pub fn to_json(&self, version: Version) -> Json {
        let mut shown = self.config.to_json(version, &self.task.to_string());
        let mut delivery = Map::new();
        delivery.insert("state".to_owned(), json!(self.delivery.as_str()));
        delivery.insert("deliveredSeq".to_owned(), json!(self.delivered));
        delivery.insert("attempts".to_owned(), json!(self.attempts));
        match &self.delivery {
            Delivery::Retrying { why, at } | Delivery::Failed { why, at } => {
                delivery.insert("lastError".to_owned(), json!(why));
                delivery.insert("at".to_owned(), json!(at.to_milliseconds()));
            }
            Delivery::Done { at } => {
                delivery.insert("at".to_owned(), json!(at.to_milliseconds()));
            }
            Delivery::Active => {}
        }
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("metadata".to_owned(), json!({"delivery": delivery}));
        }
        shown
    }

    /// What is secret in it is of no more use, and goes.
    pub(super) fn forget_secrets(&mut self) {
        self.config.token = None;
        self.config.credentials = None;
    }
}
