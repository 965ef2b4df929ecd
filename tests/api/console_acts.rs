//! What the console says before an act, and instead of one that cannot be done.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::json;

use super::console::{Visitor, between};
use super::harness::{Daemon, write};
use super::route::{Agent, KEY, Scene};
use super::wire::Request;

/// The page before an act, with its status.
fn before(visitor: &Visitor<'_>, act: &str) -> (u16, String) {
    let reply = visitor.get(&format!("/console/act/{act}"));
    (reply.status, reply.text())
}

/// Is there a button to let it happen?
fn asks(page: &str) -> bool {
    page.contains("<form method=\"post\" action=\"/console/act/")
}

#[test]
fn a_page_that_is_open_hears_what_goes_wrong_and_that_it_is_well_again() {
    let daemon = Daemon::new();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let mut stream = super::wire::connect(daemon.address);
    stream.write_all(&rita.with(Request::new("GET", "/console/live")).bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut events = std::iter::from_fn(|| {
        let event = lines.find(|line| line.starts_with("event: "))?;
        Some(format!("{event}\n{}", lines.next()?))
    });
    // A browser passes on no event without data.
    assert!(
        events.any(|line| line == "event: beat\ndata: quiet"),
        "it says that it is there where nothing happens"
    );
    let path = daemon.path("policies/routes.json");
    let good = std::fs::read_to_string(&path).unwrap();
    write(&path, "{");
    assert!(events.any(|line| line == "event: condition\ndata: changed"));
    assert!(rita.get("/console").text().contains("What is wrong"));
    write(&path, good);
    assert!(events.any(|line| line == "event: condition\ndata: changed"));
    assert!(!rita.get("/console").text().contains("What is wrong"));
}

#[test]
fn whoever_said_yes_is_not_asked_again_and_the_first_of_two_knows_that_one_more_is_needed() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::with("", |route| {
        route["probeUrl"] = agent.url().into();
        route["approvers"] = 2.into();
    });
    scene.go_live();
    let (spec, _) = scene.submit("two_0001", "live");
    let omar_token = scene.daemon.token("omar", "operator", None);
    let (rita, omar) =
        (Visitor::log_in(&scene.daemon, &scene.rita), Visitor::log_in(&scene.daemon, &omar_token));
    let approve = "approve?id=hs_20260218_two_0001";
    let (status, page) = before(&rita, approve);
    assert!(status == 200 && asks(&page), "{page}");
    assert!(
        page.contains("One more yes is needed, of another person") && !page.contains("is sent the payload")
    );
    assert_eq!(scene.answer(&scene.rita, &spec, "approve").status, 200);

    let (status, page) = before(&rita, approve);
    assert!(status == 409 && !asks(&page) && page.contains("You said yes; another person must"), "{page}");
    assert!(asks(&before(&rita, "reject?id=hs_20260218_two_0001").1), "saying no stays open");
    let looked = rita.get("/console/approvals/hs_20260218_two_0001").text();
    assert!(looked.contains("You said yes; another person must."), "{looked}");
    assert!(!looked.contains("act/approve") && looked.contains("act/reject"), "{looked}");
    assert!(!rita.get("/console/approvals").text().contains("Look and answer"));
    let (status, page) = before(&omar, approve);
    assert!(status == 200 && asks(&page) && page.contains("is sent the payload below"), "{page}");
}

#[test]
fn an_approval_that_is_over_says_what_became_of_it() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.go_live();
    let (spec, _) = scene.submit("over_0001", "live");
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let place = "/console/approvals/hs_20260218_over_0001";
    assert!(rita.get(place).text().contains("data-live"), "it is kept up to date");
    assert_eq!(scene.answer(&scene.rita, &spec, "reject").status, 200);
    let over = rita.get(place);
    assert_eq!(over.status, 200);
    let text = over.text();
    assert!(
        text.contains("It does not wait any more: it is denied") && !text.contains("/console/act/"),
        "{text}"
    );
    for page in
        [before(&rita, "approve?id=hs_20260218_over_0001"), before(&rita, "reject?id=hs_20260218_over_0001")]
    {
        let (status, text) = page;
        assert_eq!(status, 409);
        assert!(
            text.contains("href=\"/console/handoffs/hs_20260218_over_0001\">See what became of it"),
            "{text}"
        );
        assert!(text.contains("<code>hs_20260218_over_0001</code> does not wait"), "{text}");
        assert!(!text.contains("/v1/") && !text.contains("class=\"said\""), "{text}");
    }
    assert_eq!(rita.get("/console/approvals/hs_none").status, 404);
}

#[test]
fn a_rollback_says_what_its_dry_run_says() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let rollback = format!("rollback?key={KEY}");
    let (_, page) = before(&rita, &rollback);
    assert!(page.contains("The route stays in dev.") && page.contains("No gate is lost"), "{page}");
    assert!(
        page.contains("No live handoff is in flight.") && !page.contains("must be earned again"),
        "{page}"
    );

    scene.go_live();
    let (_, page) = before(&rita, &rollback);
    assert!(page.contains("The route goes from live to simulated."), "{page}");
    assert!(
        page.contains("G3 and G4 must be earned again.") && !page.contains("definition before this one"),
        "{page}"
    );

    scene.redefine(|route| route["primaryAgentId"] = "ledger-scribe".into());
    for act in [rollback.clone(), format!("{rollback}&block=yes"), format!("block?key={KEY}")] {
        let (_, page) = before(&rita, &act);
        assert!(page.contains("The definition before this one is in force again"), "{act}: {page}");
        let changed = "<code>primaryAgentId</code>: <code>ledger-scribe</code> → <code>crypto-sage</code>.";
        assert!(page.contains(changed), "{act}: {page}");
        assert_eq!(page.contains("It is blocked as well"), act != rollback, "{act}");
    }
    assert_eq!(scene.route()["stage"], "dev", "looking does nothing");
}

#[test]
fn what_is_frozen_is_not_frozen_again_and_no_form_is_bent() {
    let daemon = Daemon::new();
    let rita_token = daemon.token("rita", "operator", None);
    let rita = Visitor::log_in(&daemon, &rita_token);
    for (asked, marked) in [
        ("scope=foo", "choose one of these"),
        ("scope=all&mode=live", "this would not count: freeze one mode, or leave it out"),
        (
            "scope=mode&mode=live&routeKey=a.route.v1",
            "this would not count: freeze one route, or leave it out",
        ),
        ("scope=mode&mode=foo", "there is no such mode"),
        ("scope=route&routeKey=nowhere.v1", "there is no such route"),
    ] {
        let back = rita.get(&format!("/console/act/freeze?{asked}"));
        assert_eq!(back.status, 303, "{asked}");
        let form = rita.get(back.header("location").unwrap().split('#').next().unwrap()).text();
        assert!(form.contains(marked) && form.matches("class=\"what said\"").count() == 1, "{asked}: {form}");
    }
    assert_eq!(rita.act("freeze", &[("scope", "foo"), ("reason", "x")]).status, 422);
    assert_eq!(before(&rita, "unfreeze?scope=foo").0, 422);
    let (status, page) = before(&rita, "unfreeze?scope=all");
    assert!(
        status == 409 && !asks(&page) && page.contains("There is no freeze of <code>everything</code>"),
        "{page}"
    );

    let omar = daemon.token("omar", "operator", None);
    let frozen =
        daemon.post_as(&omar, "/v1/freeze", json!({"scope": "mode", "mode": "live", "reason": "a drill"}));
    assert_eq!(frozen.status, 200);
    let entries = daemon.events().len();
    let (status, page) = before(&rita, "freeze?scope=mode&mode=live");
    assert!(status == 409 && !asks(&page), "{page}");
    assert!(page.contains("<code>mode live</code> is frozen already: by <code>omar</code>"), "{page}");
    let again = rita.act("freeze", &[("scope", "mode"), ("mode", "live"), ("reason", "once more")]);
    let told = rita.get(again.header("location").unwrap()).text();
    assert!(told.contains("It was frozen already, by omar; nothing was written."), "{told}");
    assert_eq!(daemon.events().len(), entries);
    assert!(asks(&before(&rita, "freeze?scope=all").1), "another scope is another freeze");
}

#[test]
fn what_cannot_be_done_is_said_instead_of_asked() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    for (act, status, why) in [
        ("phase?phase=foo".to_owned(), 422, "There is no phase <code>foo</code>"),
        ("phase?phase=log-only".to_owned(), 409, "Mentions are in phase log-only already"),
        ("phase?phase=gated-live".to_owned(), 409, "From log-only to gated-live is more than one step up"),
        (format!("unblock?key={KEY}"), 409, "The route is not blocked"),
        (format!("unblock?key={KEY}&what=pin"), 409, "The routing table counts already"),
        (format!("unblock?key={KEY}&what=foo"), 422, "<code>what</code> is block, pin or both"),
        (format!("gate?key={KEY}&gate=G4"), 409, "The next gate of this route is G0"),
    ] {
        let (answered, page) = before(&rita, &act);
        assert_eq!(answered, status, "{act}");
        assert!(page.contains(why) && !asks(&page), "{act}: {page}");
    }
    for act in ["phase?phase=gated-read".to_owned(), format!("gate?key={KEY}&gate=G0")] {
        let (status, page) = before(&rita, &act);
        assert!(status == 200 && asks(&page), "{act}: {page}");
    }
}

#[test]
fn the_page_of_a_route_says_where_it_stands_after_a_rollback_and_in_its_canary() {
    let agent = Agent::answering("200 OK");
    let scene = Scene::new(Some(agent.url()));
    scene.through("G3");
    let rita = Visitor::log_in(&scene.daemon, &scene.rita);
    let place = format!("/console/routes/{KEY}");
    assert!(rita.get(&place).text().contains(">Promote to live (G4)…</a>"));
    assert!(
        before(&rita, &format!("gate?key={KEY}&gate=G4"))
            .1
            .contains(&format!("<h1>Promote {KEY} to live (G4)</h1>"))
    );
    assert_eq!(scene.gate("G4", json!({})), "passed");
    let live = rita.get(&place).text();
    assert!(live.contains("Every gate is passed, and the canary runs"), "{live}");
    assert!(!live.contains("gate status") && live.contains("canary 0 of 5"), "{live}");
    assert!(!rita.get("/console/routes").text().contains("gate status"), "and so does the list");

    assert_eq!(scene.act("rollback", json!({"reason": "slippage on `SOL`"})).status, 200);
    let back = rita.get(&place).text();
    let history = between(&back, "id=\"history\"", "</section>");
    assert!(history.contains("G2 <span class=\"tag tag-good\">passed</span> by human:rita"), "{history}");
    assert!(history.contains("none was decided since the rollback"), "{history}");
    assert!(history.contains("slippage on <code>SOL</code>"), "{history}");
}
