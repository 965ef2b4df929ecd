//! What time it is.

use crate::timestamp::Timestamp;

#[expect(clippy::disallowed_methods, reason = "the one place that asks")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from_utc(time::OffsetDateTime::now_utc())
}
