//! The trace context of a request that goes out.

use crate::os::random;
use crate::proof::to_hex;

/// The same trace as in this `traceparent`, with a span of our own.
pub fn next_span(traceparent: &str) -> Option<String> {
    let (trace, flags) = (traceparent.get(3..35)?, traceparent.get(53..55)?);
    let span = random::secret_bytes::<8>().ok()?;
    Some(format!("00-{trace}-{}-{flags}", to_hex(span.as_slice())))
}
