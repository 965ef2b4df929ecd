//! Where a gateway is: what `--url` says, or the address that a workspace's own listens on.

use std::net::{IpAddr, SocketAddr};

use crate::http::Certificate;

/// A URL in two: scheme, host and port, and the path below.
pub(super) fn below(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    let path = url.get(host..).and_then(|rest| rest.find('/')).map_or(url.len(), |path| host + path);
    url.split_at_checked(path).unwrap_or((url, ""))
}

/// Scheme, host and port of a gateway.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Base {
    pub(in crate::cli) text: String,
    pub(super) is_https: bool,
    pub(super) is_here: bool,
}

impl Base {
    /// A certificate that can be read says by which name.
    pub(in crate::cli) fn of(address: SocketAddr, is_https: bool, certificate: Option<&Certificate>) -> Self {
        let ip = match address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        let scheme = if is_https { "https" } else { "http" };
        let text = match certificate {
            Some(certificate) => format!("{scheme}://{}:{}", certificate.host(ip), address.port()),
            None => format!("{scheme}://{}", SocketAddr::new(ip, address.port())),
        };
        Self { text, is_https, is_here: true }
    }

    /// Reads `--url`. What is wrong with it is said without showing it: there may be a password in it.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        const SHAPE: &str = "such as https://gateway.example:7420";
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| format!("--url must begin with https:// or http://, {SHAPE}"))?;
        let is_https = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(format!("--url must begin with https:// or http://, {SHAPE}")),
        };
        let host = rest.strip_suffix('/').unwrap_or(rest);
        if host.contains('@') {
            return Err("--url has a user or a password in it; give a token with HANDOFFD_TOKEN".to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(format!("--url takes a scheme, a host and a port, {SHAPE}"));
        }
        let name = host.rsplit_once(':').map_or(host, |(name, port)| {
            if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
        });
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_here = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        Ok(Self { text: format!("{scheme}://{host}"), is_https, is_here })
    }

    pub(super) fn is_in_clear(&self) -> bool {
        !self.is_https && !self.is_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_scheme_a_host_and_a_port() {
        let check = |url: &str, expected: &str| {
            let found = match Base::parse(url) {
                Ok(base) => format!("{} {} {}", base.text, base.is_https, base.is_here),
                Err(why) => why.split_whitespace().take(4).collect::<Vec<_>>().join(" "),
            };
            assert_eq!(found, expected, "{url}");
        };
        check("https://gateway.example:7420", "https://gateway.example:7420 true false");
        check("http://127.0.0.1:7420/", "http://127.0.0.1:7420 false true");
        check("http://[::1]:7420", "http://[::1]:7420 false true");
        check("http://localhost", "http://localhost false true");
        check("http://localhost.example", "http://localhost.example false false");
        check("gateway.example", "--url must begin with");
        check("ftp://gateway.example", "--url must begin with");
        check("https://rita:secret@gateway.example", "--url has a user");
        check("https://gateway.example/v1", "--url takes a scheme,");
        check("https://", "--url takes a scheme,");
        check("https://a b", "--url takes a scheme,");
    }

    #[test]
    fn only_a_plain_url_to_elsewhere_is_in_the_clear() {
        for (url, expected) in [
            ("http://gateway.example", true),
            ("https://gateway.example", false),
            ("http://127.0.0.1:1", false),
        ] {
            assert_eq!(Base::parse(url).unwrap().is_in_clear(), expected, "{url}");
        }
    }

    #[test]
    fn an_agent_may_stand_below_a_path() {
        assert_eq!(below("https://a.example"), ("https://a.example", ""));
        assert_eq!(below("https://a.example/b/c.json"), ("https://a.example", "/b/c.json"));
        assert_eq!(below("a.example/b"), ("a.example", "/b"));
    }

    #[test]
    fn a_gateway_that_listens_everywhere_is_asked_here() {
        let base = |text: &str| Base::of(text.parse().unwrap(), false, None).text;
        assert_eq!(base("0.0.0.0:7420"), "http://127.0.0.1:7420");
        assert_eq!(base("[::]:7420"), "http://[::1]:7420");
        assert_eq!(base("192.0.2.1:7420"), "http://192.0.2.1:7420");
    }
}
