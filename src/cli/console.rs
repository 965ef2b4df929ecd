//! `handoffd console`: a link that opens the console, once.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::{Value as Json, json};

use super::client::{Ask, ClientFlags};
use super::{Context, Exit, Failure};

/// Open the console in a browser, with a link that works once.
///
/// The session is that of the token: an operator acts in their own name, an auditor reads, the workspace's admin
/// token reads and can freeze. Exit: 0 printed, 2 refused, 3 unavailable.
#[derive(Debug, Args)]
pub(super) struct Console {
    #[command(flatten)]
    client: ClientFlags,

    /// Print the link and open nothing
    #[arg(long)]
    print: bool,
}

impl Console {
    pub(super) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let client = match self.client.connect(context) {
            Ok(client) => client,
            Err(nobody) => return nobody.end(context),
        };
        let link = match client.ask(Ask::Post(None), "/v1/console/links") {
            Ok(reply) => reply.body,
            Err(trouble) => return Ok(trouble.end(context)),
        };
        let text = |name: &str| link.get(name).and_then(Json::as_str).unwrap_or_default();
        let url = format!("{}{}", client.base(), text("path"));
        if context.printer.is_json() {
            context.printer.value(&json!({"url": url, "expiresAt": text("expiresAt")}));
        } else {
            context.printer.line(&url);
        }
        if !self.print && !open(&url) {
            context
                .printer
                .note("no browser could be opened here; open the link yourself, soon: it works once");
        }
        Ok(Exit::Done)
    }
}

/// Asks the desktop for a browser; it need not have one.
fn open(url: &str) -> bool {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let asked = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}
