//! `docs/schemas/agent-wire/v1.1/`: what every event must look like, run on events as they are read.
//!
//! A validator elsewhere resolves the references between the files by their ids. Here the envelope's parts and
//! the event's own schema are put into one document first, so that one pass checks all and nothing is fetched.

use std::sync::OnceLock;

use serde_json::{Value as Json, json};

use super::fault::{WireCode, WireFault};
use super::kind::Kind;
use crate::contract::{Compiled, Finding, Instance, embedded_schema};
use crate::json::Value;

const ENVELOPE: &str = include_str!("../../docs/schemas/agent-wire/v1.1/envelope.schema.json");
const STREAM: &str = include_str!("../../docs/schemas/agent-wire/v1.1/stream.schema.json");
const STATE: &str = include_str!("../../docs/schemas/agent-wire/v1.1/state.schema.json");

/// File name and text of every schema: of the envelope and its parts, and of each event.
pub fn wire_schemas() -> impl Iterator<Item = (&'static str, &'static str)> {
    let common =
        [("envelope.schema.json", ENVELOPE), ("stream.schema.json", STREAM), ("state.schema.json", STATE)];
    common.into_iter().chain(Kind::ALL.iter().map(|kind| kind.schema()))
}

/// Everything that is wrong with the shape of an event of this type; `None` asks for the envelope alone.
pub(super) fn findings(kind: Option<Kind>, event: Value<'_>) -> Vec<WireFault> {
    let schema = compiled(kind);
    let instance = Instance::Document(event);
    if schema.is_valid(instance) {
        return Vec::new();
    }
    schema.findings(instance).into_iter().map(|finding| fault(kind, finding)).collect()
}

fn fault(kind: Option<Kind>, finding: Finding) -> WireFault {
    let rule = rule(kind, finding.schema_path());
    let Finding { pointer, message, hint, .. } = finding;
    WireFault { code: WireCode::Invalid, pointer, message, hint, rule }
}

/// Where a rule stands in the files as they are, by its place in the document that they were put together in.
fn rule(kind: Option<Kind>, path: &str) -> Option<String> {
    let (part, place) = path.strip_prefix("/$defs/")?.split_once('/')?;
    let file = match (part, kind) {
        ("event", Some(kind)) => kind.schema().0.to_owned(),
        ("event", None) => return None,
        (part, _) => format!("{part}.schema.json"),
    };
    Some(format!("{file}#/{place}"))
}

fn compiled(kind: Option<Kind>) -> &'static Compiled {
    static EVENTS: [OnceLock<Compiled>; Kind::ALL.len()] = [const { OnceLock::new() }; Kind::ALL.len()];
    static ENVELOPE_ALONE: OnceLock<Compiled> = OnceLock::new();
    let slot = kind.and_then(|kind| EVENTS.get(kind as usize)).unwrap_or(&ENVELOPE_ALONE);
    slot.get_or_init(|| embedded_schema(&bundle(kind).to_string()))
}

/// One document of the envelope, its parts, and the event's own schema.
fn bundle(kind: Option<Kind>) -> Json {
    let mut all_of = vec![json!({"$ref": "#/$defs/envelope"})];
    let mut parts = json!({"envelope": part(ENVELOPE), "stream": part(STREAM), "state": part(STATE)});
    if let (Some(kind), Some(parts)) = (kind, parts.as_object_mut()) {
        all_of.push(json!({"$ref": "#/$defs/event"}));
        parts.insert("event".to_owned(), part(kind.schema().1));
    }
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "allOf": all_of, "$defs": parts})
}

/// A file as a part of the document: without an id of its own, and with its references turned inward.
#[expect(clippy::expect_used, reason = "the texts are constants of this program and read in a test")]
fn part(text: &str) -> Json {
    let mut schema: Json = serde_json::from_str(text).expect("an embedded schema is JSON");
    if let Some(members) = schema.as_object_mut() {
        members.remove("$id");
        members.remove("$schema");
    }
    turn_inward(&mut schema);
    schema
}

fn turn_inward(schema: &mut Json) {
    match schema {
        Json::Object(members) => {
            if let Some(Json::String(target)) = members.get_mut("$ref")
                && let Some(name) = target.strip_suffix(".schema.json")
            {
                *target = format!("#/$defs/{name}");
            }
            members.values_mut().for_each(turn_inward);
        }
        Json::Array(items) => items.iter_mut().for_each(turn_inward),
        _ => {}
    }
}
