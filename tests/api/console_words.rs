//! What the console says of what was changed, taken back and looked for.

use serde_json::{Value as Json, json};

use super::console::{Visitor, between};
use super::harness::{Daemon, spec, write};
use super::route::{Agent, KEY, Scene, failed};

const ROUTES: &str = "policies/routes.json";

fn edit(daemon: &Daemon, change: impl FnOnce(&mut Json)) {
    let path = daemon.path(ROUTES);
    let mut table: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut table["routes"]);
    write(&path, table.to_string());
    assert_eq!(daemon.post("/v1/reload", "").status, 200);
}

#[test]
fn a_route_that_the_gateway_took_back_stands_on_the_overview_until_it_is_unblocked() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.go_live();
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    assert!(!rita.get("/console").text().contains("What is wrong"));
    let worst = scene.run("live_0001", "live", failed("POLICY_SLIPPAGE_EXCEEDED"));
    let page = rita.get("/console").text();
    let wrong = between(&page, "id=\"troubles\"", "</section>");
    assert!(wrong.contains(&format!("<a href=\"/console/routes/{KEY}\">{KEY}</a>")), "{wrong}");
    assert!(wrong.contains("rolled back and blocked") && wrong.contains("by the gateway itself"), "{wrong}");
    assert!(wrong.contains(&format!("<code>{worst}</code> failed with POLICY_SLIPPAGE_EXCEEDED")), "{wrong}");
    assert!(page.contains("has taken back a route: see above"), "{page}");
    assert_eq!(scene.act("unblock", json!({"reason": "looked at it"})).status, 200);
    assert!(!rita.get("/console").text().contains("What is wrong"));
    // What a person has blocked is no news to people.
    assert_eq!(scene.act("block", json!({"reason": "the venue is down"})).status, 200);
    assert!(!rita.get("/console").text().contains("What is wrong"));
}

#[test]
fn a_changed_set_is_shown_with_its_routes_and_members() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    assert_eq!(daemon.get("/v1/policies").json()["replaced"], Json::Null);
    let first = rita.get("/console/policies").text();
    let added = format!("<strong>{KEY}</strong> <span class=\"tag tag-good\">added</span>");
    assert!(between(&first, "Routes as they were declared", "</section>").contains(&added), "{first}");
    edit(&daemon, |routes| {
        routes[KEY]["approvers"] = 2.into();
        routes["new-desk.limits.v1"] = json!({"capability": "limits", "primaryAgentId": "new-desk"});
    });
    let replaced = daemon.get("/v1/policies").json()["replaced"].clone();
    assert_eq!(
        replaced["changes"][0],
        json!({"file": ROUTES, "routeKey": KEY, "change": "changed",
            "fields": [{"name": "approvers", "before": null, "after": 2}]})
    );
    let page = rita.get("/console/policies").text();
    let changes = between(&page, "id=\"changes\"", "</section>");
    let (sets, routes) = changes.split_once("Routes as they were declared").unwrap();
    for part in [sets, routes] {
        assert!(part.contains(KEY) && part.contains("new-desk.limits.v1"), "{part}");
        assert!(part.contains("<code>approvers</code>: not set → <code>2</code>"), "{part}");
    }
    edit(&daemon, |routes| drop(routes.as_object_mut().unwrap().remove("new-desk.limits.v1")));
    let page = rita.get("/console/policies").text();
    let removed = "<strong>new-desk.limits.v1</strong> <span class=\"tag tag-bad\">removed</span>";
    assert!(between(&page, "Routes as they were declared", "</section>").contains(removed), "{page}");
}

#[test]
fn whoever_says_yes_to_a_set_sees_what_it_would_change() {
    let mut daemon = Daemon::with("[policy]\napproval = \"operator\"\n");
    let token = daemon.token("rita", "operator", None);
    let policy = std::fs::read_dir(daemon.path("policies/delegation")).unwrap().next().unwrap().unwrap();
    let mut terms: Json = serde_json::from_slice(&std::fs::read(policy.path()).unwrap()).unwrap();
    terms["allowAgents"] = json!(["blockchain-operator", "new-desk"]);
    write(&policy.path(), terms.to_string());
    edit(&daemon, |routes| routes[KEY]["primaryAgentId"] = "new-desk".into());
    let digest = daemon.get("/v1/policies").json()["pending"]["digest"].as_str().unwrap().replace(':', "%3A");
    let act = format!("/console/act/approve-policies?digest={digest}");
    {
        let rita = Visitor::log_in(&daemon, &token);
        let page = rita.get("/console/policies").text();
        let confirm = rita.get(&act).text();
        for text in [between(&page, "What it would change", "</section>"), &confirm] {
            let primary = "<code>primaryAgentId</code>: <code>crypto-sage</code> → <code>new-desk</code>";
            assert!(text.contains(KEY) && text.contains(primary), "{text}");
            assert!(
                text.contains("<code>allowAgents</code>: ") && text.contains("new-desk</code>"),
                "{text}"
            );
            assert!(text.contains(&*policy.file_name().to_string_lossy()), "{text}");
        }
        // What has just begun is not over.
        let since = between(&confirm, "Waits since</dt><dd>", "</dd>");
        assert!(since.contains("<time") && !since.contains("countdown"), "{since}");
    }
    daemon.restart(503);
    assert_eq!(daemon.get("/v1/policies").json()["pending"]["changes"], Json::Null);
    let rita = Visitor::log_in(&daemon, &token);
    let page = rita.get("/console/policies").text();
    assert!(page.contains("What the set in force says is not known since the gateway was started"), "{page}");
    assert!(
        rita.get(&act).text().contains("What it would change is not known since the gateway was started.")
    );
    assert!(
        rita.get("/console").text().contains("says yes to it on <a href=\"/console/policies\">Policies</a>")
    );
}

#[test]
fn a_grant_is_checked_before_it_is_confirmed_and_says_who_revoked_it() {
    let daemon = Daemon::new();
    let rita_token = daemon.token("rita", "operator", None);
    let rita = Visitor::log_in(&daemon, &rita_token);
    let terms = "principal=user%3Amain&agents=a1&operations=transfer&modes=dev&minutes=60";
    for (more, marked) in [
        ("channels=general", "each is a channel or thread of Discord, such as discord:channel:"),
        ("routeKey=x", "6 to 160 characters"),
        ("intentHash=sha256%3Axyz", "takes <code>sha256:</code> and 64 hex digits, in lower case"),
        ("uses=0", "a whole number from 1 to 1000"),
    ] {
        let back = rita.get(&format!("/console/act/grant?{terms}&{more}"));
        assert_eq!(back.status, 303, "{more}");
        let form = rita.get(back.header("location").unwrap().split('#').next().unwrap()).text();
        assert!(form.contains(marked) && !form.contains("[0-9]"), "{more}: {form}");
        assert_eq!(form.matches("class=\"what said\"").count(), 1, "{more}");
    }
    assert_eq!(
        rita.get(&format!("/console/act/grant?{terms}&channels=discord%3Achannel%3A1473392629055098942"))
            .status,
        200
    );

    let terms = json!({"principal": "user:main", "agents": ["a1"], "operations": ["transfer"], "modes": ["dev"],
        "expiresAt": handoffd::timestamp::Timestamp::from_unix_nanoseconds(0).plus_seconds(0).to_string()});
    assert_eq!(daemon.post_as(&rita_token, "/v1/authorizations", terms).status, 422, "it would have ended");
    let fields = [
        ("principal", "user:main"),
        ("agents", "a1"),
        ("operations", "transfer"),
        ("modes", "dev"),
        ("minutes", "60"),
    ];
    assert_eq!(rita.act("grant", &fields).status, 303);
    let made = daemon.get("/v1/authorizations").json()["authorizations"][0]["authorizationRef"].clone();
    let name = made.as_str().unwrap();
    let omar = Visitor::log_in(&daemon, &daemon.token("omar", "operator", None));
    assert_eq!(omar.act("revoke", &[("ref", name), ("reason", "not needed")]).status, 303);
    let grant = daemon.get(&format!("/v1/authorizations/{name}")).json();
    assert_eq!((&grant["madeBy"], &grant["revokedBy"]), (&json!("rita"), &json!("omar")));
    let page = rita.get("/console/authorizations").text();
    let row = between(&page, &format!("data-key=\"{name}\""), "</tr>");
    assert!(row.contains("made by rita") && row.contains("revoked by omar"), "{row}");
    assert!(between(row, "data-label=\"Ends\">", "</td>").contains(">revoked<"), "{row}");
    let again = rita.get(&format!("/console/act/revoke?ref={name}"));
    assert!(
        again.status == 409 && again.text().contains("It was revoked by <code>omar</code>"),
        "{}",
        again.text()
    );
}

#[test]
fn what_is_looked_for_is_understood_or_marked() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    assert_eq!(rita.get("/console/handoffs?agent=%").status, 400);
    let odd = rita.get("/console/audit?type=foo");
    assert!(odd.status == 400 && odd.text().contains("there is no such type"), "{}", odd.text());
    assert_eq!(rita.get("/console/audit?type=gate.decided").status, 200);
    let late = rita.get("/console/mentions?from=yesterday");
    assert!(late.status == 400 && late.text().contains("not a time"), "{}", late.text());
    let none = rita.get("/console/mentions?from=2026-02-18&to=2026-02-19");
    assert!(
        none.status == 200 && none.text().contains("No mention was judged in this time"),
        "{}",
        none.text()
    );
    let csv = rita.get("/console/export/handoffs.csv").text();
    assert!(csv.starts_with("handoffId,") && csv.lines().next().unwrap().contains(",messageId,"), "{csv}");
    std::fs::remove_file(daemon.path("memory/checkpoint")).unwrap();
    assert!(rita.get("/console").text().contains("Sign and download one</a>, to keep it elsewhere"));
    // A TaskSpec of which nobody can tell from whom and for whom it is.
    let mut unreadable = spec("unreadable_0001");
    unreadable.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "source" | "target"));
    daemon.submit(&unreadable);
    let page = rita.get("/console/handoffs").text();
    let row = between(&page, "data-label=\"From and to\">", "</td>");
    assert!(row.contains("–") && !row.contains("to "), "{row}");
}
