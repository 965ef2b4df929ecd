//! Up to which timestamps signed requests may have been taken, so that a restart does not make room for them again.
//!
//! By key, because every sender's clock runs ahead by its own: one that is two minutes ahead does not shut the
//! others out. What the skew refuses anyway is folded into one time for all keys, so that the file stays as short as
//! the list of keys that were used of late, and a clock that is set back lets nothing of it pass.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::json;
use crate::limits;
use crate::timestamp::Timestamp;

/// What a process that may be gone has taken of signed requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Of every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<Timestamp>,
    keys: BTreeMap<String, Timestamp>,
}

impl Taken {
    /// Nobody can say what was taken until now: whatever could have been.
    pub fn unknown(now: Timestamp) -> Self {
        Self { all: Some(now.plus_seconds(limits::SKEW_S)), keys: BTreeMap::new() }
    }

    /// May a request with this timestamp have been taken?
    pub fn covers(&self, key_id: &str, signed_at: Timestamp) -> bool {
        let reaches = |until: &Timestamp| signed_at <= *until;
        self.all.as_ref().is_some_and(reaches) || self.keys.get(key_id).is_some_and(reaches)
    }

    /// The last timestamp that may have been taken.
    pub fn last(&self) -> Option<Timestamp> {
        self.keys.values().copied().chain(self.all).max()
    }

    /// Requests of this key may have been taken up to here.
    pub fn cover(&mut self, key_id: &str, until: Timestamp) {
        match self.keys.get_mut(key_id) {
            Some(before) => *before = until.max(*before),
            None => drop(self.keys.insert(key_id.to_owned(), until)),
        }
    }

    /// Folds what the skew refuses by now.
    pub fn fold(&mut self, now: Timestamp) {
        let horizon = now.plus_seconds(-limits::SKEW_S);
        let all = &mut self.all;
        self.keys.retain(|_, until| {
            let stays = *until >= horizon;
            if !stays {
                *all = (*all).max(Some(*until));
            }
            stays
        });
    }

    /// The text of the file.
    pub fn to_file(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Reads the text of a file; nothing if it is not one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let document = json::read(bytes, limits::WORKSPACE_FILE).ok()?;
        let root = document.root();
        let time = |value: json::Value<'_>| value.as_str().and_then(Timestamp::parse);
        let all = match root.get("all") {
            None => None,
            Some(all) => Some(time(all)?),
        };
        let keys = root.get("keys").filter(|keys| keys.is_object())?;
        let keys = keys.members().map(|(key, until)| Some((key.to_string(), time(until)?)));
        Some(Self { all, keys: keys.collect::<Option<_>>()? })
    }
}
