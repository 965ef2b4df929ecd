//! The shape of a TaskSpec as a table, and what of one can be read.

use std::sync::LazyLock;

use handoffd::timestamp::Timestamp;
use serde_json::Value as Json;

/// What a member must be.
enum Rule {
    /// Between so many characters.
    Text(usize, usize),
    /// One of these beginnings, then so many characters of a kind.
    Like(&'static [&'static str], usize, usize, fn(char) -> bool),
    Word(&'static [&'static str]),
    Flag,
    Instant,
    Whole(i64, i64),
    /// At least so many texts, each of between so many characters.
    Texts(usize, usize, usize),
    TextOrNull(usize),
    AnyObject,
    /// Members with a rule; those that must be there are marked.
    Object(Vec<(&'static str, bool, Rule)>),
}

/// A member of a TaskSpec, as far as it could be read.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Field<'s> {
    Absent,
    Unreadable,
    Is(&'s Json),
}

impl<'s> Field<'s> {
    pub(crate) fn text(self) -> Option<&'s str> {
        match self {
            Self::Is(value) => value.as_str(),
            _ => None,
        }
    }

    pub(crate) fn flag(self) -> Option<bool> {
        match self {
            Self::Is(value) => value.as_bool(),
            _ => None,
        }
    }

    pub(crate) fn instant(self) -> Option<Timestamp> {
        self.text().and_then(Timestamp::parse)
    }

    pub(crate) fn texts(self) -> Option<Vec<&'s str>> {
        match self {
            Self::Is(value) => value.as_array()?.iter().map(Json::as_str).collect(),
            _ => None,
        }
    }

    pub(crate) fn is_absent(self) -> bool {
        self == Self::Absent
    }
}

const MUST: bool = true;
const MAY: bool = false;

static TASK_SPEC: LazyLock<Rule> = LazyLock::new(|| {
    use Rule::{AnyObject, Flag, Instant, Like, Object, Text, TextOrNull, Texts, Whole, Word};
    let id = || Like(&["hs_"], 8, 128, |c| c.is_ascii_alphanumeric() || "._:-".contains(c));
    let agent = || Text(2, 64);
    let digits = || Like(&[""], 6, 30, |c| c.is_ascii_digit());
    let channel = || Like(&["discord:channel:", "discord:thread:"], 6, 30, |c| c.is_ascii_digit());
    let class = || Word(&["read", "diagnostic", "sensitive", "live"]);
    let names = |least| Texts(least, 1, 256);
    let policy_ref = || Text(6, 300);
    let hash = || Text(8, 256);
    Object(vec![
        ("taskSpecVersion", MUST, Word(&["1.0", "1.1"])),
        // Of 1.1 alone; which of them must be there is said below.
        ("loop_id", MAY, Like(&["loop_"], 8, 64, |c| matches!(c, '0'..='9' | 'a'..='z'))),
        ("proposed_by", MAY, Text(2, 128)),
        ("risk_profile", MAY, Word(&["low", "medium", "high", "critical"])),
        ("review_depth", MAY, Whole(1, 10)),
        ("review_feedback_required", MAY, Flag),
        ("auto_approve_window", MAY, Whole(0, 86_400)),
        ("review_reason", MAY, Text(0, 1_000)),
        ("handoffId", MUST, id()),
        ("parentHandoffId", MAY, id()),
        ("correlationId", MUST, Text(6, 128)),
        ("createdAt", MUST, Instant),
        ("source", MUST, Object(vec![("agentId", MUST, agent()), ("sessionId", MUST, Text(3, 256))])),
        ("target", MUST, Object(vec![("agentId", MUST, agent()), ("capability", MUST, Text(3, 128))])),
        (
            "routing",
            MUST,
            Object(vec![
                ("strategy", MUST, Word(&["direct", "capability"])),
                ("routeKey", MUST, Text(6, 160)),
                ("fallbackAgentId", MAY, agent()),
            ]),
        ),
        ("mode", MUST, Word(&["dev", "simulated", "live"])),
        (
            "authorship",
            MAY,
            Object(vec![
                ("mode", MAY, Word(&["direct", "delegated-human-proxy"])),
                ("mentionDelegationMode", MAY, Word(&["disabled", "gated"])),
                (
                    "delegationPolicy",
                    MAY,
                    Object(vec![
                        ("policyRef", MUST, policy_ref()),
                        ("allowAgents", MUST, names(1)),
                        ("allowChannels", MUST, names(1)),
                        ("allowTasks", MUST, names(1)),
                    ]),
                ),
                (
                    "envelope",
                    MAY,
                    Object(vec![
                        (
                            "principal",
                            MUST,
                            Object(vec![
                                ("id", MUST, Text(1, 128)),
                                ("type", MAY, Word(&["human", "service-account"])),
                            ]),
                        ),
                        (
                            "delegateAgent",
                            MUST,
                            Object(vec![("agentId", MUST, agent()), ("sessionId", MAY, Text(3, 256))]),
                        ),
                        (
                            "scope",
                            MUST,
                            Object(vec![
                                ("agents", MUST, names(0)),
                                ("channels", MUST, names(0)),
                                ("tasks", MUST, names(0)),
                            ]),
                        ),
                        (
                            "ttl",
                            MUST,
                            Object(vec![("issuedAt", MUST, Instant), ("expiresAt", MUST, Instant)]),
                        ),
                        (
                            "binding",
                            MAY,
                            Object(vec![
                                ("handoffId", MAY, id()),
                                (
                                    "intentHash",
                                    MAY,
                                    Like(&["sha256:"], 64, 64, |c| matches!(c, '0'..='9' | 'a'..='f')),
                                ),
                                ("messageId", MAY, digits()),
                                ("channel", MAY, channel()),
                            ]),
                        ),
                        (
                            "proof",
                            MUST,
                            Object(vec![
                                ("algorithm", MUST, Text(1, 64)),
                                ("signature", MUST, Text(8, 1024)),
                                ("hash", MUST, hash()),
                                ("keyId", MAY, Text(1, 128)),
                            ]),
                        ),
                    ]),
                ),
                (
                    "risk",
                    MAY,
                    Object(vec![
                        ("classification", MUST, class()),
                        ("requiresConfirmation", MAY, Flag),
                        ("authorizationRef", MAY, Text(3, 160)),
                    ]),
                ),
                (
                    "mentionDelegation",
                    MAY,
                    Object(vec![
                        ("channel", MUST, channel()),
                        ("messageId", MUST, digits()),
                        ("originBotId", MUST, Text(2, 128)),
                        ("targetBotId", MUST, Text(2, 128)),
                        ("observedAt", MUST, Instant),
                        ("ttlSeconds", MUST, Whole(5, 3600)),
                        ("dedupeBy", MUST, Word(&["messageId"])),
                    ]),
                ),
            ]),
        ),
        (
            "intent",
            MUST,
            Object(vec![
                ("operation", MUST, Text(3, 128)),
                ("summary", MAY, Text(0, 500)),
                ("inputSchemaRef", MUST, Text(8, 300)),
                ("input", MUST, AnyObject),
            ]),
        ),
        (
            "acceptance",
            MUST,
            Object(vec![("doneWhen", MUST, Texts(1, 3, 280)), ("expectedArtifacts", MAY, Texts(0, 1, 280))]),
        ),
        (
            "safety",
            MUST,
            Object(vec![
                ("e2eActor", MUST, Text(1, 64)),
                ("allowExternalSideEffects", MAY, Flag),
                ("requiresHumanApproval", MAY, Flag),
            ]),
        ),
        // That there must be one is a rule of its own, with a code of its own.
        (
            "rollback",
            MAY,
            Object(vec![
                ("required", MAY, Flag),
                ("planRef", MAY, Text(6, 260)),
                ("trigger", MAY, Text(0, 300)),
            ]),
        ),
        (
            "audit",
            MUST,
            Object(vec![
                ("requestId", MUST, Text(4, 128)),
                ("idempotencyKey", MUST, Text(6, 160)),
                ("traceId", MAY, Text(0, 180)),
                (
                    "delegation",
                    MAY,
                    Object(vec![
                        ("policyRef", MUST, policy_ref()),
                        ("envelopeHash", MUST, hash()),
                        ("riskClassification", MUST, class()),
                        ("authorizationRef", MAY, TextOrNull(160)),
                        ("decision", MAY, TextOrNull(256)),
                        ("validatedAt", MAY, TextOrNull(256)),
                        ("recordedBy", MAY, TextOrNull(256)),
                    ]),
                ),
            ]),
        ),
    ])
});

fn holds(rule: &Rule, value: &Json) -> bool {
    let between = |text: &str, least: usize, most: usize| (least..=most).contains(&text.chars().count());
    match rule {
        Rule::Text(least, most) => value.as_str().is_some_and(|text| between(text, *least, *most)),
        Rule::Like(begin, least, most, of) => value.as_str().is_some_and(|text| {
            begin.iter().any(|begin| {
                text.strip_prefix(begin)
                    .is_some_and(|rest| between(rest, *least, *most) && rest.chars().all(*of))
            })
        }),
        Rule::Word(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        Rule::Flag => value.is_boolean(),
        Rule::Instant => {
            value.as_str().is_some_and(|text| between(text, 20, 40) && Timestamp::parse(text).is_some())
        }
        Rule::Whole(least, most) => value
            .as_f64()
            .is_some_and(|number| number.fract() == 0.0 && number >= *least as f64 && number <= *most as f64),
        Rule::Texts(fewest, least, most) => value.as_array().is_some_and(|items| {
            items.len() >= *fewest
                && items.iter().all(|item| item.as_str().is_some_and(|text| between(text, *least, *most)))
        }),
        Rule::TextOrNull(most) => {
            value.is_null() || value.as_str().is_some_and(|text| between(text, 0, *most))
        }
        Rule::AnyObject => value.is_object(),
        Rule::Object(members) => value.as_object().is_some_and(|object| {
            members.iter().all(|(name, must, rule)| match object.get(*name) {
                Some(value) => holds(rule, value),
                None => !must,
            }) && object.keys().all(|name| members.iter().any(|(known, ..)| known == name))
        }),
    }
}

/// The member at this path. It cannot be read if it, or what it stands in, is not what it should be.
pub(crate) fn field<'s>(spec: &'s Json, path: &str) -> Field<'s> {
    let (mut rule, mut value) = (&*TASK_SPEC, spec);
    for name in path.split('.') {
        let Rule::Object(members) = rule else { panic!("{path} is not in the table") };
        let Some(object) = value.as_object() else { return Field::Unreadable };
        rule = &members.iter().find(|(known, ..)| *known == name).expect("a member that the table has").2;
        let Some(member) = object.get(name) else { return Field::Absent };
        value = member;
    }
    // A block is read member by member; it only has to be one.
    let readable = if matches!(rule, Rule::Object(_)) { value.is_object() } else { holds(rule, value) };
    if readable { Field::Is(value) } else { Field::Unreadable }
}

/// In a person's name? By a mention? Nothing if that cannot be read.
pub(crate) fn is_delegated(spec: &Json) -> Option<bool> {
    match field(spec, "authorship.mode") {
        Field::Absent => Some(false),
        word => word.text().map(|word| word == "delegated-human-proxy"),
    }
}

pub(crate) fn is_gated(spec: &Json) -> Option<bool> {
    match field(spec, "authorship.mentionDelegationMode") {
        Field::Absent => Some(false),
        word => word.text().map(|word| word == "gated"),
    }
}

/// What a TaskSpec of version 1.1 has, and one of 1.0 has not.
const REVIEW: [&str; 6] = [
    "loop_id",
    "proposed_by",
    "risk_profile",
    "review_depth",
    "review_feedback_required",
    "auto_approve_window",
];

/// Is it a TaskSpec at all?
pub(crate) fn is_sound(spec: &Json) -> bool {
    let there = |path: &str| !field(spec, path).is_absent();
    let blocks =
        ["authorship.delegationPolicy", "authorship.envelope", "authorship.risk", "audit.delegation"];
    let delegated = match is_delegated(spec) {
        Some(true) => blocks.iter().all(|path| there(path)),
        Some(false) => !blocks.iter().any(|path| there(path)),
        None => false,
    };
    // A mention that authorizes nothing has a code of its own, and needs no block to be told it.
    let mentions = match is_gated(spec) {
        Some(true) => there("authorship.mentionDelegation") || is_delegated(spec) == Some(false),
        Some(false) => !there("authorship.mentionDelegation"),
        None => false,
    };
    let bound = match field(spec, "authorship.envelope.binding") {
        Field::Is(binding) => binding.as_object().is_some_and(|binding| !binding.is_empty()),
        _ => true,
    };
    let reviews = match field(spec, "taskSpecVersion").text() {
        Some("1.1") => REVIEW.iter().all(|path| there(path)),
        _ => !REVIEW.iter().chain(&["review_reason"]).any(|path| there(path)),
    };
    holds(&TASK_SPEC, spec) && delegated && mentions && bound && reviews
}
