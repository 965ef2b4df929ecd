//! Configs as they are kept: JSON, with secrets in it. One document for those of a task in a file, and one for each where
//! gateways share them.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::owner::Owner;
use super::registration::{Delivery, Registration};
use crate::a2a::{PushConfig, TaskId, Version};
use crate::ledger::postgres::{PushProgress, PushRow};
use crate::proof::Secret;
use crate::timestamp::Timestamp;

const FORMAT: &str = "handoffd-push/1";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredTask {
    format: String,
    task_id: String,
    configs: Vec<Stored>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stored {
    push_id: String,
    config_id: String,
    version: String,
    owner: Owner,
    created_at: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    token: Option<Zeroizing<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    credentials: Option<Zeroizing<String>>,
    delivered: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    ended: Option<Ended>,
}

/// Why the last try failed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Retrying {
    why: String,
    at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ended {
    at: String,
    /// Why it failed; nothing if it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    why: Option<String>,
}

/// The document for a task's configs.
pub(super) fn write(task: &TaskId, registrations: &[Registration]) -> Zeroizing<Vec<u8>> {
    let stored = StoredTask {
        format: FORMAT.to_owned(),
        task_id: task.to_string(),
        configs: registrations.iter().map(stored).collect(),
    };
    // A struct of texts and numbers can always be written.
    let mut text = Zeroizing::new(serde_json::to_vec(&stored).unwrap_or_default());
    text.push(b'\n');
    text
}

/// The configs in a document, and the task they are of; nothing if it is none of ours.
pub(super) fn read(document: &[u8]) -> Option<(TaskId, Vec<Registration>)> {
    let stored: StoredTask = serde_json::from_slice(document).ok()?;
    (stored.format == FORMAT).then_some(())?;
    let task = TaskId::parse(&stored.task_id)?;
    let registrations: Option<Vec<_>> =
        stored.configs.into_iter().map(|stored| registration(&task, stored)).collect();
    Some((task, registrations?))
}

/// One config as a row of its own.
pub(super) fn to_row(registration: &Registration) -> PushRow {
    let document = serde_json::to_string(&stored(registration)).unwrap_or_default();
    PushRow {
        push_id: registration.push_id.clone(),
        task_id: registration.task.to_string(),
        owner: registration.owner.as_str().to_owned(),
        config_id: registration.config_id.clone(),
        document: Zeroizing::new(document),
        progress: progress(registration),
        is_open: registration.delivery.is_open(),
    }
}

/// What of a config changes as it is told.
pub(super) fn progress(registration: &Registration) -> PushProgress {
    let retrying = match &registration.delivery {
        Delivery::Retrying { why, at } => {
            serde_json::to_string(&Retrying { why: why.clone(), at: at.to_nanoseconds() }).ok()
        }
        _ => None,
    };
    PushProgress { delivered: registration.delivered, attempts: registration.attempts, retrying }
}

/// The config in a row; nothing if it is none of ours.
pub(super) fn from_row(row: &PushRow) -> Option<Registration> {
    let task = TaskId::parse(&row.task_id)?;
    let mut known = registration(&task, serde_json::from_str(&row.document).ok()?)?;
    let is_named =
        known.push_id == row.push_id && known.owner.as_str() == row.owner && known.config_id == row.config_id;
    if !is_named || known.delivery.is_open() != row.is_open {
        return None;
    }
    known.delivered = row.progress.delivered;
    known.attempts = row.progress.attempts;
    if let (true, Some(retrying)) = (row.is_open, &row.progress.retrying) {
        let Retrying { why, at } = serde_json::from_str(retrying).ok()?;
        known.delivery = Delivery::Retrying { why, at: Timestamp::parse(&at)? };
    }
    Some(known)
}

fn stored(registration: &Registration) -> Stored {
    let config = &registration.config;
    let text = |secret: &Secret| Zeroizing::new(String::from_utf8_lossy(secret.expose()).into_owned());
    let why = match &registration.delivery {
        Delivery::Failed { why, .. } => Some(why.clone()),
        _ => None,
    };
    Stored {
        push_id: registration.push_id.clone(),
        config_id: registration.config_id.clone(),
        version: registration.version.as_str().to_owned(),
        owner: registration.owner.clone(),
        created_at: registration.created_at.to_nanoseconds(),
        url: config.url.clone(),
        token: config.token.as_ref().map(text),
        scheme: config.scheme.clone(),
        credentials: config.credentials.as_ref().map(text),
        delivered: registration.delivered,
        ended: registration.delivery.ended_at().map(|at| Ended { at: at.to_nanoseconds(), why }),
    }
}

fn registration(task: &TaskId, stored: Stored) -> Option<Registration> {
    let secret = |text: Zeroizing<String>| Secret::new(text.as_bytes().to_vec());
    let delivery = match stored.ended {
        None => Delivery::Active,
        Some(Ended { at, why }) => {
            let at = Timestamp::parse(&at)?;
            why.map_or(Delivery::Done { at }, |why| Delivery::Failed { why, at })
        }
    };
    Some(Registration {
        push_id: stored.push_id,
        task: task.clone(),
        config: PushConfig {
            id: Some(stored.config_id.clone()),
            url: stored.url,
            token: stored.token.map(secret),
            scheme: stored.scheme,
            credentials: stored.credentials.map(secret),
        },
        config_id: stored.config_id,
        version: Version::ALL.into_iter().find(|version| version.as_str() == stored.version)?,
        owner: stored.owner,
        created_at: Timestamp::parse(&stored.created_at)?,
        delivered: stored.delivered,
        delivery,
        attempts: 0,
    })
}
