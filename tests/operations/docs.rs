//! The pages, held against the daemon.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use handoffd::http::problems_markdown;

use crate::daemon::{Daemon, until, workspace};

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// The shell examples of a page that call the daemon, in order.
fn examples(text: &str) -> Vec<&str> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains("curl ")).collect()
}

/// Runs every example of a page, in order, in one workspace; each must end well and say something.
fn run_examples(name: &str, at_least: usize) {
    let workspace = workspace();
    let daemon = Daemon::start(workspace.path(), &[]);
    // A request that is signed to the second must not seem to be from before the start, of which no nonce is known.
    let started = Instant::now();
    until(|| started.elapsed() > Duration::from_secs(1));
    let binary = Path::new(env!("CARGO_BIN_EXE_handoffd")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let text = page(name);
    let examples = examples(&text);
    assert!(examples.len() >= at_least, "{name} has {} examples", examples.len());
    for example in examples {
        let here = example.replace("127.0.0.1:7420", &daemon.address);
        assert_ne!(here, example, "an example of {name} asks nobody: {example}");
        let output = Command::new("sh")
            .args(["-e", "-c", &here])
            .current_dir(workspace.path())
            .env("PATH", &path)
            .env_remove("HANDOFFD_WORKSPACE")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !said.trim().is_empty(), "{name}: {example}\n{output:?}");
        assert!(!said.contains("urn:handoffd:problem"), "{name}: {example}\n{said}");
    }
    daemon.stop();
}

#[test]
fn every_example_in_the_pages_works() {
    run_examples("operations.md", 3);
    run_examples("api.md", 10);
    run_examples("promotion.md", 5);
}

#[test]
fn every_metric_is_explained_and_none_else() {
    let workspace = workspace();
    let daemon = Daemon::start(workspace.path(), &[]);
    // A reason and a problem, for what is counted by them.
    assert_eq!(daemon.submit("{}", None).0, 422);
    assert_eq!(daemon.get("/v1/audit?nonsense=1").0, 400);
    daemon.get("/metrics");
    let (_, text) = daemon.get("/metrics");
    let there: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(there.len() > 20, "{there:?}");
    let page = page("operations.md");
    let explained: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `handoffd_").map(|_| line.split('`').nth(1).unwrap()))
        .collect();
    assert_eq!(explained, there);
    daemon.stop();
}

/// Every `what` of `/readyz` is in the source once, and so is a row for it in the page.
#[test]
fn every_condition_of_readiness_is_explained() {
    let source = include_str!("../../src/http/health.rs").replace("one(\n", "one(");
    let named = source.split("one(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
    let named: BTreeSet<&str> = named.map(|rest| rest.split('"').next().unwrap()).collect();
    let page = page("operations.md");
    let (_, section) = page.split_once("## Readiness").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let explained: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `").map(|rest| rest.split('`').next().unwrap()))
        .collect();
    assert_eq!(explained, named);
}

#[test]
fn every_problem_is_in_the_page() {
    const BEGIN: &str = "<!-- problems: made by UPDATE=1 cargo test --test operations -->\n";
    const END: &str = "<!-- end of problems -->";
    let text = page("api.md");
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md");
        fs::write(path, format!("{before}{BEGIN}{}{END}{after}", problems_markdown())).unwrap();
    } else {
        assert_eq!(table, problems_markdown(), "run: UPDATE=1 cargo test --test operations");
    }
}
