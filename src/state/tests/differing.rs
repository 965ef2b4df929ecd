//! Where an edited file leaves the ledger's view.

use super::*;

/// What an edit of the published document is said to be.
fn said(edit: impl FnOnce(&mut Json)) -> String {
    let mut history = History::new();
    history.decision("hs_00000001", "allowed", false);
    let mut document: Json = serde_json::from_str(&history.view().render()).unwrap();
    edit(&mut document);
    told(&history, &document.to_string())
}

fn told(history: &History, text: &str) -> String {
    match history.rebuild(Some(text)) {
        Published::Edited { difference, .. } => difference.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_changed_value_is_pointed_at() {
    let said = said(|document| {
        document["activeHandoffs"]["hs_00000001"]["status"] = json!("done");
    });
    assert_eq!(said, r#"at /activeHandoffs/hs_00000001/status: expected "queued", found "done""#);
}

#[test]
fn a_missing_member_is_pointed_at() {
    let said = said(|document| {
        document["activeHandoffs"]["hs_00000001"].as_object_mut().unwrap().remove("status");
    });
    assert_eq!(said, r#"at /activeHandoffs/hs_00000001/status: expected "queued", found nothing"#);
}

#[test]
fn an_added_member_is_pointed_at() {
    let said = said(|document| document["a/b~c"] = json!([1]));
    assert_eq!(said, "at /a~1b~0c: expected nothing, found [1]");
}

#[test]
fn the_first_of_several_is_said() {
    let said = said(|document| {
        document["z"] = json!(1);
        document["a"] = json!(["x", {"y": null}]);
    });
    assert_eq!(said, r#"at /a: expected nothing, found ["x",{"y":null}]"#);
}

#[test]
fn the_same_values_in_another_spelling_have_no_pointer() {
    let mut history = History::new();
    history.decision("hs_00000001", "allowed", false);
    let document: Json = serde_json::from_str(&history.view().render()).unwrap();
    assert_eq!(told(&history, &serde_json::to_string_pretty(&document).unwrap()), "written in another form");
}

#[test]
fn what_an_edit_put_there_is_cut_and_without_control_characters() {
    let said = said(|document| document["a\u{202e}"] = json!("x".repeat(10_000)));
    assert!(
        said.starts_with("at /a\\u{202e}: expected nothing, found \"xxx") && said.ends_with('…'),
        "{said}"
    );
    assert!(said.chars().count() < 200, "{said}");
}
