//! `/openapi.json`, made from the table of endpoints and from the schemas that the product validates with.
//!
//! `answers.json` has answers that a daemon gave to the tests, by operation and status: `tests/api/contract.rs` writes those
//! that are missing, and holds all of them against the schemas.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::{HeaderValue, Method, header};
use axum::response::IntoResponse as _;
use serde_json::{Map, Value as Json, json};

use super::act_schemas::act_schemas;
use super::call::Call;
use super::endpoint::{Answer, Content, Endpoint, Form, Parameter, Place, Voice};
use super::endpoints::ENDPOINTS;
use super::schemas::SCHEMAS;
use crate::callers::{KEY_ID_HEADER, NONCE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};

/// `GET /openapi.json`.
pub(super) async fn show(_call: Call) -> Answer {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| document().to_string().into());
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text.clone()).into_response())
}

/// Where `answers.json` has what is not one operation's alone: problems.
const ANY_OPERATION: &str = "anyOperation";

/// The whole document.
pub fn document() -> Json {
    let answers: Json = serde_json::from_str(include_str!("answers.json")).unwrap_or_default();
    let mut paths: Map<String, Json> = Map::new();
    for endpoint in ENDPOINTS.iter() {
        let methods = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(endpoint.method.as_str().to_ascii_lowercase(), operation(endpoint, &answers));
        }
    }
    let mut schemas = Map::new();
    for (name, schema) in SCHEMAS.iter().copied().chain(act_schemas()) {
        let schema = serde_json::from_str(schema).unwrap_or_default();
        add_schema(name, schema, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "handoffd",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": env!("CARGO_PKG_DESCRIPTION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "examples": problem_examples(&answers),
            "securitySchemes": security_schemes(),
        },
    })
}

/// The headers of a signed request, which only count together: the scheme's name, the header, and what is in it.
const SIGNED: [(&str, &str, &str); 4] = [
    (
        "signedKeyId",
        KEY_ID_HEADER,
        "The id of a key of purpose `request`; with the other three instead of a token",
    ),
    ("signedNonce", NONCE_HEADER, "8 to 128 of `A-Z a-z 0-9 . _ : -`, never used before with this key"),
    (
        "signedTimestamp",
        TIMESTAMP_HEADER,
        "When it was signed, RFC 3339, within 120 seconds of the gateway's clock",
    ),
    (
        "signature",
        SIGNATURE_HEADER,
        "Lower-case hex HMAC-SHA256 or Ed25519 over the canonical JSON of bodyDigest, keyId, method, nonce, path and timestamp \
         (docs/api.md)",
    ),
];

fn security_schemes() -> Json {
    let token =
        json!({"type": "http", "scheme": "bearer", "description": "A token that `handoffd token new` made"});
    let mut schemes = json!({"token": token});
    for (scheme, name, description) in SIGNED {
        set(
            &mut schemes,
            scheme,
            json!({"type": "apiKey", "in": "header", "name": name, "description": description}),
        );
    }
    schemes
}

/// A token, or all that a signed request has.
fn security() -> Json {
    let signed: Map<String, Json> =
        SIGNED.iter().map(|(scheme, ..)| ((*scheme).to_owned(), json!([]))).collect();
    json!([{"token": []}, signed])
}

/// The headers that an answer of a status has beside those of every answer.
fn headers(endpoint: &Endpoint, status: &str) -> Option<Json> {
    let (name, description) = match status {
        "201" => ("Location", located(endpoint)?),
        "401" => ("WWW-Authenticate", "How to say who asks: `Bearer`"),
        "429" | "503" => ("Retry-After", "Ask again after so many seconds"),
        _ => return None,
    };
    let schema = if name == "Retry-After" {
        json!({"type": "integer", "minimum": 1})
    } else {
        json!({"type": "string"})
    };
    Some(json!({name: {"description": description, "required": true, "schema": schema}}))
}

/// Definitions inside a schema become schemas of their own: references in a document start at its root.
fn add_schema(name: &str, mut schema: Json, schemas: &mut Map<String, Json>) {
    let definitions = match &mut schema {
        Json::Object(members) => {
            members.remove("$schema");
            members.remove("$id");
            members.remove("$defs")
        }
        _ => None,
    };
    move_references(name, &mut schema);
    schemas.insert(name.to_owned(), schema);
    if let Some(Json::Object(definitions)) = definitions {
        for (inner, definition) in definitions {
            let mut definition = definition;
            move_references(name, &mut definition);
            schemas.insert(format!("{name}.{inner}"), definition);
        }
    }
}

fn move_references(name: &str, value: &mut Json) {
    match value {
        Json::Object(members) => {
            if let Some(Json::String(target)) = members.get_mut("$ref") {
                if let Some(inner) = target.strip_prefix("#/$defs/") {
                    *target = format!("#/components/schemas/{name}.{inner}");
                } else if target == "#" {
                    *target = format!("#/components/schemas/{name}");
                }
            }
            members.values_mut().for_each(|member| move_references(name, member));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| move_references(name, item)),
        _ => {}
    }
}

/// Sets a member of an object.
fn set(object: &mut Json, name: &str, value: Json) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn reference(schema: &str) -> Json {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// An answer that somebody got.
fn answer<'a>(answers: &'a Json, operation: &str, status: &str) -> Option<&'a Json> {
    answers.get(operation)?.get(status)
}

/// A problem, with one that this endpoint has told, or else one that another has.
fn problem(answers: &Json, endpoint: &Endpoint, status: &str) -> Json {
    let mut shown = json!({"schema": reference("Problem")});
    // What shares its status with a Decision is kept for all endpoints: the endpoint's own answer is the Decision.
    let is_its_own = |answer: &&Json| answer.get("code").is_some();
    match answer(answers, endpoint.id, status).filter(is_its_own) {
        Some(own) => set(&mut shown, "example", own.clone()),
        None => {
            let example = json!({"$ref": format!("#/components/examples/{}", example_name(status))});
            set(&mut shown, "examples", json!({"problem": example}));
        }
    }
    shown
}

/// The name of what any endpoint answers with a status.
fn example_name(status: &str) -> String {
    format!("Problem{status}")
}

/// Problems that any endpoint may tell, by their status.
fn problem_examples(answers: &Json) -> Json {
    let all = answers.get(ANY_OPERATION).and_then(Json::as_object).into_iter().flatten();
    all.map(|(status, value)| (example_name(status), json!({"value": value}))).collect::<Map<_, _>>().into()
}

/// What `Location` names, where something is made that can be asked for by itself.
fn located(endpoint: &Endpoint) -> Option<&'static str> {
    match endpoint.id {
        "submitHandoff" => Some("The handoff"),
        "makeAuthorization" => Some("The grant"),
        _ => None,
    }
}

fn operation(endpoint: &Endpoint, answers: &Json) -> Json {
    let mut replies: Map<String, Json> = Map::new();
    for reply in &endpoint.answers {
        let content = match reply.content {
            Content::Json(schema) => {
                let mut shown = json!({"schema": reference(schema)});
                if let Some(answer) = answer(answers, endpoint.id, &reply.status.to_string()) {
                    set(&mut shown, "example", answer.clone());
                }
                json!({"application/json": shown})
            }
            Content::Problem => {
                json!({"application/problem+json": problem(answers, endpoint, &reply.status.to_string())})
            }
            Content::Text(media) => json!({media: {"schema": {"type": "string"}}}),
            Content::Nothing => json!({}),
        };
        // A status may come with more than one kind of content: an answer, or a stream of them.
        if let Some(known) = replies.get_mut(&reply.status.to_string())
            && let (Some(all), Json::Object(more)) =
                (known.get_mut("content").and_then(Json::as_object_mut), &content)
        {
            all.extend(more.clone());
            continue;
        }
        let shown = json!({"description": reply.description, "content": content});
        replies.insert(reply.status.to_string(), shown);
    }
    for (status, description) in shared_problems(endpoint) {
        let shown = status.clone();
        let reply = replies.entry(status).or_insert_with(|| json!({"description": description}));
        // A Decision and a problem can share a status: denied, and not even asked.
        let content = reply.as_object_mut().map(|reply| reply.entry("content").or_insert_with(|| json!({})));
        let content = content.and_then(Json::as_object_mut);
        if let Some(content) = content.filter(|content| !content.contains_key("application/problem+json")) {
            content.insert("application/problem+json".to_owned(), problem(answers, endpoint, &shown));
        }
    }
    for (status, reply) in &mut replies {
        // `/readyz` says with 503 how it is, and not when to ask again.
        let is_health = endpoint.act.is_none() && status == "503";
        if let Some(headers) = headers(endpoint, status).filter(|_| !is_health) {
            set(reply, "headers", headers);
        }
    }
    let mut operation = json!({
        "operationId": endpoint.id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": endpoint.description,
        "responses": replies,
    });
    if endpoint.act.is_some() {
        set(&mut operation, "security", security());
    }
    if !endpoint.parameters.is_empty() {
        set(&mut operation, "parameters", endpoint.parameters.iter().map(parameter).collect());
    }
    if let Some(body) = &endpoint.body {
        let request = json!({
            "required": true,
            "description": body.description,
            "content": {"application/json": {"schema": reference(body.schema), "example": (body.example)()}},
        });
        set(&mut operation, "requestBody", request);
    }
    operation
}

/// What any endpoint of its kind may answer, beside what it says of itself.
fn shared_problems(endpoint: &Endpoint) -> Vec<(String, &'static str)> {
    // JSON-RPC has answers for what is wrong, and says itself which.
    if endpoint.voice == Voice::JsonRpc {
        return Vec::new();
    }
    let mut problems = vec![
        (400, "The request is not right"),
        (414, "The address is too long"),
        (431, "The headers are too large"),
    ];
    if endpoint.act.is_some() {
        problems.extend([
            (401, "No token, or one that does not count"),
            (403, "A token of another role is needed"),
            (429, "Too many requests from this caller; wait as long as Retry-After says"),
            (503, "It cannot be answered now; try again"),
        ]);
    }
    if endpoint.parameters.iter().any(|parameter| parameter.place == Place::Path) {
        problems.push((404, "There is no such thing, or it is not this caller's to see"));
    }
    if endpoint.method != Method::GET {
        problems.extend([(408, "The body took too long to arrive"), (413, "The body is too large")]);
    }
    if endpoint.body.is_some() {
        problems.push((415, "The body is not application/json, or it is compressed"));
    }
    problems.into_iter().map(|(status, description)| (status.to_string(), description)).collect()
}

fn parameter(parameter: &Parameter) -> Json {
    let schema = match &parameter.form {
        Form::Text { max } => json!({"type": "string", "minLength": 1, "maxLength": max}),
        Form::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Form::Time => json!({"type": "string", "format": "date-time"}),
        Form::Wait => json!({"type": "string", "pattern": "^([0-9]|[1-5][0-9]|60)s$"}),
        Form::Cursor => json!({"type": "string", "pattern": "^c[0-9a-f]{1,16}$"}),
        Form::Code => json!({"type": "string", "pattern": "^[A-Z][A-Z0-9_]{2,63}$"}),
        Form::OneOf(names) | Form::Named { names, .. } => json!({"type": "string", "enum": names()}),
    };
    let example = match &parameter.form {
        Form::Integer { .. } => parameter.example.parse::<u64>().map_or(Json::Null, Json::from),
        _ => parameter.example.into(),
    };
    json!({
        "name": parameter.name,
        "in": match parameter.place { Place::Path => "path", Place::Query => "query" },
        "required": parameter.place == Place::Path,
        "description": parameter.description,
        "schema": schema,
        "example": example,
    })
}
