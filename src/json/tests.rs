//! Strict JSON: what is read, what is refused because two parsers could read it differently, and the bounds.

use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { bytes_max: 4096, levels_max: 64 };

fn refused(text: &str) -> BodyFault {
    read(text.as_bytes(), BOUNDS).expect_err(text)
}

#[test]
fn a_document_is_read_as_it_was_sent() {
    let text =
        r#" {"a": [1, -2.5, true, false, null, "x"], "b\u0041": {"\"\\\/\b\f\n\r\t": "\ud83d\ude00é"}} "#;
    let doc = read(text.as_bytes(), BOUNDS).unwrap();
    let expected: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(doc.root().to_json(), expected);
    assert_eq!(
        doc.root().get("bA").and_then(|b| b.get("\"\\/\u{8}\u{c}\n\r\t")).unwrap().as_str(),
        Some("😀é")
    );
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    fn check(text: &str, pointer: &str, message: &str) {
        let fault = refused(text);
        assert_eq!((fault.pointer.as_str(), fault.to_string().as_str()), (pointer, message), "{text}");
    }
    check(r#"{"a":1,"a":1}"#, "/a", "the key `a` stands twice in one object (line 1, column 9)");
    check(
        r#"{"x":[{},{"a":1,"\u0061":2}]}"#,
        "/x/1/a",
        "the key `a` stands twice in one object (line 1, column 28)",
    );
    check(
        "9007199254740993",
        "",
        "the number `9007199254740993` would be kept as `9007199254740992` (line 1, column 1)",
    );
    check(
        "{\"id\":\n1152921504606846976}",
        "/id",
        "the number `1152921504606846976` would be kept as `1152921504606847000` (line 2, column 1)",
    );
    check(
        "[0.10000000000000000001]",
        "/0",
        "the number `0.10000000000000000001` would be kept as `0.1` (line 1, column 2)",
    );
    check("1e400", "", "the number `1e400` would be kept as `infinity` (line 1, column 1)");
    check("[1e-400]", "/0", "the number `1e-400` would be kept as `0` (line 1, column 2)");
    check(r#""\ud800""#, "", "a string has half a surrogate pair (line 1, column 8)");
    check(r#""\ud800\u0041""#, "", "a string has half a surrogate pair (line 1, column 14)");
    check(r#""\udc00""#, "", "a string has half a surrogate pair (line 1, column 8)");
    check("\"a\tb\"", "", "a string has a raw control character (line 1, column 3)");
    check("\u{feff}{}", "", "it begins with a byte order mark");
    check("", "", "it is empty");
    check(" \n", "", "it is empty");
    check("{} {}", "", "something follows the JSON document (line 1, column 4)");
    check(r#"{"a":1,}"#, "", "expected a key in double quotes, found `}` (line 1, column 8)");
    check("{'a':1}", "", "expected a key in double quotes, found `'` (line 1, column 2)");
    check("[01]", "/0", "expected no digit after a leading zero, found `1` (line 1, column 3)");
    check("[1.]", "/0", "expected a digit after the decimal point, found `]` (line 1, column 4)");
    check("[+1]", "/0", "expected a JSON value, found `+` (line 1, column 2)");
    check("[NaN]", "/0", "expected a JSON value, found `N` (line 1, column 2)");
    check(
        r#"["\x"]"#,
        "/0",
        "expected one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX, found `x` (line 1, column 4)",
    );
    check("{\"a\" 1}", "", "expected `:`, found `1` (line 1, column 6)");
    check("[1 2]", "", "expected `,` or `]`, found `2` (line 1, column 4)");
    check(
        "{\"a\":\"é\u{202e}",
        "/a",
        "expected the end of a string, found the end of the body (line 1, column 9)",
    );
}

#[test]
fn numbers_that_a_double_gives_back_are_kept() {
    for (text, integer) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("100.0", Some(100)),
        ("1e2", Some(100)),
        ("999999999999999", Some(999_999_999_999_999)),
        ("9007199254740992", Some(9_007_199_254_740_992)),
        ("0.1", None),
        ("0.30000000000000004", None),
        ("1.5e300", None),
        ("1e21", None),
        ("5e-324", None),
        ("-12.50", None),
    ] {
        let doc = read(text.as_bytes(), BOUNDS).unwrap();
        assert_eq!(doc.root().as_integer(), integer, "{text}");
        assert_eq!(doc.root().as_f64(), text.parse().ok(), "{text}");
    }
}

#[test]
fn size_and_depth_are_bounded_exactly() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(read(nested(64).as_bytes(), BOUNDS).is_ok());
    assert!(matches!(refused(&nested(65)).kind, BodyFaultKind::TooDeep { levels_max: 64 }));
    let sized = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(read(sized(4096).as_bytes(), BOUNDS).is_ok());
    assert!(matches!(refused(&sized(4097)).kind, BodyFaultKind::TooLarge { bytes: 4097, bytes_max: 4096 }));
    assert!(matches!(read(b"\"\xff\"", BOUNDS).unwrap_err().kind, BodyFaultKind::NotUtf8 { offset: 1 }));
}

#[test]
fn a_duplicate_is_found_in_an_object_of_any_size() {
    let bounds = Bounds { bytes_max: 1 << 20, levels_max: 64 };
    for size in [2_usize, 15, 16, 17, 18, 40_000] {
        for twin in [0, (size - 1) / 2, size - 2] {
            let mut keys: Vec<String> = (0..size - 1).map(|n| format!("k{n}")).collect();
            keys.push(format!("k{twin}"));
            let text =
                format!("{{{}}}", keys.iter().map(|k| format!("\"{k}\":0")).collect::<Vec<_>>().join(","));
            let fault = read(text.as_bytes(), bounds).unwrap_err();
            assert_eq!(fault.kind, BodyFaultKind::DuplicateKey { key: format!("k{twin}") }, "{size} {twin}");
            let unique = text.replace(&format!(",\"k{twin}\":0}}"), "}");
            assert!(read(unique.as_bytes(), bounds).is_ok(), "{size}");
        }
    }
}

/// JSON text with every kind of value, escape and space, sound or nearly so.
fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<i32>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:e}")),
        any::<f32>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|s| serde_json::Value::from(s).to_string()),
        "\"(\\\\u[0-9a-fD]{4}|[a-z\"\\\\ ]){0,4}\"",
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), space.clone())
                .prop_map(|(items, s)| format!("[{s}{}{s}]", items.join(&format!("{s},{s}")))),
            (prop::collection::vec(("[a-c]{1,2}", inner), 0..6), space).prop_map(|(members, s)| {
                let members: Vec<_> = members.iter().map(|(k, v)| format!("\"{k}\"{s}:{s}{v}")).collect();
                format!("{{{s}{}{s}}}", members.join(","))
            }),
        ]
    })
}

/// serde_json agrees, but for what this reader refuses on purpose.
fn agree_with_serde_json(bytes: &[u8]) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_slice::<serde_json::Value>(bytes);
    match (read(bytes, BOUNDS), theirs) {
        (Ok(ours), Ok(theirs)) => {
            let ours = ours.root().to_json();
            // Whole doubles are integers here; compare numbers by value.
            prop_assert_eq!(crate::proof::canonical_json(&ours), crate::proof::canonical_json(&theirs));
        }
        (Ok(_), Err(theirs)) => prop_assert!(false, "only serde_json refuses: {theirs}"),
        (Err(ours), Ok(_)) => prop_assert!(
            matches!(
                ours.kind,
                BodyFaultKind::DuplicateKey { .. }
                    | BodyFaultKind::NumberNotKept { .. }
                    | BodyFaultKind::TooDeep { .. }
                    | BodyFaultKind::TooLarge { .. }
            ),
            "only this reader refuses: {ours}"
        ),
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, BOUNDS);
    }

    #[test]
    fn sound_and_nearly_sound_json_is_judged_as_serde_json_does(
        text in json_text(),
        cut in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        agree_with_serde_json(text.as_bytes())?;
        let mut bytes = text.into_bytes();
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        agree_with_serde_json(&bytes)?;
        bytes.truncate(at);
        agree_with_serde_json(&bytes)?;
    }
}
