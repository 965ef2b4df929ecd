//! Canaries: hundreds of texts, planted wherever somebody can put one, and looked for wherever nobody may find it.
//!
//! `secrets/canaries.rs` has the tables of what is planted where, and of where it may be seen.

mod canaries;
mod elsewhere;
mod forms;
mod planting;

use std::fs;

use serde_json::{Value as Json, json};

use super::approvals::live;
use super::console::{ACTS, PAGES, Visitor};
use super::harness::{command, eventually, location, write};
use super::route::{Agent, Scene};
use super::wire::{Request, send};
use canaries::{Canaries, Kind, Surface, tables};
use planting::{Garden, REASON, SETTINGS};

#[test]
fn two_hundred_canaries_are_found_nowhere() {
    let mut garden = Garden::new();
    garden.strangers();
    garden.work();
    garden.words();
    garden.answered();
    garden.over_a2a();
    garden.references();
    garden.packets_and_batches();
    garden.look_at_what_is_told();
    look_at_the_console(&garden);
    look_at_settings(&garden.canaries);
    look_everywhere(&garden);
    garden.look_at_a_backup();
    garden.look_at_memory();
    look_at_an_approval(&garden);
    let (secrets, all) = garden.canaries.count();
    assert!(secrets >= 200 && all >= 400, "{secrets} secrets of {all} texts");
}

#[test]
fn what_is_planted_and_where_it_may_be_seen_is_told() {
    let page = include_str!("../../docs/threat-model.md");
    for table in tables() {
        assert!(page.contains(&table), "docs/threat-model.md has another table than\n{table}");
    }
}

/// An operator is shown work and words, and never a secret; whoever has no session is shown nothing.
fn look_at_the_console(garden: &Garden) {
    let canaries = &garden.canaries;
    let own =
        garden.taken.iter().map(|spec| format!("/console/handoffs/{}", spec["handoffId"].as_str().unwrap()));
    // Before somebody acts, a page repeats what will happen, with what was filled in.
    let digest = garden.proposed();
    let acts = ACTS.iter().map(|(act, fields)| {
        let field = |(name, value): &(&str, &str)| match *name {
            "reason" => {
                format!("reason={}", canaries.plant("a reason that is filled in on a page and not sent"))
            }
            "digest" => format!("digest={digest}"),
            _ => format!("{name}={value}"),
        };
        format!("/console/act/{act}?{}", fields.iter().map(field).collect::<Vec<_>>().join("&"))
    });
    let pages: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).chain(own).chain(acts).collect();
    for visitor in garden.visitors() {
        for page in &pages {
            canaries.look(Surface::Console, page, &visitor.get(page).text());
            let closed = send(garden.daemon.address, &Request::new("GET", page));
            canaries.look(Surface::Stranger, page, &closed.text());
        }
    }
}

/// Another workspace, that cannot be served with the settings it has.
fn look_at_settings(canaries: &Canaries) {
    let root = tempfile::tempdir().unwrap();
    let workspace = root.path().join("workspace");
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        let output = command(&workspace, arguments).envs(environment.iter().copied()).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        canaries.look(Surface::Settings, &arguments.join(" "), &text);
        (output.status.success(), text)
    };
    run(&["init"], &[]);
    let (password, other) = (canaries.plant(SETTINGS), canaries.plant(SETTINGS));
    let database =
        |password: &str| format!("postgres://handoffd:{password}@127.0.0.1:9/none?connect_timeout=1");
    let settings = format!(
        "[ledger]\nurl = \"{}\"\n[otlp]\nendpoint = \"http://127.0.0.1:9\"\nheaders = [\"authorization={}\"]\n[ai]\nurl = \"http://127.0.0.1:9\"\napi_key = \"{}\"\n",
        database(&password),
        canaries.plant(SETTINGS),
        canaries.plant(SETTINGS),
    );
    write(&workspace.join("handoffd.toml"), &settings);
    for arguments in [&["serve", "--print-config"][..], &["serve", "--print-config", "--json"], &["doctor"]] {
        let (_, text) = run(arguments, &[]);
        assert!(!text.is_empty());
    }
    let (served, why) = run(&["serve", "--listen", "127.0.0.1:0"], &[]);
    assert!(!served && !why.is_empty(), "{why}");
    let other = database(&other);
    let (served, why) = run(&["serve", "--listen", "127.0.0.1:0", "--ledger", &other], &[]);
    assert!(!served && !why.is_empty(), "{why}");
    run(&["serve", "--print-config"], &[("HANDOFFD_LEDGER_URL", &other)]);
    run(&["audit", "list"], &[]);
    // What cannot be read is not shown either.
    write(&workspace.join("handoffd.toml"), settings.replace("[ai]", "[ai"));
    assert!(!run(&["serve", "--print-config"], &[]).0);
    let key = canaries.plant("the private key for TLS");
    write(
        &workspace.join("handoffd.toml"),
        "[tls]\ncertificate = \"gateway.pem\"\nprivate_key = \"gateway.key\"\n",
    );
    write(&workspace.join("gateway.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    write(
        &workspace.join("gateway.key"),
        format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n"),
    );
    assert!(!run(&["serve", "--listen", "127.0.0.1:0"], &[]).0);
}

/// What a person says to live work, on a route that has earned it.
fn look_at_an_approval(garden: &Garden) {
    let canaries = &garden.canaries;
    let agent = Agent::answering("200 OK");
    let url = agent.url();
    let scene = Scene::with("[log]\nlevel = \"trace\"\n", |route| route["probeUrl"] = url.into());
    scene.go_live();
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let mut told = String::new();
    for (name, word) in [("canary_no_0001", "reject"), ("canary_yes_0001", "approve")] {
        let mut spec = live(name);
        garden.name(&mut spec);
        garden.load(&mut spec);
        spec["intent"]["input"].as_object_mut().unwrap().remove("memo");
        let reply = scene.daemon.post_as(&scene.router, "/v1/handoffs", &spec);
        assert_eq!(reply.status, 202, "{reply:?}");
        let id = spec["handoffId"].as_str().unwrap();
        for page in [
            "approvals".to_owned(),
            format!("approvals/{id}"),
            format!("act/approve?id={id}"),
            format!("act/reject?id={id}"),
        ] {
            let page = format!("/console/{page}");
            let shown = rita.get(&page);
            assert!(shown.status == 200 && shown.text().contains(id), "{page}: {shown:?}");
            canaries.look(Surface::Console, &page, &shown.text());
            let closed = send(scene.daemon.address, &Request::new("GET", &page));
            canaries.look(Surface::Stranger, &page, &closed.text());
        }
        let place = format!("/v1/approvals/{id}");
        let shown = scene.daemon.get_as(&scene.rita, &place);
        assert_eq!(shown.status, 200, "{shown:?}");
        canaries.look(Surface::Own, &place, &shown.text());
        let said = json!({"decision": word, "reason": canaries.plant(REASON)});
        let reply = scene.daemon.post_as(&scene.rita, &place, said);
        assert_eq!(reply.status, 200, "{reply:?}");
        told.push_str(&reply.text());
    }
    canaries.look(Surface::Own, "the answer to a person", &told);
    canaries.look(Surface::Metrics, "/metrics", &scene.daemon.get("/metrics").text());
    canaries.look(Surface::Log, "the log", &scene.daemon.log());
    canaries.look(Surface::Lists, "/v1/handoffs", &scene.daemon.get("/v1/handoffs").text());
}

fn look_everywhere(garden: &Garden) {
    let Garden { daemon, canaries, taken, tasks, .. } = garden;
    let get = |token: Option<&str>, place: &str| {
        let request = Request::new("GET", place);
        let request = token.map_or(request.clone(), |token| request.token(token));
        send(daemon.address, &request).text()
    };
    let lists = [
        "/v1/handoffs",
        "/v1/routes",
        "/v1/routes/crypto-sage.execution-plane.v1",
        "/v1/state",
        "/v1/policies",
        "/v1/tokens",
        "/v1/keys",
        "/v1/approvals",
        "/v1/authorizations",
        "/v1/mentions",
        "/v1/mentions/phase",
        "/v1/mentions/metrics",
        "/v1/freeze",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/.well-known/jwks.json",
        "/.well-known/agent-card.json",
    ];
    let records = ["/v1/audit?limit=500", "/v1/audit/export"];
    let of_each: Vec<String> =
        taken.iter().flat_map(|spec| [location(spec), format!("{}/evidence", location(spec))]).collect();
    // Somebody who has nothing to do with any of it.
    let stranger = daemon.token("stranger", "orchestrator", Some("stranger"));
    for place in
        lists.iter().chain(&records).chain(&["/metrics"]).copied().chain(of_each.iter().map(String::as_str))
    {
        canaries.look(Surface::Stranger, place, &get(Some(&stranger), place));
        canaries.look(Surface::Stranger, place, &get(None, place));
    }
    for task in tasks {
        for (method, params) in [
            ("tasks/get", json!({"id": task})),
            ("tasks/pushNotificationConfig/list", json!({"id": task})),
            ("tasks/cancel", json!({"id": task})),
            ("tasks/list", json!({})),
        ] {
            canaries.look(Surface::Stranger, method, &garden.rpc(&stranger, method, params).to_string());
        }
    }
    // Those who may read all that is recorded.
    for token in [&garden.auditor, &garden.rita, &daemon.admin] {
        lists.iter().for_each(|place| canaries.look(Surface::Lists, place, &get(Some(token), place)));
        records.iter().for_each(|place| canaries.look(Surface::Ledger, place, &get(Some(token), place)));
        of_each.iter().for_each(|place| canaries.look(Surface::Own, place, &get(Some(token), place)));
    }
    for token in [&garden.router, &garden.sage] {
        of_each.iter().for_each(|place| canaries.look(Surface::Own, place, &get(Some(token), place)));
    }
    let export = daemon.cli_ok(&["audit", "export"]);
    assert!(export.lines().count() > 50);
    canaries.look(Surface::Ledger, "audit export", &export);
    for kind in [Kind::Words, Kind::Name] {
        canaries.present(kind, "audit export", &export);
    }
    for command in
        [&["audit", "list"][..], &["audit", "tail", "--from", "1", "--no-follow"], &["state", "show"]]
    {
        canaries.look(Surface::Ledger, &command.join(" "), &daemon.cli_ok(command));
    }
    for command in [&["doctor"][..], &["serve", "--print-config"], &["serve", "--print-config", "--json"]] {
        let output = daemon.cli(command);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        canaries.look(Surface::Settings, &command.join(" "), &text);
    }
    let read = |path: &str| fs::read_to_string(daemon.path(path)).unwrap();
    canaries.look(Surface::Lists, "the state file", &read("memory/orchestration-state.json"));
    canaries.look(Surface::Lists, "memory/tokens.json", &read("memory/tokens.json"));
    let sink = eventually("the sink has lines", || {
        fs::read_to_string(daemon.path("memory/sink.jsonl")).ok().filter(|text| text.lines().count() > 50)
    });
    canaries.look(Surface::Ledger, "the sink", &sink);
    canaries.look(Surface::Metrics, "/metrics", &daemon.get("/metrics").text());
    look_at_traces(garden);
    let log = daemon.log();
    assert!(log.contains("TRACE") || log.contains("\"level\""), "it logs");
    canaries.look(Surface::Log, "the log", &log);
}

/// Every request of the garden belongs to a trace, so that each has spans; the last of them has come when this one has.
fn look_at_traces(garden: &Garden) {
    let mark = "hs_20260218_the_last_one_0001";
    let mut last = super::harness::lost_spec("the_last_one_0001");
    last["handoffId"] = mark.into();
    garden.ask(&garden.router, "POST", "/v1/handoffs", &last, 403);
    let sent = eventually("the collector has heard of the last one", || {
        let all = garden.collector.received();
        let text: String =
            all.iter().map(|one| String::from_utf8_lossy(&one.body).into_owned() + "\n").collect();
        text.contains(mark).then_some(text)
    });
    let spans = |name: &str| sent.matches(&format!("\"name\":\"{name}\"")).count();
    assert!(spans("submitHandoff") > 20, "{sent}");
    garden.canaries.look(Surface::Traces, "spans", &sent);
    let first: &Json = &garden.taken[0]["handoffId"];
    assert!(sent.contains(first.as_str().unwrap()), "what is looked for can be found");
}
