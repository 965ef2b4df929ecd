//! What is different between two definitions, in words.

use serde_json::Value as Json;

use super::facts::Facts;
use super::prose::Prose;
use super::shown::Markup;
use crate::json::printable;
use crate::policy::fields;

/// Each member that is not the same in both: its name, what it was and what it is.
pub(super) fn fields_changed(before: &Json, after: &Json) -> Vec<String> {
    fields(before, after).iter().map(|field| words(&field.name, &field.before, &field.after)).collect()
}

/// A change as the API tells it: what it is about, what became of it, and its members.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) file: String,
    pub(super) route_key: String,
    pub(super) change: String,
    fields: Vec<String>,
}

impl Changed {
    pub(super) fn all(changes: &Facts<'_>) -> Vec<Self> {
        let changed = |one: &Facts<'_>| Self {
            file: one.text("file"),
            route_key: one.text("routeKey"),
            change: one.text("change"),
            fields: one
                .each("fields")
                .iter()
                .map(|field| {
                    let (name, before, after) = (field.text("name"), field.at("before"), field.at("after"));
                    match one.text("change").as_str() {
                        "added" => format!("`{}`: {}", printable(&name), value(after.json())),
                        "removed" => format!("`{}`: {}", printable(&name), value(before.json())),
                        _ => words(&name, before.json(), after.json()),
                    }
                })
                .collect(),
        };
        changes.each("").iter().map(changed).collect()
    }

    pub(super) fn words(&self) -> &[String] {
        &self.fields
    }

    pub(super) fn fields(&self) -> Vec<Markup<Prose>> {
        self.fields.iter().map(Prose::of).collect()
    }
}

fn words(name: &str, before: &Json, after: &Json) -> String {
    format!("`{}`: {} → {}", printable(name), value(before), value(after))
}

/// A value as a person reads it. What is left out counts as the schema says, which is not ours to know.
fn value(json: &Json) -> String {
    match json {
        Json::Null => "not set".to_owned(),
        Json::String(text) => format!("`{}`", printable(text)),
        Json::Array(items) if items.iter().all(Json::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            if items.is_empty() { "none".to_owned() } else { format!("`{}`", printable(&items.join(", "))) }
        }
        other => format!("`{}`", printable(&other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_member_that_differs_is_told_and_no_other() {
        let before = json!({"capability": "work", "primaryAgentId": "a", "aliases": ["x"], "critical": true});
        let after =
            json!({"capability": "work", "primaryAgentId": "b", "aliases": ["x", "y"], "approvers": 2});
        assert_eq!(
            fields_changed(&before, &after),
            [
                "`aliases`: `x` → `x, y`",
                "`approvers`: not set → `2`",
                "`critical`: `true` → not set",
                "`primaryAgentId`: `a` → `b`",
            ]
        );
        assert!(fields_changed(&before, &before).is_empty());
        assert_eq!(fields_changed(&json!(null), &json!({"a": 1})), ["`a`: not set → `1`"]);
    }
}
