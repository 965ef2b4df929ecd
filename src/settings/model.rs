//! The settings in their types, and what they are when nobody says otherwise.

use core::net::SocketAddr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::units::{Network, SecretText};
use super::urls;
use crate::evidence;
use crate::limits;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    pub server: Server,
    pub tls: Tls,
    pub ledger: Ledger,
    pub policy: Policy,
    pub retention: Retention,
    pub log: Log,
    pub sink: Sink,
    pub otlp: Otlp,
    /// What a packet may weigh; all off by default.
    pub evidence: evidence::Limits,
    pub approvals: Approvals,
    pub a2a: A2a,
    pub ai: Ai,
    pub promotion: Promotion,
}

/// The HTTP door and its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    pub body_bytes_max: usize,
    pub batch_bytes_max: usize,
    pub header_bytes_max: usize,
    pub query_bytes_max: usize,
    pub request_timeout: Duration,
    pub header_timeout: Duration,
    pub connections_max: usize,
    pub connections_per_client_max: Option<usize>,
    pub requests_per_second: Option<usize>,
    pub request_burst: usize,
    pub waiting_decisions_max: usize,
    pub shutdown_timeout: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            body_bytes_max: limits::TASK_SPEC.bytes_max,
            batch_bytes_max: limits::REQUEST_BODY_BYTES_MAX,
            header_bytes_max: 16 * 1024,
            query_bytes_max: 4 * 1024,
            request_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(5),
            connections_max: 1_024,
            connections_per_client_max: None,
            requests_per_second: None,
            request_burst: 100,
            waiting_decisions_max: limits::WAITING_DECISIONS_MAX,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    pub certificate: Option<PathBuf>,
    pub private_key: Option<PathBuf>,
    pub client_ca: Option<PathBuf>,
    pub client_certificates: ClientCertificates,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    pub url: LedgerUrl,
}

/// Where the ledger is kept.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum LedgerUrl {
    /// Segment files in `memory/ledger/`.
    #[default]
    Segments,
    /// Nowhere: gone when the daemon stops.
    Memory,
    /// A database; the URL may have a password in it.
    Postgres(SecretText),
}

impl LedgerUrl {
    /// The URL as it may be shown.
    pub fn masked(&self) -> String {
        match self {
            Self::Segments => "segments".to_owned(),
            Self::Memory => "memory".to_owned(),
            Self::Postgres(url) => urls::masked(url.expose()),
        }
    }
}

impl fmt::Debug for LedgerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    pub approval: PolicyApproval,
    pub reload: PolicyReload,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// How long bodies are kept; `None` is for ever.
    pub bodies: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    /// Directives as tracing's `EnvFilter` takes them; they have been read once and are sound.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    pub path: Option<PathBuf>,
    pub rotate_bytes: usize,
    pub keep: usize,
}

impl Default for Sink {
    fn default() -> Self {
        Self { path: None, rotate_bytes: 64 * 1024 * 1024, keep: 8 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    pub endpoint: Option<String>,
    pub headers: Vec<Header>,
    pub service_name: String,
}

/// A header of an outgoing request; its value is nobody's to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: SecretText,
}

impl Default for Otlp {
    fn default() -> Self {
        Self { endpoint: None, headers: Vec::new(), service_name: "handoffd".to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    pub wait: Duration,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { wait: Duration::from_secs(limits::APPROVAL_WAIT_S.unsigned_abs()) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2a {
    pub public_url: Option<String>,
    /// Networks that are not public and may be told all the same.
    pub push_allow: Vec<Network>,
    pub push_ca: Option<PathBuf>,
    pub push_timeout: Duration,
    pub push_retry: Duration,
    pub anonymous: bool,
}

impl Default for A2a {
    fn default() -> Self {
        Self {
            public_url: None,
            push_allow: Vec::new(),
            push_ca: None,
            push_timeout: Duration::from_millis(limits::PUSH_TIMEOUT_MS),
            push_retry: Duration::from_millis(limits::PUSH_RETRY_MS),
            anonymous: false,
        }
    }
}

/// The model gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ai {
    pub url: Option<String>,
    pub api_key: Option<SecretText>,
    pub api_key_file: Option<PathBuf>,
    pub ca: Option<PathBuf>,
    pub timeout: Duration,
    pub answer_bytes_max: usize,
    pub requests_max: usize,
    pub roles: Vec<String>,
}

impl Default for Ai {
    fn default() -> Self {
        Self {
            url: None,
            api_key: None,
            api_key_file: None,
            ca: None,
            timeout: Duration::from_millis(limits::AI_TIMEOUT_MS),
            answer_bytes_max: limits::AI_ANSWER_BYTES_MAX,
            requests_max: limits::AI_REQUESTS_MAX,
            roles: ["orchestrator", "operator", "admin"].map(str::to_owned).to_vec(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    pub simulated_runs: usize,
    pub canary_runs: usize,
    pub canary_deadline: Duration,
    pub probe_timeout: Duration,
    /// Codes with which a live handoff rolls its route back, with a trailing `*` for any ending.
    pub rollback_codes: Vec<String>,
    pub rollback_on_critical: bool,
    pub rollback_on_wrong_agent: bool,
    pub rollback_in_canary: bool,
}

impl Default for Promotion {
    fn default() -> Self {
        Self {
            simulated_runs: limits::SIMULATED_RUNS,
            canary_runs: limits::CANARY_RUNS,
            canary_deadline: Duration::from_secs(limits::CANARY_DEADLINE_S.unsigned_abs()),
            probe_timeout: Duration::from_millis(limits::GATE_PROBE_MS),
            rollback_codes: ["POLICY_*", "EXECUTION_SCHEMA_*"].map(str::to_owned).to_vec(),
            rollback_on_critical: true,
            rollback_on_wrong_agent: true,
            rollback_in_canary: true,
        }
    }
}

/// One word out of a few.
pub(super) trait Choice {
    fn words(&self) -> &'static [&'static str];
    fn word(&self) -> &'static str;
    /// Whether it is one of the words, and then it is taken.
    fn choose(&mut self, word: &str) -> bool;
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name { $($(#[$of])* $variant),+ }

        impl Choice for $name {
            fn words(&self) -> &'static [&'static str] {
                &[$($word),+]
            }
            fn word(&self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
            fn choose(&mut self, word: &str) -> bool {
                match word { $($word => *self = Self::$variant,)+ _ => return false }
                true
            }
        }
    };
}

choice! {
    /// Whether a caller shows a certificate.
    ClientCertificates { #[default] Off = "off", Optional = "optional", Required = "required" }
}
choice! {
    /// Whether a changed policy set waits for an operator.
    PolicyApproval { #[default] Auto = "auto", Operator = "operator" }
}
choice! {
    /// What makes the gateway read its policies again.
    PolicyReload {
        /// A change to the files, or SIGHUP.
        #[default]
        Auto = "auto",
        Sighup = "sighup",
    }
}
choice! {
    /// How log lines look.
    LogFormat {
        /// Text on a terminal, JSON otherwise.
        #[default]
        Auto = "auto",
        Text = "text",
        Json = "json",
    }
}
