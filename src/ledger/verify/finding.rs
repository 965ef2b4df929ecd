//! The first difference between a ledger and what it should be.

use std::{fmt, io};

/// Where the first difference is, and what was expected there. Content is never repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file name; absent for an export and for a checkpoint by itself.
    pub segment: Option<String>,
    /// From 1, in the segment or in the export.
    pub line: Option<u64>,
    /// The entry it is about. A line that is no event counts to the entry that comes next, a commit line
    /// to the last one.
    pub sequence: Option<u64>,
    pub kind: FindingKind,
}

/// The three kinds of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Event,
    Body,
    Commit,
}

/// What is different. Columns and bytes count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    Unreadable { reason: String },
    SegmentName,
    SegmentStart { expected: u64, found: u64 },
    SegmentUncommitted { committed: u64 },
    LineUnended,
    LineTooLong { bytes_max: usize },
    LineUnknown,
    LineForm { line: LineKind, column: usize },
    Topic,
    Sequence { expected: u64, found: u64 },
    TimestampForm,
    TimestampOrder,
    RunningHash { expected: String },
    WireTooLong { bytes: usize, bytes_max: usize },
    WireForm { byte: usize },
    WireEnvelope { member: &'static str },
    WireVersion,
    WireId,
    WireIdRepeated,
    StreamSeq { expected: u64, found: u64 },
    BodyDigest,
    CommitEmpty,
    CommitSequence { expected: u64, found: u64 },
    CommitHash { expected: String },
    CheckpointForm,
    CheckpointKey,
    CheckpointSignature,
    CheckpointTopic { sequence: u64 },
    CheckpointHash { expected: String },
    Truncated { entries: u64, sequence: u64 },
}

impl FindingKind {
    /// A name that stays the same; `scripts/verify-ledger.py` prints the same ones.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::SegmentName => "segment_name",
            Self::SegmentStart { .. } => "segment_start",
            Self::SegmentUncommitted { .. } => "segment_uncommitted",
            Self::LineUnended => "line_unended",
            Self::LineTooLong { .. } => "line_too_long",
            Self::LineUnknown => "line_unknown",
            Self::LineForm { .. } => "line_form",
            Self::Topic => "topic",
            Self::Sequence { .. } => "sequence",
            Self::TimestampForm => "timestamp_form",
            Self::TimestampOrder => "timestamp_order",
            Self::RunningHash { .. } => "running_hash",
            Self::WireTooLong { .. } => "wire_too_long",
            Self::WireForm { .. } => "wire_form",
            Self::WireEnvelope { .. } => "wire_envelope",
            Self::WireVersion => "wire_version",
            Self::WireId => "wire_id",
            Self::WireIdRepeated => "wire_id_repeated",
            Self::StreamSeq { .. } => "stream_seq",
            Self::BodyDigest => "body_digest",
            Self::CommitEmpty => "commit_empty",
            Self::CommitSequence { .. } => "commit_sequence",
            Self::CommitHash { .. } => "commit_hash",
            Self::CheckpointForm => "checkpoint_form",
            Self::CheckpointKey => "checkpoint_key",
            Self::CheckpointSignature => "checkpoint_signature",
            Self::CheckpointTopic { .. } => "checkpoint_topic",
            Self::CheckpointHash { .. } => "checkpoint_hash",
            Self::Truncated { .. } => "truncated",
        }
    }
}

impl From<io::Error> for FindingKind {
    fn from(error: io::Error) -> Self {
        Self::Unreadable { reason: error.to_string() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(segment) = &self.segment {
            write!(f, "segment {segment}")?;
            separator = ", ";
        }
        if let Some(line) = self.line {
            write!(f, "{separator}line {line}")?;
            separator = ", ";
        }
        if let Some(sequence) = self.sequence {
            write!(f, "{separator}entry {sequence}")?;
            separator = ", ";
        }
        if !separator.is_empty() {
            f.write_str(": ")?;
        }
        fmt::Display::fmt(&self.kind, f)
    }
}

impl std::error::Error for Finding {}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
            Self::SegmentName => {
                f.write_str("the file name is not the sequence number of its first entry in 20 digits")
            }
            Self::SegmentStart { expected, found } => {
                write!(f, "the segment begins at entry {found}, expected one that begins at {expected}")
            }
            Self::SegmentUncommitted { committed } => {
                write!(
                    f,
                    "no commit line follows what stands after entry {committed}, expected one in this segment"
                )
            }
            Self::LineUnended => f.write_str("the line is cut off, expected a line feed at its end"),
            Self::LineTooLong { bytes_max } => {
                write!(f, "the line is longer than {bytes_max} bytes, which no event or commit line can be")
            }
            Self::LineUnknown => f.write_str("the line is neither an event, a body nor a commit line"),
            Self::LineForm { line, column } => {
                let expected = match line {
                    LineKind::Event => "an event line",
                    LineKind::Body => "a body line",
                    LineKind::Commit => "a commit line",
                };
                write!(f, "the line is not {expected} in its one spelling, from column {column} on")
            }
            Self::Topic => f.write_str("topic_id is another one than in entry 1"),
            Self::Sequence { expected, found } => {
                write!(f, "sequence_number is {found}, expected {expected}")
            }
            Self::TimestampForm => {
                f.write_str("consensus_timestamp is not a time of the form YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ")
            }
            Self::TimestampOrder => {
                f.write_str("consensus_timestamp is not later than that of the entry before")
            }
            Self::RunningHash { expected } => write!(f, "running_hash differs, expected {expected}"),
            Self::WireTooLong { bytes, bytes_max } => {
                write!(f, "the wire text has {bytes} bytes, expected at most {bytes_max}")
            }
            Self::WireForm { byte } => write!(
                f,
                "the wire text is not canonical JSON with whole numbers only (RFC 8785), from byte {byte} on"
            ),
            Self::WireEnvelope { member: "" } => f.write_str(
                "the wire text is no object, or has a member that the Agent Wire v1.1 envelope has not",
            ),
            Self::WireEnvelope { member } => {
                write!(f, "the wire text's `{member}` is missing or of the wrong type")
            }
            Self::WireVersion => f.write_str("the wire text is of another version, expected 1.1"),
            Self::WireId => f.write_str("wire_id is not `wire_` and 8 to 64 letters or digits"),
            Self::WireIdRepeated => {
                f.write_str("wire_id belongs to an earlier entry of its stream, expected one of its own")
            }
            Self::StreamSeq { expected, found } => {
                write!(f, "stream_seq is {found}, expected {expected} in its stream")
            }
            Self::BodyDigest => f.write_str("the body is not the one whose digest stands before it"),
            Self::CommitEmpty => {
                f.write_str("the commit line follows no event, expected one since the commit line before")
            }
            Self::CommitSequence { expected, found } => {
                write!(f, "the commit line names entry {found}, expected {expected}")
            }
            Self::CommitHash { expected } => {
                write!(f, "the commit line's running_hash differs, expected {expected}")
            }
            Self::CheckpointForm => f.write_str("the checkpoint does not have the form of one"),
            Self::CheckpointKey => f.write_str("the checkpoint names a key that was not given"),
            Self::CheckpointSignature => {
                f.write_str("the checkpoint's signature is not that of the key it names")
            }
            Self::CheckpointTopic { sequence } => {
                write!(f, "topic_id is another one than in the checkpoint for entry {sequence}")
            }
            Self::CheckpointHash { expected } => {
                write!(f, "running_hash is not the one in the checkpoint, expected {expected}")
            }
            Self::Truncated { entries, sequence } => write!(
                f,
                "the ledger ends after {entries} entries, expected {sequence}: a checkpoint was signed for that many"
            ),
        }
    }
}
