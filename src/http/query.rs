//! The query, read strictly: what an endpoint does not know is an error, not a silence.

use std::collections::BTreeMap;
use std::time::Duration;

use super::endpoint::{Endpoint, Form, Parameter, Place};
use super::problem::{Kind, Problem};
use crate::contract::distance;
use crate::gates::Code;
use crate::json::printable;
use crate::limits;
use crate::timestamp::Timestamp;
use crate::views::Cursor;

/// Parameters by their name; each is known to the endpoint and of the right form.
#[derive(Debug, Default)]
pub(super) struct Query(BTreeMap<&'static str, String>);

impl Query {
    pub(super) fn read(text: &str, endpoint: &Endpoint, bytes_max: usize) -> Result<Self, Problem> {
        if text.len() > bytes_max {
            return Err(Problem::new(Kind::UriTooLong, format!("the query has more than {bytes_max} bytes")));
        }
        let mut query = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let bad = |why: &str| Problem::new(Kind::QueryInvalid, why).at(printable(name));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                return Err(bad("the query is not percent-encoded UTF-8"));
            };
            let Some(parameter) = endpoint.query().find(|parameter| parameter.name == name) else {
                let known: Vec<&str> = endpoint.query().map(|parameter| parameter.name).collect();
                let hint = match known.as_slice() {
                    [] => "this endpoint takes no parameters".to_owned(),
                    known => format!("this endpoint knows {}", known.join(", ")),
                };
                return Err(bad("there is no such parameter").hint(hint));
            };
            parameter.check(&value)?;
            if query.insert(parameter.name, value).is_some() {
                return Err(bad("the parameter is given twice"));
            }
        }
        Ok(Self(query))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn integer(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn time(&self, name: &str) -> Option<Timestamp> {
        Timestamp::parse(self.text(name)?)
    }

    /// How long the caller wants to wait for a person; not at all unless it says so.
    pub(super) fn wait(&self) -> Duration {
        self.text("wait").and_then(wait).unwrap_or_default()
    }

    pub(super) fn cursor(&self) -> Option<Cursor> {
        self.text("cursor")?.parse().ok()
    }
}

/// How long a request to this endpoint asks to be kept waiting. What is no wait is refused later, by its form.
pub(super) fn asked_to_wait(text: &str, endpoint: &Endpoint) -> Duration {
    if !endpoint.query().any(|parameter| matches!(parameter.form, Form::Wait)) {
        return Duration::ZERO;
    }
    let asked = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        (decode(name)? == "wait").then(|| wait(&decode(value)?)).flatten()
    };
    text.split('&').find_map(asked).unwrap_or_default()
}

/// Whole seconds, written in one way.
fn wait(text: &str) -> Option<Duration> {
    let digits = text.strip_suffix('s')?;
    let seconds = digits.parse::<u64>().ok().filter(|seconds| seconds.to_string() == digits)?;
    (seconds <= limits::WAIT_S_MAX).then(|| Duration::from_secs(seconds))
}

impl Parameter {
    /// A path that does not have the right form leads nowhere; a query that does not is a mistake.
    pub(super) fn check(&self, value: &str) -> Result<(), Problem> {
        let expected = match &self.form {
            Form::Text { max } if !value.is_empty() && value.chars().count() <= *max => return Ok(()),
            Form::Text { max } => format!("1 to {max} characters"),
            Form::Integer { min, max } => {
                // Digits only: no sign, no leading zero.
                let number = value.parse::<u64>().ok().filter(|number| number.to_string() == value);
                if number.is_some_and(|number| (*min..=*max).contains(&number)) {
                    return Ok(());
                }
                format!("a whole number from {min} to {max}")
            }
            Form::Time if Timestamp::parse(value).is_some() => return Ok(()),
            Form::Time => "an RFC 3339 date-time, such as 2026-02-18T19:38:00Z".to_owned(),
            Form::Wait if wait(value).is_some() => return Ok(()),
            Form::Wait => format!("whole seconds from 0s to {}s, such as 30s", limits::WAIT_S_MAX),
            Form::Cursor if value.parse::<Cursor>().is_ok() => return Ok(()),
            Form::Cursor => "what the page before this one gave as `next`".to_owned(),
            Form::OneOf(words) if words().contains(&value) => return Ok(()),
            Form::OneOf(words) => format!("one of {}", words().join(", ")),
            Form::Code if is_code(value) => return Ok(()),
            Form::Code => return Err(self.unnamed("code", &own_codes(), value)),
            Form::Named { names, .. } if names().contains(&value) => return Ok(()),
            Form::Named { what, names } => return Err(self.unnamed(what, &names(), value)),
        };
        Err(match self.place {
            Place::Query => Problem::new(Kind::QueryInvalid, format!("expected {expected}")).at(self.name),
            Place::Path => {
                Problem::new(Kind::NotFound, format!("`{}` is {expected}", self.name)).at(self.name)
            }
        })
    }
}

impl Parameter {
    /// There is no such name, and which may be meant.
    fn unnamed(&self, what: &str, names: &[&'static str], value: &str) -> Problem {
        let hint = match nearest(names, value).as_slice() {
            [] if matches!(self.form, Form::Code) => "docs/codes.md has the gateway's own".to_owned(),
            [] => "GET /openapi.json lists all there are".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        let message = format!("there is no {what} `{}`", printable(value));
        Problem::new(Kind::QueryInvalid, message).at(self.name).hint(hint)
    }
}

/// Is it spelled as a code? Which ones agents have for their failures is for them to say.
fn is_code(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (3..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(plain)
}

fn own_codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}

/// The names that somebody may have meant, the nearest first: a slip of the hand, or the beginning of one. A few are enough.
fn nearest(names: &[&'static str], value: &str) -> Vec<&'static str> {
    const FEW: usize = 3;
    let meant = value.to_ascii_lowercase();
    let apart = |name: &str| {
        let name = name.to_ascii_lowercase();
        let begins = meant.chars().count() > FEW && name.starts_with(&meant);
        if begins { 0 } else { distance(&name, &meant) }
    };
    let mut near: Vec<(usize, &'static str)> = names.iter().map(|name| (apart(name), *name)).collect();
    near.retain(|(apart, name)| *apart <= name.len() / 4);
    near.sort_unstable();
    near.into_iter().take(FEW).map(|(_, name)| name).collect()
}

/// Percent-decoding; a plus sign is a space, as forms have it.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::endpoints::ENDPOINTS;

    #[test]
    fn a_wait_is_whole_seconds_within_bounds() {
        for (text, seconds) in [("0s", Some(0)), ("30s", Some(30)), ("60s", Some(60)), ("61s", None)] {
            assert_eq!(wait(text), seconds.map(Duration::from_secs), "{text}");
        }
        for bad in ["", "s", "30", "030s", "+3s", "1m", "-1s", "1.5s", "99999999999999999999s"] {
            assert_eq!(wait(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_wait_is_the_same_however_it_is_written() {
        let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.id == "submitHandoff").unwrap();
        for text in ["wait=60s", "wait=%36%30s", "w%61it=60s", "wait=60%73", "&wait=60s&"] {
            assert_eq!(Query::read(text, endpoint, 100).unwrap().wait(), Duration::from_secs(60), "{text}");
            assert_eq!(asked_to_wait(text, endpoint), Duration::from_secs(60), "{text}");
        }
        for text in ["", "wait", "wait=60", "wait=%zz", "other=60s"] {
            assert_eq!(asked_to_wait(text, endpoint), Duration::ZERO, "{text}");
        }
    }

    #[test]
    fn a_code_may_be_one_that_an_agent_has() {
        assert!(own_codes().into_iter().all(is_code));
        assert!(["EXECUTION_TIMEOUT", "X1_", "A__"].into_iter().all(is_code));
        assert!(
            ["", "NO", "nope", "Nope", "1AB", "_AB", "A B", "A-B"].into_iter().all(|text| !is_code(text))
        );
        assert!(!is_code(&"A".repeat(65)) && is_code(&"A".repeat(64)));
    }

    #[test]
    fn a_name_that_is_none_gets_the_nearest_ones() {
        let check = |name: &str, value: &str, expected: &str| {
            let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.id == "listEntries").unwrap();
            let problem = Query::read(&format!("{name}={value}"), endpoint, 100).map(drop).unwrap_err();
            let hint = problem.to_json()["hint"].as_str().unwrap().to_owned();
            assert_eq!((problem.kind(), hint.as_str()), (Kind::QueryInvalid, expected), "{name}={value}");
        };
        check("code", "policy_selftest", "did you mean POLICY_SELF_TEST?");
        check("code", "policy_envelope_hash", "did you mean POLICY_ENVELOPE_HASH_MISMATCH?");
        check("code", "nope", "docs/codes.md has the gateway's own");
        check("type", "gate.decide", "did you mean gate.decided?");
        check("type", "route.", "did you mean route.declared or route.removed?");
        check("type", "nope", "GET /openapi.json lists all there are");
    }

    #[test]
    fn percent_encoding_is_taken_apart() {
        assert_eq!(decode("a%20b+c").as_deref(), Some("a b c"));
        assert_eq!(decode("2026-02-18T19%3A38%3A00Z").as_deref(), Some("2026-02-18T19:38:00Z"));
        for bad in ["%", "%4", "%zz", "%ff", "%+1"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
