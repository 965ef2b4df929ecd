//! The style sheet, the script and the icon, each under a name that changes with its content.

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use crate::proof::{Digest, to_hex};

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");
const ICON: &str = include_str!("assets/icon.svg");

/// Where the three are found.
#[derive(Debug)]
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) script: String,
    pub(super) icon: String,
}

pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: named("console", "css", STYLE),
    script: named("console", "js", SCRIPT),
    icon: named("icon", "svg", ICON),
});

fn named(stem: &str, kind: &str, content: &str) -> String {
    let digest = to_hex(Digest::of(content.as_bytes()).as_bytes());
    format!("{stem}-{}.{kind}", digest.get(..16).unwrap_or_default())
}

/// The asset of that name, if it is the one that pages name now.
pub(super) fn find(name: &str) -> Option<Response> {
    let assets = &*ASSETS;
    let (kind, content) = match name {
        name if name == assets.style => ("text/css; charset=utf-8", STYLE),
        name if name == assets.script => ("text/javascript; charset=utf-8", SCRIPT),
        name if name == assets.icon => ("image/svg+xml", ICON),
        _ => return None,
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    Some((headers, content).into_response())
}
