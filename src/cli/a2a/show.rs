//! Tasks, messages, artifacts and errors, for people.

use serde_json::Value as Json;

use super::super::Context;
use super::super::asking::{details, rows, text};
use super::super::printer::{DIM, GREEN, RED, YELLOW};
use crate::json::printable;

/// What an agent answered: a task, or just a message.
pub(super) fn answer(context: &Context, answer: &Json) {
    if context.printer.is_json() {
        context.printer.value(answer);
        return;
    }
    if answer.get("kind").and_then(Json::as_str) == Some("message") {
        context.printer.line(&words(answer).unwrap_or_default());
        return;
    }
    let status = answer.get("status").unwrap_or(&Json::Null);
    context.printer.line(&format!(
        "{}  {}",
        coloured(status.get("state").and_then(Json::as_str).unwrap_or("unknown")),
        text(answer, "id")
    ));
    let said = status.get("message").and_then(words);
    details(
        context,
        &[
            ("context", text(answer, "contextId")),
            ("since", text(status, "timestamp")),
            ("says", said.unwrap_or_else(|| "-".to_owned())),
        ],
    );
    for one in rows(answer, "artifacts") {
        details(context, &[("artifact", artifact(one))]);
        for reason in decision(one).map(|decision| rows(decision, "reasons")).unwrap_or_default() {
            context.printer.line(&format!(
                "  {RED}{}{RED:#} {} {DIM}{}{DIM:#}",
                text(reason, "code"),
                text(reason, "message"),
                text(reason, "path")
            ));
            if let Some(hint) = reason.get("hint").and_then(Json::as_str) {
                context.printer.line(&format!("    {DIM}{}{DIM:#}", printable(hint)));
            }
        }
    }
}

/// What the gates decided, if an artifact is that.
fn decision(artifact: &Json) -> Option<&Json> {
    let is_decision = artifact.get("artifactId").and_then(Json::as_str) == Some("decision");
    let data = rows(artifact, "parts").iter().find_map(|part| part.get("data"));
    data.filter(|_| is_decision)
}

pub(super) fn artifact(artifact: &Json) -> String {
    let places = rows(artifact, "parts").iter().filter_map(|part| {
        let place = part.pointer("/file/uri").or_else(|| part.get("text"))?;
        place.as_str().map(printable)
    });
    let places: Vec<String> = places.collect();
    format!("{}  {}", text(artifact, "artifactId"), places.join(" ")).trim_end().to_owned()
}

/// The texts of a message.
pub(super) fn words(message: &Json) -> Option<String> {
    let texts = rows(message, "parts").iter().filter_map(|part| part.get("text")?.as_str().map(printable));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// What is wrong with a request, as the `data` of an error of either version says it.
pub(super) fn findings(data: &Json) -> Vec<String> {
    let old = rows(data, "findings").iter().map(|finding| {
        let hint = finding.get("hint").and_then(Json::as_str).map(|hint| format!("; {}", printable(hint)));
        format!("  {} {}{}", text(finding, "pointer"), text(finding, "message"), hint.unwrap_or_default())
    });
    let details = || data.as_array().into_iter().flatten();
    let hints = details().filter_map(|detail| detail.pointer("/metadata/hint")?.as_str());
    let hints = hints.map(|hint| format!("  {}", printable(hint)));
    let new = details()
        .flat_map(|detail| rows(detail, "fieldViolations"))
        .map(|violation| format!("  {} {}", text(violation, "field"), text(violation, "description")));
    old.chain(new).chain(hints).collect()
}

pub(super) fn coloured(state: &str) -> String {
    let style = match state {
        "completed" => GREEN,
        "rejected" | "failed" | "canceled" => RED,
        "auth-required" | "input-required" => YELLOW,
        _ => anstyle::Style::new().bold(),
    };
    format!("{style}{}{style:#}", printable(state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_read_from_the_data_of_either_version() {
        for (data, lines) in [
            (
                json!({"findings": [{"pointer": "/a", "message": "is bad", "hint": "mend it"}]}),
                ["  /a is bad; mend it"],
            ),
            (
                json!([{"fieldViolations": [{"field": "/a", "description": "is bad; mend it"}]}]),
                ["  /a is bad; mend it"],
            ),
            (json!([{"reason": "INTERNAL_ERROR", "metadata": {"hint": "send a token"}}]), ["  send a token"]),
        ] {
            assert_eq!(findings(&data), lines);
        }
        assert!(findings(&json!([{"metadata": {}}])).is_empty() && findings(&json!(null)).is_empty());
    }
}
