//! `docs/contracts/agent-wire/v1.1/`: the state machine, the states that events stand for, and what A2A makes of
//! them. The files are the machine: nothing in the code says again what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::event::SenderClass;
use super::id::StreamKind;
use super::kind::{Category, Kind};
use super::state::State;
use crate::json::read;
use crate::limits;

/// The texts of the three files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractTexts<'t> {
    pub task_state_machine: &'t str,
    pub event_state_map: &'t str,
    pub a2a_task_state_map: &'t str,
}

/// Those that this program was built with.
pub const CONTRACT_TEXTS: ContractTexts<'static> = ContractTexts {
    task_state_machine: include_str!("../../docs/contracts/agent-wire/v1.1/task-state-machine.json"),
    event_state_map: include_str!("../../docs/contracts/agent-wire/v1.1/event-state-map.json"),
    a2a_task_state_map: include_str!("../../docs/contracts/agent-wire/v1.1/a2a-task-state-map.json"),
};

/// The contracts, known to be complete and to agree with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contracts {
    states: BTreeMap<State, StateRule>,
    moves: BTreeMap<(Option<State>, Kind), Move>,
    events: BTreeMap<Kind, EventRule>,
    a2a: A2aMap,
}

/// What a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateRule {
    category: Category,
    terminal: bool,
}

/// Where an event leads from one state, and who can lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Move {
    to: State,
    by: Vec<SenderClass>,
}

/// What holds for a type of event wherever it comes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Null for one that carries no state; it must be said.
    #[serde(deserialize_with = "Option::deserialize")]
    category: Option<Category>,
    terminal: Option<bool>,
    /// The kinds of streams it may stand in.
    pub streams: Vec<StreamKind>,
    pub senders: Vec<SenderClass>,
    /// For one that carries no state: the states of a task in which it may come; any open one if absent.
    within: Option<Vec<State>>,
}

/// What an A2A client is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum A2aUpdate {
    Task,
    StatusUpdate,
    ArtifactUpdate,
    Message,
}

/// A task state as A2A names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct A2aState {
    pub v0_3: String,
    pub v1_0: String,
    #[serde(rename = "final")]
    pub is_final: bool,
}

/// Why an event does not follow from a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTransition {
    /// The state is terminal: nothing follows from it.
    Terminal,
    /// Another state must come first.
    NotFromHere,
    /// It would follow, if somebody else said so.
    NotBySender,
}

/// A contract file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractFault {
    pub file: &'static str,
    pub message: String,
}

impl fmt::Display for ContractFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.json: {}", self.file, self.message)
    }
}

impl std::error::Error for ContractFault {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineFile {
    wire: String,
    contract: String,
    #[serde(rename = "description")]
    _description: String,
    states: BTreeMap<State, StateRule>,
    transitions: Vec<Transition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transition {
    event: Kind,
    from: Vec<Option<State>>,
    to: State,
    by: Vec<SenderClass>,
    /// For people.
    #[serde(rename = "when")]
    _when: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventFile {
    wire: String,
    contract: String,
    #[serde(rename = "description")]
    _description: String,
    events: BTreeMap<Kind, EventRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct A2aFile {
    wire: String,
    contract: String,
    #[serde(rename = "description")]
    _description: String,
    states: BTreeMap<State, A2aState>,
    events: BTreeMap<Kind, Option<A2aUpdate>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct A2aMap {
    states: BTreeMap<State, A2aState>,
    events: BTreeMap<Kind, Option<A2aUpdate>>,
}

const MACHINE: &str = "task-state-machine";
const EVENTS: &str = "event-state-map";
const A2A: &str = "a2a-task-state-map";

impl Contracts {
    /// Those that this program was built with.
    #[expect(clippy::expect_used, reason = "the texts are constants of this program and parsed in a test")]
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Contracts> = OnceLock::new();
        EMBEDDED.get_or_init(|| Self::parse(&CONTRACT_TEXTS).expect("the embedded contracts agree"))
    }

    /// Reads the three files; refuses them if they are incomplete, or do not agree with each other.
    pub fn parse(texts: &ContractTexts<'_>) -> Result<Self, ContractFault> {
        let machine: MachineFile = file(MACHINE, texts.task_state_machine)?;
        let events: EventFile = file(EVENTS, texts.event_state_map)?;
        let a2a: A2aFile = file(A2A, texts.a2a_task_state_map)?;
        named(MACHINE, &machine.wire, &machine.contract)?;
        named(EVENTS, &events.wire, &events.contract)?;
        named(A2A, &a2a.wire, &a2a.contract)?;

        complete(MACHINE, &State::ALL, &machine.states)?;
        let moves = moves(&machine)?;
        complete(EVENTS, Kind::ALL, &events.events)?;
        for (kind, rule) in &events.events {
            let leads_to = moves.iter().find(|((_, event), _)| event == kind).map(|(_, to)| to.to);
            agree(*kind, rule, leads_to.and_then(|to| machine.states.get(&to)))?;
            let by: BTreeSet<_> =
                moves.iter().filter(|((_, event), _)| event == kind).flat_map(|(_, to)| &to.by).collect();
            if leads_to.is_some() && by != rule.senders.iter().collect() {
                return Err(fault(EVENTS, format!("the senders of {kind} are not those of its transitions")));
            }
        }
        complete(A2A, &State::ALL, &a2a.states)?;
        complete(A2A, Kind::ALL, &a2a.events)?;
        for (state, shown) in &a2a.states {
            shows(*state, shown, machine.states.get(state))?;
        }
        for (kind, update) in &a2a.events {
            let is_state = moves.keys().any(|(_, event)| event == kind);
            let fits = match update {
                Some(A2aUpdate::Task) => moves.contains_key(&(None, *kind)),
                Some(A2aUpdate::ArtifactUpdate) => *kind == Kind::ArtifactReady,
                Some(A2aUpdate::StatusUpdate) => is_state && *kind != Kind::ArtifactReady,
                Some(A2aUpdate::Message) => *kind == Kind::MessageSent,
                None => !is_state && *kind != Kind::MessageSent,
            };
            if !fits {
                return Err(fault(A2A, format!("{kind} cannot be shown so")));
            }
        }
        let a2a = A2aMap { states: a2a.states, events: a2a.events };
        Ok(Self { states: machine.states, moves, events: events.events, a2a })
    }

    /// The state that an event leads to.
    pub fn transition(
        &self,
        from: Option<State>,
        kind: Kind,
        by: SenderClass,
    ) -> Result<State, NoTransition> {
        if from.is_some_and(|state| self.is_terminal(state)) {
            return Err(NoTransition::Terminal);
        }
        match self.moves.get(&(from, kind)) {
            None => Err(NoTransition::NotFromHere),
            Some(to) if !to.by.contains(&by) => Err(NoTransition::NotBySender),
            Some(to) => Ok(to.to),
        }
    }

    /// May an event that carries no state come while a task is in this one?
    pub fn may_come(&self, within: Option<State>, kind: Kind) -> Result<(), NoTransition> {
        if within.is_some_and(|state| self.is_terminal(state)) {
            return Err(NoTransition::Terminal);
        }
        let rule = self.events.get(&kind).and_then(|rule| rule.within.as_ref());
        match (rule, within) {
            (None, _) => Ok(()),
            (Some(states), Some(state)) if states.contains(&state) => Ok(()),
            _ => Err(NoTransition::NotFromHere),
        }
    }

    pub fn is_terminal(&self, state: State) -> bool {
        self.states.get(&state).is_some_and(|rule| rule.terminal)
    }

    /// The state after an event of this type, whatever came before; nothing for one that carries no state.
    pub fn state_after(&self, kind: Kind) -> Option<State> {
        self.moves.iter().find(|((_, event), _)| *event == kind).map(|(_, to)| to.to)
    }

    /// The states from which an event of this type leads on.
    pub fn states_before(&self, kind: Kind) -> impl Iterator<Item = Option<State>> {
        self.moves.keys().filter(move |(_, event)| *event == kind).map(|(from, _)| *from)
    }

    /// The category that an event stands for, and whether the stream ends with it.
    pub fn state(&self, kind: Kind) -> Option<(Category, bool)> {
        let rule = self.events.get(&kind)?;
        Some((rule.category?, rule.terminal?))
    }

    pub fn event(&self, kind: Kind) -> Option<&EventRule> {
        self.events.get(&kind)
    }

    /// What A2A calls a state.
    pub fn a2a_state(&self, state: State) -> Option<&A2aState> {
        self.a2a.states.get(&state)
    }

    /// What an A2A client is shown of an event.
    pub fn a2a_update(&self, kind: Kind) -> Option<A2aUpdate> {
        self.a2a.events.get(&kind).copied().flatten()
    }
}

fn fault(file: &'static str, message: impl Into<String>) -> ContractFault {
    ContractFault { file, message: message.into() }
}

/// Strictly: a name that stands twice would be a rule that nobody sees.
fn file<T: DeserializeOwned>(name: &'static str, text: &str) -> Result<T, ContractFault> {
    let document =
        read(text.as_bytes(), limits::WORKSPACE_FILE).map_err(|error| fault(name, error.to_string()))?;
    serde_json::from_value(document.root().to_json()).map_err(|error| fault(name, error.to_string()))
}

fn named(name: &'static str, wire: &str, contract: &str) -> Result<(), ContractFault> {
    if (wire, contract) == ("1.1", name) { Ok(()) } else { Err(fault(name, "it is another contract")) }
}

fn complete<K: Ord + fmt::Display, T>(
    name: &'static str,
    all: &[K],
    given: &BTreeMap<K, T>,
) -> Result<(), ContractFault> {
    match all.iter().find(|key| !given.contains_key(key)) {
        Some(missing) => Err(fault(name, format!("`{missing}` is missing"))),
        None => Ok(()),
    }
}

/// The transitions by what they start from: one way from each, always to the same state, none out of the end.
fn moves(machine: &MachineFile) -> Result<BTreeMap<(Option<State>, Kind), Move>, ContractFault> {
    let mut moves: BTreeMap<(Option<State>, Kind), Move> = BTreeMap::new();
    let is_terminal = |state: &State| machine.states.get(state).is_some_and(|rule| rule.terminal);
    for Transition { event, from, to, by, .. } in &machine.transitions {
        if from.is_empty() || by.is_empty() {
            return Err(fault(MACHINE, format!("a transition of {event} has no start or nobody to make it")));
        }
        for from in from {
            if from.as_ref().is_some_and(is_terminal) {
                return Err(fault(MACHINE, format!("{event} would lead out of a terminal state")));
            }
            if moves.iter().any(|((_, known), other)| known == event && other.to != *to) {
                return Err(fault(MACHINE, format!("{event} leads to more than one state")));
            }
            if moves.insert((*from, *event), Move { to: *to, by: by.clone() }).is_some() {
                return Err(fault(MACHINE, format!("{event} has two transitions from one state")));
            }
        }
    }
    for state in State::ALL {
        if !moves.iter().any(|((from, _), to)| to.to == state && *from != Some(state)) {
            return Err(fault(MACHINE, format!("nothing leads to `{state}`")));
        }
        if !is_terminal(&state) && !moves.iter().any(|((from, _), to)| *from == Some(state) && to.to != state)
        {
            return Err(fault(MACHINE, format!("nothing leads out of `{state}`, which is not terminal")));
        }
    }
    Ok(moves)
}

/// Does the map say of an event what the machine says of the state it leads to?
fn agree(kind: Kind, rule: &EventRule, leads_to: Option<&StateRule>) -> Result<(), ContractFault> {
    let by_machine = leads_to.map(|state| (state.category, state.terminal));
    let by_map = match (rule.category, rule.terminal) {
        (Some(category), Some(terminal)) => Some((category, terminal)),
        (None, None) => None,
        _ => return Err(fault(EVENTS, format!("{kind} has half a state"))),
    };
    if by_machine != by_map {
        return Err(fault(EVENTS, format!("{kind} stands for another state than the machine has")));
    }
    if rule.streams.is_empty() || rule.senders.is_empty() {
        return Err(fault(EVENTS, format!("{kind} has no stream or no sender")));
    }
    if leads_to.is_some() && (rule.within.is_some() || rule.streams != [StreamKind::Task]) {
        return Err(fault(EVENTS, format!("{kind} carries a state: its place is in the machine")));
    }
    Ok(())
}

/// A2A has the same categories under its own names.
fn shows(state: State, shown: &A2aState, rule: Option<&StateRule>) -> Result<(), ContractFault> {
    let fits = rule.is_some_and(|rule| {
        let category = rule.category.as_str();
        shown.v0_3 == category.replace('_', "-")
            && shown.v1_0 == format!("TASK_STATE_{}", category.to_ascii_uppercase())
            && shown.is_final == rule.terminal
    });
    if fits { Ok(()) } else { Err(fault(A2A, format!("`{state}` is shown as another state than it is"))) }
}
