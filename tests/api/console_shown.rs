//! What the console shows of what others wrote, and of what became of it: nothing hidden, nothing folded away that a
//! person needs, and nothing that leads nowhere.

use serde_json::{Value as Json, json};

use super::console::{Visitor, ask, between, form};
use super::harness::{Daemon, ROUTER, lost_spec, spec};
use super::route::{Agent, KEY, Scene, completed, failed};
use super::wire::Request;

/// Characters that nobody sees, and that turn around what stands behind them.
const HIDDEN: [char; 4] = ['\u{202e}', '\u{202c}', '\u{200b}', '\0'];

fn live_scene() -> (Agent, Scene) {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.go_live();
    (agent, scene)
}

/// A live transfer that asks for a person, with this input.
fn transfer(scene: &Scene, name: &str, input: Json) {
    let mut spec = spec(name);
    spec["mode"] = "live".into();
    spec["safety"]["requiresHumanApproval"] = true.into();
    spec["intent"]["operation"] = "transfer".into();
    spec["intent"]["summary"] = "Pay the vendor\u{202e}000,1 \u{202c}  now".into();
    spec["intent"]["input"] = input;
    let asked = scene.daemon.post_as(&scene.router, "/v1/handoffs", &spec);
    assert_eq!(asked.status, 202, "{asked:?}");
}

#[test]
fn whoever_approves_sees_every_letter_of_what_is_sent() {
    let (_agent, scene) = live_scene();
    let address = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin";
    let turned: String = address.chars().rev().collect();
    let to = format!("\u{202e}{turned}\u{202c}");
    transfer(
        &scene,
        "odd_0001",
        json!({"chain": "solana", "asset": "US\u{200b}DC", "amount": "100", "to": to}),
    );
    let asset = "US  DC\n(\"true\")\0";
    transfer(&scene, "odd_0002", json!({"chain": "solana", "asset": asset, "amount": "100", "to": address}));
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let odd = |text: &str| format!("<span class=\"odd\">{text}</span>");
    let shown = [
        ("odd_0001", format!("\"{}{turned}{}\"", odd(r"\u{202e}"), odd(r"\u{202c}"))),
        ("odd_0001", format!("\"US{}DC\"", odd(r"\u{200b}"))),
        // A string is not a number.
        ("odd_0001", "<span class=\"text\">\"100\"</span>".to_owned()),
        ("odd_0002", format!("\"US{}DC{}(\\&#34;true\\&#34;){}\"", odd("␣␣"), odd(r"\n"), odd(r"\u{0}"))),
    ];
    for (name, shown) in shown {
        let id = format!("hs_20260218_{name}");
        for page in [format!("/console/approvals/{id}"), format!("/console/act/approve?id={id}")] {
            let text = rita.get(&page).text();
            assert!(!text.contains(HIDDEN), "{page}");
            assert!(text.contains(&shown), "{page}: {shown} in {text}");
            assert_eq!(text.contains(&format!("\"{address}\"")), name == "odd_0002", "{page}");
            if shown.contains("200b") {
                let told = between(&text, &shown, "</li>");
                assert!(told.contains("U+200B") && told.contains(">hidden characters</span>"), "{told}");
            }
        }
    }
    for page in ["/console/approvals", "/console/handoffs", "/console/audit", "/console"] {
        assert!(!rita.get(page).text().contains(HIDDEN), "{page}");
    }
    let row = rita.get("/console/approvals").text();
    assert!(row.contains(&format!("vendor{}000,1 {}", odd(r"\u{202e}"), odd(r"\u{202c}"))), "{row}");
}

#[test]
fn no_page_of_a_handoff_hides_anything_of_it() {
    let daemon = Daemon::new();
    let mut odd = lost_spec("lost_0001");
    odd["correlationId"] = "corr\u{202e}_1".into();
    odd["intent"]["operation"] = "health\u{2066}.check".into();
    odd["routing"]["routeKey"] = "nowhere\u{ad}.execution-plane.v1".into();
    odd["intent"]["input"] = json!({"na\u{200b}me": 1});
    let decided = daemon.submit(&odd).json();
    assert!(decided["ledger"].is_object(), "{decided}");
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    let hidden = ['\u{202e}', '\u{200b}', '\u{2066}', '\u{ad}'];
    let list = ada.get("/console/handoffs").text();
    let place = between(&list, "href=\"/console/handoffs/", "\"").to_owned();
    let mut escapes = 0;
    for page in [
        "/console",
        "/console/handoffs",
        &format!("/console/handoffs/{place}"),
        "/console/audit",
        "/console/audit/3",
        "/console/audit/4",
        "/console/audit/5",
    ] {
        let text = ada.get(page).text();
        assert!(!text.contains(hidden), "{page}: {text}");
        assert!(!text.contains("&#60;span") && !text.contains("&#60;time"), "{page} escapes twice: {text}");
        escapes += text.matches(r"\u{200b}").count();
    }
    assert!(escapes > 0);
    // What was typed into a field is still what was typed.
    let back = ada.get("/console/handoffs?agent=a%E2%80%8Bb&from=never").text();
    assert!(back.contains("name=\"agent\" value=\"a\u{200b}b\""), "{back}");
}

#[test]
fn why_it_failed_and_why_a_person_said_no_stand_open_on_the_page() {
    let (_agent, scene) = live_scene();
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let id = scene.run("fails_0001", "dev", failed("POLICY_SLIPPAGE_EXCEEDED"));
    let page = rita.get(&format!("/console/handoffs/{id}")).text();
    let gates = between(&page, "id=\"gates\"", "</section>");
    let reported = between(gates, "<span>Reported</span>", "</li>");
    for part in ["failed", "POLICY_SLIPPAGE_EXCEEDED", "it did not work", "agent:crypto-sage"] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let timeline = between(&page, "id=\"timeline\"", "</section>");
    let event = between(timeline, "<strong>task.failed</strong>", "<details>");
    assert!(
        event.contains("POLICY_SLIPPAGE_EXCEEDED") && event.contains("<p>it did not work</p>"),
        "{event}"
    );
    // No reason of a gate was explained, so none is spoken of.
    assert!(!page.contains("Explained under") && !page.contains("what is wrong is marked"), "{page}");

    let (spec, asked) = scene.submit("no_0001", "live");
    assert_eq!(asked.status, 202);
    let no = json!({"decision": "reject", "reason": "not before the audit"});
    assert_eq!(scene.daemon.post_as(&scene.rita, "/v1/approvals/hs_20260218_no_0001", no).status, 200);
    let page = rita.get("/console/handoffs/hs_20260218_no_0001").text();
    let reported = between(&page, "<span>Reported</span>", "</li>");
    for part in ["rejected", "POLICY_APPROVAL_REJECTED", "not before the audit", "human:rita"] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let event = between(&page, "<strong>approval.rejected</strong>", "</li>");
    assert!(event.split("<details>").next().unwrap().contains("not before the audit"), "{event}");
    // Nothing in the TaskSpec was wrong.
    assert!(!page.contains("what is wrong is marked") && !page.contains("<li class=\"d0 wrong"), "{page}");
    drop(spec);

    // One that ended well has nothing to report, and one that a gate refused is explained.
    let id = scene.run("well_0001", "dev", completed(json!([])));
    assert!(!rita.get(&format!("/console/handoffs/{id}")).text().contains("Reported"));
    assert_eq!(scene.daemon.submit(&lost_spec("lost_0001")).status, 403);
    let lost = rita.get("/console/handoffs/hs_20260218_lost_0001").text();
    assert!(lost.contains("Explained under") && lost.contains("what is wrong is marked"), "{lost}");
    assert!(!lost.contains("<span>Reported</span>"), "{lost}");
}

#[test]
fn what_could_not_even_be_named_is_among_what_was_refused_last() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    assert!(rita.get("/console").text().contains("Nothing was refused so far."));
    assert_eq!(daemon.submit(&lost_spec("lost_0001")).status, 403);
    let mut nameless = spec("nameless_0001");
    nameless["handoffId"] = "?".into();
    let refused = daemon.submit(&nameless);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let entry = refused.json()["ledger"]["sequence"].to_string();
    let page = rita.get("/console").text();
    let listed = between(&page, "id=\"refused\"", "</section>");
    let (first, second) = listed.split_once("hs_20260218_lost_0001").unwrap();
    let first = between(first, &format!("<tr data-key=\"r{entry}\">"), "</tr>");
    let link = format!("/console/audit/{entry}\">entry {entry}</a>");
    for part in [&link, "its handoffId could not be read", "A2A_TASKSPEC_INVALID"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    // A refusal that has a name is listed once, by the end of its stream.
    assert_eq!(listed.matches("<tr data-key").count(), 2, "{second}");
}

#[test]
fn a_page_that_looks_by_itself_leaves_the_confirmation_to_the_person() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let freeze = [("scope", "mode"), ("mode", "dev"), ("reason", "a drill")];
    assert_eq!(rita.act("freeze", &freeze).status, 303);
    let by_itself = Request::new("GET", "/console/handoffs").header("X-Handoffd-Look", "page");
    assert!(!ask(&daemon, &rita.with(by_itself)).text().contains("class=\"flash\""));
    let told = rita.get("/console/freezes").text();
    assert!(told.contains("class=\"flash\""), "{told}");
    assert!(!rita.get("/console/freezes").text().contains("class=\"flash\""), "once");
}

#[test]
fn nobody_is_invited_to_approve_their_own() {
    let (_agent, scene) = live_scene();
    assert_eq!(scene.submit("own_0001", "live").1.status, 202);
    // An operator who is the source of it, by name.
    let own = Visitor::log_in(&scene.daemon, &scene.daemon.token(ROUTER, "operator", None));
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let page = own.get("/console/approvals/hs_20260218_own_0001").text();
    assert!(!page.contains("act/approve") && page.contains("act/reject?"), "{page}");
    let notice = between(&page, "id=\"standing\"", "</div>");
    assert!(notice.contains("Nobody approves their own: you are the source"), "{notice}");
    assert!(notice.contains("Saying no is open to you."), "{notice}");
    let list = own.get("/console/approvals").text();
    assert!(!list.contains("Look and answer") && list.contains("Nobody approves their own"), "{list}");
    let before = own.get("/console/act/approve?id=hs_20260218_own_0001");
    assert_eq!(before.status, 403);
    assert!(before.text().contains("APPROVAL_OWN") && !before.text().contains("Yes, approve"));
    assert!(own.get("/console/act/reject?id=hs_20260218_own_0001").text().contains("Yes, reject"));
    // Whoever has no part in it is.
    assert!(rita.get("/console/approvals").text().contains("Look and answer"));
    assert!(rita.get("/console/approvals/hs_20260218_own_0001").text().contains("act/approve?"));
}

#[test]
fn when_everything_is_frozen_the_overview_does_not_say_ready() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let health = || between(&rita.get("/console").text(), "id=\"health\"", "</section>").to_owned();
    assert!(health().contains(">Ready<"), "{}", health());
    assert_eq!(daemon.post("/v1/freeze", json!({"scope": "mode", "mode": "dev", "reason": "x"})).status, 200);
    assert!(health().contains(">Ready<") && health().contains("frozen in part"), "{}", health());
    assert_eq!(daemon.post("/v1/freeze", json!({"scope": "all", "reason": "x"})).status, 200);
    let all = health();
    assert!(all.contains("<span class=\"tag tag-bad\">everything frozen</span>"), "{all}");
    assert!(all.contains(">Refusing everything<") && !all.contains("Ready"), "{all}");
    assert!(all.contains("Every handoff is refused until an operator lifts it"), "{all}");
}

#[test]
fn a_reason_counts_as_the_browser_counted_it_and_a_fault_is_told_once() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let reason = |chars: usize| {
        let text: String = "a line of it\n".chars().cycle().take(chars - 1).collect();
        format!("{text}.").replace('\n', "\r\n")
    };
    let act = |text: &str| rita.act("freeze", &[("scope", "mode"), ("mode", "dev"), ("reason", text)]);
    let long = act(&reason(501));
    let page = long.text();
    assert_eq!(long.status, 422, "{page}");
    assert_eq!(between(&page, "role=\"alert\"", "</div>").matches("501").count(), 1, "{page}");
    let taken = act(&reason(500));
    assert_eq!(taken.status, 303, "{}", taken.text());
    let kept = daemon.get("/v1/freeze").json()["frozen"][0]["reason"].as_str().unwrap().to_owned();
    assert!(kept.contains('\n') && !kept.contains('\r') && kept.chars().count() == 500, "{kept:?}");
}

#[test]
fn a_route_that_is_not_in_the_table_is_no_link_to_nowhere() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&spec("seen_0001")).status, 201);
    assert_eq!(daemon.submit(&lost_spec("lost_0001")).status, 403);
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    for (name, wanted) in [
        ("seen_0001", format!("/console/routes/{KEY}")),
        ("lost_0001", "/console/handoffs?route=".to_owned()),
    ] {
        let page = ada.get(&format!("/console/handoffs/hs_20260218_{name}")).text();
        let route = between(&page, "<dt>Route</dt><dd>", "</dd>");
        let target = between(route, "href=\"", "\"");
        assert!(target.starts_with(&wanted), "{route}");
        assert_eq!(ada.get(target).status, 200, "{target}");
    }
}

#[test]
fn a_method_that_is_not_for_a_page_is_answered_with_those_that_are() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    for (method, target, allow) in [
        ("PUT", "/console/routes", "GET, HEAD"),
        ("DELETE", "/console/handoffs/hs_1", "GET, HEAD"),
        ("POST", "/console", "GET, HEAD"),
        ("POST", "/console/codes", "GET, HEAD"),
        ("POST", "/console/assets/console.css", "GET, HEAD"),
        ("GET", "/console/logout", "POST"),
        ("PATCH", "/console/act/freeze", "GET, HEAD, POST"),
        ("PUT", "/console/login", "GET, HEAD, POST"),
    ] {
        let request = match method {
            "POST" => form(target, &[("form", &rita.form_word())]),
            _ => Request::new(method, target),
        };
        for request in [rita.with(request.clone()), request] {
            let reply = ask(&daemon, &request);
            assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {target}");
        }
    }
    assert_eq!(ask(&daemon, &rita.with(Request::new("PUT", "/console/nothing"))).status, 404);
}

#[test]
fn whoever_asks_too_often_is_told_for_how_long_to_wait() {
    let daemon = Daemon::with("[server]\nrequests_per_second = 1\nrequest_burst = 3\n");
    let admin = Visitor::log_in(&daemon, &daemon.admin);
    let replies: Vec<_> = (0..8).map(|_| admin.get("/console/codes")).collect();
    let refused = replies.iter().find(|reply| reply.status == 429).expect("one is refused");
    let seconds = refused.header("retry-after").expect("a browser's script can see it").to_owned();
    let text = refused.text();
    assert!(text.contains(&format!("Ask again in {seconds} s")) && !text.contains("Retry-After"), "{text}");
}

#[test]
fn the_whole_of_the_policy_set_can_be_read() {
    let daemon = Daemon::new();
    let ada_token = daemon.token("ada", "auditor", None);
    let told = daemon.get_as(&ada_token, "/v1/policies").json();
    let [one] = told["delegation"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!(told["policies"], json!([one["policyRef"]]));
    let file = one["policyRef"].as_str().unwrap();
    let written: Json = serde_json::from_slice(&std::fs::read(daemon.path(file)).unwrap()).unwrap();
    for name in ["principals", "allowAgents", "allowTasks", "maxTtlSeconds"] {
        assert_eq!(one["definition"][name], written[name], "{name}");
    }
    let ada = Visitor::log_in(&daemon, &ada_token);
    let page = ada.get("/console/policies").text();
    let panel = between(&page, "id=\"delegation\"", "</section>");
    assert!(panel.contains(file) && panel.contains("<span class=\"key\">allowTasks</span>"), "{panel}");
    let task = written["allowTasks"][0].as_str().unwrap();
    assert!(panel.contains(&format!("\"{task}\"")), "{panel}");
}

/// Every part of a page that can change while it is open has a place that is always there, by which the script finds it.
#[test]
fn what_changes_on_a_live_page_has_a_place() {
    let daemon = Daemon::new();
    assert_eq!(daemon.submit(&lost_spec("lost_0001")).status, 403);
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    for (page, places) in [
        ("/console/approvals", &["total", "list"][..]),
        ("/console/handoffs/hs_20260218_lost_0001", &["spec", "dispatch", "evidence", "receipt", "timeline"]),
        ("/console/policies", &["set", "routes", "delegation"]),
        (&format!("/console/routes/{KEY}"), &["definition", "gates"]),
    ] {
        let text = rita.get(page).text();
        for place in places {
            assert!(text.contains(&format!("id=\"{place}\" data-part")), "{page}: {place}");
            assert_eq!(text.matches(&format!("id=\"{place}\"")).count(), 1, "{page}: {place}");
        }
    }
}
