//! What a server says, in one shape whatever version it speaks: that of 0.3, which `GET /stream/{id}` has too.
//!
//! Only what differs between the versions is touched; members that nobody here knows are kept.

use serde_json::{Map, Value as Json, json};

use super::super::version::Version;

/// The result of a request, or what an event of a stream carries.
pub(super) fn plain(result: Json, version: Version) -> Json {
    match version {
        Version::V0_3 => result,
        Version::V1_0 => from_1_0(result),
    }
}

/// A task by itself, as `GetTask` and `CancelTask` of 1.0 answer.
pub(super) fn plain_task(result: Json, version: Version) -> Json {
    match version {
        Version::V0_3 => result,
        Version::V1_0 => task(result),
    }
}

/// Has a task in this state come to its end?
pub(super) fn is_terminal(state: &str) -> bool {
    matches!(state, "completed" | "canceled" | "failed" | "rejected")
}

/// Does it wait for somebody?
pub(super) fn is_interrupted(state: &str) -> bool {
    matches!(state, "input-required" | "auth-required")
}

fn from_1_0(mut result: Json) -> Json {
    let mut take = |name: &str| result.as_object_mut().and_then(|members| members.remove(name));
    if let Some(given) = take("task") {
        return task(given);
    }
    if let Some(given) = take("message") {
        return message(given);
    }
    if let Some(mut update) = take("statusUpdate") {
        change(&mut update, "status", status);
        let state = update.pointer("/status/state").and_then(Json::as_str);
        let is_final = state.is_some_and(is_terminal);
        return with(update, [("kind", json!("status-update")), ("final", json!(is_final))]);
    }
    if let Some(mut update) = take("artifactUpdate") {
        change(&mut update, "artifact", holder);
        return with(update, [("kind", json!("artifact-update"))]);
    }
    result
}

fn task(mut given: Json) -> Json {
    change(&mut given, "status", status);
    change(&mut given, "artifacts", |list| each(list, holder));
    change(&mut given, "history", |list| each(list, message));
    with(given, [("kind", json!("task"))])
}

fn message(given: Json) -> Json {
    with(said(given), [("kind", json!("message"))])
}

fn said(mut given: Json) -> Json {
    change(&mut given, "role", |role| match role.as_str().and_then(|role| role.strip_prefix("ROLE_")) {
        Some(role) => json!(role.to_lowercase()),
        None => role,
    });
    holder(given)
}

fn status(mut given: Json) -> Json {
    change(&mut given, "state", |state| {
        match state.as_str().and_then(|state| state.strip_prefix("TASK_STATE_")) {
            Some("UNSPECIFIED") => json!("unknown"),
            Some(word) => json!(word.to_lowercase().replace('_', "-")),
            None => state,
        }
    });
    change(&mut given, "message", message);
    given
}

/// Whatever has parts: a message or an artifact.
fn holder(mut given: Json) -> Json {
    change(&mut given, "parts", |parts| each(parts, part));
    given
}

fn part(given: Json) -> Json {
    let Json::Object(mut members) = given else { return given };
    if members.contains_key("kind") {
        return Json::Object(members);
    }
    let mut file = Map::new();
    for (name, old) in [("url", "uri"), ("raw", "bytes")] {
        file.extend(members.remove(name).map(|value| (old.to_owned(), value)));
    }
    let kind = if members.contains_key("text") {
        "text"
    } else if file.is_empty() {
        "data"
    } else {
        for (name, old) in [("mediaType", "mimeType"), ("filename", "name")] {
            file.extend(members.remove(name).map(|value| (old.to_owned(), value)));
        }
        members.insert("file".to_owned(), Json::Object(file));
        "file"
    };
    with(Json::Object(members), [("kind", json!(kind))])
}

fn each(list: Json, f: fn(Json) -> Json) -> Json {
    match list {
        Json::Array(items) => Json::Array(items.into_iter().map(f).collect()),
        other => other,
    }
}

fn change(object: &mut Json, name: &str, f: impl FnOnce(Json) -> Json) {
    if let Some(value) = object.get_mut(name) {
        *value = f(value.take());
    }
}

/// The members come first, as 0.3 writes them.
fn with<const N: usize>(object: Json, members: [(&str, Json); N]) -> Json {
    let Json::Object(given) = object else { return object };
    let mut all: Map<String, Json> =
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    all.extend(given);
    Json::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Json, expected: Json) {
        assert_eq!(plain(given, Version::V1_0), expected);
    }

    #[test]
    fn what_1_0_says_has_the_shape_of_0_3() {
        check(
            json!({"task": {
                "id": "t", "contextId": "c",
                "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "what?"}]}},
                "artifacts": [{"artifactId": "a", "parts": [{"url": "https://x/y", "mediaType": "text/csv", "filename": "y"}]}],
                "history": [{"messageId": "n", "role": "ROLE_USER", "parts": [{"data": [1]}, {"raw": "AA=="}]}],
            }}),
            json!({
                "kind": "task", "id": "t", "contextId": "c",
                "status": {"state": "input-required", "message": {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "what?"}]}},
                "artifacts": [{"artifactId": "a", "parts": [{"kind": "file", "file": {"uri": "https://x/y", "mimeType": "text/csv", "name": "y"}}]}],
                "history": [{"kind": "message", "messageId": "n", "role": "user", "parts": [{"kind": "data", "data": [1]}, {"kind": "file", "file": {"bytes": "AA=="}}]}],
            }),
        );
        for (state, word, is_final) in [
            ("TASK_STATE_WORKING", "working", false),
            ("TASK_STATE_AUTH_REQUIRED", "auth-required", false),
            ("TASK_STATE_REJECTED", "rejected", true),
            ("TASK_STATE_UNSPECIFIED", "unknown", false),
        ] {
            check(
                json!({"statusUpdate": {"taskId": "t", "status": {"state": state}}}),
                json!({"kind": "status-update", "final": is_final, "taskId": "t", "status": {"state": word}}),
            );
        }
        check(
            json!({"artifactUpdate": {"taskId": "t", "artifact": {"parts": [{"text": "x"}]}, "append": false}}),
            json!({"kind": "artifact-update", "taskId": "t", "artifact": {"parts": [{"kind": "text", "text": "x"}]}, "append": false}),
        );
        check(json!({"message": {"role": "ROLE_AGENT"}}), json!({"kind": "message", "role": "agent"}));
    }

    #[test]
    fn what_is_not_as_it_should_be_stays_as_it_is() {
        for given in [json!(null), json!([1]), json!("x"), json!({"other": 1})] {
            check(given.clone(), given);
        }
        check(
            json!({"task": {"status": 3, "artifacts": "none"}}),
            json!({"kind": "task", "status": 3, "artifacts": "none"}),
        );
    }
}
