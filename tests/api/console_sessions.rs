//! Sessions of the console: how they begin and end, and which forms count in them.

use serde_json::Value as Json;

use super::console::{ACTS, Visitor, ask, between, busy, form};
use super::wire::Request;

#[test]
fn a_form_counts_only_from_here_and_with_the_sessions_word() {
    let daemon = busy();
    let (token, other) = (daemon.token("rita", "operator", None), daemon.token("omar", "operator", None));
    let rita = Visitor::log_in(&daemon, &token);
    let omar = Visitor::log_in(&daemon, &other);
    let (word, foreign) = (rita.form_word(), omar.form_word());
    let freeze =
        |word: &str| form("/console/act/freeze", &[("form", word), ("scope", "all"), ("reason", "x")]);
    let without = |mut request: Request, name: &str| {
        request.headers.retain(|(known, _)| known != name);
        request
    };
    for (what, request) in [
        ("no word", rita.with(freeze(""))),
        ("another session's word", rita.with(freeze(&foreign))),
        ("no origin", rita.with(without(freeze(&word), "Origin"))),
        (
            "another origin",
            rita.with(without(freeze(&word), "Origin").header("Origin", "http://evil.example")),
        ),
        ("no origin worth the name", rita.with(without(freeze(&word), "Origin").header("Origin", "null"))),
        ("a log-out without a word", rita.with(form("/console/logout", &[]))),
        ("a verification without a word", rita.with(form("/console/audit/verify", &[]))),
    ] {
        assert_eq!(ask(&daemon, &request).status, 403, "{what}");
    }
    assert_eq!(ask(&daemon, &freeze(&word)).status, 401, "no cookie");
    let json = rita.with(without(freeze(&word), "Content-Type").header("Content-Type", "text/plain"));
    assert_eq!(ask(&daemon, &json).status, 415);
    let long = rita.with(form("/console/act/freeze", &[("form", &word), ("reason", &"x".repeat(30_000))]));
    assert_eq!(ask(&daemon, &long).status, 413);
    // Logging in is a form too.
    let login = without(form("/console/login", &[("token", &token)]), "Origin")
        .header("Origin", "http://evil.example");
    assert_eq!(ask(&daemon, &login).status, 403);
    // An act is not done by looking at its address, whatever that says.
    let looked = rita.get(&format!("/console/act/freeze?scope=all&reason=x&form={word}"));
    assert_eq!(looked.status, 200);
    assert!(daemon.get("/v1/freeze").json()["frozen"].as_array().unwrap().is_empty());
    assert_eq!(ask(&daemon, &rita.with(freeze(&word))).status, 303, "and with all that it counts");
}

#[test]
fn no_form_counts_without_the_sessions_word() {
    let daemon = busy();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let omar = Visitor::log_in(&daemon, &daemon.token("omar", "operator", None));
    let (word, foreign) = (rita.form_word(), omar.form_word());
    let wrong = format!("{}0", &word[..word.len() - 1]);
    let wrong = if wrong == word { format!("{}1", &word[..word.len() - 1]) } else { wrong };
    let before = daemon.get("/v1/audit").json();
    let acts = ACTS.iter().map(|(name, fields)| (format!("/console/act/{name}"), *fields));
    let others = ["/console/audit/verify", "/console/logout"].map(|target| (target.to_owned(), &[][..]));
    for (target, fields) in acts.chain(others) {
        for given in [None, Some(""), Some(wrong.as_str()), Some(foreign.as_str())] {
            let mut all = fields.to_vec();
            all.extend(given.map(|word| ("form", word)));
            let refused = ask(&daemon, &rita.with(form(&target, &all)));
            assert_eq!(refused.status, 403, "{target} with {given:?}");
            assert!(refused.text().contains("The form does not belong to this session"), "{target}");
        }
    }
    assert_eq!(daemon.get("/v1/audit").json(), before, "nothing was recorded");
    assert_eq!(rita.get("/console").status, 200, "and nobody was logged out");
    // The same forms count with the word, as far as there is something to do.
    assert_eq!(rita.act("freeze", &[("scope", "all"), ("reason", "x")]).status, 303);
    assert_eq!(rita.act("grant", ACTS[4].1).status, 303);
}

#[test]
fn a_grant_that_somebody_thought_better_of_is_still_filled_in() {
    let daemon = busy();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let asked = rita.get(
        "/console/act/grant?principal=user%3Amain&agents=a1&operations=buy+sell&modes=live&uses=7&minutes=480",
    );
    let text = asked.text();
    let back = between(&text, "<p class=\"crumbs\"><a href=\"", "\"").replace("&#38;", "&");
    assert!(back.starts_with("/console/authorizations?principal=user%3Amain&"), "{back}");
    let form = rita.get(back.trim_end_matches("#make")).text();
    for filled in [
        "value=\"user:main\"",
        "value=\"a1\"",
        "value=\"buy sell\"",
        "value=\"live\" checked",
        "value=\"7\"",
        "value=\"480\" selected",
    ] {
        assert!(form.contains(filled), "{filled} is not in {form}");
    }
    assert!(!form.contains("value=\"dev\" checked") && form.contains("<details class=\"fold\" open"));
    assert!(
        rita.get("/console/authorizations").text().contains("value=\"60\" selected"),
        "and empty at first"
    );
}

#[test]
fn a_session_ends_with_its_token_and_when_its_holder_leaves() {
    let daemon = busy();
    let rita = Visitor::log_in(&daemon, &daemon.token("rita", "operator", None));
    let omar = Visitor::log_in(&daemon, &daemon.token("omar", "operator", None));
    let word = rita.form_word();
    assert_eq!(daemon.cli(&["token", "revoke", "rita"]).status.code(), Some(0));
    assert_eq!(rita.get("/console/audit").status, 303);
    let late = rita.with(form("/console/act/freeze", &[("form", &word), ("scope", "all"), ("reason", "x")]));
    assert_eq!(ask(&daemon, &late).status, 401);
    let word = omar.form_word();
    let left = ask(&daemon, &omar.with(form("/console/logout", &[("form", &word)])));
    assert_eq!((left.status, left.header("location")), (303, Some("/console/login")));
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(omar.get("/console").status, 303);
}

#[test]
fn a_link_from_the_command_line_opens_the_console_once() {
    let daemon = busy();
    let token = daemon.token("rita", "operator", None);
    let url = daemon.cli_ok(&["console", "--print", "--token", &token]);
    let base = format!("http://{}", daemon.address);
    let target = url.trim().strip_prefix(&base).unwrap_or_else(|| panic!("{url}"));
    // Another site cannot put anybody into a session.
    let lured = ask(&daemon, &Request::new("GET", target).header("Sec-Fetch-Site", "cross-site"));
    assert_eq!(lured.status, 403);
    let entered = ask(&daemon, &Request::new("GET", target).header("Sec-Fetch-Site", "none"));
    assert_eq!((entered.status, entered.header("location")), (303, Some("/console")), "{}", entered.text());
    let rita = Visitor::of(&daemon, &entered);
    assert!(rita.get("/console").text().contains("<strong>rita</strong>"));
    assert_eq!(ask(&daemon, &Request::new("GET", target)).status, 403, "it works once");
    let link: Json = serde_json::from_str(&daemon.cli_ok(&["--json", "console", "--print"])).unwrap();
    assert!(link["url"].as_str().unwrap().starts_with(&base) && link["expiresAt"].is_string(), "{link}");
}

#[test]
fn a_login_leads_on_to_where_one_wanted_to_go_and_nowhere_else() {
    let daemon = busy();
    let token = daemon.token("ada", "auditor", None);
    for (next, location) in [
        ("/console/audit?type=gate.decided", "/console/audit?type=gate.decided"),
        ("//evil.example/console", "/console"),
        ("https://evil.example", "/console"),
        ("/v1/state", "/console"),
    ] {
        let reply = ask(&daemon, &form("/console/login", &[("token", &token), ("next", next)]));
        assert_eq!(reply.header("location"), Some(location), "{next}");
    }
}
