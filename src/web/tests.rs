//! Addresses: read in one way or not at all, and joined.

use super::*;

#[test]
fn an_address_is_read_in_one_way_or_not_at_all() {
    let check = |text: &str, expected: &str| {
        let found = match WebAddress::parse(text) {
            Ok(address) => format!("{} {} {}", address.is_tls(), address.host(), address.port()),
            Err(fault) => format!("{fault:?}"),
        };
        assert_eq!(found, expected, "{text}");
    };
    check("https://hook.example/a?b=c", "true hook.example 443");
    check("http://hook.example:8080", "false hook.example 8080");
    check("HTTPS://hook.example", "true hook.example 443");
    check("https://[2606:4700::1111]:8443/x", "true 2606:4700::1111 8443");
    // What the look-up makes of these is looked at then.
    check("https://2130706433/", "true 2130706433 443");
    check("https://0x7f.1/", "true 0x7f.1 443");
    for (text, expected) in [
        ("ftp://hook.example", "NotWeb"),
        ("file:///etc/passwd", "NotWeb"),
        ("gopher://hook.example/_x", "NotWeb"),
        ("hook.example/path", "NotWeb"),
        ("//hook.example", "NotWeb"),
        ("/path", "NotWeb"),
        ("https://hook.example\\@inside", "NotWeb"),
        ("https://hook.example/ x", "NotWeb"),
        ("https://hök.example", "NotWeb"),
        ("https://user@hook.example", "Credentials"),
        ("https://user:secret@hook.example", "Credentials"),
        ("https://hook.example@inside", "Credentials"),
        ("https://hook.example/#@inside", "Fragment"),
    ] {
        check(text, expected);
    }
    for text in [
        "https://%6cocalhost/",
        "https://[fe80::1%25eth0]/",
        "https://[127.0.0.1]/",
        "https://[::1",
        "https://[::1]x/",
        "https:///path",
        "https://:443/",
        "https://hook.example:0/",
        "https://hook.example:65536/",
        "https://hook.example:+443/",
        "https://hook.example:44 3/",
        "https://hook.example:443:443/",
    ] {
        assert!(WebAddress::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_below_an_address_is_joined_with_one_slash() {
    for base in ["http://models.example:1/v2", "http://models.example:1/v2/"] {
        let joined = WebAddress::parse(base).unwrap().join("/v1/embeddings").unwrap();
        assert_eq!(joined.target(), "/v2/v1/embeddings");
        assert_eq!(joined.authority(), "models.example:1");
    }
    let joined = WebAddress::parse("http://models.example").unwrap().join("/v1/chat/completions").unwrap();
    assert_eq!(joined.target(), "/v1/chat/completions");
}
