//! The pages, held against the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use handoffd::engine::World as _;
use handoffd::http::problems_markdown;
use handoffd::os::world::RealWorld;
use serde_json::Value as Json;

use crate::daemon::{Daemon, until, workspace};

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// The shell examples of a page that ask the daemon at its address, in order.
fn examples(text: &str) -> Vec<&str> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains("curl ") || block.contains("handoffd a2a ")).collect()
}

/// The files of a workspace that belong to its policy set (decision 003), and those that hold a token.
fn files_of_the_set(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "memory" && !name.starts_with('.') {
            files_of_the_set(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "json" || extension == "md") {
            found.insert(path);
        } else if name.ends_with(".token") {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "others can read {name}");
        }
    }
}

/// Runs every example of a page, in order, in one workspace; each must end well and say something, and none changes the
/// policy set by what it leaves behind.
fn run_examples(name: &str, at_least: usize) {
    let workspace = workspace();
    let daemon = Daemon::start(workspace.path(), &[]);
    // A request that is signed to the second must not seem to be from before the start, of which no nonce is known: the
    // clock has to show another second.
    let second = || RealWorld::default().now().unix_milliseconds() / 1_000;
    let started = second();
    until(|| second() > started);
    let binary = Path::new(env!("CARGO_BIN_EXE_handoffd")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let text = page(name);
    let examples = examples(&text);
    assert!(examples.len() >= at_least, "{name} has {} examples", examples.len());
    let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
    files_of_the_set(workspace.path(), &mut before);
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
    files_of_the_set(workspace.path(), &mut after);
    assert_eq!(after, before, "{name}");
    daemon.stop();
}

#[test]
fn every_example_in_the_pages_works() {
    run_examples("operations.md", 3);
    run_examples("api.md", 10);
    run_examples("promotion.md", 5);
    run_examples("a2a.md", 4);
}

/// What `/metrics` says after a reason, a problem and a JSON-RPC request, for what is counted by them.
fn metrics() -> String {
    let workspace = workspace();
    let daemon = Daemon::start(workspace.path(), &[]);
    assert_eq!(daemon.submit("{}", None).0, 422);
    assert_eq!(daemon.get("/v1/audit?nonsense=1").0, 400);
    assert_eq!(
        daemon.rpc(r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "x"}}"#).0,
        200
    );
    daemon.get("/metrics");
    let (_, text) = daemon.get("/metrics");
    daemon.stop();
    text
}

#[test]
fn every_metric_is_explained_and_none_else() {
    let text = metrics();
    let there: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(there.len() > 20, "{there:?}");
    let page = page("operations.md");
    let explained: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `handoffd_").map(|_| line.split('`').nth(1).unwrap()))
        .collect();
    assert_eq!(explained, there);
}

/// The expressions of a dashboard, and whatever else is asked of Prometheus in it.
fn expressions(dashboard: &Json) -> Vec<String> {
    match dashboard {
        Json::Object(members) => {
            let own = members.iter().filter(|(name, _)| matches!(name.as_str(), "expr" | "query"));
            let own = own.filter_map(|(_, value)| value.as_str().map(str::to_owned));
            own.chain(members.values().flat_map(expressions)).collect()
        }
        Json::Array(items) => items.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// The dashboard asks for series that there are, draws every metric, and of what takes time all three percentiles.
#[test]
fn the_dashboard_draws_every_metric_and_none_else() {
    let text = metrics();
    let kinds: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let endings = |kind: &str| match kind {
        "counter" => &["_total"][..],
        "histogram" => &["_bucket"],
        "info" => &["_info"],
        _ => &[""],
    };
    let series: BTreeMap<String, &str> = kinds
        .iter()
        .flat_map(|(name, kind)| endings(kind).iter().map(move |ending| (format!("{name}{ending}"), *name)))
        .collect();
    let dashboard: Json = serde_json::from_str(&page("dashboards/handoffd.json")).unwrap();
    let mut drawn: BTreeSet<&str> = BTreeSet::new();
    let mut percentiles: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let expressions = expressions(&dashboard);
    for expression in &expressions {
        for rest in expression.split("handoffd_").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = format!("handoffd_{}", &rest[..end]);
            let metric = series.get(&name).unwrap_or_else(|| panic!("{name} is not there: {expression}"));
            drawn.insert(metric);
            if let Some(quantile) = expression.strip_prefix("histogram_quantile(") {
                percentiles.entry(metric).or_default().push(quantile.split(',').next().unwrap());
            }
        }
    }
    assert_eq!(drawn, kinds.keys().copied().collect());
    let histograms = kinds.iter().filter(|(_, kind)| **kind == "histogram").map(|(name, _)| *name);
    for name in histograms {
        assert_eq!(percentiles.get(name).map(Vec::as_slice), Some(&["0.5", "0.95", "0.99"][..]), "{name}");
    }
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

/// What the A2A requirements give points for, in their order.
const RUBRIC: [u32; 13] = [5, 10, 5, 10, 15, 10, 10, 5, 5, 10, 5, 5, 5];

/// The rubric names what shows each point; a point whose test is gone, or is not run, is shown by nothing.
#[test]
fn every_point_of_the_a2a_rubric_is_shown_by_tests_that_are_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page("a2a.md");
    let (_, rubric) = page.split_once("## The rubric").unwrap();
    let mut points = Vec::new();
    for row in rubric.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| points")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Ok(worth) = cells[1].parse::<u32>() else { continue };
        points.push(worth);
        let named: Vec<(&str, &str)> = cells[3].split('`').filter_map(|one| one.split_once("::")).collect();
        assert!(!named.is_empty(), "{row}");
        for (file, test) in named {
            let text = fs::read_to_string(root.join(file)).unwrap();
            assert!(is_run(file, &text, test), "{file} runs no {test}");
        }
    }
    assert_eq!(points, RUBRIC);
    assert_eq!(RUBRIC.iter().sum::<u32>(), 100);
    let script = fs::read_to_string(root.join("scripts/test")).unwrap();
    for command in ["cargo nextest run", "\nscripts/interop\n", "--bench streams"] {
        assert!(script.contains(command), "scripts/test runs no {command}");
    }
}

/// Is this a test that the test command runs: marked as one, or in the list of its file's scenes? A bench is run whole.
fn is_run(file: &str, text: &str, test: &str) -> bool {
    if file.ends_with(".py") {
        let listed = text.split_once("\nSCENES = [").map(|(_, list)| list.split(']').next().unwrap());
        let is_listed = listed.is_some_and(|list| list.split(',').any(|one| one.trim() == test));
        return is_listed && text.contains(&format!("\ndef {test}("));
    }
    let Some((before, _)) = text.split_once(&format!("fn {test}(")) else { return false };
    let marks = before.rsplit("\n\n").next().unwrap();
    file.starts_with("benches/") || marks.contains("#[test]") || marks.contains("#[tokio::test")
}

#[test]
fn a_test_that_is_not_run_shows_nothing() {
    let scenes = "\ndef plays(client):\n    pass\n\ndef idles(client):\n    pass\n\nSCENES = [plays, gone]\n";
    let tests = "\n#[test]\nfn runs() {}\n\nfn helps() {}\n";
    for (file, text, test, expected) in [
        ("scenes.py", scenes, "plays", true),
        ("scenes.py", scenes, "idles", false),
        ("scenes.py", scenes, "gone", false),
        ("tests/a.rs", tests, "runs", true),
        ("tests/a.rs", tests, "helps", false),
        ("tests/a.rs", tests, "gone", false),
        ("benches/a.rs", tests, "helps", true),
    ] {
        assert_eq!(is_run(file, text, test), expected, "{file}::{test}");
    }
}
