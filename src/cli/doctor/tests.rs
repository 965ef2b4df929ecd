//! One workspace that is sound, and for each check one that fails it for one reason alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;
use crate::callers::{Standing, TokenFiles};
use crate::gateway::{Gateway, RuleKeeper, Starting, WorkspaceLock};
use crate::limits;
use crate::proof::{Key, Purpose, Secret};

/// A workspace as `init` makes it, with what it still lacks, that a daemon has been on.
fn sound() -> (tempfile::TempDir, Workspace) {
    let directory = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(directory.path());
    super::super::init::scaffold(directory.path()).map_err(|failure| failure.0).unwrap();
    edit(
        directory.path(),
        "policies/delegation/user-main-v1.json",
        "\"riskFloor\"",
        "\"requireBinding\": [\"live\"], \"riskFloor\"",
    );
    add_key(&workspace, "user-main-1", "user:main", Purpose::Envelope, None);
    add_key(&workspace, "crypto-sage-dispatch-1", "crypto-sage", Purpose::Dispatch, None);
    TokenFiles::of(directory.path()).ensure_admin(clock::now()).unwrap();
    let gateway = Gateway::open(directory.path(), "127.0.0.1:0").unwrap();
    RuleKeeper::start(workspace.clone(), &gateway, Starting::Join).unwrap();
    gateway.close().unwrap();
    (directory, workspace)
}

fn add_key(workspace: &Workspace, id: &str, owner: &str, purpose: Purpose, ends_in_s: Option<i64>) {
    let key = Key::hmac(id, owner, purpose, Secret::new(vec![7; 32])).unwrap();
    let key = key.valid_between(None, ends_in_s.map(|seconds| clock::now().plus_seconds(seconds)));
    workspace.change_keyring(|keyring| keyring.add(key).map_err(|fault| fault.to_string())).unwrap();
}

fn remove_key(workspace: &Workspace, id: &str) {
    let remove = |keyring: &mut Keyring| {
        assert!(keyring.remove(id));
        Ok(())
    };
    workspace.change_keyring(remove).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test lays out files")]
fn write(root: &Path, path: &str, text: &str) {
    fs::write(root.join(path), text).unwrap();
}

fn edit(root: &Path, path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(root.join(path)).unwrap();
    assert!(text.contains(from), "{path}");
    write(root, path, &text.replacen(from, to, 1));
}

fn set_mode(root: &Path, path: &str, mode: u32) {
    fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
}

/// What is found, as `check: level: what`; the room on this machine's disk is another matter.
fn found(workspace: &Workspace, change: impl FnOnce(&mut Ground<'_>)) -> Vec<String> {
    let mut ground = Ground::of(workspace);
    ground.free_bytes = Ok(u64::MAX);
    change(&mut ground);
    let mut lines = Vec::new();
    for (name, good, findings) in examine(&ground) {
        assert!(!good.is_empty() || !findings.is_empty(), "{name} says nothing");
        for Finding { level, what, fix } in findings.into_iter().filter(|one| one.level != Level::Skip) {
            assert!(!fix.is_empty(), "{what}");
            lines.push(format!("{name}: {level:?}: {what}"));
        }
    }
    lines
}

/// The checks that could not be made.
fn skipped(workspace: &Workspace) -> Vec<&'static str> {
    let found = examine(&Ground::of(workspace));
    let is_skipped = |findings: &[Finding]| findings.iter().any(|finding| finding.level == Level::Skip);
    found.iter().filter(|(_, _, findings)| is_skipped(findings)).map(|(name, ..)| *name).collect()
}

/// Breaks a sound workspace in one way, and expects one finding.
fn check(expected: &str, breakage: impl FnOnce(&Path, &Workspace)) {
    let (directory, workspace) = sound();
    breakage(directory.path(), &workspace);
    let lines = found(&workspace, |_| {});
    let [line] = lines.as_slice() else { panic!("{expected}: {lines:#?}") };
    assert!(line.starts_with(expected), "{line}");
}

const ROUTES: &str = "policies/routes.json";
const POLICY: &str = "policies/delegation/user-main-v1.json";
const SCHEMA: &str = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema"}"#;

#[test]
fn nothing_is_found_in_a_sound_workspace() {
    let (_directory, workspace) = sound();
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new());
}

#[test]
fn what_could_not_be_looked_at_is_not_called_good() {
    let check = |expected: &[&str], breakage: &dyn Fn(&Path)| {
        let (directory, workspace) = sound();
        breakage(directory.path());
        assert_eq!(skipped(&workspace), expected);
    };
    check(&[], &|_| {});
    check(&["routes", "delegation", "references", "key owners", "signing keys"], &|root| {
        write(root, ROUTES, "{")
    });
    check(&["key owners", "signing keys"], &|root| write(root, "memory/keyring.json", "{"));
    check(&["keyring", "key owners", "signing keys"], &|root| set_mode(root, "memory/keyring.json", 0o644));
    check(&["tokens"], &|root| set_mode(root, "memory/tokens.json", 0o644));
    check(&["checkpoint"], &|root| set_mode(root, "memory/gateway.key", 0o644));
    check(&["certificates", "sink", "tokens", "ledger", "clock", "state", "checkpoint"], &|root| {
        write(root, "handoffd.toml", "[server]\nlistne = 1\n")
    });
    check(&["clock", "state", "checkpoint"], &|root| {
        let segment = fs::read_dir(root.join("memory/ledger")).unwrap().next().unwrap().unwrap().path();
        fs::remove_file(&segment).unwrap();
        fs::create_dir(&segment).unwrap();
    });
    check(&["clock", "state", "checkpoint"], &|root| fs::remove_dir_all(root.join("memory/ledger")).unwrap());
    // A workspace that nobody has served yet has nothing to look at.
    let directory = tempfile::tempdir().unwrap();
    super::super::init::scaffold(directory.path()).map_err(|failure| failure.0).unwrap();
    assert_eq!(skipped(&Workspace::new(directory.path())), ["clock", "state", "checkpoint"]);
}

#[test]
fn rules_that_cannot_be_used_or_say_too_little_are_found() {
    check("settings: Fail: handoffd.toml", |root, _| write(root, "handoffd.toml", "[server]\nlistne = 1\n"));
    check("policies: Fail: policies/routes.json", |root, _| write(root, ROUTES, "{"));
    check("policies: Fail: policies/delegation/user-main-v1.json", |root, _| {
        edit(root, POLICY, "\"principals\"", "\"principles\": [], \"principals\"");
    });
    check("routes: Fail: the critical route", |root, _| {
        edit(root, POLICY, "\"crypto-sage-dr\", ", "");
        edit(root, ROUTES, "\"fallbackAgentId\": \"crypto-sage-dr\",", "");
    });
    check("routes: Warn: route", |root, _| {
        edit(root, POLICY, "\"crypto-sage-dr\", ", "");
        edit(root, ROUTES, "\"fallbackAgentId\": \"crypto-sage-dr\",\n      \"critical\": true,", "");
    });
    check("delegation: Warn: policies/delegation/user-main-v1.json has no requireBinding", |root, _| {
        edit(root, POLICY, "\"requireBinding\": [\"live\"], ", "");
    });
    check("delegation: Warn: policies/delegation/user-main-v2.json has no riskFloor", |root, _| {
        let text = fs::read_to_string(root.join(POLICY)).unwrap();
        let end = text.find(", \"riskFloor\"").unwrap();
        write(root, "policies/delegation/user-main-v2.json", &format!("{}}}", &text[..end]));
    });
    check("references: Fail: the rollback plan", |root, _| {
        edit(root, ROUTES, "docs/runbook.md", "docs/nowhere.md");
    });
    check("references: Warn: the input schema agents/input.json of route", |root, _| {
        write(root, "agents/input.json", SCHEMA);
        edit(root, ROUTES, "\"critical\"", "\"inputSchemaRefs\": [\"agents/input.json\"], \"critical\"");
    });
    check("references: Fail: the input schema `agents/nowhere.v1.json` of route", |root, _| {
        edit(root, ROUTES, "\"critical\"", "\"inputSchemaRefs\": [\"agents/nowhere.v1.json\"], \"critical\"");
    });
    check("delegation: Warn: policies/delegation/user-main-v1.json has allowTasks with \"*\"", |root, _| {
        edit(root, POLICY, "\"health.check\"", "\"*\"");
    });
    check("delegation: Warn: policies/delegation/user-main-v1.json has allowAgents with \"*\"", |root, _| {
        edit(root, POLICY, "\"crypto-sage\"", "\"*\"");
    });
    check(
        "delegation: Warn: policies/delegation/user-main-v1.json allows the agent `crypto-saga`",
        |root, _| {
            edit(root, POLICY, "\"crypto-sage\"", "\"crypto-sage\", \"crypto-saga\"");
        },
    );
}

/// A workspace is full of schemas that are not for input, beginning with the gateway's own.
#[test]
fn a_schema_that_no_route_names_is_nobodys_input() {
    let (directory, workspace) = sound();
    write(directory.path(), "agents/other.json", SCHEMA);
    write(directory.path(), "agents/input.v1.json", SCHEMA);
    edit(
        directory.path(),
        ROUTES,
        "\"critical\"",
        "\"inputSchemaRefs\": [\"agents/input.v1.json\"], \"critical\"",
    );
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new());
}

#[test]
fn keys_and_tokens_that_do_not_count_are_found() {
    check("keyring: Fail: ", |root, _| write(root, "memory/keyring.json", "{"));
    check("keyring: Warn: key `k-2` ended", |_, workspace| {
        add_key(workspace, "k-2", "user:main", Purpose::Envelope, Some(-1));
    });
    check("keyring: Warn: key `k-2` ends", |_, workspace| {
        add_key(workspace, "k-2", "user:main", Purpose::Envelope, Some(29 * 86_400));
    });
    check("key owners: Warn: key `k-2` belongs to `user:rita`", |_, workspace| {
        add_key(workspace, "k-2", "user:rita", Purpose::Envelope, None);
    });
    check("signing keys: Warn: route", |_, workspace| {
        remove_key(workspace, "crypto-sage-dispatch-1");
    });
    check("signing keys: Fail: route", |root, workspace| {
        remove_key(workspace, "crypto-sage-dispatch-1");
        edit(root, ROUTES, "\"critical\"", "\"requireSignature\": true, \"critical\"");
    });
    check("tokens: Fail: ", |root, _| write(root, "memory/tokens.json", "{"));
    check("tokens: Warn: no admin", |root, _| {
        TokenFiles::of(root).revoke("admin", clock::now()).unwrap();
    });
    // There is another admin, so the next start leaves the file as it is.
    check("tokens: Warn: the token in memory/admin.token does not count", |root, _| {
        let files = TokenFiles::of(root);
        files.make("boss".parse().unwrap(), Standing::admin(), clock::now(), None).unwrap();
        files.revoke("admin", clock::now()).unwrap();
    });
    check("tokens: Warn: the token in memory/admin.token does not count", |root, _| {
        write(root, "memory/admin.token", "hd_adm_unknown\n");
        set_mode(root, "memory/admin.token", 0o600);
    });
}

#[test]
fn a_token_that_ends_within_a_week_is_found() {
    let ends = |days: i64| {
        move |root: &Path| {
            let ends = clock::now().plus_seconds(days * 86_400);
            let made = TokenFiles::of(root).make(
                "boss".parse().unwrap(),
                Standing::admin(),
                clock::now(),
                Some(ends),
            );
            made.unwrap();
        }
    };
    check("tokens: Warn: the token `boss` of role admin ends", |root, _| ends(6)(root));
    let (directory, workspace) = sound();
    ends(8)(directory.path());
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new());
}

#[test]
fn a_key_that_ends_later_is_not_found() {
    let (_directory, workspace) = sound();
    add_key(&workspace, "k-2", "user:main", Purpose::Envelope, Some(31 * 86_400));
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new());
}

/// A certificate for a month and its key, with which the workspace speaks TLS.
fn with_tls(root: &Path) {
    make_pair(root, "tls");
    write(root, "handoffd.toml", "[tls]\ncertificate = \"tls.pem\"\nprivate_key = \"tls.key\"\n");
}

fn make_pair(root: &Path, name: &str) {
    let mut command = std::process::Command::new("openssl");
    command.current_dir(root).args(["req", "-x509", "-nodes", "-days", "30", "-newkey", "ec"]);
    command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]);
    command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
    assert!(command.output().unwrap().status.success());
    set_mode(root, &format!("{name}.key"), 0o600);
}

#[test]
fn certificates_that_the_daemon_cannot_use_are_found() {
    let check = |expected: &str, breakage: &dyn Fn(&Path)| {
        check(expected, |root, _| {
            with_tls(root);
            breakage(root);
        });
    };
    let remove = |root: &Path, name: &str| fs::remove_file(root.join(name)).unwrap();
    check("certificates: Fail: [tls] certificate: ", &|root| remove(root, "tls.pem"));
    check("certificates: Fail: [tls] private_key: ", &|root| remove(root, "tls.key"));
    check("certificates: Fail: [tls] private_key: ", &|root| set_mode(root, "tls.key", 0o644));
    check("certificates: Fail: [tls] certificate: ", &|root| write(root, "tls.pem", "no certificate"));
    check("certificates: Fail: [tls] private_key: ", &|root| {
        make_pair(root, "other");
        fs::copy(root.join("other.key"), root.join("tls.key")).unwrap();
    });
    check("certificates: Fail: [tls] certificate: ", &|root| {
        let old = "openssl req -new -key tls.key -subj /CN=localhost | \
                   openssl x509 -req -signkey tls.key -days 30 -out tls.pem";
        let made = std::process::Command::new("sh").current_dir(root).args(["-c", old]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let load = crate::http::load_tls(&Effective::load(root, Vec::new()).unwrap().settings.tls, root);
        let fault = load.unwrap_err().remove(0);
        assert!(fault.why.ends_with("it is X.509 v1, which TLS does not take"), "{fault:?}");
        assert!(fault.fix.contains("make a v3 one") && !fault.fix.contains("P-256"), "{fault:?}");
    });
    let (directory, workspace) = sound();
    with_tls(directory.path());
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new());
    let mode = fs::metadata(directory.path().join("tls.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let at = |days: i64| -> Vec<String> {
        let lines = found(&workspace, |ground| ground.now = ground.now.plus_seconds(days * 86_400));
        lines.into_iter().filter(|line| line.starts_with("certificates")).collect()
    };
    for (days, expected) in [
        (-1, "certificates: Fail: [tls] certificate: it does not count before "),
        (21, "certificates: Warn: [tls] certificate: it expires on "),
        (31, "certificates: Fail: [tls] certificate: it has expired on "),
    ] {
        assert!(at(days).len() == 1 && at(days)[0].starts_with(expected), "{days}: {:?}", at(days));
    }
    // A third of its time is ten days.
    assert_eq!(at(19), Vec::<String>::new());
}

#[test]
fn a_sink_that_cannot_be_written_is_found() {
    let elsewhere = tempfile::tempdir().unwrap();
    let check = |expected: &str, path: &str| {
        check(expected, |root, _| write(root, "handoffd.toml", &format!("[sink]\npath = \"{path}\"\n")));
    };
    let below = |name: &str| elsewhere.path().join(name).display().to_string();
    check("sink: Fail: [sink] path: ", &below("nowhere/lines.jsonl"));
    fs::create_dir(elsewhere.path().join("lines.jsonl")).unwrap();
    check("sink: Fail: [sink] path: ", &below("lines.jsonl"));
    check("sink: Fail: [sink] path: ", "policies/lines.jsonl");
    // Nobody may write there, whoever runs this.
    check("sink: Fail: [sink] path: ", "/proc/sys/kernel/lines.jsonl");
    let (directory, workspace) = sound();
    write(directory.path(), "handoffd.toml", "[sink]\npath = \"memory/lines.jsonl\"\n");
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new());
    assert!(!directory.path().join("memory/lines.jsonl").exists(), "nothing is changed");
}

#[test]
fn what_others_may_do_on_the_disk_is_found() {
    check("permissions: Fail: others may write", |root, _| set_mode(root, "memory", 0o770));
    check("permissions: Warn: others may look", |root, _| set_mode(root, "memory/ledger", 0o750));
    // Once, and not again by whoever cannot read it for that.
    for secret in ["admin.token", "tokens.json", "keyring.json", "gateway.key"] {
        check("permissions: Fail: ", |root, _| set_mode(root, &format!("memory/{secret}"), 0o640));
    }
    check("permissions: Fail: ", |root, _| {
        write(root, "memory/k.ed25519", "seed");
        set_mode(root, "memory/k.ed25519", 0o644);
    });
}

/// Whoever may write the rules needs no token.
#[test]
fn rules_that_others_may_write_are_found() {
    const PLAN: &str = "agents/blockchain-operator/docs/runbook.md";
    const SCHEMA: &str = "agents/blockchain-operator/config/execution-plane.schema.v1.json";
    for (path, modes) in [
        (ROUTES, [0o664, 0o646]),
        (POLICY, [0o664, 0o646]),
        ("policies/tests/user-main-v1.json", [0o664, 0o646]),
        ("policies", [0o775, 0o757]),
        ("policies/delegation", [0o775, 0o757]),
        (PLAN, [0o664, 0o646]),
        (SCHEMA, [0o664, 0o646]),
        ("agents/blockchain-operator/config", [0o775, 0o757]),
        ("handoffd.toml", [0o664, 0o646]),
    ] {
        for mode in modes {
            let breakage = |root: &Path, _: &Workspace| {
                write(root, "handoffd.toml", "");
                set_mode(root, path, mode);
            };
            let (directory, workspace) = sound();
            breakage(directory.path(), &workspace);
            let lines = found(&workspace, |_| {});
            let shown = directory.path().join(path).display().to_string();
            let expected =
                format!("permissions: Fail: others may write {shown} (mode {mode:03o}) and so change");
            assert!(lines.len() == 1 && lines[0].starts_with(&expected), "{expected}: {lines:?}");
        }
    }
    check("permissions: Fail: anybody may write to the workspace", |root, _| set_mode(root, "", 0o757));
    let (directory, workspace) = sound();
    set_mode(directory.path(), "", 0o775);
    assert_eq!(found(&workspace, |_| {}), Vec::<String>::new(), "its group may add what is not of the rules");
    // One line, however many there are.
    set_mode(directory.path(), ROUTES, 0o666);
    set_mode(directory.path(), POLICY, 0o666);
    let lines = found(&workspace, |_| {});
    assert!(lines.len() == 1 && lines[0].contains("and 1 path besides"), "{lines:?}");
}

#[test]
fn whoever_may_not_look_into_memory_is_told_whose_it_is() {
    let (_directory, workspace) = sound();
    let lines = found(&workspace, |ground| ground.stranger_to = Some(7420));
    assert_eq!(
        lines,
        ["user: Fail: memory/ belongs to the user with id 7420, and this one may not read what is in it"]
    );
}

#[test]
fn little_room_is_found() {
    let (_directory, workspace) = sound();
    let with = |free: u64| found(&workspace, |ground| ground.free_bytes = Ok(free));
    assert_eq!(with(limits::DOCTOR_ROOM_BYTES), Vec::<String>::new());
    assert_eq!(with(limits::DOCTOR_ROOM_BYTES - 1), ["room: Warn: 1023 MiB are free for memory/"]);
    assert_eq!(with(limits::DOCTOR_ROOM_BYTES_MIN), ["room: Warn: 64 MiB are free for memory/"]);
    assert_eq!(with(limits::DOCTOR_ROOM_BYTES_MIN - 1), ["room: Fail: 63 MiB are free for memory/"]);
}

#[test]
fn what_was_left_behind_is_found() {
    for name in ["memory/ledger/1.torn", "memory/keyring.new", "memory/ledger/1.aside"] {
        check("leftovers: Warn: ", |root, _| write(root, name, ""));
    }
}

#[test]
fn what_does_not_agree_with_the_ledger_is_found() {
    check("state: Fail: the state file is not what", |root, _| {
        edit(root, "memory/orchestration-state.json", "crypto-sage-dr", "stranger");
    });
    check("state: Fail: the state file is not a state file", |root, _| {
        write(root, "memory/orchestration-state.json", "{}");
    });
    check("state: Warn: the state file ends in the middle", |root, _| {
        write(root, "memory/orchestration-state.json", "{");
    });
    check("state: Warn: there is no state file", |root, _| {
        fs::remove_file(root.join("memory/orchestration-state.json")).unwrap();
    });
    check("checkpoint: Warn: there is no checkpoint yet", |root, _| {
        fs::remove_file(root.join("memory/checkpoint")).unwrap();
    });
    check("checkpoint: Fail: the checkpoint is not signed", |root, _| {
        edit(root, "memory/checkpoint", "\"sequence\":", "\"sequence\":1");
    });
}

/// Nobody has to serve a workspace to find out that its ledger is gone.
#[test]
fn a_ledger_that_is_gone_or_cannot_be_read_is_no_new_one() {
    let gone = |root: &Path| fs::remove_dir_all(root.join("memory/ledger")).unwrap();
    let forgotten = "ledger: Fail: the ledger cannot be read: the ledger ends at entry 0, but entry ";
    check(forgotten, |root, _| gone(root));
    check(forgotten, |root, _| {
        gone(root);
        fs::create_dir(root.join("memory/ledger")).unwrap();
        set_mode(root, "memory/ledger", 0o700);
    });
    // Each of those that remember it is enough.
    for left in ["checkpoint", "state.snapshot", "orchestration-state.json", "views.db"] {
        check(forgotten, |root, _| {
            gone(root);
            for name in ["checkpoint", "state.snapshot", "orchestration-state.json", "views.db", "seals"] {
                let path = root.join("memory").join(name);
                if name != left && path.exists() {
                    fs::remove_file(path).unwrap();
                }
            }
        });
    }
    check("ledger: Fail: the ledger cannot be read: ", |root, _| {
        gone(root);
        write(root, "memory/ledger", "no directory");
        set_mode(root, "memory/ledger", 0o600);
    });
}

#[test]
fn a_clock_that_is_behind_the_ledger_is_found() {
    let (_directory, workspace) = sound();
    let at = |seconds: i64| found(&workspace, |ground| ground.now = ground.now.plus_seconds(seconds));
    assert_eq!(at(0), Vec::<String>::new());
    let lines = at(-3600);
    assert!(lines.len() == 1 && lines[0].starts_with("clock: Fail: the clock is "), "{lines:?}");
}

#[test]
fn a_daemon_that_holds_the_workspace_and_does_not_answer_is_found() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (directory, workspace) = sound();
    let path = directory.path().join("memory/.lock");
    let _lock = WorkspaceLock::take(&path, &nobody.to_string()).unwrap();
    let lines = found(&workspace, |_| {});
    assert!(lines.len() == 1 && lines[0].starts_with("daemon: Fail: process "), "{lines:?}");
}
