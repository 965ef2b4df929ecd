//! W3C trace context: taken in, stored with the decision, and passed on.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};

use super::spans::Span;
use crate::web::next_span;

/// A trace that a request belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// The `traceparent` it came with, if that was one.
    pub(crate) incoming: Option<String>,
    /// What is passed on: the same trace, with a span of our own.
    pub(crate) outgoing: Option<HeaderValue>,
    /// Where a request that is traced leaves its marks.
    pub(super) span: Option<Arc<Span>>,
}

impl Trace {
    /// A request without a trace context gets none: a trace that nobody asked for helps nobody.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let incoming =
            headers.get("traceparent").and_then(|value| value.to_str().ok()).filter(|text| is_sound(text));
        let outgoing = incoming.and_then(|text| HeaderValue::from_str(&next_span(text)?).ok());
        Self { incoming: incoming.map(str::to_owned), outgoing, span: None }
    }
}

/// `00-<32 hex>-<16 hex>-<2 hex>`, lower case, neither id all zeros. A later version may have more behind it.
fn is_sound(text: &str) -> bool {
    let mut parts = text.splitn(4, '-');
    let hex = |part: Option<&str>, digits: usize| {
        part.is_some_and(|part| {
            part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    let [version, trace, span, rest] = [parts.next(), parts.next(), parts.next(), parts.next()];
    let zero = |part: Option<&str>| part.is_some_and(|part| part.bytes().all(|byte| byte == b'0'));
    let tail = match (version, rest) {
        (Some("00"), Some(flags)) => hex(Some(flags), 2),
        (Some("ff"), _) => false,
        (_, Some(rest)) => {
            hex(rest.get(..2), 2) && (rest.len() == 2 || rest.as_bytes().get(2) == Some(&b'-'))
        }
        _ => false,
    };
    hex(version, 2)
        && hex(trace, 32)
        && hex(span, 16)
        && !zero(trace)
        && !zero(span)
        && tail
        && text.len() <= 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sound_context_is_taken_in() {
        const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_sound(GOOD));
        assert!(is_sound(&format!("cc{}-what-comes-later", GOOD.strip_prefix("00").unwrap())));
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &format!("{GOOD}-more"),
            &GOOD.replacen("00-", "ff-", 1),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            &GOOD.replace("b7ad", "b7a"),
        ] {
            assert!(!is_sound(bad), "{bad}");
        }
    }

    #[test]
    fn the_trace_is_passed_on_with_a_span_of_our_own() {
        let mut headers = HeaderMap::new();
        assert!(Trace::of(&headers).outgoing.is_none());
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        headers.insert("traceparent", HeaderValue::from_static(text));
        let trace = Trace::of(&headers);
        assert_eq!(trace.incoming.as_deref(), Some(text));
        let outgoing = trace.outgoing.unwrap();
        let outgoing = outgoing.to_str().unwrap();
        assert!(is_sound(outgoing) && outgoing != text);
        assert!(outgoing.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && outgoing.ends_with("-01"));
    }
}
