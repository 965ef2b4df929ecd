//! Talks to a gateway: the workspace's own, or the one that `--url` names.
//!
//! Small and blocking. Nobody on the way may point elsewhere (no redirects), and no answer is waited for or read
//! without end. The token goes into one header and nowhere else.

mod authority;
mod base;
mod trust;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value as Json;
use zeroize::Zeroizing;

use super::{Context, Exit, Failure, shell};
use crate::callers::TokenFiles;
use crate::gateway::{Files, WorkspaceLock};
use crate::json::printable_up_to;
use crate::limits;
use base::{Base, below};
use trust::{Shut, Trust, own_certificate};

pub(super) use base::Base as GatewayBase;

/// Which gateway to talk to, and as whom.
#[derive(Debug, Default, Args)]
pub(super) struct ClientFlags {
    /// The gateway, such as https://gateway.example:7420; without it, the one that serves the workspace
    #[arg(
        long,
        global = true,
        help_heading = "Gateway",
        value_name = "URL",
        env = "HANDOFFD_URL",
        hide_env_values = true
    )]
    url: Option<String>,

    /// The token; better kept in HANDOFFD_TOKEN or memory/admin.token
    #[arg(long, global = true, help_heading = "Gateway", value_name = "TOKEN")]
    token: Option<TokenArgument>,

    /// Trust the certificates in this PEM file, and no others
    #[arg(long, global = true, help_heading = "Gateway", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Show this certificate, a PEM file, to a gateway that asks for one; or put its path into HANDOFFD_CERT
    #[arg(id = "client_cert", long = "cert", global = true, help_heading = "Gateway", value_name = "FILE")]
    cert: Option<PathBuf>,

    /// The private key of --cert, a PEM file for you alone; or put its path into HANDOFFD_KEY
    #[arg(id = "client_key", long = "key", global = true, help_heading = "Gateway", value_name = "FILE")]
    key: Option<PathBuf>,
}

/// A command that may act on a gateway elsewhere.
#[derive(Debug, Args)]
pub(super) struct Remote<C: Subcommand> {
    #[command(flatten)]
    pub(super) client: ClientFlags,

    #[command(subcommand)]
    pub(super) command: C,
}

/// A token from the command line.
#[derive(Clone)]
struct TokenArgument(Zeroizing<String>);

impl std::str::FromStr for TokenArgument {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(Zeroizing::new(text.to_owned())))
    }
}

impl fmt::Debug for TokenArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A gateway that can be asked.
pub(super) struct Client {
    agent: ureq::Agent,
    /// Scheme, host and port.
    base: String,
    authorization: Option<Zeroizing<String>>,
    shows_certificate: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.base)
    }
}

/// Where to ask, and with what.
pub(super) struct Reach {
    pub(super) agent: ureq::Agent,
    pub(super) url: String,
    pub(super) authorization: Option<Zeroizing<String>>,
}

impl From<Client> for Reach {
    fn from(Client { agent, base, authorization, .. }: Client) -> Self {
        Self { agent, url: base, authorization }
    }
}

/// What a request is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask<'b> {
    Get,
    Delete,
    DeleteWith(&'b [u8]),
    Put(&'b [u8]),
    Post(Option<&'b [u8]>),
    /// A Wire event.
    Event(&'b [u8]),
}

impl Ask<'_> {
    /// Why asking once more does nothing twice.
    fn safe_because(self) -> &'static str {
        match self {
            Self::Post(Some(_)) => "with the same idempotencyKey",
            Self::Event(_) => "with the same wire_id",
            Self::Get | Self::Delete | Self::DeleteWith(_) | Self::Put(_) | Self::Post(None) => {
                "which does nothing twice"
            }
        }
    }
}

/// An answer that is no problem.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) body: Json,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nobody listens there.
    Refused(String),
    /// One side does not take the other's certificate.
    Shut(String),
    /// The answer was lost on the way; what was asked for may have been done.
    Lost(String),
    /// It is busy, or cannot decide now.
    Busy { why: String, wait_s: Option<u64> },
    /// It answers, and the answer is no.
    Told { status: u16, why: String },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why)
            | Self::Shut(why)
            | Self::Lost(why)
            | Self::Busy { why, .. }
            | Self::Told { why, .. } => f.write_str(why),
        }
    }
}

impl Trouble {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Told { status, .. } if *status < 500 => Exit::Unusable,
            _ => Exit::Unavailable,
        }
    }

    /// Says it, and how the command ends.
    pub(super) fn end(&self, context: &Context) -> Exit {
        context.printer.error(&self.to_string());
        self.exit()
    }
}

/// Why there is nobody to ask.
#[derive(Debug)]
pub(super) enum NoClient {
    Wrong(Failure),
    /// No gateway serves the workspace.
    NotRunning(String),
}

impl From<Failure> for NoClient {
    fn from(failure: Failure) -> Self {
        Self::Wrong(failure)
    }
}

impl NoClient {
    pub(super) fn end(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Wrong(failure) => Err(failure),
            Self::NotRunning(why) => {
                context.printer.error(&why);
                Ok(Exit::Unavailable)
            }
        }
    }
}

impl ClientFlags {
    /// Is another gateway meant than the workspace's own?
    pub(super) fn is_remote(&self) -> bool {
        self.url.as_ref().is_some_and(|url| !url.is_empty())
    }

    /// The gateway that is meant.
    pub(super) fn connect(&self, context: &Context) -> Result<Client, NoClient> {
        let token = self.token(context)?;
        match self.url.as_deref().filter(|url| !url.is_empty()) {
            Some(url) => {
                let base = Base::parse(url).map_err(Failure)?;
                if base.is_in_clear() && token.is_some() {
                    context.printer.note("the token goes over the network in the clear; use https");
                }
                let token = token.ok_or_else(|| {
                    Failure::new("a gateway elsewhere needs a token; put it into HANDOFFD_TOKEN")
                })?;
                Ok(Client::new(base, Some(&token), self.trust(None)?)?)
            }
            None => match self.own_as(context, token)? {
                Some(client) => Ok(client),
                None => Err(NoClient::NotRunning(format!(
                    "no gateway serves {}; start one with: handoffd serve{}",
                    context.workspace.root().display(),
                    workspace_flag(context),
                ))),
            },
        }
    }

    /// The workspace's own gateway, if one runs.
    pub(super) fn own(&self, context: &Context) -> Result<Option<Client>, Failure> {
        self.own_as(context, self.token(context)?)
    }

    fn own_as(&self, context: &Context, token: Option<Zeroizing<String>>) -> Result<Option<Client>, Failure> {
        let root = context.workspace.root();
        let Some(address) = own_address(context)? else { return Ok(None) };
        let token = match token {
            Some(token) => Some(token),
            None => TokenFiles::of(root).read_admin()?,
        };
        let certificate = own_certificate(root);
        let base = base_of(address, certificate.as_deref());
        let trust = self.trust(certificate.as_deref())?;
        Client::new(base, token.as_deref().map(String::as_str), trust).map(Some)
    }

    /// The same for who is asked in another way than by the gateway's own API: it may stand below a path, and may be
    /// open to everybody.
    pub(super) fn reach(&self, context: &Context) -> Result<Reach, NoClient> {
        let Some(url) = self.url.as_deref().filter(|url| !url.is_empty()) else {
            return self.connect(context).map(Reach::from);
        };
        let (origin, path) = below(url);
        let base = Base::parse(origin).map_err(Failure)?;
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@".contains(&byte)) {
            return Err(Failure::new("--url has something behind its path; give the agent's address").into());
        }
        let token = self.token(context)?;
        if base.is_in_clear() && token.is_some() {
            context.printer.note("the token goes over the network in the clear; use https");
        }
        let client = Client::new(base, token.as_deref().map(String::as_str), self.trust(None)?)?;
        let mut reach = Reach::from(client);
        reach.url.push_str(path);
        Ok(reach)
    }

    /// Whom to trust: `--ca`, or else the gateway's own certificate if it is known.
    fn trust(&self, own: Option<&Path>) -> Result<Trust, Failure> {
        let shown = trust::shown(self.cert.as_deref(), self.key.as_deref())?;
        if let Some(ca) = &self.ca {
            authority::examine(ca)?;
        }
        Trust::new(self.ca.as_deref().or(own), shown)
    }

    fn token(&self, context: &Context) -> Result<Option<Zeroizing<String>>, Failure> {
        if let Some(TokenArgument(token)) = &self.token {
            context.printer.note(
                "others on this machine can see a token on a command line; put it into HANDOFFD_TOKEN instead",
            );
            return Ok(Some(token.clone()));
        }
        match std::env::var("HANDOFFD_TOKEN") {
            Ok(token) if !token.is_empty() => Ok(Some(Zeroizing::new(token))),
            Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(Failure::new("HANDOFFD_TOKEN is not a token")),
        }
    }
}

/// The workspace's own gateway, by a name that its certificate is for.
fn base_of(address: SocketAddr, certificate: Option<&Path>) -> Base {
    Base::of(address, certificate.is_some(), certificate.and_then(trust::told).as_ref())
}

/// Where the workspace is served, if it is.
pub(super) fn own_address(context: &Context) -> Result<Option<SocketAddr>, Failure> {
    let files = Files::of(context.workspace.root());
    let holder = WorkspaceLock::holder(&files.lock()).map_err(|fault| Failure::new(fault.to_string()))?;
    // Some commands hold the workspace for a moment and serve nothing.
    Ok(holder.and_then(|holder| holder.address.parse().ok()))
}

pub(super) fn workspace_flag(context: &Context) -> String {
    let root = context.workspace.root();
    if root == Path::new(".") { String::new() } else { format!(" --workspace {}", shell::word(root)) }
}

impl Client {
    fn new(base: Base, token: Option<&str>, trust: Trust) -> Result<Self, Failure> {
        let authorization = match token {
            Some(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(Failure::new("that is no token: one begins with hd_ and has no spaces"));
            }
            Some(token) => Some(Zeroizing::new(format!("Bearer {token}"))),
            None => None,
        };
        let shows_certificate = trust.shows_certificate();
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(limits::CLIENT_CONNECT_S)))
            .timeout_global(Some(Duration::from_secs(limits::CLIENT_REQUEST_S)))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            // A proxy that the environment names is for the world, not for this machine.
            .proxy(if base.is_here { None } else { ureq::Proxy::try_from_env() })
            .user_agent(concat!("handoffd/", env!("CARGO_PKG_VERSION")))
            .tls_config(trust.config())
            .build();
        Ok(Self { agent: config.into(), base: base.text, authorization, shows_certificate })
    }

    /// A client for what needs no token of the workspace's own gateway.
    pub(super) fn of_workspace(root: &Path, address: SocketAddr) -> Result<Self, Failure> {
        let certificate = own_certificate(root);
        let trust = ClientFlags::default().trust(certificate.as_deref())?;
        Self::new(base_of(address, certificate.as_deref()), None, trust)
    }

    /// A client for a gateway in this process.
    pub(super) fn here(address: SocketAddr, token: &str) -> Result<Self, Failure> {
        Self::new(Base::of(address, false, None), Some(token), Trust::default())
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Asks once.
    pub(super) fn ask(&self, ask: Ask<'_>, path: &str) -> Result<Reply, Trouble> {
        let url = format!("{}{path}", self.base);
        let sent = match ask {
            Ask::Get => self.with_token(self.agent.get(&url)).call(),
            Ask::Delete => self.with_token(self.agent.delete(&url)).call(),
            // A body says what is to be undone, where a path cannot.
            Ask::DeleteWith(body) => {
                let request = self.with_token(self.agent.delete(&url)).force_send_body();
                request.content_type("application/json").send(body)
            }
            Ask::Put(body) => {
                self.with_token(self.agent.put(&url)).content_type("application/json").send(body)
            }
            Ask::Post(None) => self.with_token(self.agent.post(&url)).send_empty(),
            Ask::Post(Some(body)) | Ask::Event(body) => {
                self.with_token(self.agent.post(&url)).content_type("application/json").send(body)
            }
        };
        let mut response = sent.map_err(|error| self.unanswered(&error))?;
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let wait_s = header("retry-after").and_then(|text| text.parse().ok());
        let is_problem =
            header("content-type").is_some_and(|kind| kind.starts_with("application/problem+json"));
        let body = response.body_mut().with_config().limit(limits::CLIENT_ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|error| self.unanswered(&error))?;
        let parsed = serde_json::from_slice::<Json>(&body).ok();
        match parsed {
            Some(problem) if is_problem => Err(self.problem(status, wait_s, &problem)),
            // What `/readyz` says when it cannot decide is no problem document, and an answer all the same.
            Some(body) if (200..300).contains(&status) || body.is_object() => Ok(Reply { body }),
            _ => Err(self.strange(status, wait_s)),
        }
    }

    /// Asks again, a bounded number of times, when the answer was lost or it is busy. Only for what is done once
    /// however often it is asked for.
    pub(super) fn ask_patiently(
        &self,
        ask: Ask<'_>,
        path: &str,
        context: &Context,
    ) -> Result<Reply, Trouble> {
        let mut pause_ms = limits::CLIENT_RETRY_MS;
        for attempt in 1..limits::CLIENT_TRIES_MAX {
            let (why, wait_ms) = match self.ask(ask, path) {
                Err(Trouble::Lost(why)) => (why, pause_ms),
                Err(Trouble::Busy { why, wait_s }) => {
                    (why, wait_s.map_or(pause_ms, |wait_s| wait_s.saturating_mul(1000)))
                }
                // One that was there a moment ago is starting again.
                Err(Trouble::Refused(why)) if attempt > 1 => (why, pause_ms),
                other => return other,
            };
            let wait_ms = wait_ms.min(limits::CLIENT_RETRY_WAIT_MS_MAX);
            context.printer.note(&format!(
                "{why}; asking again in {} s, {} (attempt {} of {})",
                wait_ms as f64 / 1000.0,
                ask.safe_because(),
                attempt + 1,
                limits::CLIENT_TRIES_MAX
            ));
            std::thread::sleep(Duration::from_millis(wait_ms));
            pause_ms = pause_ms.saturating_mul(2);
        }
        self.ask(ask, path)
    }

    fn with_token<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("authorization", authorization.as_str()),
            None => request,
        }
    }

    fn problem(&self, status: u16, wait_s: Option<u64>, problem: &Json) -> Trouble {
        let member = |name: &str| problem.get(name).and_then(Json::as_str).map(plain_line);
        let mut why = member("detail").or(member("title")).unwrap_or_else(|| format!("status {status}"));
        if let Some(pointer) = member("pointer").filter(|pointer| !pointer.is_empty()) {
            // Into the body, or else the name of a header or a parameter.
            let place =
                if pointer.starts_with('/') { format!(" at {pointer}") } else { format!(" (in {pointer})") };
            why.push_str(&place);
        }
        let hint = match status {
            401 => Some(
                "give a token that counts with HANDOFFD_TOKEN; `handoffd token new` makes one".to_owned(),
            ),
            _ => member("hint"),
        };
        if let Some(hint) = hint {
            why.push_str(&format!("; {hint}"));
        }
        if let Some(code) = member("code") {
            why.push_str(&format!(" [{code}]"));
        }
        self.trouble(status, wait_s, why)
    }

    fn strange(&self, status: u16, wait_s: Option<u64>) -> Trouble {
        let why = match status {
            300..400 => {
                format!("{} points elsewhere (status {status}); give the gateway's own URL", self.base)
            }
            _ => format!("{} answers with status {status}, and not as a gateway does; is it one?", self.base),
        };
        self.trouble(status, wait_s, why)
    }

    fn trouble(&self, status: u16, wait_s: Option<u64>, why: String) -> Trouble {
        match status {
            408 | 429 | 503 => Trouble::Busy { why, wait_s },
            _ => Trouble::Told { status, why },
        }
    }

    fn unanswered(&self, error: &ureq::Error) -> Trouble {
        const GIVE: &str =
            "give one that it trusts with --cert and --key, or in HANDOFFD_CERT and HANDOFFD_KEY";
        let base = &self.base;
        match Shut::of(error) {
            Some(Shut::Ours(why)) => return Trouble::Shut(format!("{base} {why}; {GIVE}")),
            Some(Shut::Theirs(why)) => {
                return Trouble::Shut(format!(
                    "{base} cannot be trusted: {}; name it as its certificate does, or give the certificate of whoever signed \
                     it with --ca",
                    plain_line(&why)
                ));
            }
            None => {}
        }
        match error {
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Trouble::Refused(format!(
                    "nobody listens at {base}; start the gateway with: handoffd serve, or give its --url"
                ))
            }
            ureq::Error::HostNotFound => {
                Trouble::Told { status: 500, why: format!("{base}: there is no such host; see --url") }
            }
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                Trouble::Told { status: 400, why: "--url is not a URL that can be used".to_owned() }
            }
            // What begins a TLS connection, or an alert, is no HTTP.
            ureq::Error::Protocol(fault)
                if base.starts_with("http://") && fault.to_string().starts_with("http parse fail") =>
            {
                let secure = base.replacen("http", "https", 1);
                Trouble::Told {
                    status: 500,
                    why: format!(
                        "{base} answers with something that is not HTTP; if it speaks TLS, try {secure}"
                    ),
                }
            }
            ureq::Error::Timeout(_) => Trouble::Lost(format!("{base} does not answer in time")),
            other => {
                let mut why = format!("{base} did not answer: {}", plain_line(&other.to_string()));
                // It says so, but it may hang up before that is read.
                if !self.shows_certificate && base.starts_with("https://") {
                    why.push_str(&format!("; if it asks for a client certificate, {GIVE}"));
                }
                Trouble::Lost(why)
            }
        }
    }
}

/// Another program's text, in one line.
fn plain_line(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| printable_up_to(limits::MESSAGE_LINE_CHARS_MAX, line.trim())).collect();
    lines.join("; ")
}

/// A text as a segment of a path.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment_of_a_path() {
        assert_eq!(segment("user-main_1.~"), "user-main_1.~");
        assert_eq!(segment("a/b?c#d%é"), "a%2Fb%3Fc%23d%25%C3%A9");
    }

    #[test]
    fn a_token_is_in_no_debug_output_and_no_error() {
        let flags = ClientFlags { token: Some("hd_adm_x y".parse().unwrap()), ..ClientFlags::default() };
        assert!(!format!("{flags:?}").contains("hd_adm"));
        let fault = Client::here("127.0.0.1:1".parse().unwrap(), "hd_adm_x y").unwrap_err();
        assert!(!fault.0.contains("hd_adm"), "{fault:?}");
        let client = Client::here("127.0.0.1:1".parse().unwrap(), "hd_adm_xy").unwrap();
        assert!(!format!("{client:?}").contains("hd_adm"));
    }
}
