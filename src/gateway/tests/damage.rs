//! Views that open and are not what was applied to them: a start makes them again, and nothing is decided twice.

use super::*;
use crate::ledger::verify;

fn decide_under(gateway: &Gateway, n: usize, key: &str) -> Decision {
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    let body = CANONICAL
        .replace("hs_20260218_router_0001", &format!("hs_gateway_{n:04}"))
        .replace("idem_swap_cycle_9001", key);
    let ruling = Ruling { policies, keyring: Arc::default(), asker: Asker::Agent("decision-router".into()) };
    let candidate = Candidate::judge(body.into(), ruling, clock::now()).unwrap();
    gateway.engine().submit_and_wait(candidate).unwrap().decision
}

/// Three handoffs that were decided, and views of them in one file.
fn stopped(workspace: &Path) -> Vec<u8> {
    let gateway = open(workspace).unwrap();
    (1..=3).for_each(|n| assert_eq!(decide(&gateway, n), Decision::Allowed));
    gateway.close().unwrap();
    let path = Files::of(workspace).views();
    let views = rusqlite::Connection::open(&path).unwrap();
    views.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(views);
    fs::read(path).unwrap()
}

fn put_back(path: &Path, views: &[u8]) {
    crate::views::delete(path).unwrap();
    overwrite(path, views);
}

/// It starts without a hand, knows what was decided, and the ledger says nothing twice.
fn nothing_is_forgotten(workspace: &Path, what: &str) {
    let gateway = open(workspace).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    let head = gateway.engine().head();
    assert_eq!(decide(&gateway, 2), Decision::Allowed, "{what}");
    assert_eq!(gateway.engine().head(), head, "{what}: it was decided before");
    assert_eq!(decide_under(&gateway, 2, &format!("{what} {head}")), Decision::Denied, "{what}");
    assert_eq!(gateway.engine().head(), head + 3, "{what}: a refusal");
    // What is written on top of damage that no claim rests on is made again, too.
    seen(&gateway, gateway.engine().head());
    gateway.close().unwrap();
    let ledger = Files::of(workspace).ledger();
    verify::verify_segments(&ledger, &[], &mut |_| {}).unwrap_or_else(|found| panic!("{what}: {found}"));
}

#[test]
fn a_claim_that_the_views_have_lost_is_found_at_the_start() {
    let workspace = tempfile::tempdir().unwrap();
    let path = Files::of(workspace.path()).views();
    let whole = stopped(workspace.path());
    let name = b"hs_gateway_0002";
    let places: Vec<usize> =
        (0..whole.len() - name.len()).filter(|at| whole[*at..].starts_with(name)).collect();
    assert!(places.len() >= 2, "in a row and in an index");
    for at in places {
        let mut other = whole.clone();
        other[at + name.len() - 1] ^= 0x40;
        put_back(&path, &other);
        nothing_is_forgotten(workspace.path(), &format!("a bit at {at}"));
    }
    put_back(&path, &whole);
    let views = rusqlite::Connection::open(&path).unwrap();
    let of = "(SELECT handoff FROM handoffs WHERE handoff_id = 'hs_gateway_0002')";
    for table in ["attempts", "handoff_agents", "handoffs"] {
        assert!(views.execute(&format!("DELETE FROM {table} WHERE handoff = {of}"), []).unwrap() > 0);
    }
    drop(views);
    nothing_is_forgotten(workspace.path(), "a row");
}

#[test]
fn views_of_which_any_page_is_empty_are_made_again_without_a_hand() {
    let workspace = tempfile::tempdir().unwrap();
    let path = Files::of(workspace.path()).views();
    let whole = stopped(workspace.path());
    assert!(whole.len() / 4096 > 40);
    for page in 0..whole.len() / 4096 {
        let mut other = whole.clone();
        other[page * 4096..][..4096].fill(0);
        put_back(&path, &other);
        nothing_is_forgotten(workspace.path(), &format!("page {page}"));
    }
}

/// A question that meets damage is refused, and with the next entry the file is made again.
#[test]
fn damage_that_a_question_meets_is_mended() {
    let workspace = tempfile::tempdir().unwrap();
    let path = Files::of(workspace.path()).views();
    stopped(workspace.path());
    let gateway = open(workspace.path()).unwrap();
    assert!(gateway.views_trouble().is_none());
    rusqlite::Connection::open(&path).unwrap().execute("DELETE FROM attempts WHERE attempt = 1", []).unwrap();
    let policies = Arc::new(Workspace::new(env!("CARGO_MANIFEST_DIR")).load_policies().unwrap());
    let body = CANONICAL.replace("hs_20260218_router_0001", "hs_gateway_0001");
    let ruling = Ruling { policies, keyring: Arc::default(), asker: Asker::Agent("decision-router".into()) };
    let candidate = Candidate::judge(body.into(), ruling, clock::now()).unwrap();
    let fault = gateway.engine().submit_and_wait(candidate).unwrap_err().to_string();
    assert!(fault.contains("what was decided before could not be read"), "{fault}");
    assert!(gateway.views_trouble().unwrap().starts_with("memory/views.db is damaged"));
    assert_eq!(decide(&gateway, 4), Decision::Allowed);
    seen(&gateway, gateway.engine().head());
    assert!(gateway.views_trouble().is_none());
    let head = gateway.engine().head();
    assert_eq!(decide_under(&gateway, 1, "another key"), Decision::Denied);
    assert_eq!(gateway.engine().head(), head + 3);
}
