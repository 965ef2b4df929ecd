//! The contracts are the machine: alter one anywhere, and something fails.

use handoffd::wire::{CONTRACT_TEXTS, ContractTexts, Contracts};
use serde_json::Value as Json;

use super::suite::Suite;

/// Texts for people change nothing.
const PROSE: [&str; 2] = ["description", "when"];

/// Every document that differs in one place: a value taken away, put in twice, or changed.
fn altered(document: &Json) -> Vec<(String, Json)> {
    let mut found = Vec::new();
    walk(document, "", &mut |pointer, value| found.push((pointer.to_owned(), value.clone())));
    let mut all = Vec::new();
    for (pointer, value) in found {
        let mut change = |what: &str, make: &dyn Fn(&mut Json)| {
            let mut other = document.clone();
            make(&mut other);
            assert_ne!(&other, document, "{pointer}");
            all.push((format!("{pointer} {what}"), other));
        };
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        change("taken away", &|document| match document.pointer_mut(parent).unwrap() {
            Json::Object(members) => drop(members.shift_remove(&last.replace("~1", "/"))),
            Json::Array(items) => drop(items.remove(last.parse().unwrap())),
            _ => unreachable!("a pointer has a parent"),
        });
        if let Json::Array(_) = document.pointer(parent).unwrap()
            && !matches!(value, Json::String(_))
        {
            change("twice", &|document| {
                document.pointer_mut(parent).unwrap().as_array_mut().unwrap().push(value.clone());
            });
        }
        let others: Vec<Json> = match &value {
            Json::Bool(flag) => vec![Json::Bool(!flag)],
            Json::Null => WORDS.iter().map(|word| Json::from(*word)).collect(),
            Json::String(text) => {
                let words = WORDS.iter().filter(|word| *word != text).map(|word| Json::from(*word));
                words.chain([Json::Null]).collect()
            }
            _ => Vec::new(),
        };
        for other in others {
            change(&format!("is {other}"), &|document| {
                *document.pointer_mut(&pointer).unwrap() = other.clone()
            });
        }
    }
    all
}

/// Words of every vocabulary in the contracts, and one of none.
const WORDS: [&str; 21] = [
    "created",
    "waiting",
    "available",
    "working",
    "blocked",
    "completed",
    "failed",
    "cancelled",
    "submitted",
    "input_required",
    "input-required",
    "TASK_STATE_WORKING",
    "system",
    "agent",
    "human",
    "task",
    "project",
    "task.failed",
    "status-update",
    "message",
    "nonsense",
];

fn walk(value: &Json, pointer: &str, visit: &mut dyn FnMut(&str, &Json)) {
    if !pointer.is_empty() {
        visit(pointer, value);
    }
    match value {
        Json::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !PROSE.contains(&name.as_str())) {
                walk(value, &format!("{pointer}/{name}"), visit);
            }
        }
        Json::Array(items) => {
            for (n, value) in items.iter().enumerate() {
                walk(value, &format!("{pointer}/{n}"), visit);
            }
        }
        _ => {}
    }
}

/// How many alterations there are, and those that nobody noticed.
fn unnoticed(text: &str, with: impl Fn(&str) -> Result<Contracts, String>) -> (usize, Vec<String>) {
    let suite = Suite::read();
    let document: Json = serde_json::from_str(text).unwrap();
    let all = altered(&document);
    let slipped = all.iter().filter(|(_, altered)| {
        with(&altered.to_string()).and_then(|contracts| suite.all(&contracts)).is_ok()
    });
    (all.len(), slipped.map(|(what, _)| what.clone()).collect())
}

fn parse(texts: &ContractTexts<'_>) -> Result<Contracts, String> {
    Contracts::parse(texts).map_err(|fault| fault.to_string())
}

#[test]
fn the_contracts_as_they_are_pass_everything() {
    let contracts = parse(&CONTRACT_TEXTS).unwrap();
    assert_eq!(&contracts, Contracts::embedded());
    Suite::read().all(&contracts).unwrap();
}

#[test]
fn an_altered_state_machine_is_noticed() {
    let (count, slipped) = unnoticed(CONTRACT_TEXTS.task_state_machine, |text| {
        parse(&ContractTexts { task_state_machine: text, ..CONTRACT_TEXTS })
    });
    assert!(count > 1_000, "{count}");
    assert!(slipped.is_empty(), "{slipped:#?}");
}

#[test]
fn an_altered_event_map_is_noticed() {
    let (count, slipped) = unnoticed(CONTRACT_TEXTS.event_state_map, |text| {
        parse(&ContractTexts { event_state_map: text, ..CONTRACT_TEXTS })
    });
    assert!(count > 1_000, "{count}");
    assert!(slipped.is_empty(), "{slipped:#?}");
}

#[test]
fn an_altered_a2a_map_is_noticed() {
    let (count, slipped) = unnoticed(CONTRACT_TEXTS.a2a_task_state_map, |text| {
        parse(&ContractTexts { a2a_task_state_map: text, ..CONTRACT_TEXTS })
    });
    assert!(count > 1_000, "{count}");
    assert!(slipped.is_empty(), "{slipped:#?}");
}

/// One that says too little, too much, or two things, is refused before anything runs on it.
#[test]
fn contracts_that_do_not_agree_are_refused() {
    let refused = |texts: &ContractTexts<'_>, file: &str, why: &str| {
        let fault = Contracts::parse(texts).unwrap_err();
        assert_eq!(fault.file, file, "{fault}");
        assert!(fault.message.contains(why), "{fault}");
    };
    let machine = CONTRACT_TEXTS.task_state_machine;
    let with_machine = |from: &str, to: &str, why: &str| {
        assert!(machine.contains(from), "{from}");
        let text = machine.replacen(from, to, 1);
        refused(&ContractTexts { task_state_machine: &text, ..CONTRACT_TEXTS }, "task-state-machine", why);
    };
    with_machine("\"wire\": \"1.1\"", "\"wire\": \"1.2\"", "another contract");
    with_machine("\"wire\": \"1.1\",", "\"wire\": \"1.1\", \"wire\": \"1.1\",", "stands twice");
    with_machine("\"wire\": \"1.1\",", "\"wire\": \"1.1\", \"extra\": 1,", "unknown field");
    with_machine(
        "\"waiting\": {\"category\": \"auth_required\", \"terminal\": false},",
        "",
        "`waiting` is missing",
    );
    with_machine(
        "[\"claimed\", \"blocked\"], \"to\": \"working\"",
        "[\"claimed\", \"claimed\"], \"to\": \"working\"",
        "two transitions",
    );
    with_machine(
        "\"from\": [\"available\"], \"to\": \"claimed\"",
        "\"from\": [\"failed\"], \"to\": \"claimed\"",
        "out of a terminal state",
    );
    with_machine("\"to\": \"claimed\"", "\"to\": \"created\"", "nothing leads to `claimed`");
    with_machine(
        "\"from\": [\"available\"], \"to\": \"claimed\"",
        "\"from\": [], \"to\": \"claimed\"",
        "no start",
    );
    let map = CONTRACT_TEXTS.event_state_map.replace("\"input_required\"", "\"working\"");
    refused(&ContractTexts { event_state_map: &map, ..CONTRACT_TEXTS }, "event-state-map", "another state");
    let a2a = CONTRACT_TEXTS.a2a_task_state_map.replace("\"artifact-update\"", "\"status-update\"");
    refused(&ContractTexts { a2a_task_state_map: &a2a, ..CONTRACT_TEXTS }, "a2a-task-state-map", "shown so");
}
