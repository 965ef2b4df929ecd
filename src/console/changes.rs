//! What is different between two definitions, in words.

use serde_json::{Map, Value as Json};

use crate::json::printable;

/// Each member that is not the same in both, as `name: before, then after`.
pub(super) fn fields_changed(before: &Json, after: &Json) -> Vec<String> {
    let none = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    changed
        .map(|name| format!("`{name}`: {} → {}", value(before.get(name)), value(after.get(name))))
        .collect()
}

/// A value as a person reads it. What is left out counts as the schema says, which is not ours to know.
pub(super) fn value(json: Option<&Json>) -> String {
    match json {
        None | Some(Json::Null) => "not set".to_owned(),
        Some(Json::String(text)) => format!("`{}`", printable(text)),
        Some(Json::Array(items)) if items.iter().all(Json::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Json::as_str).collect();
            if items.is_empty() { "none".to_owned() } else { format!("`{}`", printable(&items.join(", "))) }
        }
        Some(other) => format!("`{}`", printable(&other.to_string())),
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
