//! An entry as a line of the sink: what happened to which handoff, and nothing of the work.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::super::hub::Told;

/// One line. Members that do not apply are absent; `docs/operations.md` says what each one is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'l> {
    time: &'l str,
    sequence: u64,
    #[serde(rename = "type")]
    kind: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_id: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codes: Option<&'l Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'l str>,
    correlation_id: &'l str,
}

#[derive(Deserialize)]
struct Wire {
    payload: Json,
    stream: WireStream,
}

#[derive(Deserialize)]
struct WireStream {
    correlation_id: String,
}

/// What `task.created` said, for the entries of the same decision that follow it.
#[derive(Debug)]
struct Created {
    stream_id: String,
    source: Option<String>,
    target: Option<String>,
    route: Option<String>,
}

/// Makes lines of entries, in their order.
#[derive(Debug, Default)]
pub(super) struct Writer {
    created: Option<Created>,
}

impl Writer {
    /// Adds the line of an entry.
    pub(super) fn line(&mut self, told: &Told, lines: &mut String) {
        // Nothing in a ledger of ours is anything else.
        let Ok(wire) = serde_json::from_str::<Wire>(&told.entry.wire) else { return };
        let text = |name: &str| wire.payload.get(name).and_then(Json::as_str);
        if told.kind == "task.created" {
            let owned = |name: &str| text(name).map(str::to_owned);
            self.created = Some(Created {
                stream_id: told.stream_id.clone(),
                source: owned("source_agent"),
                target: owned("target_agent"),
                route: owned("route_key"),
            });
        }
        let created = self.created.as_ref().filter(|created| created.stream_id == told.stream_id);
        let (handoff_id, attempt) = handoff_of(&told.stream_id).unzip();
        let line = Line {
            time: &told.entry.consensus_timestamp,
            sequence: told.entry.sequence,
            kind: &told.kind,
            handoff_id,
            attempt,
            decision: text("decision"),
            codes: wire.payload.get("codes").filter(|codes| codes.is_array()),
            source: created.and_then(|created| created.source.as_deref()),
            target: created.and_then(|created| created.target.as_deref()),
            route: created
                .and_then(|created| created.route.as_deref())
                .or(told.stream_id.strip_prefix("phase:")),
            correlation_id: &wire.stream.correlation_id,
        };
        if let Ok(line) = serde_json::to_string(&line) {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
}

/// The handoff and the attempt that a stream is about.
fn handoff_of(stream_id: &str) -> Option<(&str, u64)> {
    let (handoff_id, attempt) = stream_id.strip_prefix("task:")?.rsplit_once(":attempt:")?;
    Some((handoff_id, attempt.parse().ok()?))
}
