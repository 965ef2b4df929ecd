//! The ten things that must be shown before an implementation conforms.

use std::collections::BTreeSet;
use std::fs;

use handoffd::wire::{Contracts, Envelope, Kind, WireCode, wire_schemas};
use serde_json::{Value as Json, json};

use super::suite::Suite;
use super::support::{Stage, fixtures, kind_of, root, valid_fixture};

fn contracts() -> &'static Contracts {
    Contracts::embedded()
}

fn schema(file: &str) -> Json {
    let path = root().join("docs/schemas/agent-wire/v1.1").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The files as others read them: with their references by id, and no code of ours.
fn validator(file: &str) -> jsonschema::Validator {
    let mut registry = jsonschema::Registry::new();
    for part in ["envelope.schema.json", "stream.schema.json", "state.schema.json"] {
        let schema = schema(part);
        let id = schema["$id"].clone();
        registry = registry.add(id.as_str().unwrap(), schema).unwrap();
    }
    let registry = registry.prepare().unwrap();
    let options = jsonschema::options().with_registry(&registry).should_validate_formats(true);
    options.build(&schema(file)).unwrap()
}

#[test]
fn every_valid_fixture_validates_against_its_event_schema_and_the_envelope_schema() {
    let envelope = validator("envelope.schema.json");
    let mut kinds = BTreeSet::new();
    for (file, event) in fixtures().iter().filter(|(file, _)| file.contains(".valid")) {
        let kind = kind_of(file);
        assert_eq!(event["type"], kind.as_str(), "{file}");
        let own = validator(&format!("{}.schema.json", kind.as_str().replace('.', "-")));
        assert!(envelope.is_valid(event), "{file}: {:?}", envelope.validate(event));
        assert!(own.is_valid(event), "{file}: {:?}", own.validate(event));
        let text = event.to_string();
        let read = Envelope::parse(&text).unwrap_or_else(|faults| panic!("{file}: {faults:?}"));
        assert_eq!((read.kind(), read.wire_id()), (kind, event["wire_id"].as_str().unwrap()));
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), Kind::ALL.len(), "an event has no valid fixture");
}

#[test]
fn every_invalid_fixture_fails_for_the_expected_reason() {
    let suite = Suite::read();
    suite.reasons(contracts()).unwrap();
    let text = suite.reasons.to_string();
    for code in WireCode::ALL {
        // Whether a route is frozen is nothing that an event could say.
        assert!(text.contains(code.as_str()) || code == WireCode::Halted, "{code} has no fixture");
    }
}

/// Files against schemas, without any code of ours: what is against a schema here is against it everywhere.
#[test]
fn every_fixture_that_is_against_a_schema_is_refused_by_any_validator() {
    let suite = Suite::read();
    let envelope = validator("envelope.schema.json");
    for (file, reason) in suite.reasons.as_object().unwrap() {
        let event = &suite.fixtures[file];
        let Some(kind) = event["type"].as_str().and_then(|name| name.parse::<Kind>().ok()) else { continue };
        let own = validator(&format!("{}.schema.json", kind.as_str().replace('.', "-")));
        let is_valid = envelope.is_valid(event) && own.is_valid(event);
        assert_eq!(is_valid, reason["code"] != "WIRE_INVALID", "{file}");
    }
}

#[test]
fn every_event_maps_to_exactly_one_state_category() {
    let suite = Suite::read();
    suite.states(contracts()).unwrap();
    suite.events(contracts()).unwrap();
    suite.valid_states(contracts()).unwrap();
    // And the schemas hold an event to it.
    for kind in Kind::ALL {
        let own = schema(&format!("{}.schema.json", kind.as_str().replace('.', "-")));
        let state = &own["properties"]["state"];
        match contracts().state(*kind) {
            None => assert_eq!(*state, json!(false), "{kind}"),
            Some((category, terminal)) => {
                let consts =
                    [&state["properties"]["category"]["const"], &state["properties"]["terminal"]["const"]];
                assert_eq!(consts, [&json!(category.as_str()), &json!(terminal)], "{kind}");
                assert!(own["required"].as_array().unwrap().contains(&json!("state")), "{kind}");
            }
        }
    }
}

/// Allowed and disallowed ones: every state, with every event, from every kind of sender.
#[test]
fn every_allowed_transition_is_accepted_and_every_other_refused() {
    Suite::read().transitions(contracts()).unwrap();
}

#[test]
fn ordered_events_reduce_to_exact_state() {
    Suite::read().cases(contracts()).unwrap();
}

#[test]
fn the_reducer_records_how_many_artifacts_there_are_and_which() {
    let fixtures = fixtures();
    let mut stage = Stage::new(contracts(), &fixtures);
    for step in ["task.created", "task.available", "task.claimed", "task.started"] {
        stage.play(&json!(step));
    }
    let name = "task:hs_20260218_router_0001:attempt:1";
    for n in 0..100 {
        let state = stage.reducer.open_task(name).unwrap().to_json(contracts());
        assert_eq!(state["artifact_count"], n);
        stage.play(&json!({"type": "artifact.ready", "payload": {"artifact_id": format!("art_{n}")}}));
    }
    assert!(stage.rejected.is_empty());
    let state = stage.reducer.open_task(name).unwrap().to_json(contracts());
    let ids: Vec<String> = (0..100).map(|n| format!("art_{n}")).collect();
    assert_eq!(state["artifact_ids"], json!(ids));
    // As many as a completion can name, and not one more.
    stage.play(&json!({"type": "artifact.ready", "payload": {"artifact_id": "art_100"}}));
    let (_, fault) = &stage.rejected[0];
    assert_eq!((fault.code, fault.pointer.as_str()), (WireCode::Artifact, "/payload/artifact_id"));
    stage.play(&json!({"type": "artifact.ready", "payload": {"artifact_id": "art_99", "version": 2}}));
    stage.play(&json!({"type": "task.complete", "payload": {"artifact_ids": ids}}));
    assert_eq!(stage.rejected.len(), 1);
    assert_eq!(stage.tasks()[name].to_json(contracts())["task_state"], "completed");
}

#[test]
fn a_completion_names_every_final_artifact_and_passed_its_checks() {
    let fixtures = fixtures();
    let check = |ready: &[(&str, bool)], complete: Json, code: Option<WireCode>| {
        let mut stage = Stage::new(contracts(), &fixtures);
        for step in ["task.created", "task.available", "task.claimed", "task.started"] {
            stage.play(&json!(step));
        }
        for (id, is_final) in ready {
            let payload = json!({"artifact_id": id, "final": is_final});
            stage.play(&json!({"type": "artifact.ready", "payload": payload}));
        }
        stage.play(&json!({"type": "task.complete", "payload": complete}));
        assert_eq!(stage.rejected.first().map(|(_, fault)| fault.code), code, "{complete}");
    };
    let (a, b) = (("art_a", true), ("art_b", true));
    check(&[a, b], json!({"artifact_ids": ["art_b", "art_a"]}), None);
    check(&[a, ("art_b", false)], json!({"artifact_ids": ["art_a"]}), None);
    check(&[a, b], json!({"artifact_ids": ["art_a"]}), Some(WireCode::Artifact));
    check(&[a], json!({"artifact_ids": ["art_a", "art_b"]}), Some(WireCode::Artifact));
    check(&[a], json!({"artifact_ids": []}), Some(WireCode::Invalid));
    let verified = |word: Json| json!({"artifact_ids": ["art_a"], "verification": {"mechanical": word}});
    check(&[a], verified(json!("pass")), None);
    for word in [json!("fail"), json!("Pass"), json!("skipped"), json!(true), Json::Null] {
        check(&[a], verified(word), Some(WireCode::Invalid));
    }
}

/// Each task state and each update as A2A has them; the map itself is compared in `suite`.
#[test]
fn task_and_artifact_events_map_to_a2a() {
    use handoffd::wire::A2aUpdate;
    for kind in Kind::ALL.iter().copied() {
        let update = contracts().a2a_update(kind);
        match contracts().state_after(kind) {
            Some(state) => {
                let shown = contracts().a2a_state(state).unwrap();
                let (category, terminal) = contracts().state(kind).unwrap();
                assert_eq!(shown.v0_3.replace('-', "_"), category.as_str(), "{kind}");
                assert_eq!(shown.is_final, terminal, "{kind}");
                let is_artifact = kind.as_str().starts_with("artifact.");
                assert_eq!(update == Some(A2aUpdate::ArtifactUpdate), is_artifact, "{kind}");
                assert!(update.is_some() && update != Some(A2aUpdate::Message), "{kind}");
            }
            None => assert!(matches!(update, None | Some(A2aUpdate::Message)), "{kind}"),
        }
    }
}

#[test]
fn every_schema_file_is_one_that_the_program_has() {
    let directory = root().join("docs/schemas/agent-wire/v1.1");
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(&directory).unwrap() {
        files.insert(entry.unwrap().file_name().into_string().unwrap());
    }
    for (file, text) in wire_schemas() {
        assert!(files.remove(file), "{file}");
        let schema: Json = serde_json::from_str(text).unwrap();
        assert!(schema["$id"].as_str().unwrap().ends_with(&format!("/agent-wire/v1.1/{file}")), "{file}");
        assert!(jsonschema::meta::is_valid(&schema), "{file}");
    }
    assert!(files.is_empty(), "{files:?}");
    let text = valid_fixture(&fixtures(), Kind::TaskStarted).to_string();
    assert!(Envelope::parse(&text).is_ok());
}
