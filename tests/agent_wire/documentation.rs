//! `docs/agent-wire.md` says what the contracts say.

use std::fmt::Write as _;
use std::fs;

use handoffd::wire::{Contracts, Kind, State, WireCode};

use super::support::root;

fn page() -> String {
    fs::read_to_string(root().join("docs/agent-wire.md")).unwrap()
}

/// The state machine as a Mermaid diagram.
fn diagram(contracts: &Contracts) -> String {
    let mut text = "```mermaid\nstateDiagram-v2\n".to_owned();
    for kind in Kind::ALL.iter().copied() {
        for from in contracts.states_before(kind) {
            let to = contracts.state_after(kind).unwrap();
            let _ = writeln!(text, "  {} --> {to}: {kind}", from.map_or("[*]", State::as_str));
        }
    }
    for state in State::ALL.into_iter().filter(|state| contracts.is_terminal(*state)) {
        let _ = writeln!(text, "  {state} --> [*]");
    }
    text + "```\n"
}

#[test]
fn the_diagram_is_the_machine() {
    let diagram = diagram(Contracts::embedded());
    assert!(page().contains(&diagram), "docs/agent-wire.md should have:\n{diagram}");
}

#[test]
fn every_event_and_every_code_is_explained() {
    let page = page();
    for kind in Kind::ALL {
        assert!(page.contains(&format!("`{kind}`")), "{kind} is not in docs/agent-wire.md");
    }
    for code in WireCode::ALL {
        assert!(page.contains(&format!("| `{code}` |")), "{code} is not in docs/agent-wire.md");
    }
}
