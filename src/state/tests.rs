//! The state document: what each entry makes of it, and how it is published beside other hands.

mod adopting;
mod differing;
mod following;
mod snapshots;

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::*;
use crate::contract::{Compiled, Instance};
use crate::ledger::{BatchBuilder, Entry, Head, Log as _, MemoryLog, Source};
use crate::limits;
use crate::timestamp::Timestamp;

const TOPIC: &str = "gw_test";

/// A history that tests put together event by event.
struct History {
    entries: Vec<Entry>,
    head: Head,
    log: MemoryLog,
    /// Seconds between the first entry and the next, beside one for each entry.
    later: i64,
}

impl History {
    fn new() -> Self {
        Self { entries: Vec::new(), head: Head::genesis(TOPIC), log: MemoryLog::new(TOPIC), later: 0 }
    }

    fn event(&mut self, kind: &str, stream: &str, payload: &Json) -> &mut Self {
        let now = Timestamp::parse("2026-02-18T19:38:00Z").unwrap();
        let now = now.plus_seconds(i64::try_from(self.head.sequence).unwrap() + self.later);
        let mut batch = BatchBuilder::new(TOPIC, self.head, None);
        let id = format!("wire_{:08}", self.head.sequence);
        let named = format!("\"{stream}\"");
        let stream_seq = 1 + self.entries.iter().filter(|entry| entry.wire.contains(&named)).count();
        let stream = json!({"stream_id": stream, "stream_seq": stream_seq});
        let wire =
            json!({"wire_id": id, "type": kind, "sender": "system", "stream": stream, "payload": payload});
        batch.event(wire.to_string(), now);
        let batch = batch.seal().unwrap();
        self.log.append(self.head, &batch).unwrap();
        self.head = batch.head();
        self.entries.extend_from_slice(batch.entries());
        self
    }

    fn decision(&mut self, id: &str, decision: &str, delegated: bool) -> &mut Self {
        let stream = format!("task:{id}:attempt:1");
        let delegation = delegated.then(|| {
            json!({"authorization_ref": null, "delegate_agent": "decision-router", "envelope_hash": "sha256:00",
                "policy_ref": "policies/delegation/user-main-v1.json", "principal": "user:main", "risk_classification": "read"})
        });
        let facts = json!({"handoff_id": id, "mode": "dev", "operation": "balance.read", "route_key": "route.v1",
            "source_agent": "decision-router", "target_agent": "crypto-sage", "delegation": delegation});
        self.event("task.created", &stream, &facts).event(
            "gate.decided",
            &stream,
            &json!({"decision": decision}),
        )
    }

    /// The ledger that has it.
    fn ledger(&self) -> Source {
        Source::Memory(self.log.store().clone())
    }

    fn view(&self) -> StateView {
        let mut view = StateView::empty(TOPIC);
        self.entries.iter().for_each(|entry| view.apply(entry).unwrap());
        view
    }

    fn rebuild(&self, published: Option<&str>) -> Published {
        let entries = self.entries.iter().cloned().map(Ok);
        rebuild(TOPIC, entries, published).unwrap().1
    }
}

fn document(view: &StateView) -> Json {
    let text = view.render();
    let schema =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas/orchestration-state.schema.json"));
    let schema = Compiled::new(serde_json::from_slice(&schema.unwrap()).unwrap()).unwrap();
    let read = crate::json::read(text.as_bytes(), limits::WORKSPACE_FILE).unwrap();
    let findings = schema.findings(Instance::Document(read.root()));
    assert!(findings.is_empty(), "{findings:?}\n{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_document_is_valid_from_the_first_moment_and_moves_with_every_entry() {
    let mut history = History::new();
    let empty = document(&history.view());
    assert_eq!(empty["promotion"]["currentStage"], "dev");
    assert_eq!(empty["ledger"]["sequence"], 0);
    let route = json!({"capability": "work", "fallback_agent_id": null, "primary_agent_id": "crypto-sage", "stage": "simulated"});
    history.event("policy.loaded", "project:gw_test", &json!({"digest": "sha256:00"}));
    history.event("route.declared", "phase:route.v1", &route);
    let mut last = document(&history.view());
    assert_eq!(last["promotion"]["currentStage"], "simulated");
    assert_eq!(last["promotion"]["candidateStage"], "live");
    assert_eq!(last["routingTable"]["route.v1"]["primaryAgentId"], "crypto-sage");
    for (id, decision) in
        [("hs_00000001", "allowed"), ("hs_00000002", "denied"), ("hs_00000003", "needs_approval")]
    {
        let next = document(&history.decision(id, decision, true).view());
        assert!(next["updatedAt"].as_str() > last["updatedAt"].as_str(), "updatedAt always moves");
        last = next;
    }
    let active = last["activeHandoffs"].as_object().unwrap();
    assert_eq!(
        active.keys().collect::<Vec<_>>(),
        ["hs_00000001", "hs_00000003"],
        "refused ones are not in it"
    );
    assert_eq!(
        (&active["hs_00000001"]["status"], &active["hs_00000003"]["status"]),
        (&json!("queued"), &json!("needs_approval"))
    );
    let log: Vec<&str> = last["delegationAuditLog"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["handoffId"].as_str().unwrap())
        .collect();
    assert_eq!(log, ["hs_00000001", "hs_00000002"], "one that waits is logged when it is settled");
    // The least advanced route speaks for all.
    let dev =
        json!({"capability": "work", "fallback_agent_id": "x2", "primary_agent_id": "x1", "stage": "dev"});
    assert_eq!(
        document(&history.event("route.declared", "phase:route.v2", &dev).view())["promotion"]["currentStage"],
        "dev"
    );
    let removed = document(&history.event("route.removed", "phase:route.v2", &json!({})).view());
    assert_eq!(removed["promotion"]["currentStage"], "simulated");
    assert_eq!(removed["routingTable"].as_object().unwrap().len(), 1);
}

#[test]
fn a_flood_of_refusals_pushes_no_allowed_delegation_out() {
    let mut history = History::new();
    for n in 0..100 {
        history.decision(&format!("hs_allowed_{n:04}"), "allowed", true);
    }
    for n in 0..limits::DELEGATION_LOG_MAX {
        history.decision(&format!("hs_denied_{n:05}"), if n % 2 == 0 { "denied" } else { "expired" }, true);
    }
    let log = document(&history.view())["delegationAuditLog"].as_array().unwrap().clone();
    let allowed = log.iter().filter(|row| row["decision"] == "allowed").count();
    assert_eq!((log.len(), allowed), (limits::DELEGATION_LOG_MAX / 2 + 100, 100));
    for n in 0..limits::DELEGATION_LOG_MAX {
        history.decision(&format!("hs_later_{n:06}"), "allowed", true);
    }
    let log = document(&history.view())["delegationAuditLog"].as_array().unwrap().clone();
    assert_eq!(log.len(), limits::DELEGATION_LOG_MAX);
    assert_eq!(log.last().unwrap()["handoffId"], "hs_later_000499", "the newest are kept");
}

#[test]
fn the_size_that_decides_how_it_is_published_is_the_documents() {
    let mut history = History::new();
    for n in 0..700 {
        history.decision(&format!("hs_{n:08}"), if n % 3 == 0 { "denied" } else { "allowed" }, n % 2 == 0);
    }
    let view = history.view();
    let (told, actual) = (view.bytes(), view.render().len());
    assert!(told.abs_diff(actual) < actual / 10, "told {told}, is {actual}");
}

#[test]
fn a_published_file_is_measured_by_the_ledger() {
    let mut history = History::new();
    history.decision("hs_00000001", "allowed", false);
    let early = history.view().render();
    history.decision("hs_00000002", "allowed", true);
    let current = history.view().render();
    assert_eq!(history.rebuild(None), Published::Missing);
    assert_eq!(history.rebuild(Some(&early)), Published::AsOf(2), "behind is not wrong");
    assert_eq!(history.rebuild(Some(&current)), Published::AsOf(4));
    let edited = history.rebuild(Some(&current.replace("queued", "done")));
    assert!(matches!(edited, Published::Edited { sequence: 4, .. }), "{edited:?}");
    assert_eq!(
        history.rebuild(Some(&current.replace("\"sequence\":4", "\"sequence\":9"))),
        Published::Ahead { sequence: 9 }
    );
    assert_eq!(history.rebuild(Some("{}")), Published::Unreadable);
    for cut in 1..current.len() - 2 {
        assert_eq!(history.rebuild(current.get(..cut)), Published::Torn, "cut at {cut}");
    }
    assert_eq!(history.rebuild(Some("[")), Published::Unreadable, "no beginning of ours");
}

/// It is not synced, so a power cut may leave any beginning of it, and zeros in the place of any part.
#[test]
fn what_a_power_cut_leaves_of_the_file_is_made_again_and_an_edit_is_not() {
    let mut history = History::new();
    history.decision("hs_00000001", "allowed", true);
    let current = history.view().render().replace("queued", "„später“");
    let whole = current.as_bytes();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    let found = |bytes: &[u8]| {
        crate::os::files::replace_private(&path, bytes).unwrap();
        let text = Publisher::new(path.clone()).read().map_err(|error| error.to_string())?;
        Ok::<_, String>(history.rebuild(text.as_deref()))
    };
    for cut in 1..whole.len() - 2 {
        let mut torn = whole[..cut].to_vec();
        assert_eq!(found(&torn), Ok(Published::Torn), "cut at {cut}");
        torn.resize(whole.len(), 0);
        assert_eq!(found(&torn), Ok(Published::Torn), "zeros from {cut}");
        let mut holed = whole.to_vec();
        holed[cut - 1..(cut + 64).min(whole.len())].fill(0);
        assert_eq!(found(&holed), Ok(Published::Torn), "zeros behind {cut}");
    }
    assert_eq!(found(&[whole, b"\0"].concat()), Ok(Published::Torn));
    for nothing in ["", "\0\0\0", "\n"] {
        assert_eq!(found(nothing.as_bytes()), Ok(Published::Missing));
    }
    assert!(matches!(found(whole), Ok(Published::Edited { .. })));
    for more in [[0xC3].as_slice(), b"{}"] {
        assert_eq!(found(&[whole, more].concat()), Ok(Published::Unreadable), "{more:?}");
    }
    // No beginning of anything ends so.
    let within = [b"{\"".as_slice(), &[0xC3, b'a'], b"\":1}"].concat();
    assert!(found(&within).unwrap_err().contains("invalid utf-8"));
}

#[test]
fn a_file_from_before_the_first_entry_is_of_no_ledger_in_particular() {
    let mut history = History::new();
    let blank = StateView::empty("gw_other").render();
    assert_eq!(history.rebuild(Some(&StateView::empty(TOPIC).render())), Published::AsOf(0));
    assert_eq!(history.rebuild(Some(&blank)), Published::Missing);
    // What says more than that was edited, and what names an entry was not from before the first one.
    let fact = blank.replace("\"lastGatePassed\":null", "\"lastGatePassed\":\"G4\"");
    assert_ne!(fact, blank);
    assert!(matches!(history.rebuild(Some(&fact)), Published::Edited { sequence: 0, .. }));
    let ahead = blank.replace("\"sequence\":0", "\"sequence\":1");
    assert_eq!(history.rebuild(Some(&ahead)), Published::Ahead { sequence: 1 });
    history.decision("hs_00000001", "allowed", false);
    assert!(matches!(history.rebuild(Some(&ahead)), Published::Edited { sequence: 1, .. }));
}

#[test]
fn an_entry_out_of_order_is_refused() {
    let mut history = History::new();
    history.decision("hs_00000001", "allowed", false);
    let mut view = StateView::empty(TOPIC);
    assert_eq!(view.apply(&history.entries[1]), Err(StateFault { sequence: 2 }));
    view.apply(&history.entries[0]).unwrap();
    assert_eq!(view.apply(&history.entries[0]), Err(StateFault { sequence: 1 }));
}

#[test]
fn a_handoff_is_shown_as_it_moves_and_for_a_while_after_it_has_ended() {
    let mut history = History::new();
    let stream = |id: &str| format!("task:{id}:attempt:1");
    for id in ["hs_00000001", "hs_00000002", "hs_00000003"] {
        history.decision(id, "allowed", false).event("task.available", &stream(id), &json!({}));
    }
    let mut step = |id: &str, kind: &str, payload: Json, status: &str, code: Json| {
        let view = history.event(kind, &stream(id), &payload).view();
        let shown = document(&view)["activeHandoffs"][id].clone();
        assert_eq!((&shown["status"], &shown["lastErrorCode"]), (&json!(status), &code), "{kind}");
        assert_eq!(shown["lastUpdatedAt"], history.entries.last().unwrap().consensus_timestamp.as_str());
    };
    let none = Json::Null;
    step("hs_00000001", "task.claimed", json!({}), "running", none.clone());
    step("hs_00000001", "task.started", json!({}), "running", none.clone());
    step("hs_00000001", "task.blocked", json!({"reason": "x"}), "blocked", none.clone());
    step("hs_00000001", "task.available", json!({}), "queued", none.clone());
    step("hs_00000001", "task.claimed", json!({}), "running", none.clone());
    step("hs_00000001", "task.started", json!({}), "running", none.clone());
    step("hs_00000001", "artifact.ready", json!({}), "running", none.clone());
    step("hs_00000001", "task.complete", json!({}), "done", none);
    step(
        "hs_00000002",
        "task.failed",
        json!({"code": "EXECUTION_TIMEOUT"}),
        "failed",
        json!("EXECUTION_TIMEOUT"),
    );
    step("hs_00000003", "task.cancelled", json!({"reason": "x"}), "failed", json!("TASK_CANCELLED"));

    let shown = |history: &mut History, later: i64| {
        history.later = later;
        let view = history.event("policy.loaded", "project:gw_test", &json!({"digest": "sha256:00"})).view();
        let text = view.render();
        assert!(text.len() <= view.bytes(), "what has gone is no longer counted, and what is there is");
        document(&view)["activeHandoffs"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    // Every entry is a second later than the one before it, and so they go one after the other.
    for left in [3, 2, 1, 0] {
        assert_eq!(shown(&mut history, limits::ENDED_SHOWN_S - 4).len(), left);
    }
    let empty = history.view();
    assert!(empty.bytes() <= StateView::empty(TOPIC).bytes());
}

/// Texts are borrowed from entries and from what was rendered before, but for those that had to be escaped.
#[test]
fn texts_that_must_be_escaped_are_shown_as_they_were_told() {
    let mut history = History::new();
    let told = "a \"b\" \\ c\n\u{e9}\u{1f}";
    let stream = format!("task:{told}:attempt:1");
    let facts = json!({"handoff_id": told, "mode": told, "operation": told, "route_key": told, "source_agent": told,
        "target_agent": null});
    history.event("task.created", &stream, &facts);
    history.event(
        "gate.decided",
        &stream,
        &json!({"decision": "allowed", "codes": [], "gates": ["g0:pass"]}),
    );
    let shown = |history: &History| -> Json {
        let document: Json = serde_json::from_str(&history.view().render()).unwrap();
        document["activeHandoffs"][told].clone()
    };
    let mut expected = json!({"lastErrorCode": null, "lastUpdatedAt": "2026-02-18T19:38:01.000000000Z", "mode": told,
        "routeKey": told, "sourceAgent": told, "status": "queued", "targetAgent": ""});
    assert_eq!(shown(&history), expected);
    for (kind, payload, status, code) in [
        ("task.claimed", json!({}), "running", Json::Null),
        ("task.blocked", json!({"code": told}), "blocked", Json::Null),
        ("task.failed", json!({"code": told}), "failed", json!(told)),
    ] {
        history.event(kind, &stream, &payload);
        let at = format!("2026-02-18T19:38:{:02}.000000000Z", history.head.sequence - 1);
        for (name, value) in
            [("status", json!(status)), ("lastErrorCode", code), ("lastUpdatedAt", json!(at))]
        {
            expected[name] = value;
        }
        assert_eq!(shown(&history), expected, "{kind}");
    }
}
