//! Rollback plans and their dry runs.

use std::sync::Arc;

use super::*;
use crate::policy::{ReferenceFile, outline};
use crate::proof::Digest;

fn document(text: &str) -> ReferenceFile {
    let outline = Some(outline(text.as_bytes()).into());
    ReferenceFile { digest: Digest::of(text.as_bytes()), json: None, outline }
}

fn structured(text: &str) -> ReferenceFile {
    let json = Some(Arc::from(text.as_bytes()));
    ReferenceFile { digest: Digest::of(text.as_bytes()), json, outline: None }
}

#[test]
fn a_document_says_what_triggers_it_and_how_to_revert() {
    let check = |text: &str, expected: &str| {
        let found = Plan::read("plans/back.md", &document(text));
        let found = found.map(|plan| plan.form).map_err(|fault| fault.to_string());
        match expected {
            "plan" => assert_eq!(found, Ok(PlanForm::Document), "{text}"),
            expected => assert!(found.as_ref().is_err_and(|fault| fault.contains(expected)), "{found:?}"),
        }
    };
    check("# Back\n## Triggers\nany error\n## Revert\ndemote it", "plan");
    check("# Volta\n## Condição de disparo\nqualquer erro\n## Passos de reversão\nrebaixar", "plan");
    check("## Gatilhos\nx\n## Como reverter\ny", "plan");
    check("# What triggers it, and how to revert it\neverything in one place", "plan");
    check("# Rollback\n## Revert\ndemote it", "does not say what triggers it");
    check("# Rollback\n## Triggers\nany error", "does not say how to revert");
    check("## Triggers\n\n## Revert\ndemote it", "does not say what triggers it");
    check("## Triggers\nany error\n## Revert\n", "does not say how to revert");
    check("triggers and revert, but no headings", "does not say what triggers it");
    check("", "does not say what triggers it");
}

#[test]
fn the_shipped_plans_are_plans_and_their_dry_runs_succeed() {
    let mut stream = Stream::up_to(&worker(), PromotionGate::G3);
    stream.load(Some(&route_of(&with(worker(), json!({"fallbackAgentId": "other"})))));
    let show = |file: &ReferenceFile| {
        let plan = Plan::read("plans/back", file).unwrap();
        let run = dry_run(&stream.record, &plan);
        assert!(run.succeeded());
        let steps = run.steps.iter().map(|step| format!("{} {}", step.step, step.outcome.as_str()));
        steps.collect::<Vec<_>>().join(", ")
    };
    let runbook = include_str!("../../../agents/blockchain-operator/docs/runbook.md");
    assert_eq!(
        show(&document(runbook)),
        "demote done, block skipped, restore done, mark skipped, verify done"
    );
    let example = include_str!("../../../docs/examples/rollback-plan.json");
    assert_eq!(
        show(&structured(example)),
        "demote done, block done, restore done, mark skipped, notify by_hand, manual by_hand, verify done"
    );
    // It is a rehearsal: the route itself is where it was.
    assert_eq!((stream.record.stage, stream.record.epoch), (Stage::Simulated, 0));
}

#[test]
fn a_structured_plan_is_held_to_its_schema() {
    let plan: Json = serde_json::from_str(include_str!("../../../docs/examples/rollback-plan.json")).unwrap();
    let check = |pointer: &str, value: Json, expected: &str| {
        let mut plan = plan.clone();
        *plan.pointer_mut(pointer).unwrap() = value;
        let fault = Plan::read("plans/back.json", &structured(&plan.to_string())).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    };
    check("/planVersion", json!("2.0"), "at /planVersion");
    check("/triggers", json!([]), "at /triggers");
    check("/triggers/0/when", json!("bad weather"), "at /triggers/0/when");
    check("/steps/0/act", json!("rm -rf"), "at /steps/0/act");
    check("/steps/0", json!({"act": "demote", "command": "reboot"}), "at /steps/0/command");
    check("/steps/4", json!({"act": "notify", "description": "stop"}), "at /steps/4/who");
    check("/verification", json!([]), "at /verification");
    for text in ["", "{", "[]", r#"{"planVersion": "1.0", "planVersion": "1.0"}"#] {
        assert!(Plan::read("plans/back.json", &structured(text)).is_err(), "{text}");
    }
}

#[test]
fn a_dry_run_fails_where_the_plan_would_not_take_the_route_out_of_live() {
    let plan: Json = serde_json::from_str(include_str!("../../../docs/examples/rollback-plan.json")).unwrap();
    let stream = Stream::up_to(&worker(), PromotionGate::G3);
    let check = |change: &dyn Fn(&mut Json), expected: &str| {
        let mut plan = plan.clone();
        change(&mut plan);
        let read = Plan::read("plans/back.md", &structured(&plan.to_string()));
        let run = dry_run(&stream.record, read.as_ref().unwrap());
        let failed: Vec<_> = run.steps.iter().filter(|step| step.outcome == DryOutcome::Failed).collect();
        assert_eq!((run.succeeded(), failed.len()), (false, 1), "{run:?}");
        assert!(failed[0].why.as_ref().is_some_and(|why| why.contains(expected)), "{failed:?}");
        // And G4 says so.
        let answer = evaluate(
            &stream.record,
            &Findings::Live { operator: RITA, names: &AgentNames::default(), plan: &read },
        )
        .unwrap();
        let missing = &answer.outcome.missing;
        assert!(
            !answer.outcome.passed && missing.len() == 1 && missing[0].what.contains(expected),
            "{missing:?}"
        );
    };
    for (at, trigger) in ["critical-failure", "policy-violation", "wrong-routing"].into_iter().enumerate() {
        check(&|plan| drop(plan["triggers"].as_array_mut().unwrap().remove(at)), trigger);
    }
    check(&|plan| drop(plan["steps"].as_array_mut().unwrap().remove(0)), "does not demote");
}

#[test]
fn a_plan_is_looked_for_where_it_is_named() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test lays out a workspace")]
        std::fs::write(path, text).unwrap();
    };
    write("policies/routes.json", r#"{"routes": {}}"#);
    write("plans/back.md", "## Trigger\nx\n## Revert\ny");
    write("plans/back.json", include_str!("../../../docs/examples/rollback-plan.json"));
    let set = crate::policy::Workspace::new(root.path()).load_policies().unwrap();
    let read = |plan_ref: Option<&str>| read_plan(set.references(), plan_ref).map(|plan| plan.form);
    assert_eq!(read(Some("plans/back.md")), Ok(PlanForm::Document));
    assert!(matches!(read(Some("plans/back.json")), Ok(PlanForm::Structured { .. })));
    assert_eq!(read(None), Err(PlanFault::None));
    let fault = |plan_ref: &str| read(Some(plan_ref)).unwrap_err().to_string();
    assert_eq!(fault("plans/none.md"), "the rollback plan `plans/none.md` does not exist in the workspace");
    assert_eq!(fault("../back.md"), "the rollback plan `../back.md` is not a plain path below the workspace");
    assert_eq!(fault("plans"), "the rollback plan `plans` is not a file");
}
