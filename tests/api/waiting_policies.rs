//! `[policy] approval = "operator"`: a changed policy set waits for a person's yes.

use std::fs;

use handoffd::timestamp::Timestamp;
use serde_json::{Value as Json, json};

use super::console::Visitor;
use super::harness::{Daemon, eventually, spec, write};
use super::wire::{Reply, Request};

const ASKING: &str = "[policy]\napproval = \"operator\"\n";
const ROUTES: &str = "policies/routes.json";

/// A daemon that asks first, with an operator.
struct House {
    daemon: Daemon,
    rita: String,
    /// The routing table that it started with.
    original: String,
    /// The set that it started with.
    first: String,
}

impl House {
    fn new() -> Self {
        Self::with(ASKING)
    }

    fn with(settings: &str) -> Self {
        let daemon = Daemon::with(settings);
        let rita = daemon.token("rita", "operator", None);
        let original = fs::read_to_string(daemon.path(ROUTES)).unwrap();
        let first = daemon.get("/v1/policies").json()["digest"].as_str().unwrap().to_owned();
        Self { daemon, rita, original, first }
    }

    fn policies(&self) -> Json {
        self.daemon.get("/v1/policies").json()
    }

    /// Writes a routing table with one more route of this name.
    fn add_route(&self, key: &str) {
        let mut routes: Json = serde_json::from_str(&self.original).unwrap();
        routes["routes"][key] = routes["routes"]["crypto-sage.execution-plane.v1"].clone();
        write(&self.daemon.path(ROUTES), routes.to_string());
    }

    fn put_back(&self) {
        write(&self.daemon.path(ROUTES), &self.original);
    }

    /// Has the files read, and gives what waits then.
    fn reload(&self) -> Json {
        let reply = self.daemon.send(&Request::new("POST", "/v1/reload").token(&self.daemon.admin));
        assert_eq!(reply.status, 200, "{reply:?}");
        self.policies()["pending"].clone()
    }

    /// Adds a route, and gives the digest that waits then.
    fn propose(&self, key: &str) -> String {
        self.add_route(key);
        let pending = self.reload();
        assert_eq!(pending["state"], "waiting", "{pending}");
        pending["digest"].as_str().unwrap().to_owned()
    }

    fn answer_as(&self, token: &str, decision: &str, digest: &str) -> Reply {
        let body = json!({"digest": digest, "decision": decision, "reason": format!("rita says {decision}")});
        self.daemon.post_as(token, "/v1/policies/approval", body)
    }

    #[track_caller]
    fn answer(&self, decision: &str, digest: &str, expected: &str) -> Reply {
        let reply = self.answer_as(&self.rita, decision, digest);
        let found =
            if reply.status == 200 { "ok".to_owned() } else { format!("{} {}", reply.status, reply.code()) };
        assert_eq!(found, expected, "{reply:?}");
        reply
    }

    /// Submits on a route, and gives the digest of the set that decided, or the code of what did not.
    fn decide(&self, name: &str, key: Option<&str>) -> String {
        let mut spec = spec(name);
        if let Some(key) = key {
            spec["routing"]["routeKey"] = key.into();
        }
        let reply = self.daemon.submit(&spec);
        match reply.status {
            201 => reply.json()["policyDigest"].as_str().unwrap().to_owned(),
            _ => reply.code(),
        }
    }

    /// What the ledger says of policy sets: what happened, by whom, to which one.
    fn told(&self) -> Vec<String> {
        let of_policies = |event: &Json| {
            let word = event["type"].as_str()?.strip_prefix("policy.")?;
            let (sender, digest) = (event["sender"].as_str()?, event["payload"]["digest"].as_str()?);
            let name = if digest == self.first { "first" } else { digest };
            Some(format!("{word} {sender} {name}"))
        };
        self.daemon.events().iter().filter_map(of_policies).collect()
    }

    fn degraded(&self) -> Vec<Json> {
        let ready = self.daemon.get("/readyz");
        assert_eq!(ready.status, 200, "{ready:?}");
        let degraded = ready.json()["degraded"].as_array().unwrap().clone();
        degraded.into_iter().filter(|one| one["what"] == "policies").collect()
    }

    fn metric(&self, state: &str) -> f64 {
        self.daemon.metric(&format!("handoffd_policy_pending{{state=\"{state}\"}}")).unwrap()
    }
}

/// Files that cannot be read propose nothing, and take nothing back; and tokens need nobody's yes.
#[test]
fn a_set_goes_on_waiting_while_the_files_are_broken() {
    let house = House::new();
    let daemon = &house.daemon;
    let waiting = house.propose("new.execution-plane.v1");
    let text = fs::read_to_string(daemon.path(ROUTES)).unwrap();
    write(&daemon.path(ROUTES), "{");
    let reader = daemon.token("reader", "auditor", None);
    let revoked = daemon.send(&Request::new("DELETE", "/v1/tokens/reader").token(&daemon.admin));
    assert_eq!((revoked.status, daemon.get_as(&reader, "/v1/state").status), (200, 401));
    let pending = house.policies()["pending"].clone();
    assert_eq!((&pending["digest"], &pending["state"]), (&json!(waiting), &json!("waiting")));
    assert_eq!(house.answer_as(&house.rita, "approve", &waiting).status, 409, "the files do not have it");
    assert_eq!(house.decide("broken_0001", None), house.first);
    write(&daemon.path(ROUTES), text);
    house.answer("approve", &waiting, "ok");
    assert_eq!(house.decide("broken_0002", Some("new.execution-plane.v1")), waiting);
}

#[test]
fn an_edit_waits_while_the_set_before_it_decides_and_a_yes_puts_it_in_force() {
    let house = House::new();
    let first = &house.first;
    let shown = house.policies();
    assert_eq!(
        (&shown["approval"], &shown["pending"], &shown["withheld"]),
        (&json!("operator"), &Json::Null, &Json::Null)
    );
    assert_eq!(shown["inForce"], *first);
    assert_eq!(house.told(), ["loaded system first"], "the first set changes nothing");
    assert_eq!((house.metric("waiting"), house.degraded().len()), (0.0, 0));

    // Nobody asks for it: the files are watched.
    house.add_route("new.execution-plane.v1");
    let pending = eventually("the edit is seen", || {
        Some(house.policies()["pending"].clone()).filter(|pending| !pending.is_null())
    });
    let second = pending["digest"].as_str().unwrap();
    assert_ne!(second, first);
    assert_eq!(pending["previousDigest"], *first);
    assert_eq!((&pending["files"], &pending["filesTotal"]), (&json!([ROUTES]), &json!(1)));
    assert_eq!((&pending["state"], &pending["rejected"]), (&json!("waiting"), &Json::Null));
    let entry = house.daemon.get(&format!("/v1/audit/{}", pending["sequence"])).json();
    assert_eq!(entry["wire"]["payload"], json!({"digest": second, "previous_digest": first}));
    let time = |text: &Json| Timestamp::parse(text.as_str().unwrap()).unwrap();
    assert_eq!(time(&entry["hcs"]["consensus_timestamp"]), time(&pending["since"]));

    // The old set decides, and everybody sees that another one waits.
    assert_eq!(house.policies()["digest"], *first);
    assert_eq!(house.decide("wait_0001", None), *first);
    assert_eq!(house.decide("wait_0002", Some("new.execution-plane.v1")), "A2A_ROUTE_UNKNOWN");
    let why = house.degraded()[0]["why"].as_str().unwrap().to_owned();
    assert!(
        why.contains(second) && why.contains("waits for an operator's yes") && why.contains(ROUTES),
        "{why}"
    );
    assert_eq!((house.metric("waiting"), house.metric("rejected")), (1.0, 0.0));
    assert_eq!(house.daemon.metric("handoffd_policy_reload_failing"), Some(0.0));
    assert!(house.daemon.log().contains("waits for an operator's yes"));
    // Read again and again, it is proposed once.
    assert_eq!(house.reload(), pending);
    assert_eq!(house.told(), ["loaded system first".to_owned(), format!("proposed system {second}")]);

    // Only a person answers, and only to the set that waits.
    let auditor = house.daemon.token("ada", "auditor", None);
    for token in [&house.daemon.admin, &auditor] {
        let refused = house.answer_as(token, "approve", second);
        assert_eq!((refused.status, refused.code().as_str()), (403, "AUTH_FORBIDDEN"));
    }
    let other = format!("sha256:{}", "7".repeat(64));
    let refused = house.answer("approve", &other, "409 POLICY_OTHER_SET").json();
    assert_eq!((&refused["pending"], &refused["pointer"]), (&json!(second), &json!("/digest")));
    house.answer("approve", first, "409 POLICY_OTHER_SET");
    house.answer("approve", "sha256:77", "422 ACT_INVALID");
    house.answer("perhaps", second, "422 ACT_INVALID");
    assert_eq!(house.told().len(), 2, "nothing of it was recorded");

    let answered = house.answer("approve", second, "ok").json();
    assert_eq!((&answered["decision"], &answered["inForce"]), (&json!("approved"), &json!(second)));
    assert_eq!(answered["previousDigest"], *first);
    assert_eq!(house.decide("wait_0003", Some("new.execution-plane.v1")), second);
    let shown = house.policies();
    assert_eq!((&shown["digest"], &shown["pending"]), (&json!(second), &Json::Null));
    assert_eq!((house.metric("waiting"), house.degraded().len()), (0.0, 0));
    // The yes and the load are one group, by a person and by the system.
    let events = house.daemon.events();
    let yes = usize::try_from(answered["sequence"].as_u64().unwrap()).unwrap();
    assert_eq!(
        (&events[yes - 1]["type"], &events[yes - 1]["sender"]),
        (&json!("policy.approved"), &json!("human:rita"))
    );
    assert_eq!(events[yes - 1]["payload"], json!({"digest": second, "reason": "rita says approve"}));
    assert_eq!(events[yes]["type"], "policy.loaded");
    assert_eq!(events[yes]["payload"], json!({"digest": second, "previous_digest": first}));
    house.answer("approve", second, "409 POLICY_NOT_WAITING");
}

#[test]
fn a_no_sticks_until_the_files_change() {
    let house = House::new();
    let second = house.propose("second.execution-plane.v1");
    let answered = house.answer("reject", &second, "ok").json();
    assert_eq!((&answered["decision"], &answered["inForce"]), (&json!("rejected"), &json!(house.first)));
    let pending = house.reload();
    assert_eq!((&pending["state"], &pending["digest"]), (&json!("rejected"), &json!(second)));
    assert_eq!(
        (&pending["rejected"]["by"], &pending["rejected"]["reason"]),
        (&json!("rita"), &json!("rita says reject"))
    );
    let why = house.degraded()[0]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("was rejected at ") && !why.contains("rita"), "{why}");
    assert_eq!((house.metric("waiting"), house.metric("rejected")), (0.0, 1.0));
    for decision in ["approve", "reject"] {
        house.answer(decision, &second, "409 POLICY_REJECTED");
    }
    assert_eq!(house.decide("no_0001", Some("second.execution-plane.v1")), "A2A_ROUTE_UNKNOWN");

    // Changed again, it is another proposal, and the old one can no longer be approved.
    let third = house.propose("third.execution-plane.v1");
    house.answer("approve", &second, "409 POLICY_OTHER_SET");
    // Put back, nothing waits.
    house.put_back();
    assert_eq!(house.reload(), Json::Null);
    assert_eq!(house.degraded(), Vec::<Json>::new());
    house.answer("approve", &third, "409 POLICY_NOT_WAITING");
    // What was rejected and comes back is proposed anew.
    assert_eq!(house.propose("second.execution-plane.v1"), second);
    house.answer("approve", &second, "ok");
    assert_eq!(house.decide("no_0002", Some("second.execution-plane.v1")), second);
    let told = [
        "loaded system first".to_owned(),
        format!("proposed system {second}"),
        format!("rejected human:rita {second}"),
        format!("proposed system {third}"),
        format!("proposed system {second}"),
        format!("approved human:rita {second}"),
        format!("loaded system {second}"),
    ];
    assert_eq!(house.told(), told);
}

#[test]
fn files_that_were_changed_since_are_not_what_was_looked_at() {
    let house = House::with("[policy]\napproval = \"operator\"\nreload = \"sighup\"\n");
    let second = house.propose("second.execution-plane.v1");
    // Nobody has told the gateway: it looks for itself before it takes the answer.
    house.add_route("third.execution-plane.v1");
    let third = house.answer("approve", &second, "409 POLICY_OTHER_SET").json()["pending"].clone();
    assert_eq!(house.policies()["pending"]["digest"], third);
    assert_eq!(house.decide("since_0001", None), house.first);
    // Broken files are no set at all.
    write(&house.daemon.path(ROUTES), "{\"routes\": ");
    let refused = house.answer("approve", third.as_str().unwrap(), "409 POLICY_OTHER_SET").json();
    assert!(refused["detail"].as_str().unwrap().contains(ROUTES), "{refused}");
    house.put_back();
    house.answer("approve", third.as_str().unwrap(), "409 POLICY_NOT_WAITING");
    assert!(house.told().iter().all(|told| !told.starts_with("approved")), "{:?}", house.told());
}

#[test]
fn a_signal_has_a_changed_set_wait_where_nobody_watches_the_files() {
    let house = House::with("[policy]\napproval = \"operator\"\nreload = \"sighup\"\n");
    house.add_route("new.execution-plane.v1");
    assert_eq!(house.decide("hup_0001", None), house.first);
    assert_eq!(house.policies()["pending"], Json::Null);
    house.daemon.signal("HUP");
    let pending = eventually("the signal is heard", || {
        Some(house.policies()["pending"].clone()).filter(|pending| !pending.is_null())
    });
    let second = pending["digest"].as_str().unwrap();
    assert_eq!(house.decide("hup_0002", None), house.first);
    house.answer("approve", second, "ok");
    assert_eq!(house.decide("hup_0003", None), second);
}

#[test]
fn keys_and_tokens_do_not_wait() {
    let house = House::new();
    let second = house.propose("new.execution-plane.v1");
    let omar = house.daemon.token("omar", "operator", None);
    let key = json!({"keyId": "user-main-2", "owner": "user:main", "algorithm": "ed25519",
        "publicKey": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"});
    assert_eq!(house.daemon.post("/v1/keys", key).status, 201);
    assert!(house.daemon.get("/v1/keys").text().contains("user-main-2"));
    let kinds: Vec<Json> = house.daemon.events().iter().map(|event| event["type"].clone()).collect();
    assert!(kinds.contains(&json!("key.added")) && !kinds.contains(&json!("policy.approved")), "{kinds:?}");
    assert_eq!(house.decide("keys_0001", None), house.first);
    assert_eq!(house.policies()["pending"]["digest"], second);
    // Whoever has just been given a token answers with it, and the keys stay.
    assert_eq!(house.answer_as(&omar, "approve", &second).status, 200);
    assert!(house.daemon.get("/v1/keys").text().contains("user-main-2"));
    assert_eq!(house.decide("keys_0002", None), second);
}

/// Is everything closed that decides, and everything open that looks?
fn is_closed(house: &House, pending: &str) {
    let ready = house.daemon.get("/readyz");
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["policyDigest"], house.first);
    assert_eq!(house.daemon.metric(&format!("handoffd_policy{{digest=\"{}\"}}", house.first)), Some(1.0));
    let failing = ready.json()["failing"][0].clone();
    assert_eq!(failing["what"], "policies");
    let why = failing["why"].as_str().unwrap();
    assert!(why.contains(pending) && why.contains(ROUTES), "{why}");
    assert_eq!(house.decide("closed_0001", None), "ENGINE_POLICY_WAITS");
    let checked = house.daemon.post("/v1/handoffs/check", spec("closed_0001"));
    assert_eq!((checked.status, checked.code().as_str()), (503, "ENGINE_POLICY_WAITS"));
    let shown = house.policies();
    assert_eq!((&shown["inForce"], &shown["pending"]["digest"]), (&json!(house.first), &json!(pending)));
    assert_eq!(shown["pending"]["files"], json!([ROUTES]), "what changed is known after a restart, too");
    assert!(shown["withheld"].as_str().unwrap().contains(&house.first), "{shown}");
    for page in ["/v1/handoffs", "/v1/audit", "/v1/routes", "/v1/state"] {
        assert_eq!(house.daemon.get(page).status, 200, "{page}");
    }
}

#[test]
fn a_restart_while_a_set_waits_decides_nothing_until_somebody_says_yes() {
    let mut house = House::new();
    assert_eq!(house.decide("restart_0001", None), house.first);
    let second = house.propose("new.execution-plane.v1");
    let since = house.policies()["pending"]["since"].clone();
    house.daemon.restart(503);
    is_closed(&house, &second);
    assert_eq!(house.policies()["pending"]["since"], since, "it waits since it was proposed");
    let shown = house.daemon.cli_ok(&["policy", "show"]);
    assert!(
        shown.contains("nothing is decided  until an operator says yes") && shown.contains(&second),
        "{shown}"
    );
    // Somebody who can answer can be let in.
    let omar = house.daemon.token("omar", "operator", None);
    // Another edit is what waits then, and the gateway stays closed.
    let third = house.propose("third.execution-plane.v1");
    is_closed(&house, &third);
    house.answer("approve", &second, "409 POLICY_OTHER_SET");
    assert_eq!(house.answer_as(&omar, "approve", &third).status, 200);
    assert_eq!(house.daemon.get("/readyz").status, 200);
    assert_eq!(house.decide("restart_0002", Some("third.execution-plane.v1")), third);
    let told = [
        "loaded system first".to_owned(),
        format!("proposed system {second}"),
        format!("proposed system {third}"),
        format!("approved human:omar {third}"),
        format!("loaded system {third}"),
    ];
    assert_eq!(house.told(), told);
    // What was approved is in force after the next restart, and nothing waits.
    house.daemon.restart(200);
    assert_eq!(house.decide("restart_0003", None), third);
    assert_eq!(house.policies()["pending"], Json::Null);
    assert_eq!(house.told().len(), told.len());
}

#[test]
fn files_that_are_put_back_after_a_restart_open_the_gateway_again() {
    let mut house = House::new();
    let second = house.propose("new.execution-plane.v1");
    house.answer("reject", &second, "ok");
    house.daemon.restart(503);
    is_closed(&house, &second);
    // A no holds after a restart, too.
    assert_eq!(house.policies()["pending"]["state"], "rejected");
    house.answer("approve", &second, "409 POLICY_REJECTED");
    house.put_back();
    assert_eq!(house.reload(), Json::Null);
    assert_eq!(house.daemon.get("/readyz").status, 200);
    assert_eq!(house.decide("back_0001", None), house.first);
    assert_eq!(house.told().len(), 3, "{:?}", house.told());
}

#[test]
fn files_that_were_changed_while_nothing_ran_wait_too() {
    let mut house = House::new();
    house.daemon.signal("TERM");
    assert!(house.daemon.wait().success());
    house.add_route("new.execution-plane.v1");
    // The list of what was in force only names files: without it, nothing else changes.
    fs::remove_file(house.daemon.path("memory/policy-files.json")).unwrap();
    house.daemon.restart_after_stop_as(503);
    let shown = house.policies();
    let second = shown["pending"]["digest"].as_str().unwrap();
    assert_eq!((&shown["pending"]["files"], &shown["pending"]["filesTotal"]), (&Json::Null, &Json::Null));
    assert_eq!(house.told(), ["loaded system first".to_owned(), format!("proposed system {second}")]);
    assert_eq!(house.decide("while_0001", None), "ENGINE_POLICY_WAITS");
    house.answer("approve", second, "ok");
    assert_eq!(house.decide("while_0002", None), second);
}

#[test]
fn without_the_setting_nothing_waits_and_with_it_taken_away_the_files_are_loaded() {
    let auto = House::with("");
    auto.add_route("new.execution-plane.v1");
    assert_eq!(auto.reload(), Json::Null);
    let second = auto.policies()["digest"].as_str().unwrap().to_owned();
    assert_eq!(auto.policies()["approval"], "auto");
    assert_eq!(auto.decide("auto_0001", None), second);
    auto.answer("approve", &second, "409 POLICY_NOT_WAITING");
    assert!(!auto.daemon.path("memory/policy-files.json").exists());
    assert_eq!(auto.told(), ["loaded system first".to_owned(), format!("loaded system {second}")]);

    let mut house = House::new();
    let second = house.propose("new.execution-plane.v1");
    write(&house.daemon.path("handoffd.toml"), "");
    house.daemon.restart(200);
    assert_eq!(house.decide("auto_0001", None), second);
    assert_eq!(house.policies()["pending"], Json::Null);
    assert_eq!(house.told().last().unwrap(), &format!("loaded system {second}"));
}

#[test]
fn the_command_line_shows_what_waits_and_answers_to_it() {
    let house = House::new();
    let show = || house.daemon.cli_ok(&["policy", "show"]);
    assert!(show().contains(&house.first) && show().contains("nothing waits"), "{}", show());
    let second = house.propose("new.execution-plane.v1");
    let shown = show();
    assert!(shown.contains(&format!("waiting  {second}")) && shown.contains(ROUTES), "{shown}");
    let json: Json = serde_json::from_str(&house.daemon.cli_ok(&["--json", "policy", "show"])).unwrap();
    assert_eq!(json["pending"]["digest"], second);
    let answer = |word: &str, digest: &str, token: &str| {
        house.daemon.cli(&["policy", word, digest, "--reason", "looked at it", "--token", token])
    };
    let refused = answer("approve", &second, &house.daemon.admin);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8(refused.stderr).unwrap().contains("put an operator's token into HANDOFFD_TOKEN")
    );
    assert_eq!(answer("approve", &second[..20], &house.rita).status.code(), Some(2), "not half a digest");
    let rejected = String::from_utf8(answer("reject", &second, &house.rita).stdout).unwrap();
    assert!(rejected.contains("is rejected"), "{rejected}");
    assert!(show().contains("by rita at "), "{}", show());
    let third = house.propose("third.execution-plane.v1");
    let approved = String::from_utf8(answer("approve", &third, &house.rita).stdout).unwrap();
    assert!(approved.contains(&format!("{third} is in force")), "{approved}");
    let again = answer("approve", &third, &house.rita);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8(again.stderr).unwrap().contains("[POLICY_NOT_WAITING]"));
}

#[test]
fn the_console_shows_what_waits_and_an_operator_answers_there() {
    let house = House::new();
    let (rita, ada) = (
        Visitor::log_in(&house.daemon, &house.rita),
        Visitor::log_in(&house.daemon, &house.daemon.token("ada", "auditor", None)),
    );
    assert!(!rita.get("/console/policies").text().contains("Changed, and not in force"));
    let second = house.propose("new.execution-plane.v1");
    let act = format!("/console/act/approve-policies?digest={}", second.replace(':', "%3A"));
    let page = rita.get("/console/policies").text();
    assert!(
        page.contains("Changed, and not in force") && page.contains(&second) && page.contains(ROUTES),
        "{page}"
    );
    assert!(
        page.contains("/console/act/approve-policies?") && page.contains("/console/act/reject-policies?"),
        "{page}"
    );
    // An auditor sees the same, and no way to act.
    let page = ada.get("/console/policies").text();
    assert!(page.contains(&second) && !page.contains("/console/act/"), "{page}");
    assert_eq!(ada.get(&act).status, 403);
    let fields = [("digest", second.as_str()), ("reason", "looked at it")];
    assert_eq!(ada.act("approve-policies", &fields).status, 403);

    let asked = rita.get(&act);
    assert!(
        asked.text().contains("Exactly this set is in force from the next decision on"),
        "{}",
        asked.text()
    );
    assert_eq!(rita.act("approve-policies", &[("digest", &second)]).status, 422, "a reason is needed");
    let stale = format!("sha256:{}", "7".repeat(64));
    assert_eq!(rita.act("approve-policies", &[("digest", &stale), ("reason", "x")]).status, 409);
    assert_eq!(house.decide("console_0001", None), house.first, "looking does nothing");
    let done = rita.act("approve-policies", &fields);
    assert_eq!((done.status, done.header("location")), (303, Some("/console/policies")));
    let page = rita.get("/console/policies").text();
    assert!(page.contains(&format!("{second} is in force")) && page.contains("by human:rita"), "{page}");
    assert_eq!(house.decide("console_0002", None), second);

    let third = house.propose("third.execution-plane.v1");
    let fields = [("digest", third.as_str()), ("reason", "<b>no</b>")];
    assert_eq!(rita.act("reject-policies", &fields).status, 303);
    let page = rita.get("/console/policies").text();
    assert!(page.contains("It stays out of force until the files change"), "{page}");
    assert!(page.contains("&#60;b&#62;no") && !page.contains("/console/act/"), "{page}");
}
