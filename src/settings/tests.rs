//! What is taken and what is not, a line each.

use super::*;

fn given(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Given {
    Given {
        file: Some(Ok(file.as_bytes().to_vec())),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())))
            .collect(),
        flags: flags.iter().map(|(name, value)| Flag { name, value: (*value).to_owned() }).collect(),
    }
}

fn good(given: &Given) -> Effective {
    read(given).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn problems(given: &Given) -> Vec<String> {
    match read(given) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
    }
}

/// The value that a key has after `key = written` in the file, as JSON; or why not.
fn taken(key: &str, written: &str) -> String {
    let (section, last) = key.split_once('.').unwrap();
    let mut file = format!("[{section}]\n{last} = {written}\n");
    // What the key contradicts if it stands alone.
    for (with, line) in [
        ("tls.certificate", "private_key = 'k'"),
        ("tls.private_key", "certificate = 'c'"),
        ("tls.client_ca", "certificate = 'c'\nprivate_key = 'k'\nclient_certificates = 'required'"),
        ("tls.client_certificates", "certificate = 'c'\nprivate_key = 'k'\nclient_ca = 'a'"),
    ] {
        if key == with && !written.contains("off") && written != "''" {
            file.push_str(line);
        }
    }
    match read(&given(&file, &[], &[])) {
        Ok(effective) => effective.to_json()[key]["value"].to_string(),
        Err(problems) => {
            assert_eq!(problems.len(), 1, "{problems:?}");
            let place = format!("handoffd.toml, line 2: {key}: ");
            problems[0].to_string().strip_prefix(&place).expect(&place).to_owned()
        }
    }
}

#[test]
fn every_key_takes_what_it_says_and_refuses_what_it_does_not() {
    // key | taken | what it is then | refused | why
    const CASES: &str = r#"
server.listen | '[::1]:80' | "[::1]:80" | 'localhost:80' | not `localhost:80`
server.body_bytes_max | '16MiB' | "16MiB" | '17MiB' | from 1KiB to 16MiB
server.batch_bytes_max | 2048 | "2KiB" | 1023 | not `1023`
server.header_bytes_max | 1025 | 1025 | '1kb' | not `1kb`
server.query_bytes_max | '256B' | 256 | -1 | beyond all bounds
server.request_timeout | '250ms' | "250ms" | '99ms' | from 100ms to 10m
server.header_timeout | '60s' | "1m" | 5 | not `5`
server.connections_max | 1 | 1 | 0 | from 1 to 100000
server.connections_per_client_max | 0 | 0 | 100001 | or 0 for no limit
server.requests_per_second | 50 | 50 | '50' | not `50`
server.request_burst | 0x10 | 16 | 1.5 | not a number with a fraction
server.waiting_decisions_max | 1_000 | 1000 | true | not `true`
server.shutdown_timeout | '2m' | "2m" | '2 m' | not `2 m`
tls.certificate | 'c.pem' | "c.pem" | 1 | takes a path
tls.private_key | 'k.pem' | "k.pem" | [] | not a list
tls.client_ca | 'a.pem' | "a.pem" | "a\u0000" | takes a path
tls.client_certificates | 'optional' | "optional" | 'on' | `off` or `optional` or `required`
ledger.url | 'memory' | "memory" | 'mysql://x' | takes `segments`
policy.approval | 'operator' | "operator" | 'Operator' | not `Operator`
policy.reload | 'sighup' | "sighup" | '' | not ``
retention.bodies | '90d' | "90d" | 'never' | `forever`
log.format | 'json' | "json" | {} | not a table
log.level | 'info,handoffd=debug' | "info,handoffd=debug" | 'inof' | not `inof`
sink.path | '' | null | 1979-05-27 | not a date
sink.rotate_bytes | '1GiB' | "1GiB" | '2GiB' | to 1GiB
sink.keep | 1000 | 1000 | 1001 | to 1000
otlp.endpoint | 'https://[::1]:4318/v1' | "https://[::1]:4318/v1" | 'https://u:p@h' | has no user name
otlp.headers | ['X-Key = v=1'] | ["x-key=[secret]"] | ['key'] | item 1: is not `name=value`
otlp.service_name | 'gate' | "gate" | '' | 1 to 128 characters
evidence.bytes_max | '1MiB' | "1MiB" | '17MiB' | to 16MiB, or 0
evidence.depth_max | 127 | 127 | 128 | from 1 to 127
evidence.array_max | 10 | 10 | 1000001 | to 1000000
approvals.wait | '1h' | "1h" | '8d' | to 7d
a2a.public_url | 'http://h/x' | "http://h/x" | 'ftp://h' | begins with http://
a2a.push_allow | ['10.0.0.0/8', '::/0'] | ["10.0.0.0/8","::/0"] | ['10.0.0.0/8', '10.0.0.1/8'] | item 2: `10.0.0.1/8` names an address
a2a.push_ca | 'c.pem' | "c.pem" | 1 | takes a path
a2a.push_timeout | '2s' | "2s" | '11m' | to 10m
a2a.push_retry | '1d' | "1d" | '8d' | to 7d
a2a.anonymous | false | false | 'no' | true or false
ai.url | 'http://h:1/x' | "http://h:1/x" | 'h' | begins with http://
ai.api_key | 'k-1' | "[secret]" | 'k 1' | without spaces
ai.api_key_file | 'k' | "k" | true | takes a path
ai.ca | 'c.pem' | "c.pem" | 1 | takes a path
ai.timeout | '2m' | "2m" | '1h' | to 10m
ai.answer_bytes_max | '1MiB' | "1MiB" | '17MiB' | to 16MiB
ai.requests_max | 7 | 7 | 0 | from 1 to 1000
ai.roles | ['agent', 'admin'] | ["agent","admin"] | ['agent', 'root'] | item 2: `root` is none of them
promotion.simulated_runs | 1 | 1 | 0 | from 1
promotion.canary_runs | 9 | 9 | 99999999999999999999999 | beyond all bounds
promotion.canary_deadline | '1h' | "1h" | '9s' | from 10s to 7d
promotion.probe_timeout | '500ms' | "500ms" | '6s' | to 5s
promotion.rollback_codes | ['POLICY_*', 'EXECUTION_TIMEOUT'] | ["POLICY_*","EXECUTION_TIMEOUT"] | ['POLICY_*', 'po*'] | item 2: `po*` is no code
promotion.rollback_on_critical | false | false | 1 | true or false
promotion.rollback_on_wrong_agent | false | false | 'off' | true or false
promotion.rollback_in_canary | false | false | [] | true or false
"#;
    let mut named = Vec::new();
    for case in CASES.trim().lines() {
        let [key, fit, value, unfit, why] = case.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        assert_eq!(taken(key, fit), value, "{case}");
        let said = taken(key, unfit);
        assert!(said.contains("takes") || said.starts_with("item "), "{case}: {said}");
        assert!(said.contains(why), "{case}: {said}");
        named.push(key);
    }
    assert_eq!(named, KEYS.iter().map(|key| key.name).collect::<Vec<_>>());
}

#[test]
fn values_that_have_rules_of_their_own() {
    const CASES: [(&str, &str, &str); 21] = [
        (
            "ledger.url",
            "'postgres://u:p@h:5432/d?sslmode=require'",
            "\"postgres://u:[secret]@h:5432/d?sslmode=require\"",
        ),
        ("ledger.url", "'postgresql://h/d?password=p'", "\"postgresql://h/d?password=[secret]\""),
        ("ledger.url", "'postgres://u@h'", "\"postgres://u@h\""),
        ("ledger.url", "'postgres://u:p/q@h/d'", "the URL has `/`"),
        ("ledger.url", "'postgres://u:p@q@h/d'", "the URL has `/`"),
        ("ledger.url", "'postgres://u:[secret]@h/d'", "put the secret back"),
        ("ledger.url", "'postgres:///d'", "names no host"),
        ("ledger.url", "'postgres://h:x/d'", "a port"),
        ("ledger.url", "'postgres://h /d'", "a space"),
        ("otlp.headers", "['a=[secret]']", "put the secret back"),
        ("otlp.headers", "['a b=c']", "a name that no header"),
        ("otlp.headers", "[\"a=b\\r\\nc: d\"]", "one that no header"),
        ("otlp.headers", "['a=']", "has no value"),
        ("otlp.headers", "[1]", "a list of something else"),
        ("otlp.endpoint", "'https://h?key=1'", "after `?`"),
        ("otlp.endpoint", "'https://'", "names no host"),
        ("a2a.push_allow", "['10.0.0.0']", "is no network"),
        ("a2a.push_allow", "['10.0.0.0/33']", "is no network"),
        ("a2a.push_allow", "['::ffff:10.0.0.0/104']", "written as IPv6"),
        ("ai.api_key", "'[secret]'", "put the secret back"),
        ("log.level", "'info,nonsense'", "takes `error`"),
    ];
    for (key, written, expected) in CASES {
        let found = taken(key, written);
        assert!(found.contains(expected), "{key} = {written}: {found}");
    }
    let many = format!("[{}]", "'10.0.0.0/8',".repeat(65));
    assert!(taken("a2a.push_allow", &many).contains("at most 64 items"));
}

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_the_default() {
    let file = "[log]\nlevel = 'warn'";
    let environment = [("HANDOFFD_LOG_LEVEL", "error")];
    let flags = [("--log-level", "debug")];
    let level = |given: Given| {
        let effective = good(&given);
        let shown = effective.to_json();
        format!("{} from {}", effective.settings.log.level, shown["log.level"]["source"])
    };
    assert_eq!(level(given("", &[], &[])), "info from \"default\"");
    assert_eq!(level(given(file, &[], &[])), "warn from \"handoffd.toml, line 2\"");
    assert_eq!(level(given(file, &environment, &[])), "error from \"HANDOFFD_LOG_LEVEL\"");
    assert_eq!(level(given(file, &environment, &flags)), "debug from \"--log-level\"");
    assert_eq!(level(Given::default()), "info from \"default\"");
}

#[test]
fn every_problem_of_every_place_is_reported_at_once_in_order() {
    let file = "\
liste = 1
[server]
listen = 7
lisen = '127.0.0.1:1'
request_timeout = 10s
[sever]
listen = '127.0.0.1:1'
connections = 1
[log]
level = 'loud'
";
    let environment = [("HANDOFFD_SERVER_LISTNE", "x"), ("HANDOFFD_SERVER_CONNECTIONS_MAX", "many")];
    let found = problems(&given(file, &environment, &[("--log-format", "xml"), ("--listen", "127.0.0.1:1")]));
    let expected = [
        "handoffd.toml, line 1: `liste` is no setting; the sections are [server], [tls]",
        "handoffd.toml, line 3: server.listen: takes an IP address and a port, such as 127.0.0.1:7420, not `7`",
        "handoffd.toml, line 4: `server.lisen` is no setting; did you mean `server.listen`?",
        "handoffd.toml, line 5: ",
        "handoffd.toml, line 6: `sever` is no setting; did you mean `[server]`?",
        "handoffd.toml, line 10: log.level: takes `error`",
        "HANDOFFD_SERVER_CONNECTIONS_MAX: takes a number from 1 to 100000, not `many`",
        "HANDOFFD_SERVER_LISTNE: is no setting; did you mean HANDOFFD_SERVER_LISTEN?",
        "--log-format: takes `auto` or `text` or `json`, not `xml`",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn a_name_that_is_none_gets_the_nearest_one() {
    for (file, hint) in [
        ("[server]\nListen = 1", "did you mean `server.listen`?"),
        ("[log]\nlisten = 1", "did you mean `server.listen`?"),
        ("listen = 1", "did you mean `server.listen`?"),
        ("[policy]\nwhatever = 1", "[policy] has `approval`, `reload`"),
        ("server = 1", "`server` is a section; write [server]"),
        ("[[server]]", "`server` is a section; write [server]"),
        ("[log]\nlevel = 'info'\nlevel = 'info'", "duplicate key `level`"),
        ("[foo]\nlevel = 'info'", "`foo` is no setting; the sections are [server], "),
        ("[logs]", "did you mean `[log]`?"),
        ("[log]\nlevel = \u{1}", "line 2"),
    ] {
        let found = problems(&given(file, &[], &[]));
        assert!(found.len() == 1 && found[0].contains(hint), "{file}: {found:?}");
    }
    let not_text = Given { file: Some(Ok(b"\n\xff".to_vec())), ..Given::default() };
    assert_eq!(problems(&not_text), ["handoffd.toml, line 2: is not UTF-8"]);
    let unreadable =
        Given { file: Some(Err("is a directory".to_owned())), ..given("", &[("HANDOFFD_X", "")], &[]) };
    assert_eq!(problems(&unreadable)[0], "handoffd.toml: is a directory");
    assert_eq!(problems(&unreadable).len(), 2);
}

#[test]
fn only_variables_that_are_somebody_elses_are_passed_over() {
    for name in [
        "PATH",
        "HANDOFFDX",
        "HANDOFFD_WORKSPACE",
        "HANDOFFD_URL",
        "HANDOFFD_TOKEN",
        "HANDOFFD_CERT",
        "HANDOFFD_KEY",
        "HANDOFFD_SERVICE_HOST",
        "HANDOFFD_SERVICE_PORT_HTTP",
        "HANDOFFD_PORT_7420_TCP",
        "HANDOFFD_PORT_7420_TCP_ADDR",
    ] {
        assert!(problems(&given("", &[(name, "x")], &[])).is_empty(), "{name}");
    }
    assert!(problems(&given("", &[("HANDOFFD_PORT", "tcp://10.0.0.1:7420")], &[])).is_empty());
    assert_eq!(problems(&given("", &[("HANDOFFD_SERVER_PORT", "7420")], &[])).len(), 1);
    for name in
        ["HANDOFFD_LISTEN", "HANDOFFD_WORKSPACES", "HANDOFFD_PORT_X_TCP", "HANDOFFD_", "HANDOFFD_SERVER"]
    {
        assert_eq!(problems(&given("", &[(name, "x")], &[])).len(), 1, "{name}");
    }
    let not_text = Given { environment: vec![("HANDOFFD_LOG_LEVEL".to_owned(), None)], ..Given::default() };
    assert_eq!(problems(&not_text), ["HANDOFFD_LOG_LEVEL: is not UTF-8"]);
}

#[test]
fn settings_that_say_nothing_without_each_other_are_refused() {
    for (file, expected) in [
        ("certificate = 'c'\nprivate_key = 'k'", ""),
        ("certificate = 'c'", "line 2: tls.certificate says nothing without tls.private_key"),
        ("private_key = 'k'", "line 2: tls.private_key says nothing without tls.certificate"),
        (
            "client_ca = 'a'\nclient_certificates = 'required'",
            "line 2: tls.client_ca says nothing without tls.certificate",
        ),
        (
            "certificate = 'c'\nprivate_key = 'k'\nclient_ca = 'a'",
            "line 4: tls.client_ca says nothing without tls.client_certificates",
        ),
        (
            "client_certificates = 'optional'",
            "line 2: tls.client_certificates says nothing without tls.client_ca",
        ),
    ] {
        let found = problems(&given(&format!("[tls]\n{file}"), &[], &[]));
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{file}: {found:?}");
        assert!(found.iter().all(|found| found.contains(expected)), "{file}: {found:?}");
    }
    let both = problems(&given("[ai]\napi_key = 'k'\napi_key_file = 'f'", &[], &[]));
    assert!(both.len() == 1 && both[0].contains("line 3: ai.api_key and ai.api_key_file both"), "{both:?}");
    // A path that could not be read is not also a path that is missing.
    assert_eq!(problems(&given("[tls]\ncertificate = 'c'\nprivate_key = 1", &[], &[])).len(), 1);
}

#[test]
fn only_a_password_on_the_command_line_is_worth_a_warning() {
    let warnings = |url: &str| good(&given("", &[], &[("--ledger", url)])).warnings;
    for url in [
        "postgres://handoffd@db/h",
        "postgres://handoffd@db/h?options=-csearch_path%3Dteam",
        "postgres://handoffd@db/h?sslmode=verify-full&sslrootcert=tls/ca.pem",
    ] {
        assert_eq!(warnings(url), [""; 0], "{url}");
    }
    for url in ["postgres://handoffd:hunter2@db/h", "postgres://db/h?password=hunter2"] {
        let found = warnings(url);
        assert!(found.len() == 1 && found[0].starts_with("--ledger has a secret in it"), "{found:?}");
    }
}

#[test]
fn an_open_address_without_tls_is_worth_a_warning() {
    let warnings = |file: &str| good(&given(file, &[], &[])).warnings.len();
    assert_eq!(warnings("[server]\nlisten = '0.0.0.0:7420'"), 1);
    assert_eq!(warnings("[server]\nlisten = '[::]:7420'"), 1);
    assert_eq!(warnings("[server]\nlisten = '[::1]:7420'"), 0);
    assert_eq!(warnings("[server]\nlisten = '127.9.9.9:7420'"), 0);
    assert_eq!(warnings("[server]\nlisten = '0.0.0.0:1'\n[tls]\ncertificate = 'c'\nprivate_key = 'k'"), 0);
}

#[test]
fn what_is_printed_can_be_read_back_as_the_same() {
    let everything = "\
[server]
listen = '0.0.0.0:1'
body_bytes_max = 1025
request_timeout = '1500ms'
requests_per_second = 5
[tls]
certificate = \"c\\u007f\\\"'\\n\\\\.pem\"
private_key = 'k'
[ledger]
url = 'postgres://u@h/d?sslmode=require'
[retention]
bodies = '90d'
[evidence]
depth_max = 5
[a2a]
push_allow = ['10.0.0.0/8', 'fd00::/8']
anonymous = false
";
    for file in ["", everything] {
        let first = good(&given(file, &[], &[]));
        assert_eq!(first.settings == Settings::default(), file.is_empty());
        let printed = first.to_toml();
        let second = good(&given(&printed, &[], &[]));
        assert_eq!(second.settings, first.settings, "{printed}");
        assert!(KEYS.iter().all(|key| second.source(key) != Source::Default), "{printed}");
    }
}

#[test]
fn no_secret_is_in_what_is_printed_debugged_or_complained_about() {
    let file = "[otlp]\nheaders = ['authorization=Bearer hunter2']\n[ledger]\nurl = 'postgres://u:hunter2@h/d?x=hunter2'\n\
                [ai]\napi_key = 'hunter2'";
    let effective = good(&given(file, &[], &[]));
    assert_eq!(effective.settings.ai.api_key.as_ref().map(|key| key.expose()), Some("hunter2"));
    assert_eq!(effective.settings.otlp.headers[0].value.expose(), "Bearer hunter2");
    let said =
        format!("{effective:?}{}{}{:?}", effective.to_toml(), effective.to_json(), given(file, &[], &[]));
    assert!(!said.contains("hunter2") && said.contains("[secret]"), "{said}");
    let read_back = problems(&given(&effective.to_toml(), &[], &[]));
    assert!(read_back.len() == 3 && read_back.iter().all(|problem| problem.contains("put the secret back")));

    for file in [
        "[otlp]\nheaders = 'hunter2'",
        "[otlp]\nheaders = ['hunter2']",
        "[otlp]\nheaders = ['a\u{e4}=hunter2']",
        "[otlp]\nheaders = ['a=hunter2",
        "[otlp]\nheaders = [a=hunter2]",
        "[otlp]\nheaders = hunter2",
        "[ai]\napi_key = 'hunter2 '",
        "[ai]\napi_key = ['hunter2']",
        "[ledger]\nurl = 'postgres//u:hunter2@h'",
        "[ledger]\nurl = 'postgres://u:hunter2#@h'",
        "[otlp]\nendpoint = 'https://u:hunter2@h'",
    ] {
        let found = problems(&given(file, &[], &[]));
        assert!(
            !found.is_empty() && found.iter().all(|problem| !problem.contains("hunter2")),
            "{file}: {found:?}"
        );
    }
    let flag = format!("{:?}", Flag { name: "--ledger", value: "postgres://u:hunter2@h".to_owned() });
    assert!(!flag.contains("hunter2"), "{flag}");
}

#[test]
fn the_environment_writes_lists_with_commas_and_numbers_as_text() {
    let environment = [
        ("HANDOFFD_A2A_PUSH_ALLOW", "10.0.0.0/8, fd00::/8"),
        ("HANDOFFD_SERVER_CONNECTIONS_MAX", "9"),
        ("HANDOFFD_SERVER_BODY_BYTES_MAX", "2KiB"),
        ("HANDOFFD_A2A_ANONYMOUS", "false"),
        // An empty value takes back what the file says.
        ("HANDOFFD_SINK_PATH", ""),
        ("HANDOFFD_OTLP_HEADERS", ""),
    ];
    let settings = good(&given("[sink]\npath = 'x'\n[otlp]\nheaders = ['a=b']", &environment, &[])).settings;
    assert_eq!(settings.a2a.push_allow.len(), 2);
    assert_eq!((settings.server.connections_max, settings.server.body_bytes_max), (9, 2048));
    assert!(!settings.a2a.anonymous && settings.sink.path.is_none() && settings.otlp.headers.is_empty());
    assert_eq!(problems(&given("", &[("HANDOFFD_SERVER_LISTEN", "")], &[])).len(), 1);
}

#[test]
fn durations_and_sizes_are_read_and_shown() {
    for (text, ms) in
        [("250ms", 250), ("10s", 10_000), ("15m", 900_000), ("2h", 7_200_000), ("90d", 7_776_000_000)]
    {
        let duration = units::duration(text).unwrap();
        assert_eq!((duration.as_millis(), units::show_duration(duration)), (ms, text.to_owned()));
    }
    for text in ["", "10", "s", "-1s", "1.5s", "1S", "1 s", " 1s", "18446744073709551615d"] {
        assert_eq!(units::duration(text), None, "{text}");
    }
    for (text, bytes) in [("0", 0), ("7", 7), ("256KiB", 262_144), ("16MiB", 16_777_216), ("1GiB", 1 << 30)] {
        assert_eq!((units::size(text), units::show_size(bytes)), (Some(bytes), text.to_owned()));
    }
    for text in ["", "KiB", "1KB", "1kib", "-1", "1.5MiB", "18446744073709551615GiB"] {
        assert_eq!(units::size(text), None, "{text}");
    }
}

#[test]
fn a_network_has_the_addresses_that_begin_like_it() {
    let contains =
        |network: &str, address: &str| network.parse::<Network>().unwrap().contains(address.parse().unwrap());
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
        ("10.0.0.0/8", "::ffff:10.0.0.1", "::10.0.0.1"),
        ("192.0.2.7/32", "192.0.2.7", "192.0.2.6"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("::/0", "::1", "127.0.0.1"),
    ] {
        assert!(contains(network, inside), "{network} {inside}");
        assert!(!contains(network, outside), "{network} {outside}");
    }
    for text in ["10.0.0.0/+8", "10.0.0.0/", "/8", "fd00::/129", "10.0.0.1/31"] {
        assert!(text.parse::<Network>().is_err(), "{text}");
    }
}
