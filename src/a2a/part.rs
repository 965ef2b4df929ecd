//! A part of a message or an artifact: text, data, or a file by its address or its bytes.

use std::fmt;

use serde_json::{Map, Value as Json, json};

use super::error::RpcError;
use super::params::Params;
use super::version::Version;
use crate::json::{Value, printable};
use crate::limits;

/// What a part holds.
#[derive(Clone, PartialEq)]
pub enum Content {
    Text(String),
    Data(Json),
    /// Where a file can be fetched.
    Url(String),
    /// A file itself, in base64.
    Raw(String),
}

/// A part.
#[derive(Clone, PartialEq)]
pub struct Part {
    pub content: Content,
    pub media_type: Option<String>,
    pub filename: Option<String>,
    pub metadata: Option<Json>,
}

// A part may hold what nobody should find in a log, a TaskSpec first of all: it shows what it is, not what it says.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Data(_) => f.write_str("Data"),
            Self::Url(_) => f.write_str("Url"),
            Self::Raw(bytes) => write!(f, "Raw({} bytes)", bytes.len()),
        }
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.content, f)
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, media_type: None, filename: None, metadata: None }
    }
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    pub fn data(data: Json) -> Self {
        Content::Data(data).into()
    }

    pub(super) fn read(version: Version, value: Value<'_>, place: String) -> Result<Self, RpcError> {
        let part = Params::of(value, place)?;
        let (content, about) = match version {
            Version::V0_3 => content_0_3(&part)?,
            Version::V1_0 => (content_1_0(&part)?, Some(part.clone())),
        };
        let (media_type, filename) = match version {
            Version::V0_3 => ("mimeType", "name"),
            Version::V1_0 => ("mediaType", "filename"),
        };
        let described = |name: &str| match &about {
            Some(about) => {
                Ok::<_, RpcError>(about.text(name)?.filter(|text| !text.is_empty()).map(str::to_owned))
            }
            None => Ok(None),
        };
        Ok(Self {
            content,
            media_type: described(media_type)?,
            filename: described(filename)?,
            metadata: part.free("metadata")?,
        })
    }

    pub fn to_json(&self, version: Version) -> Json {
        let mut part = Map::new();
        let mut about = Map::new();
        let (media_type, filename) = match version {
            Version::V0_3 => ("mimeType", "name"),
            Version::V1_0 => ("mediaType", "filename"),
        };
        about.extend(self.media_type.as_ref().map(|text| (media_type.to_owned(), json!(text))));
        about.extend(self.filename.as_ref().map(|text| (filename.to_owned(), json!(text))));
        match version {
            Version::V1_0 => {
                let (name, value) = match &self.content {
                    Content::Text(text) => ("text", json!(text)),
                    Content::Data(data) => ("data", data.clone()),
                    Content::Url(url) => ("url", json!(url)),
                    Content::Raw(bytes) => ("raw", json!(bytes)),
                };
                part.insert(name.to_owned(), value);
                part.extend(about);
            }
            Version::V0_3 => {
                let (kind, name, value) = match &self.content {
                    Content::Text(text) => ("text", "text", json!(text)),
                    // 0.3 knows objects only.
                    Content::Data(data) if data.is_object() => ("data", "data", data.clone()),
                    Content::Data(data) => ("data", "data", json!({"value": data})),
                    Content::Url(url) => ("file", "file", file(about, "uri", url)),
                    Content::Raw(bytes) => ("file", "file", file(about, "bytes", bytes)),
                };
                part.insert("kind".to_owned(), json!(kind));
                part.insert(name.to_owned(), value);
            }
        }
        part.extend(self.metadata.as_ref().map(|metadata| ("metadata".to_owned(), metadata.clone())));
        Json::Object(part)
    }
}

fn file(mut about: Map<String, Json>, name: &str, content: &str) -> Json {
    about.insert(name.to_owned(), json!(content));
    Json::Object(about)
}

/// What a part of 0.3 holds, and the object that describes it: only a file has one.
fn content_0_3<'d>(part: &Params<'d>) -> Result<(Content, Option<Params<'d>>), RpcError> {
    const KINDS: &str = "a part of 0.3 has `kind`: `text`, `data` or `file`";
    let Some(kind) = part.text("kind")? else { return Err(part.missing("kind", KINDS)) };
    match kind {
        "text" => {
            let text = part.text("text")?.ok_or_else(|| part.missing("text", "the text of the part"))?;
            Ok((Content::Text(text.to_owned()), None))
        }
        "data" => {
            let data =
                part.free("data")?.ok_or_else(|| part.missing("data", "the data of the part, an object"))?;
            Ok((Content::Data(data), None))
        }
        "file" => {
            const FORM: &str = "a file has either `uri` or `bytes`";
            let file = part.object("file")?.ok_or_else(|| part.missing("file", FORM))?;
            let content = match (file.text("uri")?, file.text("bytes")?) {
                (Some(uri), None) => Content::Url(address(&file, "uri", uri)?),
                (None, Some(bytes)) => Content::Raw(bytes.to_owned()),
                _ => return Err(RpcError::params(part.at("file"), "the file has not one content", FORM)),
            };
            Ok((content, Some(file)))
        }
        other => {
            let message = format!("`{}` is no kind of part", printable(other));
            Err(RpcError::params(part.at("kind"), message, KINDS))
        }
    }
}

fn content_1_0(part: &Params<'_>) -> Result<Content, RpcError> {
    const NAMES: [&str; 4] = ["text", "data", "url", "raw"];
    let given: Vec<&str> = NAMES.into_iter().filter(|name| part.get(name).is_some()).collect();
    let [name] = given.as_slice() else {
        let message = format!("the part holds {} contents", given.len());
        let hint = "a part of 1.0 has one of `text`, `data`, `url` and `raw`, and no `kind` or `file`";
        return Err(RpcError::params(part.place(), message, hint));
    };
    if *name == "data" {
        return Ok(Content::Data(part.get(name).map(Value::to_json).unwrap_or_default()));
    }
    let text = part.text(name)?.unwrap_or_default();
    Ok(match *name {
        "url" => Content::Url(address(part, name, text)?),
        "raw" => Content::Raw(text.to_owned()),
        _ => Content::Text(text.to_owned()),
    })
}

fn address(object: &Params<'_>, name: &str, text: &str) -> Result<String, RpcError> {
    if text.is_empty() || text.chars().count() > limits::A2A_URL_CHARS_MAX {
        let message = format!("`{name}` must have 1 to {} characters", limits::A2A_URL_CHARS_MAX);
        return Err(RpcError::params(object.at(name), message, "send where the file can be fetched"));
    }
    Ok(text.to_owned())
}
