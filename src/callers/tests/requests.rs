//! Signed requests: what is signed, who is found, and nonces that count once.

use super::*;

/// A caller `router` with a token, and keys that sign in its name.
struct Signing {
    roster: Roster,
    keyring: Keyring,
}

const SIGNED_AT: &str = "2026-02-18T19:38:00Z";

impl Signing {
    fn new() -> Self {
        let (token, _) = made("router", standing(Role::Orchestrator), 1);
        let mut keyring = Keyring::default();
        let secret = || Secret::new(b"a secret of the router".to_vec());
        for (id, owner, purpose) in [
            ("good", "router", Purpose::Request),
            ("envelope", "router", Purpose::Envelope),
            ("orphan", "nobody", Purpose::Request),
            ("agent", "decision-router", Purpose::Request),
            ("late", "router", Purpose::Request),
        ] {
            let key = Key::hmac(id, owner, purpose, secret()).unwrap();
            let from = (id == "late").then(|| now().plus_seconds(3600));
            keyring.add(key.valid_between(from, None)).unwrap();
        }
        let public = Seed::from_bytes(&[5; 32]).public_hex();
        keyring.add(Key::ed25519("pair", "router", Purpose::Request, &public).unwrap()).unwrap();
        Self { roster: roster_of([token]), keyring }
    }

    fn verify(&self, request: &SignedRequest<'_>, now: Timestamp) -> Result<String, &'static str> {
        self.verify_with(request, b"{}", now).map_err(RequestFault::code)
    }

    fn verify_with(
        &self,
        request: &SignedRequest<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<String, RequestFault> {
        let vouched = request.vouch(&self.keyring, now)?;
        let verified = vouched.verify(Digest::of(body), &self.roster, now)?;
        Ok(verified.caller.name().to_string())
    }

    fn sign(&self, request: &SignedRequest<'_>) -> String {
        let text = request.to_sign(Digest::of(b"{}"));
        let key = self.keyring.get(request.key_id).or(self.keyring.get("good")).unwrap();
        key.sign(text.as_bytes()).unwrap_or_else(|| Seed::from_bytes(&[5; 32]).sign(text.as_bytes()))
    }
}

pub(super) fn request(key_id: &'static str) -> SignedRequest<'static> {
    SignedRequest {
        key_id,
        nonce: "nonce-0001",
        timestamp: SIGNED_AT,
        signature: "",
        method: "POST",
        path: "/v1/handoffs?wait=30s",
    }
}

#[test]
fn what_is_signed_can_be_made_by_anybody_with_an_hmac() {
    let request = request("good");
    assert_eq!(
        request.to_sign(Digest::of(b"{}")),
        "{\"bodyDigest\":\"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\",\"keyId\":\"good\",\"method\":\"POST\",\"nonce\":\"nonce-0001\",\"path\":\"/v1/handoffs?wait=30s\",\"timestamp\":\"2026-02-18T19:38:00Z\"}"
    );
    // As Python's hmac gives it.
    assert_eq!(
        Signing::new().sign(&request),
        "b507ef7d1e2f7215dca862d7db6df259ab4f0d8e8b63b3b84cb81e0115e73c1b"
    );
}

#[test]
fn a_signed_request_is_its_callers_or_nobodys() {
    let signing = Signing::new();
    let check = |key_id: &'static str, change: fn(&mut SignedRequest<'_>), expected: Result<&str, &str>| {
        let mut request = request(key_id);
        let signature = signing.sign(&request);
        request.signature = &signature;
        change(&mut request);
        assert_eq!(signing.verify(&request, now()), expected.map(str::to_owned), "{request:?}");
    };
    const BAD: Result<&str, &str> = Err("AUTH_SIGNATURE_INVALID");
    check("good", |_| {}, Ok("router"));
    check("pair", |_| {}, Ok("router"));
    check("envelope", |_| {}, BAD);
    check("late", |_| {}, BAD);
    check("unknown", |_| {}, BAD);
    check("orphan", |_| {}, Err("AUTH_TOKEN_UNKNOWN"));
    // An agent's id is not the name of a token.
    check("agent", |_| {}, Err("AUTH_TOKEN_UNKNOWN"));
    check("good", |request| request.key_id = "pair", BAD);
    check("good", |request| request.method = "PUT", BAD);
    check("good", |request| request.path = "/v1/handoffs?wait=31s", BAD);
    check("good", |request| request.nonce = "nonce-0002", BAD);
    check("good", |request| request.timestamp = "2026-02-18T19:38:01Z", BAD);
    check("good", |request| request.timestamp = "2026-02-18T20:38:00+01:00", BAD);
    check("good", |request| request.signature = "00", BAD);
    for nonce in ["seven-7", "with space", "ünïcode-nonce", &"n".repeat(129)] {
        let request = SignedRequest { nonce, ..request("good") };
        let signature = signing.sign(&request);
        let fault = signing.verify_with(&SignedRequest { signature: &signature, ..request }, b"{}", now());
        assert_eq!(fault.unwrap_err(), RequestFault::Malformed { header: NONCE_HEADER }, "{nonce}");
    }
    let mut request = request("good");
    let signature = signing.sign(&request);
    request.signature = &signature;
    let other_body = signing.verify_with(&request, b"[]", now());
    assert_eq!(other_body, Err(RequestFault::SignatureInvalid));
}

#[test]
fn who_could_not_have_signed_it_is_refused_before_there_is_a_body() {
    let signing = Signing::new();
    let check = |key_id: &'static str, change: fn(&mut SignedRequest<'_>), expected: Result<(), &str>| {
        let mut request = request(key_id);
        let signature = "0".repeat(64);
        request.signature = &signature;
        change(&mut request);
        let vouched = request.vouch(&signing.keyring, now()).map(drop);
        assert_eq!(vouched.map_err(RequestFault::code), expected, "{request:?}");
    };
    const BAD: Result<(), &str> = Err("AUTH_SIGNATURE_INVALID");
    check("good", |_| {}, Ok(()));
    // Whether its token is gone is for the holder of the key to hear.
    check("orphan", |_| {}, Ok(()));
    check("unknown", |_| {}, BAD);
    check("envelope", |_| {}, BAD);
    check("late", |_| {}, BAD);
    // An Ed25519 signature is longer.
    check("pair", |_| {}, BAD);
    check("good", |request| request.signature = "x", BAD);
    check("good", |request| request.nonce = "seven-7", BAD);
    check("good", |request| request.timestamp = "yesterday", BAD);
    const LATE: Result<(), &str> = Err("AUTH_TIMESTAMP_WINDOW_EXCEEDED");
    check("good", |request| request.timestamp = "2026-02-18T19:35:59Z", LATE);
}

#[test]
fn a_signed_request_counts_within_the_skew() {
    let signing = Signing::new();
    let mut request = request("good");
    let signature = signing.sign(&request);
    request.signature = &signature;
    for (seconds, sound) in [(-121, false), (-120, true), (0, true), (120, true), (121, false)] {
        let expected = if sound { Ok("router".to_owned()) } else { Err("AUTH_TIMESTAMP_WINDOW_EXCEEDED") };
        assert_eq!(signing.verify(&request, now().plus_seconds(seconds)), expected, "{seconds}");
    }
    let just_over = now().plus_seconds(limits::SKEW_S).plus_nanosecond();
    assert_eq!(signing.verify(&request, just_over), Err("AUTH_TIMESTAMP_WINDOW_EXCEEDED"));
    request.timestamp = "yesterday";
    assert_eq!(signing.verify(&request, now()), Err("AUTH_SIGNATURE_INVALID"));
}

#[test]
fn revoking_the_token_ends_what_its_key_can_do() {
    let mut signing = Signing::new();
    let mut request = request("good");
    let signature = signing.sign(&request);
    request.signature = &signature;
    assert!(signing.verify(&request, now()).is_ok());
    signing.roster = signing.roster.revoked("router", now()).unwrap().0;
    assert_eq!(signing.verify(&request, now()), Err("AUTH_TOKEN_UNKNOWN"));
}

#[test]
fn the_four_headers_come_together_or_not_at_all() {
    let names = [KEY_ID_HEADER, NONCE_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER];
    let read = |there: &[&str]| {
        let header = |name: &'static str| there.contains(&name).then_some("value");
        SignedRequest::of(header, "GET", "/").map(|request| request.is_some())
    };
    assert_eq!(read(&[]), Ok(false));
    assert_eq!(read(&names), Ok(true));
    for missing in names {
        let there: Vec<&str> = names.into_iter().filter(|name| *name != missing).collect();
        let fault = read(&there).unwrap_err();
        assert_eq!(fault, RequestFault::Required { missing: Some(missing) });
        assert_eq!(fault.code(), "AUTH_REQUIRED");
    }
}

/// Spends a nonce that was signed at some second after [`now`], at another.
fn spend(nonces: &Nonces, key_id: &str, nonce: &str, signed_s: i64, at_s: i64) -> Result<(), RequestFault> {
    let (token, _) = made("router", standing(Role::Orchestrator), 1);
    let signed_at = now().plus_seconds(signed_s);
    let verified = Verified { caller: token.caller(), key_id, nonce, signed_at };
    nonces.spend(verified, now().plus_seconds(at_s)).map(|_| ())
}

#[test]
fn a_nonce_counts_once_per_key_for_as_long_as_its_request_could_be_sent_again() {
    let nonces = Nonces::since(now(), Taken::default());
    // Signed by a clock that runs ahead: it could be sent again for four minutes.
    assert_eq!(spend(&nonces, "k", "nonce-1", 120, 0), Ok(()));
    for at_s in [0, 1, 120, 240] {
        assert_eq!(spend(&nonces, "k", "nonce-1", 120, at_s), Err(RequestFault::NonceReused), "{at_s}");
        // With another timestamp too.
        assert_eq!(spend(&nonces, "k", "nonce-1", at_s, at_s), Err(RequestFault::NonceReused), "{at_s}");
    }
    assert_eq!(spend(&nonces, "other", "nonce-1", 240, 240), Ok(()));
    assert_eq!(nonces.remembered(), 2);
    // Forgotten, and its request with it, even if the clock is set back.
    assert_eq!(spend(&nonces, "k", "nonce-1", 120, 241), Err(RequestFault::TimestampForgotten));
    assert_eq!(nonces.remembered(), 1);
    assert_eq!(spend(&nonces, "k", "nonce-1", 120, 0), Err(RequestFault::TimestampForgotten));
    assert_eq!(spend(&nonces, "k", "nonce-1", 241, 241), Ok(()), "a new request may take the nonce again");
}

#[test]
fn what_was_signed_before_the_store_began_is_refused() {
    let nonces = Nonces::since(now(), Taken::default());
    assert_eq!(spend(&nonces, "k", "nonce-1", -1, 0), Err(RequestFault::TimestampForgotten));
    assert_eq!(spend(&nonces, "k", "nonce-1", 0, 0), Ok(()));
}

#[test]
fn what_an_earlier_process_may_have_taken_is_refused_for_that_key_alone() {
    let mut before = Taken::default();
    before.cover("ahead", now().plus_seconds(100));
    before.cover("ahead", now().plus_seconds(90));
    let before = Taken::parse(&before.to_file()).unwrap();
    let nonces = Nonces::since(now(), before);
    for (key_id, signed_s, expected) in [
        ("ahead", 99, Err(RequestFault::TimestampForgotten)),
        ("ahead", 100, Err(RequestFault::TimestampForgotten)),
        ("ahead", 101, Ok(())),
        ("other", 0, Ok(())),
        ("other", 100, Ok(())),
    ] {
        assert_eq!(
            spend(&nonces, key_id, &format!("nonce-{signed_s}"), signed_s, 0),
            expected,
            "{key_id} {signed_s}"
        );
    }
}

#[test]
fn what_is_folded_still_counts_for_a_clock_that_was_set_back() {
    let mut taken = Taken::default();
    taken.cover("old", now());
    taken.cover("new", now().plus_seconds(100));
    taken.fold(now().plus_seconds(limits::SKEW_S));
    let file = |taken: &Taken| String::from_utf8(taken.to_file()).unwrap();
    assert!(file(&taken).contains("old"), "the skew lets it pass still");
    taken.fold(now().plus_seconds(limits::SKEW_S + 1));
    assert!(!file(&taken).contains("old") && file(&taken).contains("new"));
    for (key_id, at_s, covered) in
        [("old", 0, true), ("old", 1, false), ("third", 0, true), ("new", 100, true), ("new", 101, false)]
    {
        assert_eq!(taken.covers(key_id, now().plus_seconds(at_s)), covered, "{key_id} {at_s}");
    }
    assert_eq!(Taken::parse(file(&taken).as_bytes()), Some(taken));
}

#[test]
fn where_nobody_knows_what_was_taken_whatever_could_have_been_is_refused() {
    for broken in
        ["", "{}", "[]", "{\"keys\": []}", "{\"keys\": {\"k\": 1}}", "{\"keys\": {}, \"all\": \"soon\"}"]
    {
        assert_eq!(Taken::parse(broken.as_bytes()), None, "{broken}");
    }
    let nonces = Nonces::since(now(), Taken::unknown(now()));
    assert_eq!(spend(&nonces, "k", "nonce-1", limits::SKEW_S, 0), Err(RequestFault::TimestampForgotten));
    let later = limits::SKEW_S + 1;
    assert_eq!(spend(&nonces, "k", "nonce-1", later, later), Ok(()));
}

/// Nothing is taken twice for that, and nobody would know why it takes hours.
#[test]
fn a_clock_that_was_far_ahead_is_told_of_while_callers_are_refused_for_it() {
    let hour = 3600;
    let ahead = now().plus_seconds(hour);
    let mut of_a_key = Taken::default();
    of_a_key.cover("k", ahead);
    for (since, before, until_s) in [
        (0, Taken::unknown(ahead), Some(hour + limits::SKEW_S)),
        (0, of_a_key, Some(hour)),
        (hour, Taken::default(), Some(hour)),
        (0, Taken::unknown(now()), None),
        (0, Taken::default(), None),
    ] {
        let nonces = Nonces::since(now().plus_seconds(since), before);
        let until = until_s.map(|seconds| now().plus_seconds(seconds));
        assert_eq!(nonces.shut_until(now()), until);
        assert!(until.is_none() || spend(&nonces, "k", "nonce-1", 0, 0).is_err(), "{until:?}");
        assert_eq!(nonces.shut_until(now().plus_seconds(2 * hour)), None);
    }
}

#[test]
fn a_full_store_refuses_and_forgets_nothing() {
    let nonces = Nonces::bounded(now(), Taken::default(), NonceBounds { all_max: 5, key_max: 3 });
    for n in 0..3 {
        assert_eq!(spend(&nonces, "busy", &format!("nonce-{n}"), 0, 0), Ok(()));
    }
    assert_eq!(spend(&nonces, "busy", "nonce-3", 0, 0), Err(RequestFault::TooManyNonces));
    assert_eq!(spend(&nonces, "calm", "nonce-0", 1, 1), Ok(()), "a busy key leaves room for others");
    assert_eq!(spend(&nonces, "calm", "nonce-1", 1, 1), Ok(()));
    assert_eq!(spend(&nonces, "third", "nonce-0", 1, 1), Err(RequestFault::TooManyNonces));
    for n in 0..3 {
        let again = spend(&nonces, "busy", &format!("nonce-{n}"), 0, 100);
        assert_eq!(again, Err(RequestFault::NonceReused), "{n}");
    }
    // Room comes back with time.
    assert_eq!(spend(&nonces, "busy", "nonce-3", 121, 121), Ok(()));
    assert_eq!(nonces.remembered(), 3);
}

#[test]
fn faults_have_stable_codes_and_say_what_to_do() {
    let table = [
        (RequestFault::Required { missing: None }, "AUTH_REQUIRED"),
        (RequestFault::TokenUnknown, "AUTH_TOKEN_UNKNOWN"),
        (RequestFault::Malformed { header: NONCE_HEADER }, "AUTH_SIGNATURE_INVALID"),
        (RequestFault::SignatureInvalid, "AUTH_SIGNATURE_INVALID"),
        (RequestFault::TimestampWindow, "AUTH_TIMESTAMP_WINDOW_EXCEEDED"),
        (RequestFault::TimestampForgotten, "AUTH_TIMESTAMP_WINDOW_EXCEEDED"),
        (RequestFault::NonceReused, "AUTH_NONCE_REUSED"),
        (RequestFault::TooManyNonces, "AUTH_NONCES_EXHAUSTED"),
    ];
    for (fault, code) in table {
        assert_eq!(fault.code(), code);
        assert!(!fault.hint().is_empty() && !fault.to_string().ends_with('.'));
    }
}
