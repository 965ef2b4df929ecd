//! What the contracts must hold, as a function of them, so that altered ones can be put to it.

use std::collections::BTreeMap;
use std::fs;

use handoffd::wire::{
    A2aUpdate, ContextState, Contracts, Envelope, Kind, NoTransition, SenderClass, State, StreamKind,
};
use serde_json::Value as Json;

use super::support::{Stage, files, fixtures, kind_of, root};

/// The files that the contracts are put to.
pub(super) struct Suite {
    pub(super) fixtures: BTreeMap<String, Json>,
    pub(super) reasons: Json,
    cases: BTreeMap<String, Json>,
    transitions: Vec<Vec<String>>,
    events: Vec<Vec<String>>,
    states: Vec<Vec<String>>,
}

pub(super) type Checked = Result<(), String>;

pub(super) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

/// The words of each line of a table.
fn table(file: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("tests/conformance/agent-wire").join(file)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn class(word: &str) -> SenderClass {
    SenderClass::ALL.into_iter().find(|class| class.as_str() == word).unwrap()
}

fn classes(words: &str) -> Vec<SenderClass> {
    words.split(',').map(class).collect()
}

impl Suite {
    pub(super) fn read() -> Self {
        Self {
            fixtures: fixtures(),
            reasons: files("tests/conformance/agent-wire").remove("reasons.json").unwrap(),
            cases: files("tests/reducers/agent-wire"),
            transitions: table("transitions.txt"),
            events: table("events.txt"),
            states: table("states.txt"),
        }
    }

    pub(super) fn all(&self, contracts: &Contracts) -> Checked {
        self.states(contracts)?;
        self.events(contracts)?;
        self.transitions(contracts)?;
        self.valid_states(contracts)?;
        self.reasons(contracts)?;
        self.cases(contracts)
    }

    /// Each state has the category and the A2A names that are written down.
    pub(super) fn states(&self, contracts: &Contracts) -> Checked {
        ensure(self.states.len() == State::ALL.len(), || "a state is not in the table".to_owned())?;
        for row in &self.states {
            let [name, _, terminal, v0_3, v1_0] = row.as_slice() else { panic!("{row:?}") };
            let state: State = name.parse().unwrap();
            let shown = contracts.a2a_state(state).unwrap();
            let is = (contracts.is_terminal(state), shown.is_final, &shown.v0_3, &shown.v1_0);
            let terminal = terminal == "terminal";
            ensure(is == (terminal, terminal, v0_3, v1_0), || format!("{state}: {is:?}"))?;
        }
        Ok(())
    }

    /// Each event maps to exactly one category, or to none, and to one kind of update.
    pub(super) fn events(&self, contracts: &Contracts) -> Checked {
        ensure(self.events.len() == Kind::ALL.len(), || "an event is not in the table".to_owned())?;
        for row in &self.events {
            let [name, category, terminal, streams, senders, within, update] = row.as_slice() else {
                panic!("{row:?}")
            };
            let kind: Kind = name.parse().unwrap();
            let expected = (category != "-").then(|| (category.as_str(), terminal == "terminal"));
            let state = contracts.state(kind).map(|(category, terminal)| (category.as_str(), terminal));
            ensure(state == expected, || format!("{kind}: {state:?}"))?;
            let rule = contracts.event(kind).unwrap();
            let named: Vec<&str> = rule.streams.iter().map(|kind: &StreamKind| kind.as_str()).collect();
            ensure(named.join(",") == *streams, || format!("{kind}: {named:?}"))?;
            for class in SenderClass::ALL {
                let may = classes(senders).contains(&class);
                ensure(rule.senders.contains(&class) == may, || format!("{kind} by {class:?}"))?;
            }
            if expected.is_none() {
                for state in std::iter::once(None).chain(State::ALL.map(Some)) {
                    let word = state.map_or("none", State::as_str);
                    let may = match (state, within.as_str()) {
                        (Some(state), _) if contracts.is_terminal(state) => Err(NoTransition::Terminal),
                        (_, "-") => Ok(()),
                        (_, list) if list.split(',').any(|name| name == word) => Ok(()),
                        _ => Err(NoTransition::NotFromHere),
                    };
                    ensure(contracts.may_come(state, kind) == may, || format!("{kind} while {word}"))?;
                }
            }
            let shown = match contracts.a2a_update(kind) {
                None => "-",
                Some(A2aUpdate::Task) => "task",
                Some(A2aUpdate::StatusUpdate) => "status-update",
                Some(A2aUpdate::ArtifactUpdate) => "artifact-update",
                Some(A2aUpdate::Message) => "message",
            };
            ensure(shown == update, || format!("{kind} is shown as {shown}"))?;
        }
        Ok(())
    }

    /// Every state with every event and every sender: those in the table are accepted, all others refused.
    pub(super) fn transitions(&self, contracts: &Contracts) -> Checked {
        let mut accepted = 0;
        for from in std::iter::once(None).chain(State::ALL.map(Some)) {
            let word = from.map_or("none", State::as_str);
            for kind in Kind::ALL.iter().copied() {
                let row = self.transitions.iter().find(|row| row[0] == word && row[1] == kind.as_str());
                for by in SenderClass::ALL {
                    let expected = match row {
                        _ if from.is_some_and(|state| {
                            self.states.iter().any(|row| row[0] == state.as_str() && row[2] == "terminal")
                        }) =>
                        {
                            Err(NoTransition::Terminal)
                        }
                        None => Err(NoTransition::NotFromHere),
                        Some(row) if !classes(&row[2]).contains(&by) => Err(NoTransition::NotBySender),
                        Some(row) => Ok(row[4].parse().unwrap()),
                    };
                    let is = contracts.transition(from, kind, by);
                    ensure(is == expected, || format!("{word} {kind} {by:?}: {is:?}, not {expected:?}"))?;
                    accepted += usize::from(expected.is_ok());
                }
            }
        }
        let listed: usize = self.transitions.iter().map(|row| classes(&row[2]).len()).sum();
        ensure(accepted == listed, || "a line of the table is about nothing".to_owned())
    }

    /// The state that a valid fixture carries is the one that the map has.
    pub(super) fn valid_states(&self, contracts: &Contracts) -> Checked {
        for (file, event) in self.fixtures.iter().filter(|(file, _)| file.contains(".valid")) {
            let kind = kind_of(file);
            let expected = contracts.state(kind);
            let expected = expected.map(|(category, terminal)| (category.as_str(), terminal));
            let state = event.get("state");
            let is = state.map(|s| (s["category"].as_str().unwrap(), s["terminal"].as_bool().unwrap()));
            ensure(is == expected, || format!("{file}: {is:?}"))?;
        }
        Ok(())
    }

    /// Every invalid fixture is refused for its reason, and for no other.
    pub(super) fn reasons(&self, contracts: &Contracts) -> Checked {
        let invalid: Vec<&String> = self.fixtures.keys().filter(|file| file.contains(".invalid-")).collect();
        let listed: Vec<&String> = self.reasons.as_object().unwrap().keys().collect();
        ensure(invalid.len() == listed.len(), || {
            "reasons.json does not list every invalid fixture".to_owned()
        })?;
        for file in invalid {
            let reason = &self.reasons[file];
            let wanted = (reason["code"].as_str(), reason["pointer"].as_str());
            ensure(wanted.0.is_some(), || format!("{file} has no reason"))?;
            let text = self.fixtures[file].to_string();
            let Some(after) = reason.get("after") else {
                let Err(faults) = Envelope::parse(&text) else { return Err(format!("{file} is valid")) };
                let first = &faults[0];
                let is = (Some(first.code.as_str()), Some(first.pointer.as_str()));
                ensure(is == wanted, || format!("{file}: {faults:?}"))?;
                // What is inside the same place is the same reason, told in more words.
                let alone = faults.iter().all(|fault| fault.pointer.starts_with(&first.pointer));
                ensure(alone, || format!("{file}: {faults:?}"))?;
                ensure(first.hint.is_some() || first.rule.is_some(), || format!("{file} has no hint"))?;
                continue;
            };
            let mut stage = Stage::new(contracts, &self.fixtures);
            for step in after.as_array().unwrap() {
                stage.play(step);
            }
            ensure(stage.rejected.is_empty(), || format!("{file}: {:?}", stage.rejected))?;
            let before = format!("{:?}", stage.tasks());
            stage.take(&self.fixtures[file]);
            let [(_, fault)] = stage.rejected.as_slice() else { return Err(format!("{file} is taken in")) };
            let is = (Some(fault.code.as_str()), Some(fault.pointer.as_str()));
            ensure(is == wanted, || format!("{file}: {fault:?}"))?;
            ensure(before == format!("{:?}", stage.tasks()), || format!("{file} changed something"))?;
        }
        Ok(())
    }

    /// Ordered events reduce to exactly the state that each case expects.
    pub(super) fn cases(&self, contracts: &Contracts) -> Checked {
        let mut count = 0;
        for (file, cases) in &self.cases {
            let cases = cases.as_array().cloned().unwrap_or_else(|| vec![cases.clone()]);
            for case in &cases {
                self.case(contracts, case).map_err(|why| format!("{file}, {}: {why}", case["name"]))?;
                count += 1;
            }
        }
        ensure(count > 40, || format!("only {count} cases"))
    }

    fn case(&self, contracts: &Contracts, case: &Json) -> Checked {
        let mut stage = Stage::new(contracts, &self.fixtures);
        for step in case["events"].as_array().unwrap() {
            stage.play(step);
        }
        let mut expected = case["expected"].as_object().unwrap().clone();
        let rejected: Vec<(usize, &str)> =
            stage.rejected.iter().map(|(n, fault)| (*n, fault.code.as_str())).collect();
        let wanted = expected.shift_remove("rejected").unwrap_or(Json::Array(Vec::new()));
        let wanted: Vec<(usize, &str)> = wanted
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["event"].as_u64().unwrap() as usize, row["code"].as_str().unwrap()))
            .collect();
        ensure(rejected == wanted, || format!("{:?}", stage.rejected))?;

        let tasks = stage.tasks();
        let of_tasks: BTreeMap<&str, Json> =
            tasks.iter().map(|(name, task)| (*name, task.to_json(contracts))).collect();
        let contexts: BTreeMap<&str, Json> = ContextState::of(tasks.values().copied(), contracts)
            .into_iter()
            .map(|(name, context)| (name, context.to_json()))
            .collect();
        let projects = stage.reducer.projects().map(|(name, _, state)| (name, state.to_json())).collect();
        let routes = stage.reducer.routes().map(|(name, _, state)| (name, state.to_json())).collect();
        let mut several = false;
        for (member, states) in
            [("streams", &of_tasks), ("contexts", &contexts), ("projects", &projects), ("routes", &routes)]
        {
            let Some(Json::Object(wanted)) = expected.shift_remove(member) else { continue };
            several = true;
            ensure(wanted.len() == states.len(), || format!("{member}: {states:?}"))?;
            for (name, wanted) in &wanted {
                let is = states.get(name.as_str()).ok_or_else(|| format!("there is no {name}"))?;
                includes(is, wanted.as_object().unwrap()).map_err(|why| format!("{name}: {why}"))?;
            }
        }
        if several {
            return ensure(expected.is_empty(), || format!("nobody looks at {expected:?}"));
        }
        let [is] = of_tasks.values().collect::<Vec<_>>()[..] else { return Err("not one stream".to_owned()) };
        includes(is, &expected)
    }
}

fn includes(is: &Json, wanted: &serde_json::Map<String, Json>) -> Checked {
    for (member, wanted) in wanted {
        ensure(is.get(member) == Some(wanted), || format!("{member} is {}, not {wanted}", is[member]))?;
    }
    Ok(())
}
