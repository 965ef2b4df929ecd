//! From what was given to the settings in force, or to everything that is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::FILE;
use super::keys::{KEYS, Key};
use super::model::{ClientCertificates, LedgerUrl, Settings};
use super::slot::Written;
use super::urls;
use crate::contract::distance;
use crate::json::printable;

/// What the three places say.
#[derive(Default)]
pub struct Given {
    /// The file's bytes, or why there are none; `None` if there is no file.
    pub file: Option<Result<Vec<u8>, String>>,
    /// Every variable; the value is missing if it is not UTF-8.
    pub environment: Vec<(String, Option<String>)>,
    pub flags: Vec<Flag>,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Given([secret])")
    }
}

/// A flag that was given, such as `--listen`.
pub struct Flag {
    pub name: &'static str,
    pub value: String,
}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flag({})", self.name)
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Default,
    File { line: usize },
    Environment(String),
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { line } => write!(f, "{FILE}, line {line}"),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    source: Source,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            // The file as a whole.
            Source::File { line: 0 } => write!(f, "{FILE}: {}", self.message),
            source => write!(f, "{source}: {}", self.message),
        }
    }
}

/// The settings in force.
#[derive(Debug, Clone)]
pub struct Effective {
    pub settings: Settings,
    /// What is allowed and yet worth a word.
    pub warnings: Vec<String>,
    sources: BTreeMap<&'static str, Source>,
}

impl Effective {
    /// Where a setting's value came from.
    pub fn source(&self, key: &Key) -> Source {
        self.sources.get(key.name).cloned().unwrap_or(Source::Default)
    }

    /// Whether there is something to hide in its value.
    pub(super) fn has_secret(&self, key: &Key) -> bool {
        match key.name {
            "ledger.url" => match &self.settings.ledger.url {
                LedgerUrl::Postgres(url) => urls::has_password(url.expose()),
                LedgerUrl::Segments | LedgerUrl::Memory => false,
            },
            "otlp.headers" => !self.settings.otlp.headers.is_empty(),
            "ai.api_key" => self.settings.ai.api_key.is_some(),
            _ => key.is_secret,
        }
    }
}

/// Reads all three places, weakest first.
pub fn read(given: &Given) -> Result<Effective, Vec<Problem>> {
    let mut reading = Reading::default();
    match &given.file {
        Some(Ok(bytes)) => reading.file(bytes),
        Some(Err(why)) => reading.problem(Source::File { line: 0 }, why.clone()),
        None => {}
    }
    // The table's own order is by name; people read a file from the top.
    reading.problems.sort_by(|a, b| a.source.cmp(&b.source));
    reading.environment(&given.environment);
    for flag in &given.flags {
        if let Some(key) = KEYS.iter().find(|key| key.flag == Some(flag.name)) {
            reading.set(key, Source::Flag(flag.name), &Written::Word(flag.value.clone()));
        }
    }
    reading.end()
}

#[derive(Default)]
struct Reading {
    settings: Settings,
    sources: BTreeMap<&'static str, Source>,
    problems: Vec<Problem>,
    /// Keys whose value is not what somebody meant it to be.
    unsound: BTreeSet<&'static str>,
}

impl Reading {
    fn problem(&mut self, source: Source, message: impl Into<String>) {
        self.problems.push(Problem { source, message: message.into() });
    }

    fn set(&mut self, key: &'static Key, source: Source, written: &Written) {
        match (key.at)(&mut self.settings).read(written, key.is_secret) {
            Ok(()) => {
                self.sources.insert(key.name, source);
            }
            Err(why) => {
                self.unsound.insert(key.name);
                // A variable and a flag say by their own names what they set.
                let message = match source {
                    Source::File { .. } => format!("{}: {why}", key.name),
                    _ => why,
                };
                self.problem(source, message);
            }
        }
    }

    fn file(&mut self, bytes: &[u8]) {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let line = line_of(bytes, error.valid_up_to());
                return self.problem(Source::File { line }, "is not UTF-8");
            }
        };
        let (table, faults) = DeTable::parse_recoverable(text);
        let mut broken = BTreeSet::new();
        for fault in faults {
            let line = fault.span().map_or(0, |span| line_of(bytes, span.start));
            // The message alone: the rest would quote the line, and there may be a secret in it.
            if broken.insert(line) {
                let name = fault.span().and_then(|span| text.get(span)).filter(|name| is_bare(name));
                let message = match (fault.message(), name) {
                    (message @ "duplicate key", Some(name)) => format!("{message} `{name}`"),
                    (message, _) => printable(message),
                };
                self.problem(Source::File { line }, message);
            }
        }
        for (section, value) in table.get_ref() {
            let line = line_of(bytes, section.span().start);
            let name = section.get_ref().as_ref();
            let is_section = KEYS.iter().any(|key| key.section() == name);
            match value.get_ref() {
                DeValue::Table(members) if is_section => self.section(bytes, &broken, name, members),
                _ if broken.contains(&line) => {}
                _ if is_section => {
                    self.problem(Source::File { line }, format!("`{name}` is a section; write [{name}]"));
                }
                _ => {
                    let message = format!("`{}` is no setting; {}", printable(name), instead_of(name));
                    self.problem(Source::File { line }, message);
                }
            }
        }
    }

    fn section(&mut self, bytes: &[u8], broken: &BTreeSet<usize>, section: &str, members: &DeTable<'_>) {
        for (member, value) in members {
            let line = line_of(bytes, member.span().start);
            // What is left of a line that could not be read says nothing.
            if broken.contains(&line) || broken.contains(&line_of(bytes, value.span().start)) {
                continue;
            }
            let name = format!("{section}.{}", member.get_ref());
            match KEYS.iter().find(|key| key.name == name) {
                Some(key) => self.set(key, Source::File { line }, &written(value)),
                None => {
                    let message = format!("`{}` is no setting; {}", printable(&name), instead_of(&name));
                    self.problem(Source::File { line }, message);
                }
            }
        }
    }

    fn environment(&mut self, variables: &[(String, Option<String>)]) {
        let mut variables: Vec<_> =
            variables.iter().filter(|(name, _)| name.starts_with("HANDOFFD_")).collect();
        variables.sort();
        for (name, value) in variables {
            let source = Source::Environment(printable(name));
            match (KEYS.iter().find(|key| key.variable() == *name), value) {
                (Some(key), Some(value)) => self.set(key, source, &Written::Word(value.clone())),
                (Some(key), None) => {
                    self.unsound.insert(key.name);
                    self.problem(source, "is not UTF-8");
                }
                (None, value) if is_not_ours(name, value.as_deref()) => {}
                (None, _) => {
                    let names: Vec<String> = KEYS.iter().map(Key::variable).collect();
                    let hint = match nearest(name, names.iter().map(String::as_str)) {
                        Some(name) => format!("did you mean {name}?"),
                        None => "`handoffd serve --print-config` lists every setting".to_owned(),
                    };
                    self.problem(source, format!("is no setting; {hint}"));
                }
            }
        }
    }

    /// What only shows when everything is together.
    fn end(mut self) -> Result<Effective, Vec<Problem>> {
        let tls = self.settings.tls.clone();
        let wants_certificates = tls.client_certificates != ClientCertificates::Off;
        let contradictions = [
            (tls.certificate.is_some() && tls.private_key.is_none(), "tls.certificate", "tls.private_key"),
            (tls.private_key.is_some() && tls.certificate.is_none(), "tls.private_key", "tls.certificate"),
            (tls.client_ca.is_some() && tls.certificate.is_none(), "tls.client_ca", "tls.certificate"),
            (tls.client_ca.is_some() && !wants_certificates, "tls.client_ca", "tls.client_certificates"),
            (wants_certificates && tls.client_ca.is_none(), "tls.client_certificates", "tls.client_ca"),
        ];
        for (is_so, key, missing) in contradictions {
            if is_so && !self.unsound.contains(key) && !self.unsound.contains(missing) {
                let source = self.sources.get(key).cloned().unwrap_or(Source::Default);
                self.problem(source, format!("{key} says nothing without {missing}; set both or neither"));
            }
        }
        let ai = &self.settings.ai;
        if ai.api_key.is_some() && ai.api_key_file.is_some() {
            let source = self.sources.get("ai.api_key_file").cloned().unwrap_or(Source::Default);
            self.problem(
                source,
                "ai.api_key and ai.api_key_file both give the key; set one of them".to_owned(),
            );
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let mut effective =
            Effective { settings: self.settings, warnings: Vec::new(), sources: self.sources };
        let listen = effective.settings.server.listen;
        if !listen.ip().to_canonical().is_loopback() && tls.certificate.is_none() {
            effective.warnings.push(format!(
                "server.listen is {listen}, which other machines can reach, and there is no TLS: tokens can be read \
                 on the way; set tls.certificate, or listen on 127.0.0.1 behind a proxy that speaks TLS"
            ));
        }
        let is_on_the_command_line =
            |key: &&Key| matches!(effective.source(key), Source::Flag(_)) && effective.has_secret(key);
        if let Some(key) = KEYS.iter().find(is_on_the_command_line) {
            let (flag, variable) = (key.flag.unwrap_or_default(), key.variable());
            effective
                .warnings
                .push(format!("{flag} has a secret in it that `ps` shows to everybody; use {variable}"));
        }
        Ok(effective)
    }
}

/// The line of a byte, from 1.
fn line_of(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

fn written(value: &Spanned<DeValue<'_>>) -> Written {
    match value.get_ref() {
        DeValue::String(text) => Written::Text(text.to_string()),
        DeValue::Integer(number) => {
            Written::Number(u64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Boolean(flag) => Written::Flag(*flag),
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
            texts.map_or(Written::Other("a list of something else"), Written::List)
        }
        DeValue::Float(_) => Written::Other("a number with a fraction"),
        DeValue::Datetime(_) => Written::Other("a date"),
        DeValue::Table(_) => Written::Other("a table"),
    }
}

/// A key as it is written without quotes: what is anything else could be a part of a value.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// What somebody may have meant by a name that is none.
fn instead_of(name: &str) -> String {
    let (section, last) = name.split_once('.').unwrap_or(("", name));
    let in_section = || KEYS.iter().filter(|key| key.section() == section);
    let elsewhere = || KEYS.iter().find(|key| key.last() == last).map(|key| key.name);
    let found = if section.is_empty() {
        let near = nearest(name, KEYS.iter().map(Key::section)).map(|section| format!("[{section}]"));
        near.or_else(|| elsewhere().map(str::to_owned))
    } else {
        let near = nearest(last, in_section().map(Key::last)).map(|last| format!("{section}.{last}"));
        near.or_else(|| elsewhere().map(str::to_owned))
    };
    match found {
        Some(name) => format!("did you mean `{name}`?"),
        None if section.is_empty() => {
            let mut sections: Vec<_> = KEYS.iter().map(|key| format!("[{}]", key.section())).collect();
            sections.dedup();
            format!("the sections are {}", sections.join(", "))
        }
        None => {
            let names: Vec<_> = in_section().map(|key| format!("`{}`", key.last())).collect();
            format!("[{section}] has {}", names.join(", "))
        }
    }
}

/// A slip of the hand: two letters, if most of the name is as it should be, or the case of some.
fn nearest<'k>(name: &str, candidates: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let (apart, best) = candidates.map(|candidate| (distance(candidate, name), candidate)).min()?;
    (apart <= 2 && 2 * apart <= best.len() || best.eq_ignore_ascii_case(name)).then_some(best)
}

/// Variables that belong to the command line, and those that Kubernetes sets in every container beside a
/// service called `handoffd` or `handoffd-something`: a daemon that stopped at them could not run there.
fn is_not_ours(name: &str, value: Option<&str>) -> bool {
    if matches!(
        name,
        "HANDOFFD_WORKSPACE" | "HANDOFFD_URL" | "HANDOFFD_TOKEN" | "HANDOFFD_CERT" | "HANDOFFD_KEY"
    ) {
        return true;
    }
    let is_port = |rest: &str| {
        let mut parts = rest.split('_');
        let number = parts.next().unwrap_or_default();
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
            && matches!(parts.next(), None | Some("PROTO" | "PORT" | "ADDR"))
            && parts.next().is_none()
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        // By its value too: somebody who writes HANDOFFD_SERVER_PORT=80 is to hear that there is no such thing.
        || name.ends_with("_PORT") && value.is_some_and(|value| value.contains("://"))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| is_port(rest))
}
