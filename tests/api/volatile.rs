//! A ledger in memory: for demonstrations, and said so.

use super::console::Visitor;
use super::harness::{Daemon, spec};

#[test]
fn a_ledger_in_memory_decides_says_so_and_leaves_nothing_behind() {
    let mut daemon = Daemon::with("[ledger]\nurl = \"memory\"\n");
    daemon.keeps_no_ledger();
    let decided = daemon.submit(&spec("volatile")).json();
    assert_eq!(decided["decision"], "allowed", "{decided}");
    // Entries, bodies and proofs are read back like any others.
    let shown = daemon.get("/v1/handoffs/hs_20260218_volatile").json();
    assert_eq!(shown["history"][0]["timeline"][1]["type"], "gate.decided", "{shown}");
    assert_eq!(daemon.get("/v1/handoffs/hs_20260218_volatile/evidence").status, 200);
    let verified = daemon.get("/v1/audit/verify").json();
    assert_eq!(
        (&verified["verified"], verified["entries"].as_u64()),
        (&true.into(), Some(daemon.events().len() as u64))
    );
    let ready = daemon.get("/readyz").json();
    assert_eq!(ready["degraded"][0]["what"], "ledger", "{ready}");
    assert!(daemon.log().contains("kept in memory"), "{}", daemon.log());
    assert!(
        !daemon.path("memory/ledger").exists() && !daemon.path("memory/orchestration-state.json").exists()
    );
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    daemon.restart_after_stop();
    assert_eq!(daemon.get("/v1/handoffs/hs_20260218_volatile").status, 404);
    assert_eq!(daemon.submit(&spec("volatile")).json()["replayed"], false);
}

/// Pages read the ledger where it is kept.
#[test]
fn the_console_shows_and_verifies_what_is_in_memory() {
    let mut daemon = Daemon::with("[ledger]\nurl = \"memory\"\n");
    daemon.keeps_no_ledger();
    assert_eq!(daemon.submit(&spec("volatile")).status, 201);
    let visitor = Visitor::log_in(&daemon, &daemon.token("ada", "auditor", None));
    let page = visitor.get("/console/handoffs/hs_20260218_volatile?verify=yes").text();
    let verified =
        "Verified: 3 entries follow from the ones before them, and the TaskSpec is the one that was judged.";
    assert!(page.contains(verified), "{page}");
    assert_eq!(page.matches(">holds</span>").count(), 3);
    assert!(page.contains("idem_volatile"), "the TaskSpec is shown: {page}");
    let entry = visitor.get("/console/audit/2").text();
    assert!(entry.contains(">holds</span>"), "{entry}");
}

#[test]
fn a_ledger_in_memory_takes_no_live_work() {
    let reasons = |settings: &str| {
        let mut daemon = Daemon::with(settings);
        if !settings.is_empty() {
            daemon.keeps_no_ledger();
        }
        let mut live = spec("volatile_live");
        live["mode"] = "live".into();
        live["safety"]["requiresHumanApproval"] = true.into();
        let token = daemon.token("router", "orchestrator", Some(super::harness::ROUTER));
        let decided = daemon.post_as(&token, "/v1/handoffs", live).json();
        decided["reasons"].to_string()
    };
    let why = "keeps its ledger in memory";
    assert!(reasons("[ledger]\nurl = \"memory\"\n").contains(why));
    assert!(!reasons("").contains(why));
}
