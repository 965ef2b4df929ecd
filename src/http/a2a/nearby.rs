//! Whether a request comes from this machine, and was meant for it.
//!
//! A loopback address alone says little: a proxy on this machine speaks for whoever reached it, and a page that a browser
//! here has open may send what it likes to this address under a name of its own (DNS rebinding). So a request without a
//! token has to come from here, name this machine, come from no other site, and have been passed on by nobody.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};

use crate::http::peer::Peer;

/// Was it sent here by somebody on this machine? `public_url` is where clients reach the gateway, if that is said.
pub(super) fn is_from_nearby(parts: &Parts, public_url: Option<&str>) -> bool {
    let peer = parts.extensions.get::<Peer>();
    peer.is_some_and(|Peer(peer)| peer.to_canonical().is_loopback())
        && names_us(parts, public_url)
        && !was_passed_on(&parts.headers)
        && is_from_no_other_site(&parts.headers)
}

/// Whom the request is for, wherever it says that: each is a name of ours, and there is one.
fn names_us(parts: &Parts, public_url: Option<&str>) -> bool {
    let public = public_url.and_then(|url| Some(url.parse::<Uri>().ok()?.host()?.to_owned()));
    let is_ours = |authority: &str| {
        host_of(authority).is_some_and(|host| {
            is_this_machine(&host) || public.as_ref().is_some_and(|public| public.eq_ignore_ascii_case(&host))
        })
    };
    let hosts = parts.headers.get_all(header::HOST).iter().map(|value| value.to_str().unwrap_or_default());
    let mut named = hosts.chain(parts.uri.authority().map(Authority::as_str)).peekable();
    named.peek().is_some() && named.all(is_ours)
}

fn host_of(authority: &str) -> Option<String> {
    let authority =
        authority.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))?;
    Some(authority.host().to_owned())
}

fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Proxies say for whom they ask.
fn was_passed_on(headers: &HeaderMap) -> bool {
    headers.contains_key(header::FORWARDED)
        || headers.keys().any(|name| name.as_str().starts_with("x-forwarded-"))
}

/// Browsers say which site a page is of; a page of another port is of another site, too.
fn is_from_no_other_site(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let from = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://")));
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    from.is_some() && from == host
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn check(peer: Option<&str>, uri: &str, headers: &[(&str, &str)], expected: bool) {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        if let Some(peer) = peer {
            parts.extensions.insert(Peer(peer.parse().unwrap()));
        }
        let found = is_from_nearby(&parts, Some("https://gate.example/h"));
        assert_eq!(found, expected, "{peer:?} {uri} {headers:?}");
    }

    #[test]
    fn only_who_is_here_and_means_us_is_nearby() {
        const HOME: Option<&str> = Some("127.0.0.1");
        for host in
            ["127.0.0.1:7420", "127.8.0.1", "localhost:7420", "LocalHost", "[::1]:7420", "gate.example:443"]
        {
            check(HOME, "/rpc", &[("host", host)], true);
            check(HOME, "/rpc", &[("host", host), ("origin", &format!("http://{host}"))], true);
        }
        // As HTTP/2 names it.
        check(HOME, "http://localhost:7420/rpc", &[], true);
        check(HOME, "http://evil.example/rpc", &[], false);
        check(HOME, "http://localhost/rpc", &[("host", "evil.example")], false);
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost@evil",
            "",
        ] {
            check(HOME, "/rpc", &[("host", host)], false);
        }
        check(HOME, "/rpc", &[], false);
        check(HOME, "/rpc", &[("host", "localhost"), ("host", "evil.example")], false);
        // From elsewhere, whatever it says.
        for peer in [Some("192.0.2.7"), Some("::ffff:192.0.2.7"), None] {
            check(peer, "/rpc", &[("host", "localhost")], false);
        }
        check(Some("::1"), "/rpc", &[("host", "localhost")], true);
        check(Some("::ffff:127.0.0.1"), "/rpc", &[("host", "localhost")], true);
        for foreign in ["http://evil.example", "http://localhost:3000", "null", "localhost"] {
            check(HOME, "/rpc", &[("host", "localhost"), ("origin", foreign)], false);
        }
        for (name, value) in
            [("forwarded", "for=192.0.2.7"), ("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")]
        {
            check(HOME, "/rpc", &[("host", "localhost"), (name, value)], false);
        }
    }
}
