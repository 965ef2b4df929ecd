//! `submit`: one and many, files and lines, exit codes, and what happens when an answer is lost.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value as Json, json};

use crate::support::{Workspace, stderr, stdout};

#[test]
fn a_submitted_handoff_is_decided_and_submitted_again_it_is_the_same() {
    let workspace = Workspace::served();
    let first = workspace.json(&["--json", "submit", "docs/examples/taskspec-canonical.json"]);
    assert_eq!((&first["decision"], &first["replayed"]), (&"allowed".into(), &false.into()), "{first}");
    let second = workspace.json(&["--json", "submit", "docs/examples/taskspec-canonical.json"]);
    assert_eq!(second["replayed"], true);
    assert_eq!(second["ledger"], first["ledger"]);
    let shown = stdout(&workspace.run(&["submit", "docs/examples/taskspec-canonical.json"]));
    assert!(shown.contains("hs_20260218_router_0001  allowed         (replayed)"), "{shown}");
}

#[test]
fn the_exit_code_is_the_gravest_of_all() {
    let workspace = Workspace::served();
    workspace.write("allowed.json", workspace.spec(1, |_| {}));
    workspace.write("denied.json", workspace.spec(2, |spec| spec["safety"]["e2eActor"] = "agent".into()));
    workspace.write("unreadable.json", "{");
    let check = |files: &[&str], expected: i32| {
        let arguments = [&["submit", "--check"], files].concat();
        assert_eq!(workspace.exit(&arguments), expected, "{files:?}");
        let arguments = [&["submit"], files].concat();
        assert_eq!(workspace.exit(&arguments), expected, "{files:?}");
    };
    check(&["allowed.json"], 0);
    check(&["allowed.json", "denied.json"], 1);
    check(&["denied.json", "unreadable.json", "allowed.json"], 2);
    check(&["nowhere.json"], 2);
}

#[test]
fn a_refusal_is_explained_with_its_code_place_and_hint() {
    let workspace = Workspace::served();
    workspace.write("denied.json", workspace.spec(2, |spec| spec["safety"]["e2eActor"] = "agent".into()));
    let shown = stdout(&workspace.run(&["submit", "denied.json"]));
    assert!(shown.contains("denied          POLICY_SELF_TEST"), "{shown}");
    assert!(shown.contains("POLICY_SELF_TEST at /safety/e2eActor: "), "{shown}");
    assert!(shown.contains("hint: "), "{shown}");
}

#[test]
fn every_row_says_where_it_came_from_if_the_id_does_not() {
    let workspace = Workspace::served();
    let nameless = workspace.spec(1, |spec| drop(spec.as_object_mut().unwrap().remove("handoffId")));
    workspace.write("nameless.json", &nameless);
    workspace.write("unreadable.json", "{");
    workspace.write("one.json", workspace.spec(2, |_| {}));
    workspace
        .write("same id.json", workspace.spec(2, |spec| spec["createdAt"] = "2026-02-18T19:38:01Z".into()));
    workspace.write("lines", format!("{}\n\n{{}}\n", workspace.spec(3, |_| {})));
    let row = |arguments: &[&str], begins: &str| {
        let shown = stdout(&workspace.run(arguments));
        assert!(shown.lines().any(|line| line.starts_with(begins)), "{begins}: {shown}");
        assert!(!shown.lines().any(|line| line.starts_with("- ")), "{shown}");
    };
    let files = ["submit", "--check", "nameless.json", "unreadable.json", "one.json", "same id.json"];
    row(&files, "nameless.json ");
    row(&files, "unreadable.json ");
    row(&files, "hs_20260218_router_0002 (one.json) ");
    row(&files, "hs_20260218_router_0002 (same id.json) ");
    row(&["submit", "--lines", "lines"], "hs_20260218_router_0003 ");
    row(&["submit", "--lines", "lines"], "lines, line 3 ");
}

#[test]
fn a_row_of_a_refused_name_has_the_handoff_and_a_long_path_leaves_room_for_the_codes() {
    let workspace = Workspace::served();
    let made = ["token", "new", "--name", "sage-bot", "--role", "orchestrator", "--agent", "crypto-sage"];
    let token = stdout(&workspace.run(&made)).trim().to_owned();
    workspace.write("foreign.json", workspace.spec(1, |_| {}));
    let path = format!("{}/nameless.json", "a".repeat(100));
    std::fs::create_dir(workspace.path().join("a".repeat(100))).unwrap();
    workspace.write(&path, workspace.spec(2, |spec| drop(spec.as_object_mut().unwrap().remove("handoffId"))));
    for check in [&["submit"][..], &["submit", "--check"]] {
        let arguments = [check, &["foreign.json", &path]].concat();
        let output = workspace.command(&arguments).env("HANDOFFD_TOKEN", &token).output().unwrap();
        let shown = stdout(&output);
        let row =
            |begins: &str| shown.lines().find(|line| line.starts_with(begins)).unwrap_or_default().to_owned();
        assert!(row("handoffId or file  ").ends_with("codes"), "{shown}");
        assert!(row("hs_20260218_router_0001  ").contains("A2A_SOURCE_MISMATCH"), "{shown}");
        let nameless = row("…a");
        assert!(nameless.contains("aa/nameless.json  denied"), "{shown}");
        assert!(nameless.find("denied") < Some(60), "{shown}");
    }
}

#[test]
fn a_check_claims_nothing() {
    let workspace = Workspace::served();
    for _ in 0..2 {
        let checked =
            workspace.json(&["--json", "submit", "--check", "docs/examples/taskspec-canonical.json"]);
        assert_eq!((&checked["decision"], &checked["replayed"]), (&"allowed".into(), &false.into()));
        assert_eq!(checked.get("dispatch"), None);
    }
}

#[test]
fn many_lines_on_standard_input_are_decided_in_batches_one_answer_each() {
    let workspace = Workspace::served();
    let mut text: String = (0..250).map(|n| workspace.spec(n, |_| {}) + "\n").collect();
    text.push_str("\nnot json\n");
    text.push_str(&workspace.spec(999, |spec| spec["mode"] = "live".into()));
    workspace.write("in.jsonl", text);
    let send = |arguments: &[&str]| {
        let input = std::fs::File::open(workspace.path().join("in.jsonl")).unwrap();
        workspace.command(arguments).stdin(input).output().unwrap()
    };
    let output = send(&["--json", "submit", "--lines", "-"]);
    assert_eq!(output.status.code(), Some(2));
    let answers: Vec<Json> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 252);
    for (n, answer) in answers.iter().enumerate().take(250) {
        assert_eq!(answer["handoffId"], format!("hs_20260218_router_{n:04}"));
        assert_eq!(answer["decision"], "allowed");
    }
    assert_eq!(answers[250]["decision"], Json::Null);
    assert!(stderr(&output).contains("-, line 252: "), "{}", stderr(&output));
    assert_eq!(answers[251]["decision"], "denied");
    let sequences: Vec<u64> =
        answers[..250].iter().map(|answer| answer["ledger"]["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b));

    let shown = stdout(&send(&["submit", "--lines", "-"]));
    assert!(shown.contains("252 in all: 250 allowed, 1 denied, 1 unreadable"), "{shown}");
    assert!(shown.contains("hs_20260218_router_0123  allowed         (replayed)"), "{shown}");
}

#[test]
fn a_batch_that_is_too_large_for_the_gateway_is_halved() {
    let mut workspace = Workspace::new();
    workspace.write("handoffd.toml", "[server]\nbatch_bytes_max = 8192\n");
    workspace.start();
    let text: String = (0..20).map(|n| workspace.spec(n, |_| {}) + "\n").collect();
    assert!(text.len() > 2 * 8192);
    workspace.write("many.jsonl", text);
    let shown = stdout(&workspace.run(&["submit", "--lines", "many.jsonl"]));
    assert!(shown.contains("20 in all: 20 allowed"), "{shown}");
}

#[test]
fn without_a_gateway_it_says_how_to_start_one() {
    let mut workspace = Workspace::served();
    workspace.stop();
    // The lock's file still names the daemon that is gone.
    let output = workspace.run(&["submit", "docs/examples/taskspec-canonical.json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("start one with: handoffd serve"), "{}", stderr(&output));

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = workspace
        .command(&["submit", "docs/examples/taskspec-canonical.json", "--url", &format!("http://{nobody}")])
        .env("HANDOFFD_TOKEN", "hd_orc_secret")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("nobody listens"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("hd_orc"), "{}", stderr(&output));
}

#[test]
fn a_token_on_the_command_line_is_warned_of_and_a_wrong_one_is_no_denial() {
    let workspace = Workspace::served();
    let wrong = format!("hd_adm_{}", "x".repeat(43));
    let file = "docs/examples/taskspec-canonical.json";
    let output = workspace.run(&["submit", file, "--token", &wrong]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("others on this machine can see"), "{said}");
    assert!(said.contains("[AUTH_TOKEN_UNKNOWN]") && !said.contains(&wrong), "{said}");
    assert!(said.contains("was revoked (in Authorization); "), "{said}");
    assert_eq!(said.matches("others on this machine can see").count(), 1, "{said}");
    // The file is as good as it was: nobody has looked at it.
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("turned_away") && !table.contains("unreadable"), "{table}");

    let output = workspace.command(&["submit", file]).env("HANDOFFD_TOKEN", workspace.admin_token()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!stderr(&output).contains("others on this machine"), "{output:?}");
}

/// Passes connections on to the gateway, and does something to the first ones.
fn in_between(workspace: &Workspace, mishaps: Vec<Mishap>) -> String {
    let gateway = workspace.url().trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut mishaps = mishaps.into_iter();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            if let Some(mishap) = mishaps.next() {
                mishap(stream, &gateway);
                continue;
            }
            let onward = TcpStream::connect(&gateway).unwrap();
            let (mut from, mut to) = (stream.try_clone().unwrap(), onward.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut from, mut to) = (onward, stream);
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    });
    url
}

/// What becomes of a connection instead of being passed on to the gateway at this address.
type Mishap = fn(TcpStream, &str);

/// Reads a request to the end of its body.
fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let (mut request, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let bytes = stream.read(&mut buffer).unwrap();
        assert_ne!(bytes, 0, "{}", String::from_utf8_lossy(&request));
        request.extend_from_slice(&buffer[..bytes]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        if body.len() >= length.trim().parse().unwrap() {
            return request;
        }
    }
}

#[test]
fn a_lost_answer_and_a_busy_gateway_are_asked_again_and_nothing_is_decided_twice() {
    let workspace = Workspace::served();
    let busy: Mishap = |mut stream, _| {
        read_request(&mut stream);
        let body = r#"{"code":"ENGINE_BUSY","detail":"too many","hint":"later"}"#;
        let head = "HTTP/1.1 503 Busy\r\ncontent-type: application/problem+json\r\nretry-after: 0\r\nconnection: close";
        let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    };
    // Decided, but nobody hears of it.
    let lost: Mishap = |mut stream, gateway| {
        let mut onward = TcpStream::connect(gateway).unwrap();
        onward.write_all(&read_request(&mut stream)).unwrap();
        let _ = onward.read(&mut [0; 1024]).unwrap();
    };
    let url = in_between(&workspace, vec![busy, lost]);
    let output = workspace
        .command(&["--json", "submit", "docs/examples/taskspec-canonical.json", "--url", &url])
        .env("HANDOFFD_TOKEN", workspace.admin_token())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("[ENGINE_BUSY]; asking again in 0 s, with the same idempotencyKey (attempt 2 of 5)"),
        "{said}"
    );
    assert!(said.contains("(attempt 3 of 5)"), "{said}");
    let decision: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&decision["attempt"], &decision["replayed"]), (&json!(1), &json!(true)), "{decision}");
}

#[test]
fn an_answer_that_points_elsewhere_is_not_followed() {
    let workspace = Workspace::served();
    let elsewhere: Mishap = |mut stream, _| {
        read_request(&mut stream);
        let head = "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\nconnection: close";
        let _ = write!(stream, "{head}\r\ncontent-length: 0\r\n\r\n");
    };
    let url = in_between(&workspace, vec![elsewhere]);
    let output = workspace
        .command(&["submit", "docs/examples/taskspec-canonical.json", "--url", &url])
        .env("HANDOFFD_TOKEN", workspace.admin_token())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("points elsewhere (status 307)"), "{}", stderr(&output));
}
