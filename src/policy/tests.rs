//! Policy sets from a workspace: whole or refused with all that is wrong, and references that stay inside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::references::{is_plain, names_a_version};
use super::*;

#[expect(clippy::disallowed_methods, reason = "a test lays out a workspace")]
fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

const ROUTES: &str = r#"{"routes": {"route.v1": {"capability": "work", "primaryAgentId": "worker"}}}"#;
const POLICY: &str = r#"{"policyVersion": "1.0", "principals": ["rita"], "allowAgents": ["worker"],
    "allowChannels": ["discord:channel:*"], "allowTasks": ["read.*"], "riskFloor": {"read.*": "read", "read.all": "live"}}"#;

fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "policies/routes.json", ROUTES);
    write(directory.path(), "policies/delegation/rita.json", POLICY);
    write(directory.path(), "plans/back.md", "# Back");
    directory
}

fn load(directory: &tempfile::TempDir) -> Result<PolicySet, String> {
    Workspace::new(directory.path()).load_policies().map_err(|fault| fault.to_string())
}

#[test]
fn a_set_is_taken_whole_or_refused_with_all_that_is_wrong() {
    let directory = workspace();
    let set = load(&directory).unwrap();
    let route = set.route("route.v1").unwrap();
    assert_eq!((route.stage, route.profile, route.approvers), (Stage::Dev, Profile::Plain, 1));
    assert!(set.route("route.v2").is_none() && set.policy("policies/delegation/omar.json").is_none());

    let check = |path: &str, text: &str, fault: &str| {
        let directory = workspace();
        write(directory.path(), path, text);
        let found = load(&directory).unwrap_err();
        assert_eq!(found, format!("the policy set is broken\n  {fault}"));
    };
    check(
        "policies/routes.json",
        r#"{"routes": {"route.v1": {"capability": "work", "primaryAgentId": "worker", "stage": "live"}}}"#,
        "policies/routes.json at /routes/route.v1/stage: `stage` must be one of `dev`, `simulated`, not `live` (the \
         stage the route is declared for, `dev` (also when absent) or `simulated`; live is earned through G0 to G4, \
         never declared)",
    );
    check(
        "policies/routes.json",
        r#"{"routes": {}, "routes": {}}"#,
        "policies/routes.json at /routes: the key `routes` stands twice in one object (line 1, column 17)",
    );
    check(
        "policies/delegation/x.json",
        "{",
        "policies/delegation/x.json: expected a key in double quotes, found the end of the body (line 1, column 2)",
    );
    check(
        "policies/delegation/x.json",
        r#"{"policyVersion": "1.0", "principals": [], "allowAgents": [], "allowChannels": [], "allowTasks": "*", "maxTTL": 5}"#,
        "policies/delegation/x.json at /allowTasks: `allowTasks` must be an array, not `*` (the operations that it may ask for)\n  \
         policies/delegation/x.json at /maxTTL: `maxTTL` is not a member of the document (it may have `policyVersion`, \
         `principals`, `allowAgents`, `allowChannels`, `allowTasks`, `allowWithoutChannel`, `maxTtlSeconds`, `riskFloor`, `requireBinding`)",
    );
    // A name that is wrong is named, and so is each other.
    let (long, shown) = ("r".repeat(161), "r".repeat(120));
    let route = r#"{"capability": "work", "primaryAgentId": "worker"}"#;
    let hint = "(each route by its routeKey, 6 to 160 characters)";
    check(
        "policies/routes.json",
        &format!(
            r#"{{"routes": {{"b.v1": {route}, "a/b": {route}, "route.v1": {route}, "{long}": {route}}}}}"#
        ),
        &format!(
            "policies/routes.json at /routes/a~1b: the name `a/b` has 3 characters; it needs at least 6 {hint}\n  \
             policies/routes.json at /routes/b.v1: the name `b.v1` has 4 characters; it needs at least 6 {hint}\n  \
             policies/routes.json at /routes/{long}: the name `{shown}…` has 161 characters; it may have at most 160 {hint}"
        ),
    );
    // A policy that somebody outside the workspace could write is none.
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "evil.json", POLICY);
    symlink(outside.path().join("evil.json"), directory.path().join("policies/delegation/evil.json"))
        .unwrap();
    assert!(
        load(&directory).unwrap_err().ends_with("policies/delegation/evil.json: leads out of the workspace")
    );
    fs::remove_file(directory.path().join("policies/delegation/evil.json")).unwrap();
    let routes = directory.path().join("policies/routes.json");
    write(outside.path(), "routes.json", ROUTES);
    fs::remove_file(&routes).unwrap();
    symlink(outside.path().join("routes.json"), &routes).unwrap();
    assert!(load(&directory).unwrap_err().ends_with("policies/routes.json: leads out of the workspace"));
}

#[test]
fn the_digest_covers_every_file_and_nothing_else() {
    let directory = workspace();
    let before = load(&directory).unwrap().digest();
    assert_eq!(load(&directory).unwrap().digest(), before, "reading again changes nothing");
    write(directory.path(), "memory/notes.md", "the daemon's");
    write(directory.path(), ".cache/x.json", "{}");
    write(directory.path(), "plans/back.txt", "no reference");
    assert_eq!(load(&directory).unwrap().digest(), before);
    let mut seen = vec![before];
    for (path, text) in [
        ("plans/back.md", "# Back and forth"),
        ("policies/routes.json", &ROUTES.replace("worker", "walker")),
        ("policies/delegation/rita.json", &POLICY.replace("rita", "omar")),
        ("schemas/new.v1.json", r#"{"type": "object"}"#),
    ] {
        write(directory.path(), path, text);
        let digest = load(&directory).unwrap().digest();
        assert!(!seen.contains(&digest), "{path}");
        seen.push(digest);
    }
}

#[test]
fn a_reference_never_leaves_the_workspace() {
    let directory = workspace();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "secret.v1.json", r#"{"type": "object"}"#);
    let link = |target: &Path, name: &str| symlink(target, directory.path().join(name)).unwrap();
    link(&outside.path().join("secret.v1.json"), "out.v1.json");
    link(outside.path(), "outside");
    link(Path::new("plans/back.md"), "inside.md");
    link(Path::new("plans"), "plans-again");
    link(Path::new("nowhere.md"), "dangling.md");
    link(Path::new("loop.md"), "loop.md");
    fs::create_dir(directory.path().join("folder.json")).unwrap();
    write(directory.path(), "huge.json", &format!("\"{}\"", "x".repeat(1024 * 1024)));
    let pipe = directory.path().join("pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let set = load(&directory).unwrap();
    let check = |path: &str, fault: Option<ReferenceFault>| {
        assert_eq!(set.references().resolve(path).err(), fault, "{path}");
    };
    check("plans/back.md", None);
    check("inside.md", None);
    check("out.v1.json", Some(ReferenceFault::LeadsOut));
    check("outside", Some(ReferenceFault::LeadsOut));
    check("outside/secret.v1.json", Some(ReferenceFault::LeadsOut));
    check("outside/deeper/secret.v1.json", Some(ReferenceFault::LeadsOut));
    check("plans-again/back.md", Some(ReferenceFault::NotFound));
    check("dangling.md", Some(ReferenceFault::Unreadable));
    check("loop.md", Some(ReferenceFault::Unreadable));
    check("folder.json", Some(ReferenceFault::NotAFile));
    check("plans", Some(ReferenceFault::NotAFile));
    check("pipe.json", Some(ReferenceFault::NotAFile));
    check("huge.json", Some(ReferenceFault::TooLarge));
    check("plans/none.md", Some(ReferenceFault::NotFound));
    for path in [
        "",
        "/etc/passwd",
        "../x.md",
        "plans/../plans/back.md",
        "./plans/back.md",
        "plans//back.md",
        "plans/back.md/",
        "plans\\back.md",
        "plans/back.md\0",
    ] {
        assert!(!is_plain(path));
        check(path, Some(ReferenceFault::NotPlain));
    }
    check("Plans/back.md", Some(ReferenceFault::NotFound));
}

#[test]
fn a_version_stands_by_itself_in_a_name() {
    for (name, versioned) in [
        ("execution-plane.schema.v1.json", true),
        ("order_v12.json", true),
        ("https://example.org/v2/order", true),
        ("order.json", false),
        ("convoy1.json", false),
        ("v.json", false),
        ("order-v1beta.json", false),
        ("V1.json", false),
    ] {
        assert_eq!(names_a_version(name), versioned, "{name}");
    }
}

#[test]
fn a_trailing_star_covers_any_ending_and_an_empty_list_nothing() {
    let names: Names = serde_json::from_str(r#"["exact", "start.*", "*mid*dle"]"#).unwrap();
    for (text, covered) in [
        ("exact", true),
        ("exactly", false),
        ("start.", true),
        ("start.x", true),
        ("start", false),
        ("*mid*dle", true),
        ("amiddle", false),
        ("Exact", false),
    ] {
        assert_eq!(names.cover(text), covered, "{text}");
    }
    let everything: Names = serde_json::from_str(r#"["*"]"#).unwrap();
    let nothing: Names = serde_json::from_str("[]").unwrap();
    assert!(everything.cover("") && everything.cover("x") && !nothing.cover("") && !nothing.cover("x"));
}

#[test]
fn the_gravest_floor_counts() {
    use crate::contract::RiskClass;
    let directory = workspace();
    let set = load(&directory).unwrap();
    let policy = set.policy("policies/delegation/rita.json").unwrap();
    assert_eq!(policy.floor("read.one"), Some(RiskClass::Read));
    assert_eq!(policy.floor("read.all"), Some(RiskClass::Live));
    assert_eq!(policy.floor("write"), None);
    assert!(!policy.requires_binding(RiskClass::Live));
}

#[test]
fn a_route_that_the_ledger_could_not_hold_is_refused() {
    let table = |aliases: usize| {
        let aliases: Vec<String> = (0..aliases).map(|n| format!("{n:064}")).collect();
        let route = serde_json::json!({"capability": "work", "primaryAgentId": "worker", "aliases": aliases});
        serde_json::json!({"routes": {"route/v1": route}}).to_string()
    };
    let directory = workspace();
    write(directory.path(), "policies/routes.json", &table(60));
    load(&directory).unwrap();
    write(directory.path(), "policies/routes.json", &table(61));
    let fault = load(&directory).unwrap_err();
    assert!(fault.contains("routes.json at /routes/route~1v1: the route has 41"), "{fault}");
}

#[test]
fn a_url_that_names_somebody_is_refused_where_it_stands_and_not_repeated() {
    let directory = workspace();
    let check = |member: &str, url: &str, refused: bool| {
        let route = serde_json::json!({"capability": "work", "primaryAgentId": "worker", "fallbackAgentId": "other", member: url});
        let table = serde_json::json!({"routes": {"route/v1": route}}).to_string();
        write(directory.path(), "policies/routes.json", &table);
        let found = load(&directory).err();
        assert_eq!(found.is_some(), refused, "{url}: {found:?}");
        if let Some(fault) = found {
            let place =
                format!("policies/routes.json at /routes/route~1v1/{member}: `{member}` has a user name");
            assert!(
                fault.contains(&place) && fault.contains("(remove what stands before the `@`"),
                "{fault}"
            );
            assert!(!fault.contains("hunter2"), "{fault}");
        }
    };
    for member in ["probeUrl", "fallbackProbeUrl"] {
        check(member, "http://rita:hunter2@worker.example/health", true);
        check(member, "https://hunter2@worker.example:8443", true);
        check(member, "http://:hunter2@[::1]/?of=all", true);
        check(member, "http://worker.example\\rita:hunter2@other.example/", true);
        check(member, "http://rita%3Ahunter2@worker.example#there", true);
        // Elsewhere it is a letter like any other, and a query is for the operator to know.
        check(member, "http://worker.example/@rita/health", false);
        check(member, "http://worker.example?for=rita@example.org", false);
        check(member, "http://worker.example/health?of=all#@", false);
    }
}

#[test]
fn the_names_of_one_primary_are_of_one_agent_and_a_shared_alias_joins_nobody() {
    let routes = [("pp", vec!["xx", "both"]), ("pp", vec!["yy"]), ("qq", vec!["both"]), ("rr", vec![])]
        .map(|(primary, aliases)| {
            let route = serde_json::json!({"capability": "work", "primaryAgentId": primary, "aliases": aliases,
                "fallbackAgentId": "dr"});
            serde_json::from_value::<Route>(route).unwrap()
        });
    let names = AgentNames::of(routes.iter());
    let check = |agent: &str, expected: &[&str]| {
        let mut others: Vec<&str> = names.others(agent).collect();
        others.sort_unstable();
        assert_eq!(others, expected, "{agent}");
    };
    // By way of the primary, also from one route's alias to another's.
    check("xx", &["both", "pp", "yy"]);
    check("yy", &["both", "pp", "xx"]);
    check("pp", &["both", "xx", "yy"]);
    // An alias of two agents is each of them, and they are two.
    check("both", &["pp", "qq", "xx", "yy"]);
    check("qq", &["both"]);
    for stranger in ["rr", "dr", "nobody"] {
        check(stranger, &[]);
    }
    assert_eq!(names.all("yy").next(), Some("yy"));
}

#[test]
fn what_a_rollback_restored_has_its_names_too() {
    let directory = workspace();
    let set = load(&directory).unwrap();
    let mut restored = set.route("route.v1").unwrap().clone();
    restored.aliases.push("walker".to_owned());
    assert!(!set.are_one("worker", "walker"));
    let over = set.with_routes(std::iter::once(("route.v1".to_owned(), restored)));
    assert!(over.are_one("worker", "walker") && over.are_one("walker", "worker"));
    assert!(!over.are_one("walker", "talker"));
}

#[test]
fn a_route_has_one_written_form() {
    let read = |text: &str| serde_json::from_str::<Route>(text).unwrap();
    let short = read(r#"{"capability": "work", "primaryAgentId": "worker"}"#);
    let long = read(
        r#"{"primaryAgentId": "worker", "capability": "work", "stage": "dev", "profile": "plain", "aliases": [],
            "critical": false, "approvers": 1}"#,
    );
    assert_eq!(short.to_canonical(), br#"{"capability":"work","primaryAgentId":"worker"}"#);
    assert_eq!(short.to_canonical(), long.to_canonical());
    let full = read(
        r#"{"capability": "work", "primaryAgentId": "worker", "aliases": ["w"], "fallbackAgentId": "other",
            "critical": true, "stage": "simulated", "profile": "execution-plane.v1", "probeUrl": "http://a/",
            "fallbackProbeUrl": "http://b/", "signingKeyId": "k", "requireSignature": false,
            "rollbackPlanRef": "plans/back.md", "approvers": 2}"#,
    );
    let again: Route = serde_json::from_slice(&full.to_canonical()).unwrap();
    assert_eq!(again, full);
    assert_eq!(serde_json::to_value(&full).unwrap().as_object().unwrap().len(), 13);
}
