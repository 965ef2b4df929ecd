//! One setting while it is read or shown: where its value lives, what it takes, and its bounds.

use core::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::model::{Choice, Header, LedgerUrl};
use super::units::{self, Network, SecretText};
use super::urls;
use crate::json::printable;
use crate::limits;

/// A value as somebody wrote it.
#[derive(Debug)]
pub(super) enum Written {
    /// From the environment or a flag, which know only text.
    Word(String),
    Text(String),
    /// `None` if it is beyond every bound.
    Number(Option<u64>),
    Flag(bool),
    List(Vec<String>),
    /// Anything else that TOML has, by its name.
    Other(&'static str),
}

/// A value as it is shown, secrets masked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub(super) enum Shown {
    Text(String),
    Number(usize),
    Flag(bool),
    List(Vec<String>),
    NotSet,
}

/// The place of one setting's value. In an optional one, `0` or the empty text is `None`.
pub(super) enum Slot<'s> {
    Address(&'s mut SocketAddr),
    Size(&'s mut usize, RangeInclusive<usize>),
    OptionalSize(&'s mut Option<usize>, RangeInclusive<usize>),
    Count(&'s mut usize, RangeInclusive<usize>),
    OptionalCount(&'s mut Option<usize>, RangeInclusive<usize>),
    /// In milliseconds.
    Time(&'s mut Duration, RangeInclusive<u64>),
    /// In milliseconds, or `forever`.
    Forever(&'s mut Option<Duration>, RangeInclusive<u64>),
    Choice(&'s mut dyn Choice),
    Flag(&'s mut bool),
    Path(&'s mut Option<PathBuf>),
    Web(&'s mut Option<String>),
    Ledger(&'s mut LedgerUrl),
    Headers(&'s mut Vec<Header>),
    Networks(&'s mut Vec<Network>),
    /// Codes of failures, with a trailing `*` for any ending.
    Codes(&'s mut Vec<String>),
    Filter(&'s mut String),
    Name(&'s mut String),
    /// A text that is nobody's to see.
    Secret(&'s mut Option<SecretText>),
    /// Some of these words.
    Words(&'s mut Vec<String>, &'static [&'static str]),
}

const FOREVER: &str = "forever";

impl Slot<'_> {
    /// What it takes, in words.
    pub(super) fn takes(&self) -> String {
        let sizes = |range: &RangeInclusive<usize>| {
            let show = |bytes: &usize| units::show_size(*bytes as u64);
            format!("a size from {} to {}", show(range.start()), show(range.end()))
        };
        let counts =
            |range: &RangeInclusive<usize>| format!("a number from {} to {}", range.start(), range.end());
        let times = |range: &RangeInclusive<u64>| {
            let show = |ms: &u64| units::show_duration(Duration::from_millis(*ms));
            format!("a duration from {} to {}", show(range.start()), show(range.end()))
        };
        match self {
            Self::Address(_) => "an IP address and a port, such as 127.0.0.1:7420".to_owned(),
            Self::Size(_, range) => sizes(range),
            Self::OptionalSize(_, range) => format!("{}, or 0 for no limit", sizes(range)),
            Self::Count(_, range) => counts(range),
            Self::OptionalCount(_, range) => format!("{}, or 0 for no limit", counts(range)),
            Self::Time(_, range) => times(range),
            Self::Forever(_, range) => format!("`{FOREVER}`, or {}", times(range)),
            Self::Choice(choice) => {
                let words: Vec<_> = choice.words().iter().map(|word| format!("`{word}`")).collect();
                words.join(" or ")
            }
            Self::Flag(_) => "true or false".to_owned(),
            Self::Path(_) => "a path".to_owned(),
            Self::Web(_) => "an http:// or https:// URL".to_owned(),
            Self::Ledger(_) => "`segments`, `memory` or a postgres:// URL".to_owned(),
            Self::Headers(_) => "a list of `name=value`".to_owned(),
            Self::Networks(_) => "a list of networks such as 10.0.0.0/8".to_owned(),
            Self::Codes(_) => "a list of codes such as `POLICY_*` or `EXECUTION_TIMEOUT`".to_owned(),
            Self::Filter(_) => {
                "`error`, `warn`, `info`, `debug`, `trace` or `off`, or directives such as `info,handoffd=debug`"
                    .to_owned()
            }
            Self::Name(_) => format!("a text of 1 to {} characters", limits::SETTING_TEXT_CHARS_MAX),
            Self::Secret(_) => {
                format!("a text of 1 to {} ASCII characters without spaces", limits::SETTING_SECRET_CHARS_MAX)
            }
            Self::Words(_, words) => {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("a list of {}", words.join(", "))
            }
        }
    }

    /// Takes a value, or says why not and keeps the one it has.
    pub(super) fn read(self, written: &Written, is_secret: bool) -> Result<(), String> {
        let takes = self.takes();
        let unfit = || {
            let found = match written {
                Written::Word(text) | Written::Text(text) if is_secret && !text.is_empty() => {
                    return format!("takes {takes}");
                }
                Written::Word(text) | Written::Text(text) => format!("`{}`", printable(text)),
                Written::Number(Some(number)) => format!("`{number}`"),
                Written::Number(None) => "a number beyond all bounds".to_owned(),
                Written::Flag(flag) => format!("`{flag}`"),
                Written::List(_) => "a list".to_owned(),
                Written::Other(what) => (*what).to_owned(),
            };
            format!("takes {takes}, not {found}")
        };
        match self {
            Self::Address(slot) => {
                *slot = written.text().and_then(|text| text.parse().ok()).ok_or_else(unfit)?
            }
            Self::Size(slot, range) => *slot = written.size(&range).ok_or_else(unfit)?,
            Self::OptionalSize(slot, range) => {
                *slot = or_off(written.size(&with_off(&range)), &range).ok_or_else(unfit)?
            }
            Self::Count(slot, range) => *slot = written.count(&range).ok_or_else(unfit)?,
            Self::OptionalCount(slot, range) => {
                *slot = or_off(written.count(&with_off(&range)), &range).ok_or_else(unfit)?
            }
            Self::Time(slot, range) => *slot = written.time(&range).ok_or_else(unfit)?,
            Self::Forever(slot, _) if written.text() == Some(FOREVER) => *slot = None,
            Self::Forever(slot, range) => *slot = Some(written.time(&range).ok_or_else(unfit)?),
            Self::Choice(slot) => {
                if !written.text().is_some_and(|word| slot.choose(word)) {
                    return Err(unfit());
                }
            }
            Self::Flag(slot) => *slot = written.flag().ok_or_else(unfit)?,
            Self::Path(slot) => {
                let text = written.text().filter(|text| !text.contains('\0')).ok_or_else(unfit)?;
                *slot = (!text.is_empty()).then(|| PathBuf::from(text));
            }
            Self::Web(slot) => {
                let text = written.text().ok_or_else(unfit)?;
                if !text.is_empty() {
                    urls::check_web(text).map_err(|why| format!("takes a URL that {why}"))?;
                }
                *slot = (!text.is_empty()).then(|| text.to_owned());
            }
            Self::Ledger(slot) => *slot = ledger(written.text().ok_or_else(unfit)?).ok_or_else(unfit)??,
            Self::Headers(slot) => *slot = each(&written.list().ok_or_else(unfit)?, header)?,
            Self::Networks(slot) => {
                let network = |text: &str| text.parse().map_err(|why| format!("`{}` {why}", printable(text)));
                *slot = each(&written.list().ok_or_else(unfit)?, network)?;
            }
            Self::Codes(slot) => *slot = each(&written.list().ok_or_else(unfit)?, code)?,
            Self::Filter(slot) => {
                let text = written.text().filter(|text| is_filter(text)).ok_or_else(unfit)?;
                text.clone_into(slot);
            }
            Self::Name(slot) => {
                let is_name = |text: &&str| {
                    (1..=limits::SETTING_TEXT_CHARS_MAX).contains(&text.chars().count())
                        && !text.chars().any(char::is_control)
                };
                written.text().filter(is_name).ok_or_else(unfit)?.clone_into(slot);
            }
            Self::Secret(slot) => {
                let text = written.text().ok_or_else(unfit)?;
                if text.contains(urls::MASK) {
                    return Err(format!("takes no {}; put the secret back", urls::MASK));
                }
                let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
                if !is_plain || text.len() > limits::SETTING_SECRET_CHARS_MAX {
                    return Err(unfit());
                }
                *slot = (!text.is_empty()).then(|| SecretText::new(text.to_owned()));
            }
            Self::Words(slot, words) => {
                let word = |text: &str| match words.contains(&text) {
                    true => Ok(text.to_owned()),
                    false => Err(format!("`{}` is none of them", printable(text))),
                };
                *slot = each(&written.list().ok_or_else(unfit)?, word)?;
            }
        }
        Ok(())
    }

    pub(super) fn show(&self) -> Shown {
        let size = |bytes: usize| match units::show_size(bytes as u64) {
            plain if plain.bytes().all(|byte| byte.is_ascii_digit()) => Shown::Number(bytes),
            text => Shown::Text(text),
        };
        let text = |text: &Option<String>| text.clone().map_or(Shown::NotSet, Shown::Text);
        match self {
            Self::Address(address) => Shown::Text(address.to_string()),
            Self::Size(bytes, _) => size(**bytes),
            Self::OptionalSize(bytes, _) => size(bytes.unwrap_or_default()),
            Self::Count(count, _) => Shown::Number(**count),
            Self::OptionalCount(count, _) => Shown::Number(count.unwrap_or_default()),
            Self::Time(time, _) => Shown::Text(units::show_duration(**time)),
            Self::Forever(time, _) => {
                Shown::Text(time.map_or_else(|| FOREVER.to_owned(), units::show_duration))
            }
            Self::Choice(choice) => Shown::Text(choice.word().to_owned()),
            Self::Flag(flag) => Shown::Flag(**flag),
            // It came as text, so it is text.
            Self::Path(path) => text(&path.as_ref().map(|path| path.to_string_lossy().into_owned())),
            Self::Web(url) => text(url),
            Self::Ledger(url) => Shown::Text(url.masked()),
            Self::Headers(headers) => {
                Shown::List(headers.iter().map(|header| format!("{}={}", header.name, urls::MASK)).collect())
            }
            Self::Codes(codes) => Shown::List((*codes).clone()),
            Self::Networks(networks) => Shown::List(networks.iter().map(Network::to_string).collect()),
            Self::Filter(words) | Self::Name(words) => Shown::Text((*words).clone()),
            Self::Secret(secret) => {
                secret.as_ref().map_or(Shown::NotSet, |_| Shown::Text(urls::MASK.to_owned()))
            }
            Self::Words(words, _) => Shown::List((*words).clone()),
        }
    }
}

impl Written {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A word that is a number is one; a text in TOML that looks like a number is a text.
    fn count(&self, range: &RangeInclusive<usize>) -> Option<usize> {
        let number = match self {
            Self::Number(number) => (*number)?,
            Self::Word(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok()?,
            _ => return None,
        };
        usize::try_from(number).ok().filter(|number| range.contains(number))
    }

    fn size(&self, range: &RangeInclusive<usize>) -> Option<usize> {
        let bytes = match self {
            Self::Number(number) => (*number)?,
            _ => units::size(self.text()?)?,
        };
        usize::try_from(bytes).ok().filter(|bytes| range.contains(bytes))
    }

    fn time(&self, range: &RangeInclusive<u64>) -> Option<Duration> {
        let time = units::duration(self.text()?)?;
        u64::try_from(time.as_millis()).is_ok_and(|ms| range.contains(&ms)).then_some(time)
    }

    fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Word(word) => word.parse().ok(),
            _ => None,
        }
    }

    /// The environment writes a list with commas.
    fn list(&self) -> Option<Vec<&str>> {
        match self {
            Self::List(items) => Some(items.iter().map(String::as_str).collect()),
            Self::Word(word) => {
                Some(word.split(',').map(str::trim).filter(|item| !item.is_empty()).collect())
            }
            _ => None,
        }
    }
}

fn with_off(range: &RangeInclusive<usize>) -> RangeInclusive<usize> {
    0..=*range.end()
}

/// `None` is unfit, `Some(None)` is off.
fn or_off(number: Option<usize>, range: &RangeInclusive<usize>) -> Option<Option<usize>> {
    match number? {
        0 => Some(None),
        number => range.contains(&number).then_some(Some(number)),
    }
}

fn each<T>(items: &[&str], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    if items.len() > limits::SETTING_LIST_MAX {
        return Err(format!("takes at most {} items, not {}", limits::SETTING_LIST_MAX, items.len()));
    }
    let mut read_items = Vec::new();
    for (n, item) in items.iter().enumerate() {
        read_items.push(read(item).map_err(|why| format!("item {}: {why}", n + 1))?);
    }
    Ok(read_items)
}

/// `None` if it is no ledger at all.
fn ledger(text: &str) -> Option<Result<LedgerUrl, String>> {
    Some(match text {
        "segments" => Ok(LedgerUrl::Segments),
        "memory" => Ok(LedgerUrl::Memory),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            urls::check_postgres(url)
                .map(|()| LedgerUrl::Postgres(SecretText::new(url.to_owned())))
                .map_err(|why| format!("the URL {why}"))
        }
        _ => return None,
    })
}

/// Never quotes what it was given: somebody may have left out the name.
fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once('=').ok_or("is not `name=value`")?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err("has a name that no header can have".to_owned());
    }
    if value.is_empty() || !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return Err("has no value, or one that no header can have".to_owned());
    }
    if value.contains(urls::MASK) {
        return Err(format!("has {} where a secret was; put the secret back", urls::MASK));
    }
    Ok(Header { name: name.to_ascii_lowercase(), value: SecretText::new(value.to_owned()) })
}

/// A code of the ledger, or how some begin.
fn code(text: &str) -> Result<String, String> {
    let start = text.strip_suffix('*').unwrap_or(text);
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if text.is_empty() || text.len() > limits::SETTING_TEXT_CHARS_MAX || !start.bytes().all(plain) {
        return Err(format!("`{}` is no code, nor how codes begin with a `*` behind it", printable(text)));
    }
    Ok(text.to_owned())
}

/// A lone word must be a level. `EnvFilter` would take `inof` for the name of a target, and log nothing else.
fn is_filter(text: &str) -> bool {
    let is_sound = |directive: &str| {
        directive.contains(['=', '['])
            || directive.trim().parse::<LevelFilter>().is_ok_and(|_| {
                // LevelFilter also takes numbers, which nobody reads.
                !directive.trim().bytes().any(|byte| byte.is_ascii_digit())
            })
    };
    // Commas inside a span's braces part fields, not directives.
    let plain = !text.contains('{');
    !text.is_empty() && (!plain || text.split(',').all(is_sound)) && EnvFilter::builder().parse(text).is_ok()
}
