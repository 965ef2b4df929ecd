//! Where a client wants to be told about a task, in both versions' shapes.
//!
//! Only the form is read here. Whether the address may be dialled is asked when it is registered and again when it is
//! dialled, by whoever knows what it resolves to.

use serde_json::{Map, Value as Json, json};

use super::error::RpcError;
use super::params::Params;
use super::version::Version;
use crate::limits;
use crate::proof::Secret;

/// A push notification config.
#[derive(Debug, Clone)]
pub struct PushConfig {
    /// The client's name for it, if it gave one.
    pub id: Option<String>,
    pub url: String,
    /// What is sent along, so that the client knows it is us.
    pub token: Option<Secret>,
    /// How the client wants us to say who we are, and with what.
    pub scheme: Option<String>,
    pub credentials: Option<Secret>,
}

impl PushConfig {
    pub(super) fn read(version: Version, config: &Params<'_>) -> Result<Self, RpcError> {
        const HINT: &str = "send the http or https address that is to be told";
        let url =
            config.text("url")?.filter(|url| !url.is_empty()).ok_or_else(|| config.missing("url", HINT))?;
        let web = ["https://", "http://"]
            .iter()
            .any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        let odd = url.chars().any(|c| c.is_control() || c.is_whitespace());
        if !web || odd || url.chars().count() > limits::A2A_URL_CHARS_MAX {
            return Err(RpcError::params(config.at("url"), "`url` is not an address that can be told", HINT));
        }
        let (mut scheme, mut credentials) = (None, None);
        if let Some(authentication) = config.object("authentication")? {
            scheme = match version {
                Version::V0_3 => {
                    authentication.texts("schemes", limits::A2A_REFERENCES_MAX)?.into_iter().next()
                }
                Version::V1_0 => authentication.id("scheme")?.map(str::to_owned),
            };
            credentials = authentication.text("credentials")?.filter(|text| !text.is_empty());
        }
        let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
        Ok(Self {
            id: config.id("id")?.map(str::to_owned),
            url: url.to_owned(),
            token: config.id("token")?.map(secret),
            scheme,
            credentials: credentials.map(secret),
        })
    }

    /// As a version has it, of a task; without what is secret, which goes to the address it is for and nowhere else.
    pub fn to_json(&self, version: Version, task_id: &str) -> Json {
        let mut config = Map::new();
        config.extend(self.id.as_ref().map(|id| ("id".to_owned(), json!(id))));
        config.insert("url".to_owned(), json!(self.url));
        if let Some(scheme) = &self.scheme {
            let authentication = match version {
                Version::V0_3 => json!({"schemes": [scheme]}),
                Version::V1_0 => json!({"scheme": scheme}),
            };
            config.insert("authentication".to_owned(), authentication);
        }
        match version {
            Version::V0_3 => json!({"taskId": task_id, "pushNotificationConfig": config}),
            Version::V1_0 => {
                config.insert("taskId".to_owned(), json!(task_id));
                Json::Object(config)
            }
        }
    }
}
