//! The three kinds of line in a segment, written and read.

use std::borrow::Cow;

use serde::Deserialize;

use super::chain::{Head, RunningHash};
use crate::proof::{Digest, write_display, write_text};

pub(super) fn write_event(
    out: &mut String,
    topic_id: &str,
    sequence: u64,
    consensus_timestamp: &str,
    running_hash: RunningHash,
    wire: &str,
) {
    out.push_str("{\"hcs\":{\"topic_id\":");
    write_text(out, topic_id);
    write_display(out, format_args!(",\"sequence_number\":{sequence},\"consensus_timestamp\":\""));
    out.push_str(consensus_timestamp);
    write_display(out, format_args!("\",\"running_hash\":\"{running_hash}\"}},\"wire\":"));
    write_text(out, wire);
    out.push_str("}\n");
}

pub(super) fn write_body(out: &mut String, digest: Digest, body: &str) {
    write_display(out, format_args!("{{\"digest\":\"{digest}\",\"body\":"));
    write_text(out, body);
    out.push_str("}\n");
}

pub(super) fn write_commit(out: &mut String, head: Head) {
    let Head { sequence, running_hash } = head;
    write_display(
        out,
        format_args!("{{\"commit\":{{\"sequence\":{sequence},\"running_hash\":\"{running_hash}\"}}}}\n"),
    );
}

/// A line as it was read.
#[derive(Debug)]
pub(super) enum Line<'l> {
    Event(EventLine<'l>),
    Body(BodyLine<'l>),
    Commit { sequence: u64, running_hash: Cow<'l, str> },
}

#[derive(Debug)]
pub(super) struct EventLine<'l> {
    pub(super) topic_id: Cow<'l, str>,
    pub(super) sequence: u64,
    pub(super) consensus_timestamp: Cow<'l, str>,
    pub(super) running_hash: Cow<'l, str>,
    pub(super) wire: Cow<'l, str>,
}

#[derive(Debug)]
pub(super) struct BodyLine<'l> {
    digest: Cow<'l, str>,
    body: Cow<'l, str>,
}

impl<'l> BodyLine<'l> {
    /// The body, if it has the digest that it says it has.
    pub(super) fn sound(self) -> Option<(Digest, Cow<'l, str>)> {
        let digest = Digest::of(self.body.as_bytes());
        digest.is_written(&self.digest).then_some((digest, self.body))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw<'l> {
    #[serde(borrow)]
    hcs: Option<RawHcs<'l>>,
    #[serde(borrow)]
    wire: Option<Text<'l>>,
    #[serde(borrow)]
    digest: Option<Text<'l>>,
    #[serde(borrow)]
    body: Option<Text<'l>>,
    #[serde(borrow)]
    commit: Option<RawCommit<'l>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHcs<'l> {
    #[serde(borrow)]
    topic_id: Text<'l>,
    sequence_number: u64,
    #[serde(borrow)]
    consensus_timestamp: Text<'l>,
    #[serde(borrow)]
    running_hash: Text<'l>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommit<'l> {
    sequence: u64,
    #[serde(borrow)]
    running_hash: Text<'l>,
}

/// A string that borrows where it has no escapes (`Cow` alone never does, inside an `Option`).
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'l>(#[serde(borrow)] Cow<'l, str>);

/// Reads a line without its newline; nothing if it is none of ours.
pub(super) fn read(line: &[u8]) -> Option<Line<'_>> {
    match serde_json::from_slice(line).ok()? {
        Raw { hcs: Some(hcs), wire: Some(wire), digest: None, body: None, commit: None } => {
            Some(Line::Event(EventLine {
                topic_id: hcs.topic_id.0,
                sequence: hcs.sequence_number,
                consensus_timestamp: hcs.consensus_timestamp.0,
                running_hash: hcs.running_hash.0,
                wire: wire.0,
            }))
        }
        Raw { hcs: None, wire: None, digest: Some(digest), body: Some(body), commit: None } => {
            Some(Line::Body(BodyLine { digest: digest.0, body: body.0 }))
        }
        Raw { hcs: None, wire: None, digest: None, body: None, commit: Some(commit) } => {
            Some(Line::Commit { sequence: commit.sequence, running_hash: commit.running_hash.0 })
        }
        _ => None,
    }
}
