//! The table of everything that can be set.

use super::model::Settings;
use super::slot::{Shown, Slot};
use crate::limits;

/// One setting.
pub struct Key {
    /// `section.key`, as in the file.
    pub name: &'static str,
    /// The flag of `serve` that sets it too.
    pub flag: Option<&'static str>,
    /// Whether its value, or a part of it, may not be shown.
    pub is_secret: bool,
    pub help: &'static str,
    pub(super) at: for<'s> fn(&'s mut Settings) -> Slot<'s>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Key {
    /// The variable that sets it: `HANDOFFD_SERVER_LISTEN` for `server.listen`.
    pub fn variable(&self) -> String {
        format!("HANDOFFD_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    pub(super) fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    pub(super) fn last(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, last)| last)
    }

    const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

const fn key(name: &'static str, help: &'static str, at: for<'s> fn(&'s mut Settings) -> Slot<'s>) -> Key {
    Key { name, flag: None, is_secret: false, help, at }
}

/// The roles that tokens have.
const ROLES: &[&str] = &["orchestrator", "agent", "operator", "harness", "auditor", "admin"];

/// Every setting, section by section.
pub static KEYS: [Key; 55] = [
    key("server.listen", "Where the gateway listens", |s| Slot::Address(&mut s.server.listen))
        .flag("--listen"),
    key(
        "server.body_bytes_max",
        "What a request body may weigh; a TaskSpec may never weigh more than 256KiB",
        |s| Slot::Size(&mut s.server.body_bytes_max, limits::SETTABLE_BODY_BYTES),
    ),
    key("server.batch_bytes_max", "What the body of a batch may weigh", |s| {
        Slot::Size(&mut s.server.batch_bytes_max, limits::SETTABLE_BODY_BYTES)
    }),
    key("server.header_bytes_max", "What all headers of a request may weigh", |s| {
        Slot::Size(&mut s.server.header_bytes_max, limits::SETTABLE_HEADER_BYTES)
    }),
    key("server.query_bytes_max", "What the query of a request may weigh", |s| {
        Slot::Size(&mut s.server.query_bytes_max, limits::SETTABLE_QUERY_BYTES)
    }),
    key(
        "server.request_timeout",
        "How long a body may take to come in, once its headers are; the answer is there within twice that, unless the caller asks to wait",
        |s| Slot::Time(&mut s.server.request_timeout, limits::SETTABLE_TIMEOUT_MS),
    ),
    key(
        "server.header_timeout",
        "How long the headers of a request may take to come in, and how long a connection without one is kept",
        |s| Slot::Time(&mut s.server.header_timeout, limits::SETTABLE_TIMEOUT_MS),
    ),
    key("server.connections_max", "Connections at once", |s| {
        Slot::Count(&mut s.server.connections_max, limits::SETTABLE_CONNECTIONS)
    }),
    key(
        "server.connections_per_client_max",
        "Connections at once from one address; set it where strangers come from addresses of their own",
        |s| Slot::OptionalCount(&mut s.server.connections_per_client_max, limits::SETTABLE_CONNECTIONS),
    ),
    key(
        "server.requests_per_second",
        "Requests a second that each caller may make; a batch counts as what it carries",
        |s| Slot::OptionalCount(&mut s.server.requests_per_second, limits::SETTABLE_REQUESTS_PER_S),
    ),
    key(
        "server.request_burst",
        "Requests that a caller who has been quiet may make at once; only with `requests_per_second`",
        |s| Slot::Count(&mut s.server.request_burst, limits::SETTABLE_REQUESTS_PER_S),
    ),
    key(
        "server.waiting_decisions_max",
        "Decisions that may wait for the ledger before callers are told to come back",
        |s| Slot::Count(&mut s.server.waiting_decisions_max, limits::SETTABLE_WAITING_DECISIONS),
    ),
    key("server.shutdown_timeout", "How long open requests are given when the gateway stops", |s| {
        Slot::Time(&mut s.server.shutdown_timeout, limits::SETTABLE_TIMEOUT_MS)
    }),
    key("tls.certificate", "The certificate chain, PEM; with it the gateway speaks TLS", |s| {
        Slot::Path(&mut s.tls.certificate)
    }),
    key("tls.private_key", "The certificate's private key, PEM", |s| Slot::Path(&mut s.tls.private_key)),
    key("tls.client_ca", "Who signs the certificates of callers, PEM", |s| Slot::Path(&mut s.tls.client_ca)),
    key("tls.client_certificates", "Whether callers show a certificate", |s| {
        Slot::Choice(&mut s.tls.client_certificates)
    }),
    key(
        "ledger.url",
        "Where the ledger is kept: segment files in the workspace, memory (gone at the end), or a database",
        |s| Slot::Ledger(&mut s.ledger.url),
    )
    .flag("--ledger")
    .secret(),
    key(
        "policy.approval",
        "Whether a changed policy set is in force at once, or when an operator says so",
        |s| Slot::Choice(&mut s.policy.approval),
    ),
    key(
        "policy.reload",
        "Whether policies are read again when their files change, or on SIGHUP alone",
        |s| Slot::Choice(&mut s.policy.reload),
    ),
    key("retention.bodies", "How long bodies are kept; the ledger's entries are kept for ever", |s| {
        Slot::Forever(&mut s.retention.bodies, limits::SETTABLE_RETENTION_MS)
    }),
    key("log.format", "How log lines look; `auto` is text on a terminal and JSON otherwise", |s| {
        Slot::Choice(&mut s.log.format)
    })
    .flag("--log-format"),
    key("log.level", "What is logged", |s| Slot::Filter(&mut s.log.level)).flag("--log-level"),
    key("sink.path", "A file of JSON lines for a log shipper; the ledger is the record", |s| {
        Slot::Path(&mut s.sink.path)
    }),
    key("sink.rotate_bytes", "When a new file of lines is begun", |s| {
        Slot::Size(&mut s.sink.rotate_bytes, limits::SETTABLE_ROTATE_BYTES)
    }),
    key("sink.keep", "Full files of lines that are kept beside the one that is written", |s| {
        Slot::Count(&mut s.sink.keep, limits::SETTABLE_KEPT_FILES)
    }),
    key("otlp.endpoint", "Where traces are sent", |s| Slot::Web(&mut s.otlp.endpoint)),
    key("otlp.headers", "Headers that go with them", |s| Slot::Headers(&mut s.otlp.headers)).secret(),
    key("otlp.service_name", "The name that traces carry", |s| Slot::Name(&mut s.otlp.service_name)),
    key("evidence.bytes_max", "What a packet that is turned into evidence may weigh", |s| {
        Slot::OptionalSize(&mut s.evidence.packet_bytes_max, limits::SETTABLE_EVIDENCE_BYTES)
    }),
    key("evidence.depth_max", "How deep its containers may nest", |s| {
        Slot::OptionalCount(&mut s.evidence.depth_max, limits::SETTABLE_EVIDENCE_LEVELS)
    }),
    key("evidence.array_max", "How many items its longest array may have", |s| {
        Slot::OptionalCount(&mut s.evidence.array_items_max, limits::SETTABLE_EVIDENCE_ITEMS)
    }),
    key("approvals.wait", "How long a handoff waits for a person, at most", |s| {
        Slot::Time(&mut s.approvals.wait, limits::SETTABLE_APPROVAL_WAIT_MS)
    }),
    key("a2a.public_url", "The URL that the agent card gives; the bound address if there is none", |s| {
        Slot::Web(&mut s.a2a.public_url)
    }),
    key(
        "a2a.push_allow",
        "Networks inside that push notifications may go to, also without TLS; public addresses are told with TLS anyway",
        |s| Slot::Networks(&mut s.a2a.push_allow),
    ),
    key(
        "a2a.push_ca",
        "Who signs the certificates of receivers, PEM; the public authorities if not set",
        |s| Slot::Path(&mut s.a2a.push_ca),
    ),
    key("a2a.push_timeout", "How long a receiver may take for one push notification", |s| {
        Slot::Time(&mut s.a2a.push_timeout, limits::SETTABLE_TIMEOUT_MS)
    }),
    key("a2a.push_retry", "How long a push notification that is not taken is sent again", |s| {
        Slot::Time(&mut s.a2a.push_retry, limits::SETTABLE_PUSH_RETRY_MS)
    }),
    key(
        "a2a.anonymous",
        "Whether programs on this machine need no token for A2A, for dev and simulated and on a loopback address only",
        |s| Slot::Flag(&mut s.a2a.anonymous),
    ),
    key(
        "ai.url",
        "The model gateway that `ai/` methods go to, which speaks as OpenAI's does; none if not set",
        |s| Slot::Web(&mut s.ai.url),
    ),
    key("ai.api_key", "What it is shown as Bearer token", |s| Slot::Secret(&mut s.ai.api_key)).secret(),
    key("ai.api_key_file", "A file with that token, which nobody else may read", |s| {
        Slot::Path(&mut s.ai.api_key_file)
    }),
    key("ai.ca", "Who signs its certificate, PEM; the public authorities if not set", |s| {
        Slot::Path(&mut s.ai.ca)
    }),
    key("ai.timeout", "How long it may take for an answer", |s| {
        Slot::Time(&mut s.ai.timeout, limits::SETTABLE_TIMEOUT_MS)
    }),
    key("ai.answer_bytes_max", "What its answer may weigh", |s| {
        Slot::Size(&mut s.ai.answer_bytes_max, limits::SETTABLE_BODY_BYTES)
    }),
    key("ai.requests_max", "Requests to it at once", |s| {
        Slot::Count(&mut s.ai.requests_max, limits::SETTABLE_AI_REQUESTS)
    }),
    key("ai.roles", "Whose tokens may call `ai/` methods", |s| Slot::Words(&mut s.ai.roles, ROLES)),
    key("promotion.simulated_runs", "Simulated handoffs that must end well before a route goes on", |s| {
        Slot::Count(&mut s.promotion.simulated_runs, limits::SETTABLE_RUNS)
    }),
    key(
        "promotion.canary_runs",
        "Live handoffs that must end well, one at a time, before a route leaves canary",
        |s| Slot::Count(&mut s.promotion.canary_runs, limits::SETTABLE_RUNS),
    ),
    key(
        "promotion.canary_deadline",
        "How long a live handoff in canary may take; one that is not heard of by then has failed",
        |s| Slot::Time(&mut s.promotion.canary_deadline, limits::SETTABLE_CANARY_DEADLINE_MS),
    ),
    key("promotion.probe_timeout", "How long gate G1 waits for an agent to answer", |s| {
        Slot::Time(&mut s.promotion.probe_timeout, limits::SETTABLE_PROBE_MS)
    }),
    key("promotion.rollback_codes", "Codes with which a live handoff that fails rolls its route back", |s| {
        Slot::Codes(&mut s.promotion.rollback_codes)
    }),
    key(
        "promotion.rollback_on_critical",
        "Whether a live handoff that fails critically rolls its route back",
        |s| Slot::Flag(&mut s.promotion.rollback_on_critical),
    ),
    key(
        "promotion.rollback_on_wrong_agent",
        "Whether a live handoff that another agent than the route's worked on rolls the route back",
        |s| Slot::Flag(&mut s.promotion.rollback_on_wrong_agent),
    ),
    key(
        "promotion.rollback_in_canary",
        "Whether any live handoff that fails or is silent in canary rolls its route back",
        |s| Slot::Flag(&mut s.promotion.rollback_in_canary),
    ),
];

/// The page of settings.
pub fn settings_markdown() -> String {
    let mut page = include_str!("settings.md").to_owned();
    let mut settings = Settings::default();
    let mut section = "";
    for key in &KEYS {
        if key.section() != section {
            section = key.section();
            page.push_str(&format!(
                "\n## [{section}]\n\n| key | takes | default | |\n| --- | --- | --- | --- |\n"
            ));
        }
        let slot = (key.at)(&mut settings);
        let default = match slot.show() {
            Shown::NotSet => "not set".to_owned(),
            shown => format!("`{}`", shown.toml()),
        };
        let flag = key.flag.map(|flag| format!(" Also `{flag}`.")).unwrap_or_default();
        let secret = if key.is_secret { " Secrets in it are never shown." } else { "" };
        page.push_str(&format!(
            "| `{}` | {} | {default} | {}.{flag}{secret} |\n",
            key.last(),
            slot.takes(),
            key.help
        ));
    }
    page
}
