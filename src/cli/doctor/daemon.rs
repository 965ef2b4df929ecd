//! Whether a gateway serves the workspace, and how it is.

use serde_json::Value as Json;

use super::super::client::{Ask, Client, Trouble};
use super::{Findings, Ground};
use crate::gateway::{Holder, WorkspaceLock};
use crate::settings::{ClientCertificates, Effective};

/// Then this command may have none that counts, which says nothing about the daemon.
fn asks_for_certificates(ground: &Ground<'_>) -> bool {
    let effective = Effective::load(ground.root(), Vec::new());
    effective
        .is_ok_and(|effective| effective.settings.tls.client_certificates == ClientCertificates::Required)
}

pub(super) fn daemon(ground: &Ground<'_>, findings: &mut Findings) -> String {
    let holder = match WorkspaceLock::holder(&ground.files.lock()) {
        Ok(None) => return "none runs".to_owned(),
        Ok(Some(holder)) => holder,
        Err(fault) => {
            findings.warn(fault.to_string(), "look who it is, and whether it should");
            return String::new();
        }
    };
    let Holder { pid, address } = holder;
    let Ok(socket) = address.parse() else { return format!("held by `{address}`, process {pid}") };
    let readiness = Client::of_workspace(ground.root(), socket).map(|client| client.ask(Ask::Get, "/readyz"));
    let reply = match readiness {
        Ok(Ok(reply)) => reply,
        Ok(Err(Trouble::Shut(why) | Trouble::Lost(why))) if asks_for_certificates(ground) => {
            return findings.skip(&why);
        }
        Ok(Err(trouble)) => {
            findings.fail(
                format!("process {pid} holds the workspace and does not answer: {trouble}"),
                "look into its log; stop it with SIGTERM and start it again",
            );
            return String::new();
        }
        Err(super::super::Failure(why)) => {
            findings.fail(why, "correct [tls] in handoffd.toml");
            return String::new();
        }
    };
    let mut of = |member: &str, is_fatal: bool| {
        for one in reply.body.get(member).and_then(Json::as_array).into_iter().flatten() {
            let text = |name: &str| one.get(name).and_then(Json::as_str).unwrap_or_default();
            let what = format!("{}: {}", text("what"), text("why"));
            if is_fatal {
                findings.fail(what, text("hint"));
            } else {
                findings.warn(what, text("hint"));
            }
        }
    };
    of("failing", true);
    of("degraded", false);
    format!("process {pid} at {address} is ready")
}
