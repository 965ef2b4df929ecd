//! `handoffd console`: a link that opens the console, once.

mod browser;

use clap::Args;
use serde_json::{Value as Json, json};

use super::client::{Ask, ClientFlags};
use super::{Context, Exit, Failure};
use browser::{NotOpened, open};

/// Open the console in a browser, with a link that works once.
///
/// The link is printed, too. It is opened with what BROWSER names, else with the desktop's own browser. The session
/// is that of the token: an operator acts in their own name, an auditor reads, the workspace's admin token reads and
/// can freeze.
///
/// Exit: 0 printed, 2 refused, 3 unavailable.
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
        let printer = &context.printer;
        if printer.is_json() {
            printer.value(&json!({"url": url, "expiresAt": text("expiresAt")}));
        } else {
            printer.line(&url);
        }
        if self.print {
            return Ok(Exit::Done);
        }
        match open(&url) {
            Ok(program) => printer.say(&format!("opened with {program}; the link works once")),
            Err(why) => {
                printer.note(&format!("{why}; open the link yourself, within two minutes: it works once"));
                if let (NotOpened::NoDisplay, Some(tunnel)) = (why, tunnel(client.base())) {
                    printer.say(&tunnel);
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// How a browser elsewhere comes to a gateway that listens on this machine alone.
fn tunnel(base: &str) -> Option<String> {
    let place = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"))?;
    let (name, port) = place.rsplit_once(':')?;
    let is_here = name == "localhost" || name == "[::1]" || name.starts_with("127.");
    is_here.then(|| {
        format!("      from another machine, run there first: ssh -N -L {port}:{place} USER@THIS-MACHINE")
    })
}

#[cfg(test)]
mod tests {
    use super::tunnel;

    #[test]
    fn only_a_gateway_on_this_machine_alone_needs_a_tunnel() {
        for (base, expected) in [
            ("http://127.0.0.1:7420", Some("-L 7420:127.0.0.1:7420")),
            ("https://[::1]:7443", Some("-L 7443:[::1]:7443")),
            ("http://localhost:80", Some("-L 80:localhost:80")),
            ("https://gateway.example:7420", None),
            ("http://10.0.0.7:7420", None),
        ] {
            let told = tunnel(base);
            assert_eq!(told.is_some(), expected.is_some(), "{base}");
            assert!(expected.is_none_or(|part| told.is_some_and(|told| told.contains(part))), "{base}");
        }
    }
}
