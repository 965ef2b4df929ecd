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

/// The commands that a help lists.
fn commands(help: &str) -> Vec<&str> {
    let Some((_, commands)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = commands.split("\n\n").next().unwrap().lines();
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.map(|line| line.split_whitespace().next().unwrap()).collect()
}

/// The help of a command, and of all commands below it, as a terminal of this width has it.
fn helps(workspace: &Workspace, command: &[&str], columns: &str) -> Vec<(String, String)> {
    let output = workspace.command(command).arg("--help").env("COLUMNS", columns).output().unwrap();
    let help = stdout(&output);
    let below = commands(&help);
    let below = below
        .iter()
        .flat_map(|name| helps(workspace, &[command, &[name]].concat(), columns))
        .collect::<Vec<_>>();
    [vec![(command.join(" "), help.clone())], below].concat()
}

/// An example that is cut where a line ends is another command when it is pasted.
#[test]
fn examples_in_helps_can_be_pasted_and_what_all_commands_take_comes_last() {
    let workspace = Workspace::new();
    for columns in ["80", "100"] {
        let all = helps(&workspace, &[], columns);
        assert!(all.len() > 60, "{}", all.len());
        for (command, help) in &all {
            if let Some((_, examples)) = help.split_once("\nExamples:\n") {
                let mut before = "";
                for line in examples.lines().take_while(|line| !line.is_empty()) {
                    let is_whole = line.starts_with("  handoffd ") || before.ends_with('\\');
                    assert!(is_whole && line.len() <= 80, "{command} at {columns}: {line}");
                    before = line;
                }
            }
            let own = help.split("\nWorkspace and output:\n").next().unwrap();
            let own = own.split("\nGateway:\n").next().unwrap().lines().map(str::trim_start);
            let common = ["--workspace ", "--json", "--url ", "--token ", "--ca ", "--cert ", "--key "];
            let early = own.filter(|line| common.iter().any(|flag| line.starts_with(flag)));
            assert_eq!(early.collect::<Vec<_>>(), [""; 0], "{command} at {columns}");
        }
    }
}

#[test]
fn every_command_is_on_the_page_and_every_example_works() {
    let page = page("cli.md");
    let (alone, served) = page.split_once("## While a gateway").unwrap();
    let (alone, served) = (rows(alone), rows(served));
    let mut workspace = Workspace::new();

    let help = stdout(&workspace.run(&["--help"]));
    let mut commands = commands(&help);
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
