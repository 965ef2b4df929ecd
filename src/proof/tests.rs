//! Canonical JSON, signatures and keyrings, by published vectors and in any order.

use proptest::prelude::*;

use super::*;
use crate::json::{Bounds, read};
use crate::timestamp::Timestamp;

const BOUNDS: Bounds = Bounds { bytes_max: 1 << 20, levels_max: 64 };

fn canonical_text(text: &str) -> String {
    let doc = read(text.as_bytes(), BOUNDS).unwrap();
    let canonical = canonical(doc.root());
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(canonical, canonical_json(&value), "both writers agree");
    assert_eq!(canonical, serde_json_canonicalizer::to_vec(&value).unwrap(), "the oracle agrees");
    String::from_utf8(canonical).unwrap()
}

/// The examples and the number table of RFC 8785, sections 3.2 and appendix B.
#[test]
fn rfc_8785_vectors_hold() {
    let check = |input: &str, expected: &str| assert_eq!(canonical_text(input), expected);
    check(
        r#"{"numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#,
        "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
         \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
    );
    check(
        r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\
         \"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
    check(r#"[56, {"d": true, "10": null, "1": []}]"#, r#"[56,{"1":[],"10":null,"d":true}]"#);
    check("[-0, 100.0, 1e2, -5, 0, 999999999999999]", "[0,100,100,-5,0,999999999999999]");
    for (bits, text) in [
        (0x0000000000000000_u64, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        let value = serde_json::Value::from(f64::from_bits(bits));
        assert_eq!(String::from_utf8(canonical_json(&value)).unwrap(), text, "{bits:016x}");
        assert_eq!(canonical_text(text), text);
    }
}

/// `tests/fixtures/dispatch-hmac.json`: what an existing execution-plane.v1 receiver computes.
#[test]
fn the_receivers_signing_vectors_hold() {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/fixtures/dispatch-hmac.json")).unwrap();
    for vector in vectors.as_array().unwrap() {
        let text = |member: &str| vector[member].as_str().unwrap();
        assert_eq!(canonical_text(text("payloadText")), text("canonical"), "{}", text("name"));
        let secret = Secret::new(text("secret").as_bytes().to_vec());
        let key = Key::hmac("bot-alpha", "route", Purpose::Dispatch, secret).unwrap();
        assert_eq!(key.sign(text("canonical").as_bytes()).as_deref(), Some(text("hex")), "{}", text("name"));
        assert_eq!(to_hex(text("canonical").as_bytes()), text("canonicalUtf8Hex"), "{}", text("name"));
    }
    assert_eq!(vectors.as_array().unwrap().len(), 5);
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

#[test]
fn only_a_key_of_that_owner_purpose_algorithm_and_time_is_usable() {
    let secret = || Secret::new(b"0123456789abcdef".to_vec());
    let seed = Seed::from_bytes(&[7; 32]);
    let mut ring = Keyring::default();
    let mut add = |key: Option<Key>| ring.add(key.unwrap()).unwrap();
    add(Key::hmac("old", "rita", Purpose::Envelope, secret())
        .map(|k| k.valid_between(Some(at("2026-01-01T00:00:00Z")), Some(at("2026-03-01T00:00:00Z")))));
    add(Key::hmac("new", "rita", Purpose::Envelope, secret())
        .map(|k| k.valid_between(Some(at("2026-02-01T00:00:00Z")), None)));
    add(Key::hmac("route", "rita", Purpose::Dispatch, secret()));
    add(Key::ed25519("pair", "rita", Purpose::Envelope, &seed.public_hex()));
    add(Key::hmac("other", "omar", Purpose::Envelope, secret()));

    let usable = |owner, purpose, algorithm, id, now| {
        ring.usable(owner, purpose, algorithm, id, at(now))
            .map(|keys| keys.map(|key| key.id()).collect::<Vec<_>>())
    };
    let (envelope, hmac) = (Purpose::Envelope, Algorithm::HmacSha256);
    // Rotation: both count while their times overlap; the end itself is outside.
    assert_eq!(usable("rita", envelope, hmac, None, "2026-01-01T00:00:00Z"), Ok(vec!["old"]));
    assert_eq!(usable("rita", envelope, hmac, None, "2026-02-15T00:00:00Z"), Ok(vec!["old", "new"]));
    assert_eq!(usable("rita", envelope, hmac, None, "2026-03-01T00:00:00Z"), Ok(vec!["new"]));
    assert_eq!(usable("rita", envelope, hmac, Some("old"), "2026-03-01T00:00:00Z"), Err(KeyFault::Expired));
    assert_eq!(usable("rita", envelope, hmac, None, "2025-12-31T23:59:59Z"), Err(KeyFault::NotYetValid));
    assert_eq!(usable("rita", envelope, hmac, Some("route"), "2026-02-15T00:00:00Z"), Err(KeyFault::Unknown));
    assert_eq!(usable("rita", envelope, hmac, Some("other"), "2026-02-15T00:00:00Z"), Err(KeyFault::Unknown));
    assert_eq!(usable("rita", envelope, hmac, Some("pair"), "2026-02-15T00:00:00Z"), Err(KeyFault::Unknown));
    assert_eq!(usable("rita", envelope, Algorithm::Ed25519, None, "2026-02-15T00:00:00Z"), Ok(vec!["pair"]));
    assert_eq!(usable("nobody", envelope, hmac, None, "2026-02-15T00:00:00Z"), Err(KeyFault::Unknown));

    // What is written is what is read, and nothing of it can be printed.
    let file = ring.to_file();
    let again = Keyring::parse(&file).unwrap();
    assert_eq!(again.to_file(), file);
    let secret_hex = to_hex(b"0123456789abcdef");
    assert!(String::from_utf8(file.to_vec()).unwrap().contains(&secret_hex));
    let shown = format!("{again:?} {:?} {seed:?}", secret());
    assert!(!shown.contains(&secret_hex) && !shown.contains("0123456789abcdef"), "{shown}");
    assert!(!shown.contains(&to_hex(&[7; 32])), "{shown}");
}

#[test]
fn a_keyring_that_says_two_things_is_refused() {
    let check = |keys: &str, fault: &str| {
        let text = format!("{{\"keys\": [{keys}]}}");
        assert_eq!(Keyring::parse(text.as_bytes()).unwrap_err().to_string(), fault, "{keys}");
    };
    let hmac = r#""owner": "rita", "purpose": "envelope", "algorithm": "hmac-sha256""#;
    let pair = r#""owner": "rita", "purpose": "envelope", "algorithm": "ed25519""#;
    check(
        &format!(r#"{{"keyId": "a", {hmac}, "secret": "00"}}, {{"keyId": "a", {hmac}, "secret": "01"}}"#),
        "has a key `a` already",
    );
    check(
        &format!(r#"{{"keyId": "a", {hmac}}}"#),
        "has a bad key `a`: hmac-sha256 has a secret and no publicKey",
    );
    check(&format!(r#"{{"keyId": "a", {hmac}, "secret": ""}}"#), "has a bad key `a`: its secret is empty");
    check(
        &format!(r#"{{"keyId": "a", {hmac}, "secret": "0G"}}"#),
        "has a bad key `a`: its secret is not hex",
    );
    check(
        &format!(r#"{{"keyId": "a", {hmac}, "secret": "012"}}"#),
        "has a bad key `a`: its secret is not hex",
    );
    check(
        &format!(r#"{{"keyId": "a", {pair}, "secret": "00"}}"#),
        "has a bad key `a`: ed25519 has a publicKey and no secret",
    );
    check(
        &format!(r#"{{"keyId": "a", {pair}, "publicKey": "{}"}}"#, "00".repeat(32)),
        "has a bad key `a`: its publicKey is not an Ed25519 key",
    );
    check(
        &format!(
            r#"{{"keyId": "a", {hmac}, "secret": "00", "notBefore": "2026-02-01T00:00:00Z", "notAfter": "2026-02-01T00:00:00Z"}}"#
        ),
        "has a bad key `a`: it ends before it begins",
    );
    check(
        &format!(r#"{{"keyId": "a", {hmac}, "secret": "00", "colour": "red"}}"#),
        "is not a keyring: see line 1, column 117",
    );
}

#[test]
fn a_signature_is_refused_for_its_form_before_its_value() {
    let key = Key::hmac("k", "rita", Purpose::Envelope, Secret::new(b"key".to_vec())).unwrap();
    let good = key.sign(b"message").unwrap();
    // Fixed by RFC 2104 and FIPS 180: any HMAC-SHA256 gives this.
    assert_eq!(good, "6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a");
    assert_eq!(key.verify(b"message", &good), Ok(()));
    assert_eq!(key.verify(b"massage", &good), Err(SignatureFault::Wrong));
    assert_eq!(key.verify(b"message", &good.to_uppercase()), Err(SignatureFault::NotHex));
    assert_eq!(key.verify(b"message", &good[..32]), Err(SignatureFault::Length { digits: 64, found: 32 }));

    // RFC 8032, section 7.1, test 2.
    let seed = Seed::from_secret(&Secret::new(
        b"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb".to_vec(),
    ))
    .unwrap();
    assert_eq!(seed.public_hex(), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    let pair = Key::ed25519("p", "rita", Purpose::Envelope, &seed.public_hex()).unwrap();
    let good = seed.sign(&[0x72]);
    assert!(good.starts_with("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"));
    assert_eq!(pair.verify(&[0x72], &good), Ok(()));
    assert_eq!(pair.verify(&[0x73], &good), Err(SignatureFault::Wrong));
    assert_eq!(pair.verify(&[0x72], &good[..64]), Err(SignatureFault::Length { digits: 128, found: 64 }));
    assert_eq!(pair.sign(b"x"), None, "the gateway cannot forge");
}

#[test]
fn a_digest_is_recognised_only_as_it_is_written() {
    let digest = Digest::of(b"abc");
    let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest.to_string(), text);
    assert!(digest.is_written(text));
    assert!(
        !digest.is_written(&text.to_uppercase())
            && !digest.is_written(&text[..39])
            && !digest.is_written(&text[7..])
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_form_is_the_oracles_and_a_fixed_point(keys in prop::collection::vec(any::<String>(), 0..20), n in any::<f64>()) {
        prop_assume!(n.is_finite());
        let value: serde_json::Value = keys.iter().map(|k| (k.clone(), serde_json::json!([k, n, {k.as_str(): null}]))).collect::<serde_json::Map<_, _>>().into();
        let ours = canonical_json(&value);
        prop_assert_eq!(&ours, &serde_json_canonicalizer::to_vec(&value).unwrap());
        let doc = read(&ours, BOUNDS).unwrap();
        prop_assert_eq!(canonical(doc.root()), ours);
    }
}
