//! What an event may say, and who may say it: rules over facts that are given in.
//!
//! Deliberately absent: where the facts come from. The reducer gives those that a stream itself holds; the gateway
//! adds what it knows of the route.

use super::contracts::Contracts;
use super::envelope::Envelope;
use super::event::Sender;
use super::fault::{WireCode, WireFault};
use super::kind::Kind;
use super::task::Artifact;
use crate::json::printable;
use crate::limits;

/// Who has to do with a handoff.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parties<'p> {
    /// Who handed over.
    pub source: Option<&'p str>,
    /// The target, and the route's primary, aliases and fallback; nothing where the route is not known.
    pub claimants: Option<&'p [&'p str]>,
    /// Who has claimed it.
    pub claimer: Option<&'p str>,
    pub halt: Option<Halt>,
}

/// Why nothing is taken in from agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    Frozen,
    Blocked,
    RolledBack,
}

/// On whose side of a handoff an agent speaks. One agent hands over here and takes work there, and what it is given to
/// show says for which of the two it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Of whoever handed over.
    Source,
    /// Of whoever may take the work, or has.
    Target,
}

impl Side {
    /// Is this agent on this side of the handoff?
    pub fn is_of(self, agent: &str, parties: &Parties<'_>) -> bool {
        match self {
            Self::Source => parties.source == Some(agent),
            Self::Target => {
                parties.claimer == Some(agent)
                    || parties.claimants.is_some_and(|claimants| claimants.contains(&agent))
            }
        }
    }

    /// May an agent say this on this side? The source takes work back and the target reports on it; both may ask.
    pub fn may_say(self, kind: Kind) -> Result<(), WireFault> {
        let (may, message, hint) = match self {
            Self::Source => (
                matches!(kind, Kind::TaskCancelled | Kind::MessageSent),
                format!("{kind} is not for the source to send"),
                "send it with a token of role agent, of the agent that does the work",
            ),
            Self::Target => (
                kind != Kind::TaskCancelled,
                format!("{kind} is not for whoever does the work to send"),
                "its source may, with a token of role orchestrator, or an operator",
            ),
        };
        if may { Ok(()) } else { Err(wrong_sender(message, hint)) }
    }
}

/// May this sender send an event of this type about this handoff?
pub fn may_send(
    contracts: &Contracts,
    kind: Kind,
    sender: Sender<'_>,
    parties: &Parties<'_>,
) -> Result<(), WireFault> {
    let class = sender.class();
    let senders = contracts.event(kind).map(|rule| rule.senders.as_slice()).unwrap_or_default();
    if !senders.contains(&class) {
        let words: Vec<&str> = senders.iter().map(|class| class.as_str()).collect();
        return Err(wrong_sender(
            format!("{kind} is not for `{}` to send", class.as_str()),
            format!("it comes from {}", words.join(" or ")),
        ));
    }
    let Sender::Agent(agent) = sender else { return halted(kind, sender, parties) };
    let shown = printable(agent);
    match (kind, parties) {
        (Kind::TaskClaimed, Parties { claimants: Some(claimants), .. }) if !claimants.contains(&agent) => {
            return Err(wrong_sender(
                format!("`{shown}` may not claim this handoff"),
                "the target, and the primary, the aliases and the fallback of its route may",
            ));
        }
        (Kind::TaskCancelled, Parties { source, .. }) if *source != Some(agent) => {
            return Err(wrong_sender(
                format!("`{shown}` may not cancel this handoff"),
                "its source or an operator may",
            ));
        }
        (kind, Parties { claimer: Some(claimer), .. }) if is_report(kind) && *claimer != agent => {
            return Err(wrong_sender(
                format!("`{shown}` has not claimed this handoff"),
                "only the agent that claimed it reports on it",
            ));
        }
        _ => {}
    }
    halted(kind, sender, parties)
}

/// What only the claimer may say.
fn is_report(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::TaskStarted | Kind::TaskBlocked | Kind::ArtifactReady | Kind::TaskComplete | Kind::TaskFailed
    )
}

/// A halted handoff takes in nothing but what ends it from outside: the gateway's own word, and a cancellation.
fn halted(kind: Kind, sender: Sender<'_>, parties: &Parties<'_>) -> Result<(), WireFault> {
    let (Some(halt), false) = (parties.halt, sender == Sender::System || kind == Kind::TaskCancelled) else {
        return Ok(());
    };
    let (message, hint) = match halt {
        Halt::Frozen => ("the route is frozen", "wait until an operator lifts the freeze"),
        Halt::Blocked => ("the route is blocked", "wait until an operator lifts the rollback"),
        Halt::RolledBack => ("the handoff was rolled back", "hand the work over again under a new handoffId"),
    };
    Err(WireFault::new(WireCode::Halted, "/stream/stream_id", message, hint))
}

fn wrong_sender(message: String, hint: impl Into<String>) -> WireFault {
    WireFault::new(WireCode::Sender, "/sender", message, hint)
}

/// The artifact that an `artifact.ready` announces, and where it goes among those that are ready.
pub(super) fn announced(
    envelope: &Envelope<'_>,
    ready: &[Artifact],
) -> Result<(Option<usize>, Artifact), WireFault> {
    let payload = envelope.payload();
    let text = |name| payload.text(name).unwrap_or_default().to_owned();
    let artifact = Artifact {
        artifact_id: text("artifact_id"),
        uri: text("uri"),
        version: payload.count("version").unwrap_or_default(),
        hash: text("hash"),
        // Left open it is final: what a completion must name is never less than what was announced.
        is_final: payload.flag("final").unwrap_or(true),
        lineage: payload.texts("lineage").map(str::to_owned).collect(),
    };
    let known = ready.iter().position(|other| other.artifact_id == artifact.artifact_id);
    match known.and_then(|at| ready.get(at)) {
        Some(other) if other.version >= artifact.version => {
            let (id, version) = (printable(&artifact.artifact_id), other.version);
            Err(WireFault::new(
                WireCode::Artifact,
                "/payload/version",
                format!("`{id}` is ready as version {version} already"),
                "announce a higher version, or another artifact",
            ))
        }
        None if ready.len() >= limits::STREAM_ARTIFACTS_MAX => Err(WireFault::new(
            WireCode::Artifact,
            "/payload/artifact_id",
            format!("the stream has {} artifacts", limits::STREAM_ARTIFACTS_MAX),
            "put further ones into one artifact that refers to them",
        )),
        _ => Ok((known, artifact)),
    }
}

/// Does a `task.complete` name only artifacts that are ready, and all that are final?
pub(super) fn completes(envelope: &Envelope<'_>, ready: &[Artifact]) -> Result<(), WireFault> {
    const AT: &str = "/payload/artifact_ids";
    let named: Vec<&str> = envelope.payload().texts("artifact_ids").collect();
    let is_ready = |id: &str| ready.iter().any(|artifact| artifact.artifact_id == id);
    if let Some((at, id)) = named.iter().enumerate().find(|(_, id)| !is_ready(id)) {
        let message = format!("`{}` is not ready in this stream", printable(id));
        let hint = "announce it with artifact.ready first";
        return Err(WireFault::new(WireCode::Artifact, AT, message, hint).item(at));
    }
    let left_out =
        ready.iter().find(|artifact| artifact.is_final && !named.contains(&&*artifact.artifact_id));
    if let Some(artifact) = left_out {
        let message = format!("`{}` is final and is not named", printable(&artifact.artifact_id));
        let hint = "name every final artifact of the stream";
        return Err(WireFault::new(WireCode::Artifact, AT, message, hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMANTS: [&str; 4] = ["target", "primary", "alias", "fallback"];

    fn check(kind: Kind, sender: &str, claimer: Option<&str>, halt: Option<Halt>, code: Option<WireCode>) {
        let parties = Parties { source: Some("source"), claimants: Some(&CLAIMANTS), claimer, halt };
        let sender = Sender::parse(sender).unwrap();
        let said = may_send(Contracts::embedded(), kind, sender, &parties);
        assert_eq!(said.err().map(|fault| fault.code), code, "{kind} by {sender:?}, {claimer:?}, {halt:?}");
    }

    #[test]
    fn the_target_and_those_of_its_route_may_claim() {
        for agent in CLAIMANTS {
            check(Kind::TaskClaimed, &format!("agent:{agent}"), None, None, None);
        }
        for sender in ["agent:source", "agent:stranger", "human:target", "system", "runner:target"] {
            check(Kind::TaskClaimed, sender, None, None, Some(WireCode::Sender));
        }
        // Where the route is not known, whoever claims is taken at its word.
        let sender = Sender::Agent("stranger");
        assert_eq!(may_send(Contracts::embedded(), Kind::TaskClaimed, sender, &Parties::default()), Ok(()));
    }

    #[test]
    fn only_the_claimer_reports() {
        let reports =
            [Kind::TaskStarted, Kind::TaskBlocked, Kind::ArtifactReady, Kind::TaskComplete, Kind::TaskFailed];
        for kind in reports {
            check(kind, "agent:primary", Some("primary"), None, None);
            for sender in ["agent:fallback", "agent:source", "human:primary", "runner:primary"] {
                check(kind, sender, Some("primary"), None, Some(WireCode::Sender));
            }
        }
        // Nobody is shut out by a claim in what is not a report.
        check(Kind::MessageSent, "agent:fallback", Some("primary"), None, None);
        check(Kind::TaskFailed, "system", Some("primary"), None, None);
    }

    #[test]
    fn the_source_or_an_operator_may_cancel() {
        check(Kind::TaskCancelled, "agent:source", Some("primary"), None, None);
        check(Kind::TaskCancelled, "human:rita", None, None, None);
        for sender in ["agent:primary", "agent:stranger", "system", "runner:source"] {
            check(Kind::TaskCancelled, sender, Some("primary"), None, Some(WireCode::Sender));
        }
    }

    #[test]
    fn each_side_speaks_for_itself() {
        let parties =
            |claimer| Parties { source: Some("source"), claimants: Some(&CLAIMANTS), claimer, halt: None };
        for (agent, is_source, is_target) in [
            ("source", true, false),
            ("target", false, true),
            ("gone", false, true),
            ("stranger", false, false),
        ] {
            assert_eq!(Side::Source.is_of(agent, &parties(Some("gone"))), is_source, "{agent}");
            assert_eq!(Side::Target.is_of(agent, &parties(Some("gone"))), is_target, "{agent}");
        }
        let says = |side: Side, kind| side.may_say(kind).is_ok();
        for kind in [Kind::TaskClaimed, Kind::TaskStarted, Kind::TaskComplete, Kind::TaskFailed] {
            assert_eq!((says(Side::Source, kind), says(Side::Target, kind)), (false, true), "{kind}");
        }
        assert_eq!(
            (says(Side::Source, Kind::TaskCancelled), says(Side::Target, Kind::TaskCancelled)),
            (true, false)
        );
        assert_eq!(
            (says(Side::Source, Kind::MessageSent), says(Side::Target, Kind::MessageSent)),
            (true, true)
        );
    }

    #[test]
    fn a_halted_handoff_takes_in_only_what_ends_it() {
        for halt in [Halt::Frozen, Halt::Blocked, Halt::RolledBack] {
            let halt = Some(halt);
            check(Kind::TaskClaimed, "agent:target", None, halt, Some(WireCode::Halted));
            check(Kind::TaskComplete, "agent:primary", Some("primary"), halt, Some(WireCode::Halted));
            check(Kind::TaskCancelled, "agent:source", Some("primary"), halt, None);
            check(Kind::TaskCancelled, "human:rita", Some("primary"), halt, None);
            check(Kind::TaskFailed, "system", Some("primary"), halt, None);
            // Who may not speak is told so first.
            check(Kind::TaskClaimed, "agent:stranger", None, halt, Some(WireCode::Sender));
        }
    }
}
