//! What holds for any events, in any order.

use std::collections::BTreeMap;

use handoffd::wire::{Applied, Contracts, Envelope, Reducer, TaskState, WireCode};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::support::{Stage, fixtures};

/// All that can be seen of a reducer and of what it handed out.
fn shown(reducer: &Reducer<'_>, closed: &BTreeMap<String, TaskState>) -> String {
    let projects: Vec<_> = reducer.projects().collect();
    let routes: Vec<_> = reducer.routes().collect();
    let open: Vec<_> = reducer.open_tasks().collect();
    format!("{open:?} {closed:?} {projects:?} {routes:?}")
}

/// Everything taken in, and the codes of what was not.
fn reduce(texts: &[String]) -> (Reducer<'static>, BTreeMap<String, TaskState>, Vec<Option<WireCode>>) {
    let mut reducer = Reducer::new(Contracts::embedded());
    let mut closed = BTreeMap::new();
    let mut codes = Vec::new();
    for text in texts {
        codes.push(step(&mut reducer, &mut closed, text));
    }
    (reducer, closed, codes)
}

fn step(reducer: &mut Reducer<'_>, closed: &mut BTreeMap<String, TaskState>, text: &str) -> Option<WireCode> {
    let applied = match Envelope::parse(text) {
        Ok(envelope) => reducer.apply(&envelope),
        Err(faults) => return Some(faults.first().expect("a refusal has a reason").code),
    };
    match applied {
        Ok(Applied::Open) => None,
        Ok(Applied::Closed(task)) => {
            assert_eq!(reducer.closed_as(&task.stream_id), task.state);
            assert!(closed.insert(task.stream_id.clone(), *task).is_none(), "a stream ended twice");
            None
        }
        Err(fault) => Some(fault.code),
    }
}

const STEPS: [&str; 14] = [
    "task.created",
    "gate.decided",
    "task.available",
    "approval.requested",
    "approval.granted",
    "task.rejected",
    "task.claimed",
    "task.started",
    "artifact.ready",
    "task.blocked",
    "task.complete",
    "task.failed",
    "task.cancelled",
    "message.sent",
];

/// A walk through one stream. Work goes on more often than it ends, so that walks get somewhere.
fn walk() -> impl Strategy<Value = Vec<usize>> {
    let step = prop_oneof![
        6 => prop_oneof![Just(6_usize), Just(7), Just(8), Just(9), Just(2)],
        2 => 0..STEPS.len(),
    ];
    (vec(step, 0..24), any::<bool>()).prop_map(|(mut steps, waits)| {
        let begin: &[usize] = if waits { &[0, 1, 3, 4, 2] } else { &[0, 1, 2] };
        steps.splice(0..0, begin.iter().copied());
        steps
    })
}

/// The texts of a walk's events, refused ones too.
fn texts(stream: usize, walk: &[usize]) -> Vec<String> {
    let fixtures = fixtures();
    let mut stage = Stage::new(Contracts::embedded(), &fixtures);
    let mut texts = Vec::new();
    for (n, at) in walk.iter().enumerate() {
        let mut change = json!({
            "type": STEPS[*at],
            "stream_id": format!("task:hs_walk_{stream}:attempt:1"),
            "wire_id": format!("wire_{stream:08}{n:018}"),
        });
        if STEPS[*at] == "artifact.ready" {
            change["payload"] =
                json!({"artifact_id": format!("art_{}", n % 3), "version": n + 1, "final": n % 3 == 0});
        }
        if STEPS[*at] == "task.complete" {
            change["payload"] = json!({"artifact_ids": ["art_0"]});
        }
        let event = stage.event(&change);
        stage.take(&event);
        texts.push(event.to_string());
    }
    texts
}

/// One order of several lists that keeps each one's own.
fn interleaved(mut lists: Vec<Vec<String>>, picks: &[usize]) -> Vec<String> {
    lists.iter_mut().for_each(|list| list.reverse());
    let mut all = Vec::new();
    let mut picks = picks.iter().cycle();
    while lists.iter().any(|list| !list.is_empty()) {
        let count = lists.len();
        let at = picks.next().unwrap_or(&0) % count;
        let at = (0..count).map(|n| (at + n) % count).find(|at| !lists[*at].is_empty()).unwrap();
        all.extend(lists[at].pop());
    }
    all
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
        prop::sample::select(&STEPS[..]).prop_map(Json::from),
        Just(json!("task:hs_walk_0:attempt:1")),
        Just(json!("agent:crypto-sage")),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let names = prop::sample::select(vec![
            "wire",
            "wire_id",
            "type",
            "sender",
            "ts",
            "stream",
            "state",
            "payload",
            "stream_id",
            "stream_seq",
            "artifact_ids",
            "verification",
            "x",
        ]);
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Json::from),
            vec((names, inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// A valid fixture with one value replaced.
fn bent() -> impl Strategy<Value = Json> {
    let valid: Vec<Json> =
        fixtures().into_iter().filter(|(file, _)| file.contains(".valid")).map(|(_, event)| event).collect();
    (prop::sample::select(valid), any::<prop::sample::Index>(), json()).prop_map(|(mut event, at, value)| {
        let mut pointers = Vec::new();
        paths(&event, String::new(), &mut pointers);
        *event.pointer_mut(&pointers[at.index(pointers.len())]).unwrap() = value;
        event
    })
}

fn paths(value: &Json, pointer: String, found: &mut Vec<String>) {
    if let Json::Object(members) = value {
        members.iter().for_each(|(name, value)| paths(value, format!("{pointer}/{name}"), found));
    }
    found.push(pointer);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Total, and the same each time.
    #[test]
    fn any_text_is_an_answer(events in vec(prop_oneof![json(), bent()], 0..12), noise in ".{0,40}") {
        let mut texts: Vec<String> = events.iter().map(Json::to_string).collect();
        texts.push(noise);
        let (once, again) = (reduce(&texts), reduce(&texts));
        prop_assert_eq!(shown(&once.0, &once.1), shown(&again.0, &again.1));
        prop_assert_eq!(once.2, again.2);
    }

    /// A refused event changes nothing, and what has ended stays as it ended.
    #[test]
    fn what_is_refused_changes_nothing_and_what_ended_stays(walks in vec(walk(), 1..4), picks in vec(0_usize..4, 1..64)) {
        let lists = walks.iter().enumerate().map(|(n, walk)| texts(n, walk)).collect();
        let mut reducer = Reducer::new(Contracts::embedded());
        let mut closed = BTreeMap::new();
        for text in interleaved(lists, &picks) {
            let (before, ended) = (shown(&reducer, &closed), closed.clone());
            let refused = step(&mut reducer, &mut closed, &text);
            if refused.is_some() {
                prop_assert_eq!(before, shown(&reducer, &closed));
            } else {
                prop_assert_ne!(before, shown(&reducer, &closed));
            }
            for (name, task) in ended {
                prop_assert_eq!(&closed[&name], &task);
                prop_assert!(reducer.open_task(&name).is_none());
            }
        }
    }

    /// Streams do not know of each other.
    #[test]
    fn the_order_of_independent_streams_does_not_matter(
        walks in vec(walk(), 1..5), one in vec(0_usize..5, 1..64), other in vec(0_usize..5, 1..64),
    ) {
        let lists: Vec<Vec<String>> = walks.iter().enumerate().map(|(n, walk)| texts(n, walk)).collect();
        let together = reduce(&interleaved(lists.clone(), &one));
        let otherwise = reduce(&interleaved(lists.clone(), &other));
        prop_assert_eq!(shown(&together.0, &together.1), shown(&otherwise.0, &otherwise.1));
        for list in &lists {
            let alone = reduce(list);
            for task in alone.0.open_tasks() {
                prop_assert_eq!(together.0.open_task(&task.stream_id), Some(task));
            }
            for (name, task) in &alone.1 {
                prop_assert_eq!(together.1.get(name), Some(task));
            }
        }
    }

    /// A prefix and then the rest is the whole.
    #[test]
    fn replaying_a_prefix_and_then_the_rest_equals_replaying_all(
        walks in vec(walk(), 1..4), picks in vec(0_usize..4, 1..64), cut in any::<prop::sample::Index>(),
    ) {
        let lists = walks.iter().enumerate().map(|(n, walk)| texts(n, walk)).collect();
        let all = interleaved(lists, &picks);
        let whole = reduce(&all);
        let (prefix, rest) = all.split_at(cut.index(all.len()));
        let (reducer, mut closed, mut codes) = reduce(prefix);
        let mut resumed = reducer.clone();
        codes.extend(rest.iter().map(|text| step(&mut resumed, &mut closed, text)));
        prop_assert_eq!(shown(&whole.0, &whole.1), shown(&resumed, &closed));
        prop_assert_eq!(whole.2, codes);
    }
}

/// The walks above reach every state; otherwise they would show nothing.
#[test]
fn walks_come_through_every_state() {
    let mut seen = std::collections::BTreeSet::new();
    let walks: [&[usize]; 6] = [
        &[0, 1, 3, 4, 2, 6, 7, 8, 8, 8, 9, 7],
        &[0, 1, 2, 6, 7, 8, 8, 8, 8, 10],
        &[0, 1, 5],
        &[0, 1, 2, 6, 11],
        &[0, 12],
        &[13],
    ];
    for (n, walk) in walks.iter().enumerate() {
        let all = texts(n, walk);
        for cut in 0..=all.len() {
            let (reducer, closed, _) = reduce(&all[..cut]);
            seen.extend(reducer.open_tasks().chain(closed.values()).filter_map(|task| task.state));
        }
    }
    assert_eq!(seen.len(), handoffd::wire::State::ALL.len(), "{seen:?}");
}
