//! Freezes: the kill switch. What is frozen, since when, by whom and why.
//!
//! A freeze holds for every decision that is sequenced after it, until it is lifted. Anybody who may stop work may
//! set one, and setting it again changes nothing; lifting is an operator's act and names exactly what was frozen.
//!
//! Deliberately absent: what was in flight when a freeze came, which the engine knows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::contract::{BodySchema, Finding, Mode, distance};
use crate::json::{Document, printable};
use crate::timestamp::Timestamp;
use crate::wire::{Fact, FactFault, Kind, Payload, Sender};

/// The body of `POST /v1/freeze` and `DELETE /v1/freeze`.
pub static FREEZE_BODY: BodySchema = BodySchema::new(include_str!("../docs/schemas/freeze.schema.json"));

/// What a freeze stops: everything, unless it names a route or a mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreezeScope {
    pub route_key: Option<String>,
    pub mode: Option<Mode>,
}

impl FreezeScope {
    pub const ALL: Self = Self { route_key: None, mode: None };

    pub fn mode(mode: Mode) -> Self {
        Self { mode: Some(mode), ..Self::ALL }
    }

    pub fn route(route_key: &str) -> Self {
        Self { route_key: Some(route_key.to_owned()), ..Self::ALL }
    }

    fn stops(&self, route_key: Option<&str>, mode: Option<Mode>) -> bool {
        self.route_key.as_deref().is_none_or(|key| route_key == Some(key))
            && self.mode.is_none_or(|other| mode == Some(other))
    }
}

impl fmt::Display for FreezeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.route_key, self.mode) {
            (None, None) => f.write_str("everything"),
            (None, Some(mode)) => write!(f, "mode {}", mode.as_str()),
            (Some(key), None) => write!(f, "route `{}`", printable(key)),
            (Some(key), Some(mode)) => write!(f, "route `{}` in mode {}", printable(key), mode.as_str()),
        }
    }
}

/// A freeze that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeze {
    pub scope: FreezeScope,
    /// The operator, or the administrator's token.
    pub by: String,
    pub at: Timestamp,
    pub reason: String,
    /// The entry that set it: decisions behind it are stopped.
    pub from_sequence: u64,
}

/// All freezes that hold. There are few, and one that is copied is a pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Freezes(Arc<BTreeMap<FreezeScope, Freeze>>);

/// The payload of `freeze.set`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeSet {
    pub mode: Option<Mode>,
    pub reason: String,
    pub route_key: Option<String>,
    /// The administrator's token, where no person sets it.
    pub set_by: Option<String>,
}

/// The payload of `freeze.lifted`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeLifted {
    pub mode: Option<Mode>,
    pub reason: String,
    pub route_key: Option<String>,
}

impl FreezeSet {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text_if("mode", self.mode.map(Mode::as_str));
        payload.text("reason", &self.reason);
        payload.text_if("route_key", self.route_key.as_deref());
        payload.text_if("set_by", self.set_by.as_deref());
    }
}

impl FreezeLifted {
    /// Members in the order of their names.
    pub fn write(&self, payload: &mut Payload<'_, '_>) {
        payload.text_if("mode", self.mode.map(Mode::as_str));
        payload.text("reason", &self.reason);
        payload.text_if("route_key", self.route_key.as_deref());
    }
}

/// What somebody asks to be frozen, or lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreezeAsk {
    pub scope: FreezeScope,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Body {
    /// One of its words, says the schema; [`misfits`] reads it.
    #[serde(rename = "scope")]
    _scope: String,
    mode: Option<Mode>,
    route_key: Option<String>,
    reason: String,
}

impl FreezeAsk {
    /// What is asked for, or everything that is wrong with the body. A body that says two things at once is refused:
    /// whoever stops something in a hurry must not stop less than they think.
    pub fn read(document: &Document<'_>) -> Result<Self, Vec<Finding>> {
        let misfits = misfits(document);
        match FREEZE_BODY.read(document) {
            Ok(Body { mode, route_key, reason, .. }) if misfits.is_empty() => {
                Ok(Self { scope: FreezeScope { route_key, mode }, reason })
            }
            Ok(_) => Err(misfits),
            Err(findings) => Err(findings.into_iter().chain(misfits).collect()),
        }
    }

    /// Is the route that is named one of these? A kill switch with a mistyped name would stop nothing.
    pub fn names_one_of<'r>(&self, routes: impl Iterator<Item = &'r str>) -> Result<(), Finding> {
        let Some(asked) = &self.scope.route_key else { return Ok(()) };
        let mut closest: Option<(usize, &str)> = None;
        for route in routes {
            if route == asked {
                return Ok(());
            }
            let far = distance(asked, route);
            if closest.is_none_or(|(other, _)| far < other) {
                closest = Some((far, route));
            }
        }
        let hint = match closest {
            Some((far, route)) if far <= asked.len() / 3 => format!("did you mean `{}`", printable(route)),
            _ => "GET /v1/routes lists them".to_owned(),
        };
        Err(Finding::new("/routeKey", format!("there is no route `{}`", printable(asked)), hint))
    }
}

/// What is missing for the scope, or does not go with it; nothing where the scope is none.
fn misfits(document: &Document<'_>) -> Vec<Finding> {
    let body = document.root();
    let Some(scope @ ("all" | "mode" | "route")) = body.get("scope").and_then(|scope| scope.as_str()) else {
        return Vec::new();
    };
    let misfit = |(name, word): (&str, &str)| {
        let pointer = format!("/{name}");
        match (body.get(name).is_some(), scope == word) {
            (false, true) => {
                let hint = format!("name it, or use another scope than {word}");
                Some(Finding::new(pointer, format!("`{name}` is missing"), hint))
            }
            (true, false) => {
                let message = format!("`{name}` does not go with this scope");
                Some(Finding::new(pointer, message, format!("leave it out, or use scope {word}")))
            }
            (true, true) | (false, false) => None,
        }
    };
    [("mode", "mode"), ("routeKey", "route")].into_iter().filter_map(misfit).collect()
}

/// Why a freeze cannot be lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFrozen {
    pub asked: FreezeScope,
    /// What is.
    pub frozen: Vec<FreezeScope>,
}

impl NotFrozen {
    /// Wire contract: a code is never renamed and never reused.
    pub fn code(&self) -> &'static str {
        "FREEZE_NOT_SET"
    }

    pub fn hint(&self) -> &'static str {
        "lift exactly what was frozen"
    }
}

impl fmt::Display for NotFrozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not frozen by itself; frozen: ", self.asked)?;
        if self.frozen.is_empty() {
            return f.write_str("nothing");
        }
        for (n, scope) in self.frozen.iter().enumerate() {
            write!(f, "{}{scope}", if n == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for NotFrozen {}

impl Freezes {
    /// Takes in what the ledger says.
    pub fn take(&mut self, fact: &Fact<'_>) -> Result<(), FactFault> {
        match fact.kind {
            Kind::FreezeSet => {
                let FreezeSet { mode, reason, route_key, set_by } = fact.read()?;
                let scope = FreezeScope { route_key, mode };
                let by = match fact.sender {
                    Sender::Human(name) => name.to_owned(),
                    _ => set_by.unwrap_or_else(|| "system".to_owned()),
                };
                let (at, from_sequence) = (fact.at, fact.sequence);
                let freeze = Freeze { scope: scope.clone(), by, at, reason, from_sequence };
                // Set again, it has held since the first time.
                Arc::make_mut(&mut self.0).entry(scope).or_insert(freeze);
                Ok(())
            }
            Kind::FreezeLifted => {
                let FreezeLifted { mode, route_key, .. } = fact.read()?;
                let lifted = Arc::make_mut(&mut self.0).remove(&FreezeScope { route_key, mode });
                lifted.map(drop).ok_or_else(|| fact.fault("it lifts what was not frozen"))
            }
            _ => Ok(()),
        }
    }

    /// What stops a handoff on this route in this mode: the widest freeze that does. One that names what is not known of
    /// the handoff does not.
    pub fn halts(&self, route_key: Option<&str>, mode: Option<Mode>) -> Option<&Freeze> {
        // Everything comes first, then modes, then routes: that is how scopes sort.
        self.0.values().find(|freeze| freeze.scope.stops(route_key, mode))
    }

    /// The freeze of exactly that scope.
    pub fn find(&self, scope: &FreezeScope) -> Option<&Freeze> {
        self.0.get(scope)
    }

    /// Is there exactly this to lift?
    pub fn may_lift(&self, scope: &FreezeScope) -> Result<&Freeze, NotFrozen> {
        let not_frozen = || NotFrozen { asked: scope.clone(), frozen: self.0.keys().cloned().collect() };
        self.find(scope).ok_or_else(not_frozen)
    }

    pub fn all(&self) -> impl Iterator<Item = &Freeze> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests;
