//! The texts of a TaskSpec, each a type of its own, so that an id is never taken for another one.
//!
//! They borrow from the document. The only way to make one is `parse`, which holds the rule of
//! `docs/schemas/task-spec.schema.json`; lengths count characters, as JSON Schema does.

/// A text with a rule.
pub trait Text<'d>: Sized {
    /// The text if the rule holds.
    fn parse(text: &'d str) -> Option<Self>;
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $rule:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<'d>(&'d str);

        impl<'d> $name<'d> {
            pub fn as_str(self) -> &'d str {
                self.0
            }
        }

        impl<'d> Text<'d> for $name<'d> {
            fn parse(text: &'d str) -> Option<Self> {
                let rule: fn(&str) -> bool = $rule;
                rule(text).then_some(Self(text))
            }
        }

        impl std::fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.0)
            }
        }
    )*};
}

texts! {
    /// The handoff's own id.
    HandoffId: |text| is_prefixed(text, "hs_", 8, 128, |b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
    /// The id of the whole end-to-end cycle.
    CorrelationId: |text| has_chars(text, 6, 128);
    /// An agent.
    AgentId: |text| has_chars(text, 2, 64);
    /// The session an agent acts in.
    SessionId: |text| has_chars(text, 3, 256);
    /// What is asked of a target.
    Capability: |text| has_chars(text, 3, 128);
    /// A route of `policies/routes.json`.
    RouteKey: |text| has_chars(text, 6, 160);
    /// The operation asked for.
    Operation: |text| has_chars(text, 3, 128);
    /// The path of an input schema.
    SchemaRef: |text| has_chars(text, 8, 300);
    /// The path of a rollback plan.
    PlanRef: |text| has_chars(text, 6, 260);
    /// The path of a delegation policy.
    PolicyRef: |text| has_chars(text, 6, 300);
    /// Who delegates.
    PrincipalId: |text| has_chars(text, 1, 128);
    /// A grant that a person gave.
    AuthorizationRef: |text| has_chars(text, 3, 160);
    /// Where a mention was seen.
    Channel: |text| is_prefixed(text, "discord:channel:", 6, 30, |b| b.is_ascii_digit())
        || is_prefixed(text, "discord:thread:", 6, 30, |b| b.is_ascii_digit());
    /// The message that carried a mention.
    MessageId: |text| is_prefixed(text, "", 6, 30, |b| b.is_ascii_digit());
    /// A bot in a mention.
    BotId: |text| has_chars(text, 2, 128);
    /// The request's id.
    RequestId: |text| has_chars(text, 4, 128);
    /// The same key with the same content is the same handoff.
    IdempotencyKey: |text| has_chars(text, 6, 160);
    /// The name of a proof's algorithm.
    AlgorithmName: |text| has_chars(text, 1, 64);
    /// A proof's signature, whatever it must be.
    SignatureText: |text| has_chars(text, 8, 1024);
    /// A digest as a sender wrote it.
    HashText: |text| has_chars(text, 8, 256);
    /// Which key signed.
    KeyId: |text| has_chars(text, 1, 128);
    /// The hash of an intent.
    IntentHash: |text| is_prefixed(text, "sha256:", 64, 64, |b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    /// Who vouches for an end-to-end test.
    E2eActor: |text| has_chars(text, 1, 64);
    /// One name in an allowlist or a scope.
    Name: |text| has_chars(text, 1, 256);
    /// An improvement loop.
    LoopId: |text| is_prefixed(text, "loop_", 8, 64, |b| b.is_ascii_lowercase() || b.is_ascii_digit());
    /// Who proposed the work.
    ProposedBy: |text| has_chars(text, 2, 128);
}

/// Between `min` and `max` characters; the bytes alone decide in nearly all cases.
pub(super) fn has_chars(text: &str, min: usize, max: usize) -> bool {
    let bytes = text.len();
    if bytes < min || bytes > max * 4 {
        return false;
    }
    if bytes <= max && bytes >= min * 4 {
        return true;
    }
    (min..=max).contains(&text.chars().count())
}

fn is_prefixed(text: &str, prefix: &str, min: usize, max: usize, allowed: fn(u8) -> bool) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| (min..=max).contains(&rest.len()) && rest.bytes().all(allowed))
}
