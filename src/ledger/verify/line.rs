//! Event lines and commit lines, read with serde and then held to their one spelling.

use std::borrow::Cow;

use serde::Deserialize;

use super::finding::{FindingKind, LineKind};
use super::spelling::{Differs, Follower};

// Unknown members are refused so that `wire` is the last one in a line that begins as it should.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event<'t> {
    #[serde(borrow)]
    pub(super) hcs: Hcs<'t>,
    #[serde(borrow)]
    pub(super) wire: Cow<'t, str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Hcs<'t> {
    #[serde(borrow)]
    pub(super) topic_id: Cow<'t, str>,
    pub(super) sequence_number: u64,
    pub(super) consensus_timestamp: &'t str,
    pub(super) running_hash: &'t str,
}

#[derive(Debug, Deserialize)]
struct CommitLine<'t> {
    #[serde(borrow)]
    commit: Commit<'t>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Commit<'t> {
    pub(super) sequence: u64,
    pub(super) running_hash: &'t str,
}

/// Which line this wants to be. Since a line has one spelling, its first bytes tell.
pub(super) fn kind(text: &[u8]) -> Option<LineKind> {
    if text.starts_with(b"{\"hcs\":") {
        Some(LineKind::Event)
    } else if text.starts_with(b"{\"digest\":") {
        Some(LineKind::Body)
    } else if text.starts_with(b"{\"commit\":") {
        Some(LineKind::Commit)
    } else {
        None
    }
}

pub(super) fn event(text: &[u8]) -> Result<Event<'_>, FindingKind> {
    let event: Event<'_> = read(text, LineKind::Event)?;
    let mut follower = Follower::new(text);
    let Event { hcs, wire } = &event;
    let mut follow = || -> Result<(), Differs> {
        follower.literal(b"{\"hcs\":{\"topic_id\":")?;
        follower.string(&hcs.topic_id)?;
        follower.literal(b",\"sequence_number\":")?;
        follower.number(hcs.sequence_number)?;
        follower.literal(b",\"consensus_timestamp\":")?;
        follower.plain_string(hcs.consensus_timestamp)?;
        follower.literal(b",\"running_hash\":")?;
        follower.plain_string(hcs.running_hash)?;
        follower.literal(b"},\"wire\":")?;
        follower.last_string(wire, b"}")
    };
    match follow() {
        Ok(()) => Ok(event),
        Err(Differs) => Err(FindingKind::LineForm { line: LineKind::Event, column: follower.at() + 1 }),
    }
}

pub(super) fn commit(text: &[u8]) -> Result<Commit<'_>, FindingKind> {
    let CommitLine { commit } = read(text, LineKind::Commit)?;
    let mut follower = Follower::new(text);
    let mut follow = || -> Result<(), Differs> {
        follower.literal(b"{\"commit\":{\"sequence\":")?;
        follower.number(commit.sequence)?;
        follower.literal(b",\"running_hash\":")?;
        follower.plain_string(commit.running_hash)?;
        follower.literal(b"}}")?;
        follower.end()
    };
    match follow() {
        Ok(()) => Ok(commit),
        Err(Differs) => Err(FindingKind::LineForm { line: LineKind::Commit, column: follower.at() + 1 }),
    }
}

fn read<'t, T: Deserialize<'t>>(text: &'t [u8], line: LineKind) -> Result<T, FindingKind> {
    // Once for the whole line, instead of once for every string in it.
    let text = std::str::from_utf8(text)
        .map_err(|error| FindingKind::LineForm { line, column: error.valid_up_to() + 1 })?;
    serde_json::from_str(text).map_err(|error| FindingKind::LineForm { line, column: error.column().max(1) })
}
