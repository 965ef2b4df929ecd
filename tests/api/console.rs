//! The console as a browser meets it, without one: headers, cookies, forms and roles. What a person sees is in
//! `tests/browser/`.

use serde_json::{Value as Json, json};

use super::harness::{Daemon, ROUTER, eventually, lost_spec, spec};
use super::route::{Agent, KEY, Scene};
use super::wire::{Reply, Request, send};

/// Somebody with a session.
pub(crate) struct Visitor<'d> {
    daemon: &'d Daemon,
    pub(crate) cookie: String,
}

pub(crate) fn ask(daemon: &Daemon, request: &Request) -> Reply {
    let reply = send(daemon.address, request);
    check_headers(request, &reply);
    reply
}

/// Every answer under `/console` has them, whatever it is.
#[track_caller]
fn check_headers(request: &Request, reply: &Reply) {
    let policy =
        reply.header("content-security-policy").unwrap_or_else(|| panic!("{request:?} -> {reply:?}"));
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"), "{policy}");
    assert!(policy.contains("form-action 'self'"), "{policy}");
    for word in ["unsafe", "http:", "https:", "data:", "*"] {
        assert!(!policy.contains(word), "{policy}");
    }
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    let is_asset = reply.header("cache-control") == Some("public, max-age=31536000, immutable");
    assert!(is_asset || reply.header("cache-control") == Some("no-store"), "{reply:?}");
}

pub(crate) fn form(target: &str, fields: &[(&str, &str)]) -> Request {
    let encode = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    Request::new("POST", target)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", "http://handoffd")
        .body(pairs.join("&"))
}

/// What stands between two texts, the first time.
pub(crate) fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
    rest.split_once(after).unwrap().0
}

impl<'d> Visitor<'d> {
    pub(crate) fn log_in(daemon: &'d Daemon, token: &str) -> Self {
        let reply = ask(daemon, &form("/console/login", &[("token", token)]));
        assert_eq!((reply.status, reply.header("location")), (303, Some("/console")), "{reply:?}");
        Self::of(daemon, &reply)
    }

    /// Comes by a link.
    pub(crate) fn follow(daemon: &'d Daemon, path: &str) -> Self {
        let reply = ask(daemon, &Request::new("GET", path));
        assert_eq!(reply.status, 303, "{reply:?}");
        Self::of(daemon, &reply)
    }

    pub(crate) fn of(daemon: &'d Daemon, reply: &Reply) -> Self {
        let cookie = reply.header("set-cookie").unwrap();
        for part in ["; Path=/console", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert!(!cookie.contains("Secure"), "{cookie}");
        Self { daemon, cookie: cookie.split(';').next().unwrap().to_owned() }
    }

    pub(crate) fn with(&self, request: Request) -> Request {
        request.header("Cookie", &format!("other=1; {}", self.cookie))
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        ask(self.daemon, &self.with(Request::new("GET", target)))
    }

    /// The word that this session's forms carry.
    pub(crate) fn form_word(&self) -> String {
        between(&self.get("/console").text(), "name=\"form\" value=\"", "\"").to_owned()
    }

    pub(crate) fn act(&self, name: &str, fields: &[(&str, &str)]) -> Reply {
        let word = self.form_word();
        let mut all = vec![("form", word.as_str())];
        all.extend(fields);
        ask(self.daemon, &self.with(form(&format!("/console/act/{name}"), &all)))
    }
}

pub(crate) const PAGES: &[&str] = &[
    "/console",
    "/console/",
    "/console/handoffs",
    "/console/handoffs?decision=denied&from=2026-01-01T00:00",
    "/console/handoffs/hs_20260218_seen_0001",
    "/console/handoffs/hs_20260218_lost_0001?verify=yes",
    "/console/approvals",
    "/console/authorizations",
    "/console/routes",
    "/console/routes/crypto-sage.execution-plane.v1",
    "/console/freezes",
    "/console/mentions",
    "/console/audit",
    "/console/audit?type=gate.decided",
    "/console/audit/3",
    "/console/audit/verify",
    "/console/policies",
    "/console/codes",
    "/console/export/handoffs.csv",
    "/console/export/handoffs.jsonl",
    "/console/export/ledger.jsonl",
    "/console/export/checkpoint.json",
];

/// Everything that can be done, with a form that says enough.
pub(crate) const ACTS: &[(&str, &[(&str, &str)])] = &[
    ("approve", &[("id", "hs_20260218_seen_0001"), ("reason", "x")]),
    ("reject", &[("id", "hs_20260218_seen_0001"), ("reason", "x")]),
    ("approve-policies", &[("digest", "sha256:0"), ("reason", "x")]),
    ("reject-policies", &[("digest", "sha256:0"), ("reason", "x")]),
    (
        "grant",
        &[
            ("principal", "user:main"),
            ("agents", "blockchain-operator"),
            ("operations", "transfer"),
            ("modes", "dev"),
            ("minutes", "5"),
        ],
    ),
    ("revoke", &[("ref", "authz_x"), ("reason", "x")]),
    ("gate", &[("key", KEY), ("gate", "G0"), ("reason", "x")]),
    ("rollback", &[("key", KEY), ("reason", "x")]),
    ("block", &[("key", KEY), ("reason", "x")]),
    ("unblock", &[("key", KEY), ("reason", "x")]),
    ("freeze", &[("scope", "all"), ("reason", "x")]),
    ("unfreeze", &[("scope", "all"), ("reason", "x")]),
    ("phase", &[("phase", "gated-read"), ("reason", "x")]),
    ("false-positive", &[("message", "1"), ("handoff", "x"), ("reason", "x")]),
];

pub(crate) fn busy() -> Daemon {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("seen_0001")).status, 201);
    assert_eq!(daemon.submit(&lost_spec("lost_0001")).status, 403);
    daemon
}

#[test]
fn every_page_is_there_for_who_may_look_and_leads_others_to_the_login() {
    let daemon = busy();
    let visitor = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    for page in PAGES {
        let shown = visitor.get(page);
        assert_eq!(shown.status, 200, "{page}: {}", shown.text());
        let stranger = ask(&daemon, &Request::new("GET", page));
        assert_eq!(stranger.status, 303, "{page}");
        assert!(stranger.header("location").unwrap().starts_with("/console/login?next=%2Fconsole"), "{page}");
    }
    for (page, status) in [
        ("/console/nothing", 404),
        ("/console/handoffs/hs_nothing", 404),
        ("/console/routes/nothing", 404),
        ("/console/audit/999999", 404),
        ("/console/audit/x", 404),
        ("/console/handoffs?status=nonsense", 400),
        ("/console/act/nothing", 404),
        ("/console/%ff", 404),
        ("/console/assets/console-0000000000000000.css", 404),
        ("/console/export/anything", 404),
    ] {
        assert_eq!(visitor.get(page).status, status, "{page}");
    }
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
        let asked = ask(&daemon, &visitor.with(Request::new(method, "/console/routes")));
        assert_eq!(asked.status, 405, "{method}");
    }
}

#[test]
fn the_console_is_not_for_agents_orchestrators_and_harnesses() {
    let daemon = busy();
    for (role, agent) in [
        ("orchestrator", Some(ROUTER)),
        ("agent", Some("crypto-sage")),
        ("harness", None),
        ("operator", None),
    ] {
        let token = daemon.token(&format!("one-{role}"), role, agent);
        let reply = ask(&daemon, &form("/console/login", &[("token", &token)]));
        let link = daemon.post_as(&token, "/v1/console/links", "");
        if role == "operator" {
            assert_eq!((reply.status, link.status), (303, 201));
        } else {
            assert_eq!((reply.status, link.status), (403, 403), "{role}");
            assert!(reply.header("set-cookie").unwrap().contains("Max-Age=0"));
            assert!(reply.text().contains("this token is for something else"));
        }
        // A token itself opens no page.
        let page = ask(&daemon, &Request::new("GET", "/console/audit").token(&token));
        assert_eq!(page.status, 303, "{role}");
    }
    let wrong = ask(&daemon, &form("/console/login", &[("token", "hofd_opr_nonsense")]));
    assert_eq!(wrong.status, 403);
}

#[test]
fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
    let daemon = busy();
    let visitor = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    for page in PAGES.iter().filter(|page| !page.contains("/export/")).chain(&["/console/login"]) {
        let text = visitor.get(page).text();
        assert!(text.starts_with("<!doctype html>"), "{page}");
        for word in
            ["<style", " style=\"", "javascript:", " onclick", " onload", "<iframe", "//cdn", "@import"]
        {
            assert!(!text.contains(word), "{page} has {word}");
        }
        assert_eq!(text.matches("<script").count(), 1, "{page}");
        for part in text.split("src=\"").skip(1) {
            assert!(part.starts_with("/console/assets/"), "{page}: {part:.60}");
        }
    }
    let text = visitor.get("/console").text();
    for (before, kind) in
        [("<link rel=\"stylesheet\" href=\"", "text/css"), ("<script src=\"", "text/javascript")]
    {
        let asset = between(&text, before, "\"").to_owned();
        let reply = ask(&daemon, &Request::new("GET", &asset));
        assert_eq!(reply.status, 200, "{asset}");
        assert!(reply.header("content-type").unwrap().starts_with(kind));
        assert_eq!(reply.header("cache-control"), Some("public, max-age=31536000, immutable"));
    }
}

#[test]
fn an_auditor_sees_and_cannot_act() {
    let daemon = busy();
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    let before = daemon.get("/v1/audit").json();
    for (name, fields) in ACTS {
        let query: Vec<String> = fields.iter().map(|(field, value)| format!("{field}={value}")).collect();
        assert_eq!(ada.get(&format!("/console/act/{name}?{}", query.join("&"))).status, 403, "{name}");
        let refused = ada.act(name, fields);
        assert_eq!(refused.status, 403, "{name}");
        assert!(refused.text().contains("A token of role auditor may not do this"), "{name}");
    }
    for page in ["/console/freezes", "/console/mentions", "/console/routes/crypto-sage.execution-plane.v1"] {
        assert!(!ada.get(page).text().contains("/console/act/"), "{page} offers an act");
    }
    assert_eq!(daemon.get("/v1/audit").json(), before, "nothing was recorded");
}

#[test]
fn an_administrator_freezes_and_does_nothing_else_that_is_for_people() {
    let daemon = busy();
    let admin = Visitor::log_in(&daemon, &daemon.admin);
    assert_eq!(admin.get("/console/act/unfreeze?scope=all").status, 403);
    assert_eq!(admin.get(&format!("/console/act/gate?key={KEY}&gate=G0")).status, 403);
    let frozen = admin.act("freeze", &[("scope", "all"), ("reason", "a drill")]);
    assert_eq!((frozen.status, frozen.header("location")), (303, Some("/console/freezes")));
    assert_eq!(daemon.get("/v1/freeze").json()["frozen"][0]["scope"], "all");
}

#[test]
fn an_act_is_in_the_ledger_with_the_persons_name() {
    let daemon = busy();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let asked = rita.get("/console/act/freeze?scope=mode&mode=live");
    assert!(
        asked.text().contains("every handoff in mode live is refused with <code>POLICY_FROZEN</code>"),
        "{}",
        asked.text()
    );
    assert!(daemon.get("/v1/freeze").json()["frozen"].as_array().unwrap().is_empty(), "looking does nothing");
    let fields = [("scope", "mode"), ("mode", "live"), ("routeKey", "")];
    // Without a reason it is asked for again, and nothing is done.
    let unsaid = rita.act("freeze", &fields);
    assert_eq!(unsaid.status, 422);
    assert!(unsaid.text().contains("A reason is needed"));
    let mut fields = fields.to_vec();
    fields.push(("reason", "the venue is down"));
    assert_eq!(rita.act("freeze", &fields).status, 303);
    // Told once, on the page that comes next.
    assert!(rita.get("/console/freezes").text().contains("Frozen from entry"));
    assert!(!rita.get("/console/freezes").text().contains("Frozen from entry"));
    let event = daemon.events().pop().unwrap();
    assert_eq!(
        (&event["sender"], &event["payload"]["reason"]),
        (&json!("human:rita"), &json!("the venue is down"))
    );
    // The same rules as everywhere: what is not frozen cannot be lifted.
    let wrong = rita.act("unfreeze", &[("scope", "all"), ("reason", "over")]);
    assert_eq!(wrong.status, 409);
    assert!(wrong.text().contains("FREEZE_NOT_SET"));
    fields.pop();
    fields.push(("reason", "it is back"));
    assert_eq!(rita.act("unfreeze", &fields).status, 303);
    assert!(daemon.get("/v1/freeze").json()["frozen"].as_array().unwrap().is_empty());
}

#[test]
fn whatever_a_task_spec_says_is_text_on_every_page() {
    let daemon = Daemon::new();
    let nasty = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'";
    let mut spec = spec("nasty_0001");
    fn poison(json: &mut Json, nasty: &str) {
        match json {
            Json::String(text) => text.push_str(nasty),
            Json::Array(items) => items.iter_mut().for_each(|item| poison(item, nasty)),
            Json::Object(members) => members.values_mut().for_each(|value| poison(value, nasty)),
            _ => {}
        }
    }
    poison(&mut spec, nasty);
    spec["handoffId"] = format!("hs_1{nasty}").into();
    spec["intent"]["input"][nasty] = json!({nasty: nasty});
    spec["mode"] = "dev".into();
    let decided = daemon.submit(&spec).json();
    assert_eq!(decided["decision"], "denied", "{decided}");
    let visitor = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let list = visitor.get("/console/handoffs").text();
    let mut pages = vec![list.clone()];
    for part in list.split("href=\"/console/handoffs/").skip(1) {
        let target = part.split('"').next().unwrap();
        let shown = visitor.get(&format!("/console/handoffs/{target}"));
        assert_eq!(shown.status, 200, "{target}");
        pages.push(shown.text());
    }
    for page in ["/console", "/console/audit", "/console/audit/5", "/console/audit/6", "/console/policies"] {
        pages.push(visitor.get(page).text());
    }
    let query = "%22%3E%3Cscript%3Ealert%283%29%3C%2Fscript%3E";
    for page in
        ["/console/codes?q=", "/console/handoffs?agent=", "/console/audit?handoffId=", "/console/login?next="]
    {
        pages.push(visitor.get(&format!("{page}{query}")).text());
    }
    assert!(
        pages
            .iter()
            .any(|page| page.contains("&#60;script&#62;alert(1)") || page.contains("&lt;script&gt;alert(1)"))
    );
    for page in &pages {
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(!page.contains("<img src=x"), "{page}");
    }
}

#[test]
fn a_yes_from_a_page_lets_a_handoff_go_and_a_no_ends_it() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.go_live();
    let daemon = &scene.daemon;
    let rita = Visitor::log_in(daemon, &scene.rita);
    for (name, act, decision) in [("page_0001", "reject", "denied"), ("page_0002", "approve", "allowed")] {
        assert_eq!(scene.submit(name, "live").1.status, 202);
        let id = format!("hs_20260218_{name}");
        let page = rita.get(&format!("/console/approvals/{id}")).text();
        assert!(page.contains("What the target would be sent") && page.contains("execution"), "{page}");
        let confirm = rita.get(&format!("/console/act/{act}?id={id}")).text();
        let digest = between(&confirm, "name=\"digest\" value=\"", "\"").to_owned();
        let other = rita.act(act, &[("id", &id), ("digest", "sha256:other"), ("reason", "looked at it")]);
        assert_eq!(other.status, 409, "what was looked at is not what waits");
        let done = rita.act(act, &[("id", &id), ("digest", &digest), ("reason", "looked at it")]);
        assert_eq!(done.status, 303, "{}", done.text());
        assert!(rita.get(done.header("location").unwrap()).text().contains(&format!("{id} is {decision}.")));
        let again = rita.act(act, &[("id", &id), ("reason", "again")]);
        assert_eq!(again.status, 409, "it no longer waits");
    }
    let granted = daemon.events().into_iter().find(|event| event["type"] == "approval.granted").unwrap();
    assert_eq!(granted["sender"], "human:rita");
}

#[test]
fn the_chain_is_verified_from_a_page_with_what_came_of_it() {
    let daemon = busy();
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    let word = ada.form_word();
    let begun = ask(&daemon, &ada.with(form("/console/audit/verify", &[("form", &word)])));
    assert_eq!((begun.status, begun.header("location")), (303, Some("/console/audit/verify")));
    let text = eventually("it is verified", || {
        let page = ada.get("/console/audit/verify");
        let is_running = page.text().contains("Under way");
        assert_eq!(page.header("refresh").is_some(), is_running, "a page goes on by itself while it runs");
        (!is_running).then(|| page.text())
    });
    assert!(text.contains("Verified: ") && text.contains("by ada"), "{text}");
}

#[test]
fn a_page_that_is_open_hears_of_entries_and_of_the_end_of_its_session() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let daemon = busy();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let request = rita.with(Request::new("GET", "/console/live"));
    let mut stream = super::wire::connect(daemon.address);
    stream.write_all(&request.bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.trim().is_empty()).collect();
    assert!(head[0].contains("200"), "{head:?}");
    assert!(head.iter().any(|line| line.starts_with("content-security-policy:")), "{head:?}");
    assert_eq!(daemon.submit(&spec("live_0001")).status, 201);
    assert!(lines.by_ref().any(|line| line == "event: entry"));
    assert_eq!(daemon.cli(&["token", "revoke", "rita"]).status.code(), Some(0));
    assert!(lines.any(|line| line == "event: over"));
}

#[test]
fn handoffs_are_exported_as_they_are_filtered() {
    let daemon = busy();
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    let csv = ada.get("/console/export/handoffs.csv?decision=denied");
    assert_eq!(csv.header("content-disposition"), Some("attachment; filename=\"handoffs.csv\""));
    let text = csv.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("handoffId,attempt,")
            && lines[1].starts_with("hs_20260218_lost_0001,1,1,denied,")
    );
    let jsonl = ada.get("/console/export/handoffs.jsonl").text();
    let ids: Vec<Json> =
        jsonl.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["handoffId"].clone()).collect();
    assert_eq!(ids, ["hs_20260218_lost_0001", "hs_20260218_seen_0001"]);
    assert_eq!(ada.get("/console/export/handoffs.csv?decision=nonsense").status, 400);
}

#[test]
fn a_document_that_is_too_long_for_a_page_is_shown_whole_to_whoever_asks() {
    let daemon = Daemon::new();
    let mut long = lost_spec("long_0001");
    long["intent"]["input"] = json!({"list": vec!["item"; 5_000], "last": "the very end"});
    assert_eq!(daemon.submit(&long).status, 403);
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    let page = "/console/handoffs/hs_20260218_long_0001";
    let part = ada.get(page).text();
    assert!(part.matches(">\"item\"<").count() < 5_000 && part.contains("more lines"), "it is cut");
    let whole = between(&part, "more lines: <a href=\"", "\"").to_owned();
    assert_eq!(whole, "?whole=yes");
    let shown = ada.get(&format!("{page}{whole}")).text();
    assert_eq!(shown.matches(">\"item\"<").count(), 5_000);
    assert!(shown.contains("the very end") && !shown.contains("more lines"));
}
