//! An address that can be dialled, taken apart by the reader that also writes the request.

use std::fmt;

use hyper::Uri;

/// An http or https address without credentials in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    uri: Uri,
    is_tls: bool,
    host: String,
    port: u16,
}

/// Why a text is no address that is dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFault {
    /// Neither http nor https, or no URL at all.
    NotWeb,
    /// A user name or a password.
    Credentials,
    /// No host, or one with characters that no host has.
    Host,
    Port,
    /// A part after `#`, which is never sent.
    Fragment,
}

impl fmt::Display for AddressFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWeb => "is not an http or https URL",
            Self::Credentials => "has a user name or password in it",
            Self::Host => "names no host that can be looked up",
            Self::Port => "names a port that is none",
            Self::Fragment => "has a part after `#`",
        })
    }
}

impl std::error::Error for AddressFault {}

impl WebAddress {
    pub fn parse(text: &str) -> Result<Self, AddressFault> {
        // What other readers take for a slash, or drop without a word, is where two readers come to differ.
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(AddressFault::NotWeb);
        }
        if text.contains('#') {
            return Err(AddressFault::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| AddressFault::NotWeb)?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(AddressFault::NotWeb),
        };
        let authority = uri.authority().ok_or(AddressFault::Host)?.as_str();
        if authority.contains('@') {
            return Err(AddressFault::Credentials);
        }
        let (host, behind) = split(authority).ok_or(AddressFault::Host)?;
        let port = match behind.strip_prefix(':') {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port > 0).ok_or(AddressFault::Port)?
            }
            None if behind.is_empty() => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            _ => return Err(AddressFault::Port),
        };
        Ok(Self { is_tls, host: host.to_owned(), port, uri })
    }

    /// The address of something below this one.
    pub fn join(&self, path: &str) -> Option<Self> {
        let base = self.uri.to_string();
        Self::parse(&format!("{}{path}", base.trim_end_matches('/'))).ok()
    }

    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The name or address to look up, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the `Host` header says.
    pub(super) fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// What the request line says.
    pub(super) fn target(&self) -> &str {
        self.uri.path_and_query().map_or("/", |target| target.as_str())
    }
}

/// The host, and what stands behind it. Numbers in any spelling pass as names: what they are is for the look-up to say.
fn split(authority: &str) -> Option<(&str, &str)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, behind) = rest.split_once(']')?;
        let is_v6 = host.parse::<core::net::Ipv6Addr>().is_ok();
        return is_v6.then_some((host, behind));
    }
    let at = authority.find(':').unwrap_or(authority.len());
    let (host, behind) = authority.split_at_checked(at)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (!host.is_empty() && host.bytes().all(plain)).then_some((host, behind))
}
