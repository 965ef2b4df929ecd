//! Why a packet was not converted.
//!
//! Owns the kinds and their words, which consumers compare literally. Deliberately absent: HTTP status and
//! exit codes, which belong to the doors.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// A packet that emits nothing, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceError {
    /// The class of the problem; wire contract, never renamed.
    pub kind: ErrorKind,
    /// The problem in words; wire contract too.
    pub message: Cow<'static, str>,
}

/// The classes of problem that the reference adapter distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The packet cannot be measured: not JSON, past a limit, or without something it must have.
    Measurement,
    /// The packet names a version of the protocol that the adapter does not read.
    UnsupportedProtocolVersion,
    /// Converting the packet would lose its event type, which strict mode does not do.
    StrictLossinessViolation,
}

impl ErrorKind {
    /// The kind as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measurement => "measurement",
            Self::UnsupportedProtocolVersion => "unsupported_protocol_version",
            Self::StrictLossinessViolation => "strict_lossiness_violation",
        }
    }
}

impl EvidenceError {
    pub(super) fn measurement(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ErrorKind::Measurement, message: message.into() }
    }

    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        Self::measurement(format!("invalid A2A payload JSON: {error}"))
    }

    pub(super) fn missing(field: &str) -> Self {
        Self::measurement(format!("missing required field: {field}"))
    }

    pub(super) fn unsupported_version(raw: &str) -> Self {
        Self {
            kind: ErrorKind::UnsupportedProtocolVersion,
            message: format!("unsupported A2A version: {raw}").into(),
        }
    }

    pub(super) fn unsupported_event_type() -> Self {
        Self {
            kind: ErrorKind::StrictLossinessViolation,
            message: Cow::Borrowed("unsupported event_type in strict mode"),
        }
    }
}

impl fmt::Display for EvidenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvidenceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_written_as_its_kind_and_message() {
        for error in [
            EvidenceError::missing("task.id"),
            EvidenceError::unsupported_version("9"),
            EvidenceError::unsupported_event_type(),
        ] {
            let written = serde_json::to_value(&error).unwrap();
            assert_eq!(
                written,
                serde_json::json!({"kind": error.kind.as_str(), "message": error.to_string()})
            );
        }
    }
}
