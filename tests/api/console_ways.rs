//! Ways through the console, as any browser walks them, with a script or without: in, through long lists and back, with
//! a slip in a filter, and with a form that comes too late.

use super::console::{Visitor, ask, between, form};
use super::harness::{Daemon, command, eventually, lost_spec, spec, write};
use super::wire::Request;

/// Many handoffs, every other one refused.
fn long() -> Daemon {
    let daemon = Daemon::new();
    let named = |n: usize| format!("many_{n:04}");
    let all: Vec<_> =
        (0..240).map(|n| if n % 2 == 0 { lost_spec(&named(n)) } else { spec(&named(n)) }).collect();
    let reply = daemon.post("/v1/handoffs/batch", serde_json::json!(all));
    assert_eq!(reply.status, 200, "{}", reply.text());
    daemon
}

fn operator(daemon: &Daemon) -> Visitor<'_> {
    Visitor::log_in(daemon, &daemon.token("rita", "operator", None))
}

/// Where the link with that text leads; nothing if there is none.
fn link(page: &str, text: &str) -> Option<String> {
    let before = page.split_once(&format!("\">{text}</a>"))?.0;
    Some(before.rsplit_once("href=\"")?.1.replace("&#38;", "&"))
}

/// What a list is about, row by row.
fn rows(page: &str) -> Vec<String> {
    page.split("<tr data-key=\"").skip(1).map(|row| row.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn a_slip_in_one_filter_is_marked_there_and_costs_nobody_the_others() {
    let daemon = long();
    let rita = operator(&daemon);
    for (place, kept) in [
        (
            "/console/handoffs?decision=denied&status=rejected&agent=crypto-sage&code=A2A_ROUTE_UNKNOWN&from=2026-02-30&to=2027-01-01",
            &[
                "value=\"denied\" selected",
                "value=\"rejected\" selected",
                "value=\"crypto-sage\"",
                "value=\"A2A_ROUTE_UNKNOWN\"",
                "value=\"2026-02-30\"",
                "value=\"2027-01-01\"",
            ][..],
        ),
        (
            "/console/audit?type=gate.decided&decision=denied&handoffId=hs_1&from=yesterday",
            &[
                "value=\"gate.decided\" selected",
                "value=\"denied\" selected",
                "value=\"hs_1\"",
                "value=\"yesterday\"",
            ],
        ),
        ("/console/authorizations?state=perhaps", &["<option selected>perhaps</option>"]),
    ] {
        let reply = rita.get(place);
        assert_eq!(reply.status, 400, "{place}");
        let page = reply.text();
        for value in kept {
            assert!(page.contains(value), "{value} is not in {page}");
        }
        // Marked where it is, once, with what is wrong; and no list that would be of something else.
        assert_eq!(page.matches("aria-invalid=\"true\"").count(), 1, "{place}");
        let wrong = between(&page, "aria-describedby=\"", "\"");
        assert!(page.contains(&format!("<p class=\"what said\" id=\"{wrong}\">")), "{place}");
        assert!(page.contains("Nothing is listed.") && !page.contains("matches"), "{place}");
        assert!(rows(&page).is_empty() && !page.contains("data-live"), "{place}");
        assert!(link(&page, "CSV").is_none(), "nor a file that would be");
        // The way on: without what is wrong, with the rest.
        let on = link(&page, "leave it out").unwrap();
        let mended = rita.get(&on);
        assert_eq!(mended.status, 200, "{on}");
        assert!(!mended.text().contains("aria-invalid"), "{on}");
        assert!(kept.iter().filter(|value| mended.text().contains(*value)).count() + 1 >= kept.len(), "{on}");
    }
    // All that is wrong is marked at once, and what was typed stays as it was typed where nothing is.
    let page = rita.get("/console/handoffs?status=nonsense&from=x&to=y").text();
    assert_eq!(page.matches("aria-invalid=\"true\"").count(), 3);
    let page = rita.get("/console/handoffs?decision=denied&from=2026-02-18");
    assert_eq!((page.status, rows(&page.text()).len()), (200, 50));
    assert!(page.text().contains("value=\"2026-02-18\""));
}

#[test]
fn what_is_opened_by_its_number_is_looked_up_before_the_filters_are_left() {
    let daemon = long();
    let rita = operator(&daemon);
    for (place, target) in [
        ("/console/handoffs?id=hs_20260218_many_0001", "/console/handoffs/hs_20260218_many_0001"),
        ("/console/audit?sequence=3", "/console/audit/3"),
    ] {
        let opened = rita.get(place);
        assert_eq!((opened.status, opened.header("location")), (303, Some(target)));
    }
    for (place, told) in [
        ("/console/handoffs?agent=crypto-sage&id=hs_nothing_like_it", "there is no such handoff"),
        (
            "/console/audit?code=A2A_ROUTE_UNKNOWN&sequence=999999",
            "there is no such entry: they go from 1 to ",
        ),
        ("/console/audit?code=A2A_ROUTE_UNKNOWN&sequence=x", "there is no such entry"),
    ] {
        let page = rita.get(place);
        assert_eq!(page.status, 400, "{place}");
        assert!(page.text().contains(told), "{place}: {}", page.text());
        assert!(
            ["crypto-sage", "A2A_ROUTE_UNKNOWN"]
                .iter()
                .any(|kept| page.text().contains(&format!("value=\"{kept}\"")))
        );
    }
    let made_up = rita.get("/console/handoffs?agent=crypto-sage&cursor=nonsense");
    assert_eq!(made_up.status, 400);
    assert!(made_up.text().contains("The address names no page of this list."));
    assert_eq!(
        link(&made_up.text(), "Begin at its first page").as_deref(),
        Some("/console/handoffs?agent=crypto-sage")
    );
}

#[test]
fn a_form_that_does_not_say_enough_is_given_back_as_it_was_filled_in() {
    let daemon = Daemon::new();
    let rita = operator(&daemon);
    for (asked, form, marked, kept) in [
        (
            "freeze?scope=mode&mode=&routeKey=",
            "/console/freezes?scope=mode#freeze",
            "choose a mode",
            &["value=\"mode\" selected"][..],
        ),
        (
            "freeze?scope=route&mode=live&routeKey=",
            "/console/freezes?scope=route&mode=live#freeze",
            "choose a route",
            &["value=\"route\" selected", "<option selected>live</option>"],
        ),
        (
            "grant?principal=user%3Amain&agents=a1&operations=buy&minutes=480",
            "/console/authorizations?principal=user%3Amain&agents=a1&operations=buy&minutes=480&made=not%20yet#make",
            "choose at least one",
            &[
                "value=\"user:main\"",
                "value=\"a1\"",
                "value=\"buy\"",
                "value=\"480\" selected",
                "<details class=\"fold\" open",
            ],
        ),
        (
            "grant?principal=user%3Amain&agents=a1&operations=buy&modes=dev&modes=live&uses=many&minutes=60",
            "/console/authorizations?principal=user%3Amain&agents=a1&operations=buy&modes=dev&modes=live&uses=many&minutes=60&made=not%20yet#make",
            "not a number of uses",
            &["value=\"dev\" checked", "value=\"live\" checked", "value=\"many\""],
        ),
    ] {
        let back = rita.get(&format!("/console/act/{asked}"));
        assert_eq!((back.status, back.header("location")), (303, Some(form)), "{asked}");
        let page = rita.get(form.split('#').next().unwrap()).text();
        assert_eq!(page.matches("class=\"what said\"").count(), 1, "{asked}: {page}");
        assert!(page.contains(marked), "{asked}");
        assert!(kept.iter().all(|value| page.contains(value)), "{asked}: {page}");
    }
    assert_eq!(rita.get("/console/act/freeze?scope=mode&mode=live").status, 200);
    for page in ["/console/freezes", "/console/authorizations"] {
        assert!(!rita.get(page).text().contains("class=\"what said\""), "{page}: nothing is wrong at first");
    }
    // Who may not do it is told that, and not what is missing.
    let ada = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    assert_eq!(ada.get("/console/act/freeze?scope=mode").status, 403);
}

#[test]
fn one_goes_through_a_long_list_and_the_same_way_back_with_the_filters() {
    let daemon = long();
    let rita = operator(&daemon);
    for (start, total) in [
        ("/console/handoffs", 240),
        ("/console/handoffs?decision=denied&agent=crypto-sage", 120),
        ("/console/audit?type=gate.decided&decision=allowed", 120),
    ] {
        let (mut places, mut pages) = (vec![start.to_owned()], Vec::new());
        loop {
            let page = rita.get(places.last().unwrap());
            assert_eq!(page.status, 200);
            pages.push(page.text());
            assert!(pages.last().unwrap().contains(&format!("page {}</span>", pages.len())), "{start}");
            match link(pages.last().unwrap(), "Older") {
                Some(next) => places.push(next),
                None => break,
            }
        }
        let mut all: Vec<String> = pages.iter().flat_map(|page| rows(page)).collect();
        assert!(pages.len() >= 3 && all.len() == total, "{start}: {} pages, {} rows", pages.len(), all.len());
        all.sort();
        all.dedup();
        assert_eq!(all.len(), total, "none twice");
        for n in (1..pages.len()).rev() {
            assert_eq!(link(&pages[n], "Newest").as_deref(), Some(start), "the filters are kept");
            let back = link(&pages[n], "Newer").unwrap();
            assert_eq!(back, places[n - 1], "{start}: from page {}", n + 1);
            assert_eq!(rows(&rita.get(&back).text()), rows(&pages[n - 1]));
        }
        assert!(link(&pages[0], "Newer").is_none() && link(&pages[0], "Newest").is_none());
        // Only the first changes under one's eyes.
        assert!(pages[0].contains("data-live") && !pages[1].contains("data-live"));
    }
    // A page that was there once, and on which nothing is left, does not say that nothing matches.
    let gone = rita.get("/console/handoffs?decision=denied&cursor=c1&page=9").text();
    assert!(gone.contains("There is nothing on this page any more.") && link(&gone, "Newest").is_some());
}

#[test]
fn a_link_is_used_up_by_who_follows_it_and_not_by_a_browser_that_looks_ahead() {
    let daemon = Daemon::new();
    let token = daemon.token("rita", "operator", None);
    let url = daemon.cli_ok(&["console", "--print", "--token", &token]);
    let target = url.trim().strip_prefix(&format!("http://{}", daemon.address)).unwrap();
    let follow = || Request::new("GET", target);
    let ahead = ask(&daemon, &follow().header("Sec-Purpose", "prefetch;prerender"));
    assert_eq!((ahead.status, ahead.header("retry-after")), (503, Some("1")));
    assert_eq!(ask(&daemon, &follow().header("Purpose", "prefetch")).status, 503);
    assert_eq!(ask(&daemon, &Request::new("HEAD", target)).status, 303, "to the login");
    let rita = Visitor::of(&daemon, &ask(&daemon, &follow()));
    // Followed twice by the same browser: who is in stays in, and is told.
    let again = rita.get(target);
    assert_eq!((again.status, again.header("location")), (303, Some("/console")));
    assert!(again.header("set-cookie").is_none());
    assert!(
        rita.get("/console").text().contains("That link was used before; you are still logged in as rita.")
    );
    // By anybody else it opens nothing, and says what to do.
    let other = ask(&daemon, &follow());
    assert_eq!(other.status, 403);
    assert!(other.text().contains("Run handoffd console again for a new one"), "{}", other.text());
}

#[test]
fn the_command_opens_a_browser_with_what_the_environment_names() {
    use std::os::unix::fs::PermissionsExt as _;
    let daemon = Daemon::new();
    let (browser, seen) = (daemon.path("browser"), daemon.path("seen"));
    write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > {}.part && mv {0}.part {0}\n", seen.display()));
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |environment: &[(&str, &str)], arguments: &[&str]| {
        let mut command = command(&daemon.workspace(), &[&["console"], arguments].concat());
        for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
            command.env_remove(name);
        }
        let output = command.envs(environment.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let named = browser.display().to_string();
    let (url, told) = run(&[("BROWSER", &named)], &[]);
    assert_eq!(told, format!("opened with {named}; the link works once\n"));
    let opened = eventually("the browser was started", || std::fs::read_to_string(&seen).ok());
    assert_eq!(opened, url.trim());
    // It opens the console in the name of the token, here that of the workspace.
    let target = opened.strip_prefix(&format!("http://{}", daemon.address)).unwrap();
    let entered = ask(&daemon, &Request::new("GET", target));
    assert_eq!((entered.status, entered.header("location")), (303, Some("/console")));

    std::fs::remove_file(&seen).unwrap();
    let (_, told) = run(&[("BROWSER", &named)], &["--print"]);
    assert_eq!((told.as_str(), seen.exists()), ("", false), "only printed");
    let (_, told) = run(&[("BROWSER", "no-such-browser")], &[]);
    assert!(
        told.starts_with(
            "note: no browser could be opened (no-such-browser: not found); open the link yourself"
        ),
        "{told}"
    );
    let (url, told) = run(&[], &[]);
    assert!(
        told.starts_with("note: there is no display here to open a browser on; open the link yourself"),
        "{told}"
    );
    let port = daemon.address.port();
    assert!(told.contains(&format!("ssh -N -L {port}:127.0.0.1:{port} ")), "{told}");
    assert!(url.contains("/console/enter?link="));
}

#[test]
fn a_form_that_comes_after_its_session_is_kept_through_the_login() {
    let daemon = Daemon::new();
    let (rita, omar) = (daemon.token("rita", "operator", None), daemon.token("omar", "operator", None));
    let visitor = Visitor::log_in(&daemon, &rita);
    let word = visitor.form_word();
    assert_eq!(daemon.cli(&["token", "revoke", "rita"]).status.code(), Some(0));
    let send = |target: &str, fields: &[(&str, &str)]| {
        let mut all = vec![("form", word.as_str())];
        all.extend(fields);
        let reply = ask(&daemon, &visitor.with(form(target, &all)));
        assert_eq!(reply.status, 401, "{target}");
        assert!(reply.text().contains("The session is over, and nothing was done."), "{}", reply.text());
        between(&reply.text(), "name=\"next\" value=\"", "\"").replace("&#38;", "&")
    };
    let place = send("/console/act/freeze", &[("scope", "all"), ("reason", "the venue is \"down\" & out")]);
    assert!(!place.contains(&word), "{place}");
    assert!(daemon.get("/v1/freeze").json()["frozen"].as_array().unwrap().is_empty());
    // Whoever logs in then is asked once more, in their own name, with what was typed.
    let back = ask(&daemon, &form("/console/login", &[("token", &omar), ("next", &place)]));
    assert_eq!((back.status, back.header("location")), (303, Some(place.as_str())));
    let page = Visitor::of(&daemon, &back).get(&place).text();
    assert!(page.contains("the venue is &#34;down&#34; &#38; out</textarea>"), "{page}");
    assert!(page.contains("You act as <strong>omar</strong>"));
    // What is too long for an address is typed again; the rest is kept.
    let place = send("/console/act/freeze", &[("scope", "all"), ("reason", &"ж".repeat(2_000))]);
    assert_eq!(place, "/console/act/freeze?scope=all");
    // A grant's end is counted anew.
    let place = send(
        "/console/act/grant",
        &[("principal", "user:main"), ("minutes", "5"), ("expiresAt", "2026-01-01T00:00:00Z")],
    );
    assert_eq!(place, "/console/act/grant?principal=user%3Amain&minutes=5");
    assert_eq!(send("/console/audit/verify", &[]), "/console/audit/verify");
    assert_eq!(send("/console/logout", &[]), "/console");
}

#[test]
fn whoever_comes_to_the_login_with_a_session_that_is_over_is_told_why() {
    let daemon = Daemon::new();
    let rita = operator(&daemon);
    let login = "/console/login?next=%2Fconsole%2Froutes";
    let told = "Your session is over";
    assert!(!rita.get(login).text().contains(told), "it is not over");
    assert!(!ask(&daemon, &Request::new("GET", login)).text().contains(told), "there was none");
    assert_eq!(daemon.cli(&["token", "revoke", "rita"]).status.code(), Some(0));
    let page = rita.get(login).text();
    assert!(page.contains(told) && page.contains("value=\"/console/routes\""), "{page}");
}

#[test]
fn a_browser_with_too_many_cookies_is_told_so_with_the_headers_of_every_answer() {
    let daemon = Daemon::new();
    let rita = operator(&daemon);
    for (bytes, status) in [(15 * 1024, 200), (17 * 1024, 431), (30 * 1024, 431)] {
        let heavy = Request::new("GET", "/console")
            .header("Cookie", &format!("other={}; {}", "x".repeat(bytes), rita.cookie));
        // `ask` looks at the headers of the answer.
        let reply = ask(&daemon, &heavy);
        assert_eq!(reply.status, status, "{bytes}");
        assert_eq!(reply.text().contains("delete the cookies of this site"), status == 431, "{bytes}");
    }
}
