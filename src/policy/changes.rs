//! What is different between two policy sets: in which file, at which route, in which member.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::set::{PolicySet, ROUTES_PATH};

/// Something that is not the same in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub file: String,
    /// The route in the routing table; nothing where it is about the file.
    pub route_key: Option<String>,
    pub change: ChangeKind,
    /// The members of a route or a delegation policy that differ; of other files nobody keeps what they said.
    pub fields: Vec<FieldChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

/// A member that has another value; null where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    pub name: String,
    pub before: Json,
    pub after: Json,
}

/// Everything that is different in the second set, in the order of the files.
pub fn changes(before: &PolicySet, after: &PolicySet) -> Vec<Change> {
    let mut all = Vec::new();
    for file in either(before.files(), after.files()) {
        let (old, new) = (before.files().get(file), after.files().get(file));
        if old == new {
            continue;
        }
        if file == ROUTES_PATH {
            all.extend(routes(before, after));
            continue;
        }
        let written = |set: &PolicySet| set.policy(file).and_then(|policy| serde_json::to_value(policy).ok());
        let change = kind(old.is_some(), new.is_some());
        all.push(Change {
            file: file.clone(),
            route_key: None,
            change,
            fields: fields(&written(before).unwrap_or_default(), &written(after).unwrap_or_default()),
        });
    }
    all
}

fn routes(before: &PolicySet, after: &PolicySet) -> Vec<Change> {
    let written =
        |set: &PolicySet, key: &str| set.route(key).and_then(|route| serde_json::to_value(route).ok());
    let mut all = Vec::new();
    for key in either(before.routes(), after.routes()) {
        let (old, new) = (written(before, key), written(after, key));
        if old != new {
            all.push(Change {
                file: ROUTES_PATH.to_owned(),
                route_key: Some(key.clone()),
                change: kind(old.is_some(), new.is_some()),
                fields: fields(&old.unwrap_or_default(), &new.unwrap_or_default()),
            });
        }
    }
    all
}

/// The members of two objects that differ.
pub fn fields(before: &Json, after: &Json) -> Vec<FieldChange> {
    let none = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let member = |object: &Map<String, Json>, name: &str| object.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| FieldChange {
            name: name.clone(),
            before: member(before, name),
            after: member(after, name),
        })
        .collect()
}

fn kind(was_there: bool, is_there: bool) -> ChangeKind {
    match (was_there, is_there) {
        (false, _) => ChangeKind::Added,
        (true, false) => ChangeKind::Removed,
        (true, true) => ChangeKind::Changed,
    }
}

fn either<'m, V>(one: &'m BTreeMap<String, V>, other: &'m BTreeMap<String, V>) -> BTreeSet<&'m String> {
    one.keys().chain(other.keys()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::References;
    use serde_json::json;

    fn set(routes: Json, policies: &[(&str, Json)]) -> PolicySet {
        let policies: BTreeMap<String, Vec<u8>> = policies
            .iter()
            .map(|(name, policy)| {
                (format!("policies/delegation/{name}.json"), policy.to_string().into_bytes())
            })
            .collect();
        let routes = json!({"routes": routes}).to_string();
        PolicySet::new(routes.as_bytes(), &policies, References::default()).unwrap()
    }

    fn policy(agents: &[&str]) -> Json {
        json!({"policyVersion": "1.0", "principals": ["user:main"], "allowAgents": agents, "allowChannels": [], "allowTasks": ["read"]})
    }

    #[test]
    fn what_differs_is_told_by_file_route_and_member() {
        let route = |agent: &str| json!({"capability": "work", "primaryAgentId": agent});
        let before =
            set(json!({"kept.v1": route("a1"), "gone.v1": route("b1")}), &[("main", policy(&["x1"]))]);
        let after = set(
            json!({"kept.v1": {"capability": "work", "primaryAgentId": "a2", "approvers": 2}, "more.v1": route("c1")}),
            &[("main", policy(&["x1", "x2"])), ("more", policy(&[]))],
        );
        let told: Vec<String> = changes(&before, &after)
            .iter()
            .map(|change| {
                let place = change.route_key.as_ref().unwrap_or(&change.file);
                let fields: Vec<String> = change
                    .fields
                    .iter()
                    .map(|field| format!("{} {} {}", field.name, field.before, field.after))
                    .collect();
                format!("{place} {:?}: {}", change.change, fields.join(", "))
            })
            .collect();
        assert_eq!(
            told[..4],
            [
                r#"policies/delegation/main.json Changed: allowAgents ["x1"] ["x1","x2"]"#,
                r#"policies/delegation/more.json Added: allowAgents null [], allowChannels null [], allowTasks null ["read"], allowWithoutChannel null false, principals null ["user:main"]"#,
                r#"gone.v1 Removed: capability "work" null, primaryAgentId "b1" null"#,
                r#"kept.v1 Changed: approvers null 2, primaryAgentId "a1" "a2""#,
            ]
        );
        assert!(told[4].starts_with("more.v1 Added: capability null "), "{told:?}");
        assert_eq!((told.len(), changes(&after, &after).len()), (5, 0));
    }
}
