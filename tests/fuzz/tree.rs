//! Changes that leave JSON what it is: so most of what is tried gets past the reader of JSON, to what reads the document.

use serde_json::{Map, Value, json};

use crate::support::Dice;

/// Changes a document here and there, and writes it anew; nothing where the bytes are none. Of JSON lines it changes one.
pub(crate) fn mutate(dice: &mut Dice, bytes: &[u8], others: &[Vec<u8>]) -> Option<Vec<u8>> {
    if let Ok(mut document) = serde_json::from_slice::<Value>(bytes) {
        change_some(dice, &mut document, others);
        return Some(write(dice, &document));
    }
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let at = dice.roll(lines.len());
    let mut line: Value = serde_json::from_slice(lines[at]).ok()?;
    change_some(dice, &mut line, others);
    let line = line.to_string();
    lines[at] = line.as_bytes();
    Some(lines.join(&b'\n'))
}

/// Is it JSON, or are its lines?
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    let is_document = |bytes: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).peekable();
    is_document(bytes) || (lines.peek().is_some() && lines.all(is_document))
}

fn change_some(dice: &mut Dice, document: &mut Value, others: &[Vec<u8>]) {
    for _ in 0..[1, 1, 1, 2, 3, 8][dice.roll(6)] {
        let place = dice.roll(places(document));
        change(dice, at(document, place), others);
    }
}

/// How many values there are in it, itself included.
fn places(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(places).sum(),
        Value::Object(members) => members.values().map(places).sum(),
        _ => 0,
    }
}

/// The value at that place, counted from the outside in.
fn at(value: &mut Value, place: usize) -> &mut Value {
    let Some(mut left) = place.checked_sub(1) else { return value };
    let inside: Box<dyn Iterator<Item = &mut Value>> = match value {
        Value::Array(items) => Box::new(items.iter_mut()),
        Value::Object(members) => Box::new(members.values_mut()),
        _ => unreachable!("it has places inside"),
    };
    for one in inside {
        let here = places(one);
        if left < here {
            return at(one, left);
        }
        left -= here;
    }
    unreachable!("places are counted alike")
}

fn change(dice: &mut Dice, value: &mut Value, others: &[Vec<u8>]) {
    match (dice.roll(4), value) {
        (0, value) => *value = edge(dice),
        (1, value) => {
            // What stands somewhere else, in this document's kind or another.
            let other: Option<Value> = serde_json::from_slice(&others[dice.roll(others.len())]).ok();
            *value = other.map_or(Value::Null, |mut other| {
                let place = dice.roll(places(&other));
                at(&mut other, place).take()
            });
        }
        (_, Value::Object(members)) => change_members(dice, members),
        (_, Value::Array(items)) if !items.is_empty() => {
            let at = dice.roll(items.len());
            match dice.roll(3) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, items[at].clone()),
                _ => items.rotate_left(at),
            }
        }
        (_, Value::String(text)) => change_text(dice, text),
        (_, Value::Number(number)) if number.is_i64() => {
            *number = (number.as_i64().unwrap().saturating_add([-1, 1][dice.roll(2)])).into();
        }
        (_, value) => *value = edge(dice),
    }
}

fn change_members(dice: &mut Dice, members: &mut Map<String, Value>) {
    let Some(name) = members.keys().nth(dice.roll(members.len().max(1))).cloned() else {
        members.insert("x".to_owned(), edge(dice));
        return;
    };
    match dice.roll(4) {
        0 => drop(members.shift_remove(&name)),
        1 => drop(members.insert(format!("{name}x"), edge(dice))),
        2 => {
            // The same under another spelling.
            let taken = members.shift_remove(&name).unwrap();
            members.insert(name.to_uppercase(), taken);
        }
        _ => {
            // Two members change places.
            let other = members.keys().nth(dice.roll(members.len())).cloned().unwrap();
            let (one, two) = (members[&name].clone(), members[&other].clone());
            members.insert(name, two);
            members.insert(other, one);
        }
    }
}

fn change_text(dice: &mut Dice, text: &mut String) {
    match dice.roll(6) {
        0 => text.clear(),
        1 => drop(text.pop()),
        2 => text.push(['x', '0', ' ', 'é', '\u{1f600}', '\u{0}', '\u{202e}'][dice.roll(7)]),
        3 => *text = text.to_uppercase(),
        4 => *text = text.repeat(1 + dice.roll(40)),
        _ => {
            let at = text.char_indices().nth(dice.roll(text.chars().count().max(1))).map_or(0, |(at, _)| at);
            text.insert(at, ['-', '/', '*', '.', '~', '1'][dice.roll(6)]);
        }
    }
}

/// What is at the edge of what somebody expects.
fn edge(dice: &mut Dice) -> Value {
    let all = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(0.5),
        json!(1e300),
        json!(i64::MAX),
        json!(9_007_199_254_740_993_i64),
        json!(""),
        json!("*"),
        json!("x".repeat(300)),
        json!("2026-02-18T19:37:59.999999999Z"),
        json!("2026-02-30T00:00:00Z"),
        json!([]),
        json!({}),
        json!([[]]),
        json!([null]),
    ];
    all[dice.roll(all.len())].clone()
}

fn write(dice: &mut Dice, document: &Value) -> Vec<u8> {
    if dice.roll(4) == 0 {
        serde_json::to_vec_pretty(document).unwrap()
    } else {
        serde_json::to_vec(document).unwrap()
    }
}

#[test]
fn every_place_of_a_document_is_found_once() {
    let mut document = json!({"a": [1, {"b": 2}], "c": "3", "d": {}});
    let found: Vec<Value> = (0..places(&document)).map(|place| at(&mut document, place).clone()).collect();
    let whole = document.clone();
    assert_eq!(
        found,
        [whole, json!([1, {"b": 2}]), json!(1), json!({"b": 2}), json!(2), json!("3"), json!({})]
    );
}

#[test]
fn what_is_changed_stays_json_and_is_another_document() {
    let (mut dice, seeds) = (Dice(7), [br#"{"a": ["one", 2, {"b": null}], "c": "three"}"#.to_vec()]);
    let before: Value = serde_json::from_slice(&seeds[0]).unwrap();
    let after: Vec<Value> = (0..200)
        .map(|_| serde_json::from_slice(&mutate(&mut dice, &seeds[0], &seeds).unwrap()).unwrap())
        .collect();
    assert!(after.iter().filter(|after| **after != before).count() > 150);
    let lines = b"{\"n\":1}\n{\"n\":2}\n".to_vec();
    assert!((0..50).filter_map(|_| mutate(&mut dice, &lines, &seeds)).all(|lines| is_json(&lines)));
    assert!(!is_json(b"") && !is_json(b"{") && !is_json(b"{}\n{"));
}
