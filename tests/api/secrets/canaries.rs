//! What is planted, what it is, and where it may be seen.

use std::sync::Mutex;

use super::forms::Forms;

/// What a text is decides where it may be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What lets somebody act, or proves who they are; and what was never taken in.
    Secret,
    /// What a TaskSpec or a message asks for: kept beside the ledger, for those who have to do with it.
    Work,
    /// What people and agents say about it, and whom and what it refers to: in the ledger.
    Words,
    /// What a thing or somebody is called by.
    Name,
}

/// Where somebody could look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    /// The answers to the sender, and what operators and auditors are shown of one handoff.
    Own,
    /// The console, to an operator.
    Console,
    /// Lists and the state, to those who may read them.
    Lists,
    /// The ledger: exports, the audit, and the sink.
    Ledger,
    /// The log, at its most talkative.
    Log,
    /// Spans, as a collector gets them.
    Traces,
    Metrics,
    /// Settings as they are printed, what `doctor` says, and why a start is refused.
    Settings,
    /// Answers to somebody who has nothing to do with it, and to nobody known.
    Stranger,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Secret, Self::Work, Self::Words, Self::Name];

    /// Where it may be seen. Nowhere else.
    pub(super) fn seen(self) -> &'static [Surface] {
        use Surface::{Console, Ledger, Lists, Log, Own, Traces};
        match self {
            Self::Secret => &[],
            Self::Work => &[Own, Console],
            Self::Words => &[Own, Console, Lists, Ledger],
            Self::Name => &[Own, Console, Lists, Ledger, Log, Traces],
        }
    }

    /// As `docs/threat-model.md` calls it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Work => "work",
            Self::Words => "words",
            Self::Name => "name",
        }
    }
}

/// Every place where something is planted, what it is there, and how often at least. `docs/threat-model.md` has the same.
pub(super) const PLACES: &[(&str, Kind, usize)] = &[
    ("a token, also one that is wrong", Kind::Secret, 29),
    ("the gateway's own key", Kind::Secret, 1),
    ("a shared key, of every purpose", Kind::Secret, 20),
    ("an envelope's signature", Kind::Secret, 2),
    ("a signed request: its nonce, its signature", Kind::Secret, 2),
    ("a receipt, a dispatch signature", Kind::Secret, 2),
    ("a session, a link that works once, a form's word", Kind::Secret, 3),
    ("headers: Authorization, Cookie, User-Agent, Referer and others", Kind::Secret, 24),
    ("a query, or a path that leads nowhere", Kind::Secret, 24),
    ("a webhook: its path, its token, its credentials", Kind::Secret, 12),
    ("settings: the database's password, headers for a collector, the model gateway's key", Kind::Secret, 5),
    ("the private key for TLS", Kind::Secret, 1),
    ("a body that was not taken: torn, or with members that nobody knows", Kind::Secret, 56),
    ("an evidence packet, which is answered and not kept", Kind::Secret, 35),
    ("source.sessionId", Kind::Work, 4),
    ("target.capability", Kind::Work, 1),
    ("intent.summary", Kind::Work, 4),
    ("intent.input, names and values", Kind::Work, 32),
    ("acceptance.doneWhen, acceptance.expectedArtifacts", Kind::Work, 12),
    ("rollback.trigger", Kind::Work, 4),
    ("audit.requestId, audit.traceId", Kind::Work, 12),
    ("proposed_by, review_reason", Kind::Work, 2),
    ("the envelope's delegateAgent.sessionId", Kind::Work, 2),
    ("an A2A message: its text, data, files and metadata", Kind::Work, 32),
    ("a reason that is filled in on a page and not sent", Kind::Work, 12),
    ("a JSON-RPC request: its id, a method that nobody knows", Kind::Work, 7),
    ("inputSchemaRef, planRef", Kind::Work, 2),
    ("a mention's bots, proof.keyId, loop_id", Kind::Work, 4),
    ("members of allowlists and scope", Kind::Work, 7),
    ("the envelope's binding", Kind::Work, 4),
    (
        "whom and what it refers to: parentHandoffId, principal.id, policyRef, authorizationRef, fallbackAgentId, a mention's channel",
        Kind::Words,
        6,
    ),
    ("a token's principal", Kind::Words, 1),
    ("a route's probeUrl and fallbackProbeUrl", Kind::Words, 4),
    ("what an agent reports: artifacts, why it is blocked or failed", Kind::Words, 5),
    (
        "an operator's reason: freeze, phase, gate, rollback, block, grant, approval, policy set, false positive",
        Kind::Words,
        11,
    ),
    ("evidence of a run", Kind::Words, 2),
    ("handoffId, correlationId, idempotencyKey", Kind::Name, 18),
    ("agents, route and operation, also unknown ones", Kind::Name, 3),
    ("a mention's messageId", Kind::Name, 2),
    ("an A2A message's messageId and contextId", Kind::Name, 8),
    ("names of tokens and keys", Kind::Name, 25),
];

/// Everything that was planted.
#[derive(Default)]
pub(super) struct Canaries(Mutex<Planted>);

#[derive(Default)]
struct Planted {
    /// Each with its place.
    all: Vec<(&'static str, Kind, String)>,
    /// What each looks like, by its number.
    forms: Forms,
}

impl Canaries {
    /// A new one, of letters and digits that stand nowhere else.
    pub(super) fn plant(&self, place: &'static str) -> String {
        let number = self.0.lock().unwrap().all.len();
        let text = format!("canary{number:04}zq{:08x}", 0x9e37_79b9_u32.wrapping_mul(number as u32 + 1));
        self.is(place, &text);
        text
    }

    /// One of digits alone.
    pub(super) fn plant_number(&self, place: &'static str) -> String {
        let number = self.0.lock().unwrap().all.len();
        let text = format!("9{number:04}{:010}", 0x9e37_79b9_u32.wrapping_mul(number as u32 + 1));
        self.is(place, &text);
        text
    }

    /// One that somebody else chose.
    pub(super) fn is(&self, place: &'static str, text: &str) {
        let row = PLACES.iter().find(|(known, ..)| *known == place);
        let (place, kind, _) = row.unwrap_or_else(|| panic!("`{place}` has no row"));
        assert!(text.len() >= 12, "{place}: `{text}` may stand anywhere");
        let mut planted = self.0.lock().unwrap();
        let number = planted.all.len();
        planted.forms.add(number, text);
        planted.all.push((place, *kind, text.to_owned()));
    }

    /// Nothing is in there that may not be.
    #[track_caller]
    pub(super) fn look(&self, surface: Surface, place: &str, text: &str) {
        self.look_but_for(&[], surface, place, text);
    }

    /// The same, but for what was planted in these places.
    #[track_caller]
    pub(super) fn look_but_for(&self, places: &[&str], surface: Surface, place: &str, text: &str) {
        let planted = self.0.lock().unwrap();
        for (number, form) in planted.forms.found_in(text.as_bytes()) {
            let (from, kind, canary) = &planted.all[number];
            assert!(
                places.contains(from) || kind.seen().contains(&surface),
                "{kind:?} of `{from}` is in {surface:?} ({place}), `{canary}` as `{form}`: {text}"
            );
        }
    }

    /// All of this kind is in there: what is looked for can be found.
    #[track_caller]
    pub(super) fn present(&self, kind: Kind, surface: &str, text: &str) {
        for (place, _, canary) in self.0.lock().unwrap().all.iter().filter(|(_, other, _)| *other == kind) {
            assert!(text.contains(canary), "`{place}` ({canary}) is not in {surface}");
        }
    }

    /// Every place was planted as often as its row says; how many secrets there are, and how many texts in all.
    pub(super) fn count(&self) -> (usize, usize) {
        let all = &self.0.lock().unwrap().all;
        for (place, _, least) in PLACES {
            let planted = all.iter().filter(|(known, ..)| known == place).count();
            assert!(planted >= *least, "{planted} of {least} in `{place}`");
        }
        (all.iter().filter(|(_, kind, _)| *kind == Kind::Secret).count(), all.len())
    }
}

/// Both tables as `docs/threat-model.md` has them.
pub(super) fn tables() -> [String; 2] {
    use Surface::{Console, Ledger, Lists, Log, Metrics, Own, Settings, Stranger, Traces};
    let surfaces = [
        (Own, "its own handoff"),
        (Console, "console"),
        (Lists, "lists, state file"),
        (Ledger, "ledger, exports, sink"),
        (Log, "log"),
        (Traces, "traces"),
        (Metrics, "metrics"),
        (Settings, "`--print-config`, `doctor`, a refused start"),
        (Stranger, "answers to others"),
    ];
    let mut seen = format!("| |{}\n", surfaces.map(|(_, name)| format!(" {name} |")).concat());
    seen.push_str(&format!("| --- |{}\n", " --- |".repeat(surfaces.len())));
    for kind in Kind::ALL {
        let cells = surfaces.map(|(surface, _)| if kind.seen().contains(&surface) { " yes |" } else { " |" });
        seen.push_str(&format!("| {} |{}\n", kind.word(), cells.concat()));
    }
    let mut places = "| planted in | is |\n| --- | --- |\n".to_owned();
    for (place, kind, _) in PLACES {
        places.push_str(&format!("| {place} | {} |\n", kind.word()));
    }
    [seen, places]
}
