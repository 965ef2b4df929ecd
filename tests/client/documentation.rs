//! `docs/cli.md`: every command is on it, and every example on it works. So do those of the pages on policies and TaskSpecs.

use std::path::Path;
use std::process::Command;

use crate::support::{Workspace, stdout};

/// Each row's command and example.
fn rows(text: &str) -> Vec<(String, String)> {
    let cell = |cell: &str| cell.trim().trim_matches('`').to_owned();
    let rows = text.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let line = line.replace("\\|", "\u{0}");
        let cells: Vec<String> = line.split('|').map(|text| cell(&text.replace('\u{0}', "|"))).collect();
        (cells[1].clone(), cells[3].clone())
    });
    rows.collect()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// The blocks of a page that are marked as being of this language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = text.split(&begin).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn run(workspace: &Workspace, example: &str) {
    let binary = Path::new(env!("CARGO_BIN_EXE_handoffd")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-euc", example]).current_dir(workspace.path()).env("PATH", path);
    for variable in ["HANDOFFD_WORKSPACE", "HANDOFFD_URL", "HANDOFFD_TOKEN"] {
        shell.env_remove(variable);
    }
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{example}: {output:?}");
}

#[test]
fn every_command_is_on_the_page_and_every_example_works() {
    let page = page("cli.md");
    let (alone, served) = page.split_once("## While a gateway").unwrap();
    let (alone, served) = (rows(alone), rows(served));
    let mut workspace = Workspace::new();

    let help = stdout(&workspace.run(&["--help"]));
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let mut commands: Vec<&str> = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let mut named: Vec<&str> = alone.iter().chain(&served).map(|(command, _)| command.as_str()).collect();
    commands.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, commands);

    for (command, example) in &alone {
        assert!(example.contains(&format!("handoffd {command}")), "{example}");
        run(&workspace, example);
    }
    workspace.start();
    let address = workspace.url().trim_start_matches("http://").to_owned();
    for (command, example) in &served {
        assert!(example.replace("--json ", "").contains(&format!("handoffd {command}")), "{example}");
        run(&workspace, &example.replace("127.0.0.1:7420", &address));
    }
}

#[test]
fn the_examples_on_policies_and_taskspecs_work_in_their_order() {
    for (name, at_least) in [("policies.md", 6), ("taskspec.md", 2)] {
        let workspace = Workspace::served();
        let address = workspace.url().trim_start_matches("http://").to_owned();
        let examples = blocks(&page(name), "sh");
        assert!(examples.len() >= at_least, "{name} has {} examples", examples.len());
        for example in examples {
            run(&workspace, &example.replace("127.0.0.1:7420", &address));
        }
    }
}

#[test]
fn the_files_on_the_page_of_policies_are_a_policy_set() {
    let workspace = Workspace::new();
    let files = blocks(&page("policies.md"), "json");
    let [routes, policy] = files.as_slice() else { panic!("{files:?}") };
    workspace.write("policies/routes.json", routes);
    workspace.write("policies/delegation/shown.json", policy);
    assert_eq!(workspace.exit(&["check", "docs/examples/taskspec-canonical.json"]), 0);
}
