//! Where an agent is asked, as its card says, and in which version.

use serde_json::Value as Json;

use super::super::version::Version;
use super::fault::ClientFault;
use crate::json::printable;

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) rpc: String,
    pub(super) version: Version,
    /// Where 0.3 is spoken, if it is: for a server that takes back what its card promised of 1.0.
    pub(super) older: Option<String>,
    /// Where the events of a task are had by their numbers, with `{id}` for the task. Only handoffd says so.
    pub(super) stream: Option<String>,
}

/// Where the card is, for the address of an agent or of the card itself.
pub(super) fn card_url(url: &str) -> String {
    let url = url.trim_end_matches('/');
    if url.ends_with(".json") { url.to_owned() } else { format!("{url}/.well-known/agent-card.json") }
}

impl Place {
    /// Reads a card that was found at `url`.
    ///
    /// What is sent along says who we are, and is for the origin that we were told to ask: a card that points elsewhere
    /// is not followed.
    pub(super) fn of(card: &Json, url: &str) -> Result<Self, ClientFault> {
        let text = |value: &Json, name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
        let interfaces = card.get("supportedInterfaces").and_then(Json::as_array);
        let spoken = |version: Version| {
            interfaces.into_iter().flatten().find_map(|interface| {
                let binding = text(interface, "protocolBinding")?;
                let said = Version::asked(text(interface, "protocolVersion").as_deref()).ok()?;
                (binding == "JSONRPC" && said == version).then(|| text(interface, "url"))?
            })
        };
        let top_level = || {
            let transport = text(card, "preferredTransport");
            let is_json_rpc = transport.is_none_or(|transport| transport == "JSONRPC");
            let said = text(card, "protocolVersion");
            let is_0_3 = Version::asked(said.as_deref()).is_ok_and(|version| version == Version::V0_3);
            (is_json_rpc && is_0_3).then(|| text(card, "url"))?
        };
        let older = spoken(Version::V0_3).or_else(top_level);
        let (rpc, version) = match (spoken(Version::V1_0), &older) {
            (Some(rpc), _) => (rpc, Version::V1_0),
            (None, Some(rpc)) => (rpc.clone(), Version::V0_3),
            (None, None) => {
                return Err(ClientFault::Strange(
                    "the card names no JSON-RPC interface of A2A 1.0 or 0.3".to_owned(),
                ));
            }
        };
        let ours = origin(url);
        if ours.is_none() || origin(&rpc) != ours {
            return Err(ClientFault::Elsewhere(printable(&rpc)));
        }
        let is_ours = |other: &String| origin(other) == ours;
        let stream = card.pointer("/endpoints/stream").and_then(Json::as_str).map(str::to_owned);
        Ok(Self {
            rpc,
            version,
            older: older.filter(is_ours),
            stream: stream.filter(is_ours).filter(|template| template.contains("{id}")),
        })
    }

    /// Where a task's events are had from a number on.
    pub(super) fn stream_from(&self, task_id: &str, from: u64) -> Option<String> {
        let template = self.stream.as_ref()?;
        let mut name = String::new();
        for byte in task_id.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    name.push(char::from(byte));
                }
                _ => name.push_str(&format!("%{byte:02X}")),
            }
        }
        Some(format!("{}?from={from}", template.replace("{id}", &name)))
    }
}

/// Scheme, host and port.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let port = match scheme.as_str() {
        "https" => "443",
        "http" => "80",
        _ => return None,
    };
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty() && !host.contains('@'))?;
    let host = host.to_ascii_lowercase();
    let has_port =
        host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    Some(if has_port { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const URL: &str = "https://gateway.example";

    fn check(card: Json, expected: &str) {
        let found = match Place::of(&card, URL) {
            Ok(place) => format!("{} {}", place.version.as_str(), place.rpc),
            Err(ClientFault::Elsewhere(url)) => format!("elsewhere {url}"),
            Err(_) => "none".to_owned(),
        };
        assert_eq!(found, expected, "{card}");
    }

    #[test]
    fn the_newest_version_that_the_card_names_is_spoken() {
        let at = |path: &str, version: &str, binding: &str| json!({"url": format!("{URL}{path}"), "protocolVersion": version, "protocolBinding": binding});
        let both = [at("/old", "0.3", "JSONRPC"), at("/new", "1.0", "JSONRPC")];
        check(json!({"supportedInterfaces": both}), "1.0 https://gateway.example/new");
        check(
            json!({"supportedInterfaces": [at("/old", "0.3.0", "JSONRPC")]}),
            "0.3 https://gateway.example/old",
        );
        check(json!({"supportedInterfaces": [at("/new", "1.0", "GRPC")]}), "none");
        check(json!({"supportedInterfaces": [at("/new", "2.0", "JSONRPC")]}), "none");
        let old = json!({"url": "https://gateway.example/rpc", "protocolVersion": "0.3.0"});
        check(old.clone(), "0.3 https://gateway.example/rpc");
        let mut grpc = old;
        grpc["preferredTransport"] = json!("GRPC");
        check(grpc, "none");
        check(json!({"name": "nobody"}), "none");
    }

    #[test]
    fn a_card_that_points_elsewhere_is_not_followed() {
        let card = |url: &str| json!({"url": url, "protocolVersion": "0.3.0"});
        check(card("https://gateway.example:443/rpc"), "0.3 https://gateway.example:443/rpc");
        check(card("https://GATEWAY.example/rpc"), "0.3 https://GATEWAY.example/rpc");
        for url in [
            "http://gateway.example/rpc",
            "https://gateway.example:444/rpc",
            "https://gateway.example.org/rpc",
            "https://gateway.example@evil.example/rpc",
            "https://evil.example/?https://gateway.example/rpc",
            "gateway.example/rpc",
        ] {
            check(card(url), &format!("elsewhere {url}"));
        }
    }

    #[test]
    fn a_stream_is_asked_for_only_where_the_card_is() {
        let place = |stream: &str| {
            let card = json!({"url": format!("{URL}/rpc"), "protocolVersion": "0.3", "endpoints": {"stream": stream}});
            Place::of(&card, URL).unwrap().stream_from("hs_1:a/b", 7)
        };
        assert_eq!(
            place("https://gateway.example/stream/{id}").as_deref(),
            Some("https://gateway.example/stream/hs_1%3Aa%2Fb?from=7")
        );
        assert_eq!(place("https://evil.example/stream/{id}"), None);
        assert_eq!(place("https://gateway.example/stream"), None);
    }

    #[test]
    fn the_card_is_where_it_is_said_to_be_or_at_the_well_known_place() {
        assert_eq!(card_url("https://a.example/"), "https://a.example/.well-known/agent-card.json");
        assert_eq!(card_url("https://a.example/b"), "https://a.example/b/.well-known/agent-card.json");
        assert_eq!(card_url("https://a.example/b/card.json"), "https://a.example/b/card.json");
    }
}
