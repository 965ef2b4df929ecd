//! What is sent: a TaskSpec in the orchestrator's own name and one in a person's, with room for a number in every id, and the
//! workspace in which both are allowed.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use handoffd::engine::World as _;
use handoffd::os::world::RealWorld;
use handoffd::proof::{Key, Purpose, Secret};
use handoffd::sealing::{Seal, Signer, seal};
use serde_json::{Value as Json, json};

const CANONICAL: &str = include_str!("../../docs/examples/taskspec-canonical.json");
const DELEGATED: &str = include_str!("../../docs/examples/taskspec-delegated-read.json");

/// Where a new number comes into every request.
pub(crate) const NUMBER: &str = "0000000000";

/// Before the number of a mention: nothing that ends with a zero, or the number would be found too early.
const MESSAGE: &str = "147339501";

/// What the policy file allows at most. A signature serves all requests of as long.
const LIFETIME_S: i64 = 3_600;

const KEY_ID: &str = "bench-user-main-1";
const SECRET: &str = "a secret of the bench, and of nobody else";

/// The canonical TaskSpec, with a new handoffId and idempotencyKey each time that it is sent.
pub(crate) fn direct(mode: &str) -> String {
    CANONICAL
        .replace("hs_20260218_router_0001", &format!("hs_bench_{NUMBER}"))
        .replace("idem_swap_cycle_9001", &format!("idem_bench_{NUMBER}"))
        .replace("\"mode\": \"simulated\"", &format!("\"mode\": \"{mode}\""))
}

/// A handoff that is mentioned in a channel, in a person's name: reading only, so that nobody has to be asked. It is not
/// signed yet. New each time are the handoffId, the idempotencyKey, the cycle and
/// the message.
pub(crate) fn delegated() -> Json {
    let text = DELEGATED
        .replace("hs_20260218_proxy_read_0008", &format!("hs_bench_{NUMBER}"))
        .replace("idem_proxy_read_0100", &format!("idem_bench_{NUMBER}"))
        // One cycle has few mentions, or it would be a loop.
        .replace("corr_user_proxy_read_45", &format!("corr_bench_{NUMBER}"))
        .replace("1473395000000000002", &format!("{MESSAGE}{NUMBER}"));
    let mut spec: Json = serde_json::from_str(&text).unwrap();
    let mention = spec.pointer_mut("/authorship/mentionDelegation").unwrap();
    mention["observedAt"] = json!(RealWorld::default().now().to_milliseconds());
    mention["ttlSeconds"] = json!(LIFETIME_S);
    spec
}

/// The same with its envelope signed, from `since_s` seconds from now on, until `until_s`.
pub(crate) fn sealed_for(mut spec: Json, since_s: i64, until_s: i64) -> Json {
    let secret = Secret::from_file_bytes(SECRET.as_bytes().to_vec());
    let key = Key::hmac(KEY_ID, "user:main", Purpose::Envelope, secret).unwrap();
    let now = RealWorld::default().now();
    let ttl = Some((now.plus_seconds(since_s), now.plus_seconds(until_s)));
    seal(&mut spec, &Seal { signer: Signer::Shared(&key), ttl, bind: false }).unwrap();
    spec
}

pub(crate) fn sealed(spec: Json) -> Json {
    sealed_for(spec, 0, LIFETIME_S)
}

/// Who may ask, in a workspace that was made for the bench.
pub(crate) struct Callers {
    /// Submits as `decision-router`, and for nobody else.
    pub(crate) orchestrator: String,
    /// A person, who sets how far mentions go.
    pub(crate) operator: String,
}

/// Makes a workspace: the shipped rules, the key that envelopes are signed with, and two callers.
pub(crate) fn workspace(root: &Path) -> Callers {
    handoffd(root, &["init"], "");
    handoffd(root, &["key", "add", "--owner", "user:main", "--id", KEY_ID, "--secret-file", "-"], SECRET);
    let token = |arguments: &[&str]| handoffd(root, &[&["token", "new"], arguments].concat(), "");
    Callers {
        orchestrator: token(&["--name", "bench", "--role", "orchestrator", "--agent", "decision-router"]),
        operator: token(&["--name", "rita", "--role", "operator"]),
    }
}

fn handoffd(root: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_handoffd"));
    command.arg("--workspace").arg(root).args(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
