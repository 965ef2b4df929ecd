//! Only who serves a route is adopted from an edited file.

use serde_json::{Value as Json, json};

use super::super::adopt;

fn state() -> Json {
    json!({
        "activeHandoffs": {"hs_1": {"status": "queued"}},
        "delegationAuditLog": [{"eventId": "wire_1"}],
        "ledger": {"sequence": 7},
        "promotion": {"currentStage": "dev", "routes": {"a/b": {"blocked": true}}},
        "rollback": {"required": true},
        "routingTable": {
            "a/b": {"capability": "x", "primaryAgentId": "one", "fallbackAgentId": null},
            "c": {"capability": "y", "primaryAgentId": "two", "fallbackAgentId": "three"},
        },
        "schemaVersion": "1.0",
        "updatedAt": "2026-02-18T19:38:00Z",
    })
}

fn routes() -> Json {
    json!({"routes": {
        "a/b": {"capability": "x", "primaryAgentId": "one", "stage": "simulated"},
        "c": {"capability": "y", "primaryAgentId": "two", "fallbackAgentId": "three", "stage": "dev"},
    }})
}

/// Sets what a pointer names and says what is adopted: `+pointer` for each change, `-pointer` for what is left.
fn check(edits: &[(&str, Json)], expected: &[&str]) {
    let mut edited = state();
    for (pointer, value) in edits {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = edited.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(name.replace("~1", "/"), value.clone());
    }
    let adoption = adopt(&edited, &state(), &routes());
    let mut said: Vec<String> =
        adoption.changes.iter().map(|change| format!("+{}/{}", change.route_key, change.field)).collect();
    said.extend(adoption.left.iter().map(|left| format!("-{}", left.pointer)));
    assert_eq!(said, expected, "{edits:?}");
    // The routing table has exactly those changes.
    let mut changed = routes();
    for change in &adoption.changes {
        let route = changed["routes"][&change.route_key].as_object_mut().unwrap();
        match &change.to {
            Json::Null => drop(route.remove(change.field)),
            to => drop(route.insert(change.field.to_owned(), to.clone())),
        }
    }
    assert_eq!(adoption.routes, changed, "{edits:?}");
    assert_eq!(adoption.routes == routes(), adoption.changes.is_empty());
}

#[test]
fn who_serves_a_route_is_adopted_and_nothing_else() {
    check(&[], &[]);
    check(&[("/routingTable/c/primaryAgentId", json!("four"))], &["+c/primaryAgentId"]);
    check(&[("/routingTable/c/fallbackAgentId", json!(null))], &["+c/fallbackAgentId"]);
    check(&[("/routingTable/a~1b/fallbackAgentId", json!("five"))], &["+a/b/fallbackAgentId"]);
    check(&[("/routingTable/c/capability", json!("z"))], &["+c/capability"]);
    check(&[("/routingTable/c/stage", json!("live"))], &["-/routingTable/c/stage"]);
    check(&[("/routingTable/a~1b/critical", json!(false))], &["-/routingTable/a~1b/critical"]);
    check(&[("/routingTable/new", json!({"primaryAgentId": "x"}))], &["-/routingTable/new"]);
    check(&[("/routingTable/c", json!("gone"))], &["-/routingTable/c"]);
    check(&[("/routingTable", json!([]))], &["-/routingTable"]);
    check(&[("/promotion/currentStage", json!("live"))], &["-/promotion"]);
    check(&[("/promotion/routes/a~1b/blocked", json!(false))], &["-/promotion"]);
    check(&[("/rollback/required", json!(false))], &["-/rollback"]);
    check(&[("/delegationAuditLog", json!([]))], &["-/delegationAuditLog"]);
    check(&[("/activeHandoffs/hs_1/status", json!("done"))], &["-/activeHandoffs"]);
    check(&[("/ledger/sequence", json!(6))], &["-/ledger"]);
    check(&[("/extra", json!(1))], &["-/extra"]);
    check(
        &[("/promotion/currentStage", json!("live")), ("/routingTable/c/primaryAgentId", json!("four"))],
        &["+c/primaryAgentId", "-/promotion"],
    );
}

#[test]
fn what_is_missing_in_the_edited_file_is_not_adopted() {
    for (parent, name, pointer) in [
        ("/routingTable", "c", "/routingTable/c"),
        ("/routingTable/c", "fallbackAgentId", "/routingTable/c/fallbackAgentId"),
        ("", "delegationAuditLog", "/delegationAuditLog"),
    ] {
        let mut edited = state();
        edited.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        let adoption = adopt(&edited, &state(), &routes());
        assert_eq!((adoption.changes.len(), adoption.left.len()), (0, 1), "{pointer}");
        assert_eq!(adoption.left[0].pointer, pointer);
    }
}

#[test]
fn a_policy_that_was_edited_as_well_wins() {
    let mut edited = state();
    edited["routingTable"]["c"]["primaryAgentId"] = json!("four");
    for (declared, changes, left) in [("two", 1, 0), ("four", 0, 0), ("six", 0, 1)] {
        let mut routes = routes();
        routes["routes"]["c"]["primaryAgentId"] = json!(declared);
        let adoption = adopt(&edited, &state(), &routes);
        assert_eq!((adoption.changes.len(), adoption.left.len()), (changes, left), "{declared}");
    }
    let mut without = routes();
    without["routes"].as_object_mut().unwrap().remove("c");
    assert_eq!(adopt(&edited, &state(), &without).left.len(), 1);
}
