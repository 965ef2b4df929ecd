//! What people do, on the command line.

use serde_json::Value as Json;

use super::delegated::{House, TARGET, sensitive, signed};

#[test]
fn the_command_line_does_what_http_does() {
    let house = House::new();
    let daemon = &house.daemon;
    let rita = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--token", &house.rita]);
        daemon.cli_ok(&all)
    };
    let new = [
        "authorize",
        "new",
        "--principal",
        "user:main",
        "--agent",
        TARGET,
        "--operation",
        "transfer",
        "--mode",
        "simulated",
        "--expires",
        "2h",
        "--uses",
        "3",
    ];
    let grant = rita(&new).trim().to_owned();
    let shown: Json = serde_json::from_str(&rita(&["--json", "authorize", "show", &grant])).unwrap();
    assert_eq!(shown["uses"], 3);
    assert_eq!(house.codes(&signed(sensitive("cli_0001", &grant), |_| {})), Vec::<String>::new());
    assert!(
        rita(&["authorize", "list", "--state", "in_force"]).contains(&format!("{grant}  in_force  1 of 3"))
    );
    assert!(rita(&["authorize", "show", &grant]).contains("by rita"));
    assert!(rita(&["authorize", "revoke", &grant, "--reason", "done"]).contains("revoked"));
    let listed: Json = serde_json::from_str(&rita(&["--json", "authorize", "list"])).unwrap();
    assert_eq!(listed["authorizations"][0]["state"], "revoked");

    assert_eq!(rita(&["approvals", "list"]), "nothing waits for a person\n");
    let missing =
        daemon.cli(&["approvals", "approve", "hs_nothing_here", "--reason", "x", "--token", &house.rita]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("[APPROVAL_NOT_WAITING]"));

    let set = rita(&["freeze", "set", "--all", "--reason", "drill"]);
    assert!(
        set.contains("everything is frozen from entry ") && set.contains("hs_20260218_cli_0001"),
        "{set}"
    );
    assert!(rita(&["freeze", "list"]).contains("drill"));
    assert!(rita(&["freeze", "lift", "--all", "--reason", "over"]).contains("everything goes on"));
    assert_eq!(rita(&["freeze", "list"]), "nothing is frozen\n");
    for wrong in [
        &["freeze", "set", "--reason", "x"][..],
        &["freeze", "set", "--all", "--mode", "live", "--reason", "x"],
    ] {
        assert_eq!(daemon.cli(wrong).status.code(), Some(2), "{wrong:?}");
    }

    assert!(rita(&["mention", "phase"]).contains("log-only"));
    assert!(
        rita(&["mention", "phase", "set", "gated-read", "--reason", "a quiet week"]).contains("gated-read")
    );
    assert!(rita(&["mention", "metrics"]).contains("candidates          0"));
    assert_eq!(rita(&["mention", "list"]), "no mention was judged yet\n");

    // Without an operator's token it says whose it takes.
    let nobody = daemon.cli(&["mention", "phase", "set", "gated-live", "--reason", "x"]);
    assert_eq!(nobody.status.code(), Some(2));
    assert!(
        String::from_utf8(nobody.stderr).unwrap().contains("put an operator's token into HANDOFFD_TOKEN")
    );
}
