//! The reducer's state at an entry, signed and kept, so that a start need not reduce the whole ledger.
//!
//! Two lines: a statement signed with the gateway's key, and the state whose digest it names. The statement also
//! names the ledger, the entry with its running hash, and the reducer by the digest of its own text: another
//! reducer would give another state, so it begins with the first entry. Whoever starts from one compares entry and
//! running hash with the ledger. What is missing, damaged, unsigned or of something else is not used: the ledger gives the
//! state again. But what it was signed for was there: a ledger that lacks that entry has lost it.
//!
//! Who could forge one has the gateway's private key, and could sign checkpoints and receipts as well.

use serde::{Deserialize, Serialize};

use super::view::StateView;
use crate::ledger::{Head, gateway_key_id};
use crate::limits;
use crate::proof::{Digest, Key, Purpose, Seed, object};

/// All that says what entries are reduced to.
const REDUCER: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    include_str!("view.rs"),
    include_str!("event.rs"),
    include_str!("fragments.rs"),
    include_str!("../promotion/record.rs"),
    include_str!("../promotion/reduce.rs"),
    include_str!("../promotion/definition.rs"),
    include_str!("../promotion/stage.rs"),
);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    head: Head,
    /// Earlier versions did not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
    reducer: String,
    signature: String,
    state: String,
    topic_id: String,
}

impl Statement {
    /// What is signed: the canonical object without `signature`.
    fn signed_text(&self) -> String {
        object(512, |members| {
            members.object("head", |members| {
                members.hex("running_hash", self.head.running_hash.as_bytes());
                members.count("sequence", self.head.sequence);
            });
            if let Some(key_id) = &self.key_id {
                members.text("key_id", key_id);
            }
            members.text("reducer", &self.reducer);
            members.text("state", &self.state);
            members.text("topic_id", &self.topic_id);
        })
    }
}

/// The text of a snapshot; nothing if it would be too large.
pub fn seal_snapshot(view: &StateView, topic_id: &str, seed: &Seed) -> Option<String> {
    if view.bytes() > limits::SNAPSHOT_BYTES_MAX / 2 {
        return None;
    }
    let state = serde_json::to_string(view).ok()?;
    let mut statement = Statement {
        head: view.head(),
        key_id: Some(gateway_key_id(&seed.public_hex())),
        reducer: Digest::of(REDUCER.as_bytes()).to_string(),
        signature: String::new(),
        state: Digest::of(state.as_bytes()).to_string(),
        topic_id: topic_id.to_owned(),
    };
    statement.signature = seed.sign(statement.signed_text().as_bytes());
    let mut text = serde_json::to_string(&statement).ok()?;
    text.push('\n');
    text.push_str(&state);
    text.push('\n');
    Some(text)
}

/// What a snapshot says, and the state behind that.
fn stated(text: &str) -> Option<(Statement, &str)> {
    let (statement, state) = text.strip_suffix('\n')?.split_once('\n')?;
    Some((serde_json::from_str(statement).ok()?, state))
}

/// The id of the key that a snapshot says it is signed with.
pub fn named_key(text: &str) -> Option<String> {
    stated(text)?.0.key_id
}

/// The same, if this gateway signed it.
fn signed<'t>(text: &'t str, public_hex: &str) -> Option<(Statement, &'t str)> {
    let (statement, state) = stated(text)?;
    let key = Key::ed25519(&gateway_key_id(public_hex), "gateway", Purpose::Dispatch, public_hex)?;
    key.verify(statement.signed_text().as_bytes(), &statement.signature).ok()?;
    Some((statement, state))
}

/// The ledger that a snapshot is of, and the entry at which it was taken, if this gateway signed that: whatever became of
/// the state behind it.
pub fn signed_head(text: &str, public_hex: &str) -> Option<(String, Head)> {
    signed(text, public_hex).map(|(statement, _)| (statement.topic_id, statement.head))
}

/// The view that a snapshot holds, if this gateway made it, of this ledger and with this reducer.
pub fn open_snapshot(text: &str, topic_id: &str, public_hex: &str) -> Option<StateView> {
    let (statement, state) = signed(text, public_hex)?;
    let is_ours = statement.topic_id == topic_id
        && statement.reducer == Digest::of(REDUCER.as_bytes()).to_string()
        && statement.state == Digest::of(state.as_bytes()).to_string();
    let view: StateView = serde_json::from_str(state).ok().filter(|_| is_ours)?;
    (view.head() == statement.head).then_some(view)
}
