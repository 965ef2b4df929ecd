//! The typed reading: one walk over the document that decides whether its shape is sound.
//!
//! It says yes or no and keeps what it could read; the words for a no come from the schema. Every
//! constraint of the schema outside `$defs/rules` is here too, and the differential test in
//! `contract/tests.rs` fails when one is changed without the other.

mod authorship;

use super::field::Field;
use super::taskspec::{
    Audit, AuditDelegation, Authorship, AuthorshipMode, Intent, MentionMode, Review, Rollback, Routing,
    Safety, Source, Target, TaskSpec, Version, Word,
};
use super::text::{Name, Text, has_chars};
use crate::json::{Document, Value};
use crate::timestamp::Timestamp;

impl<'d> TaskSpec<'d> {
    /// Reads a TaskSpec, and says whether its shape is sound.
    pub fn read(document: &'d Document<'_>) -> (Self, bool) {
        let mut shape = Shape { sound: true };
        let spec = shape.task_spec(document.root());
        (spec, shape.sound)
    }
}

struct Shape {
    sound: bool,
}

impl Shape {
    fn refuse(&mut self) {
        self.sound = false;
    }

    /// A member that must be there.
    fn require<T>(&mut self, field: &Field<T>) {
        if field.is_absent() {
            self.refuse();
        }
    }

    fn keep<T>(&mut self, value: Option<T>) -> Field<T> {
        match value {
            Some(value) => Field::Is(value),
            None => {
                self.refuse();
                Field::Unreadable
            }
        }
    }

    fn text<'d, T: Text<'d>>(&mut self, value: Value<'d>) -> Field<T> {
        let text = value.as_str().and_then(T::parse);
        self.keep(text)
    }

    fn word<T: Word>(&mut self, value: Value<'_>) -> Field<T> {
        let word = value.as_str().and_then(T::from_word);
        self.keep(word)
    }

    fn flag(&mut self, value: Value<'_>) -> Field<bool> {
        self.keep(value.as_bool())
    }

    fn instant(&mut self, value: Value<'_>) -> Field<Timestamp> {
        let instant = value.as_str().filter(|text| has_chars(text, 20, 40)).and_then(Timestamp::parse);
        self.keep(instant)
    }

    fn integer(&mut self, value: Value<'_>, min: i64, max: i64) -> Field<i64> {
        let integer = value.as_integer().filter(|integer| (min..=max).contains(integer));
        self.keep(integer)
    }

    /// A text nobody looks at but whose length is bounded.
    fn prose(&mut self, value: Value<'_>, chars_min: usize, chars_max: usize) {
        if !value.as_str().is_some_and(|text| has_chars(text, chars_min, chars_max)) {
            self.refuse();
        }
    }

    /// A text or null, bounded.
    fn prose_or_null<'d>(&mut self, value: Value<'d>, chars_max: usize) -> Field<Option<&'d str>> {
        if value.is_null() {
            return Field::Is(None);
        }
        let text = value.as_str().filter(|text| has_chars(text, 0, chars_max));
        self.keep(text.map(Some))
    }

    fn list<'d>(&mut self, value: Value<'d>, items_min: usize, fits: fn(&str) -> bool) -> Field<Value<'d>> {
        let sound = value.is_array()
            && value.size() >= items_min
            && value.items().all(|item| item.as_str().is_some_and(fits));
        self.keep(sound.then_some(value))
    }

    fn names<'d>(&mut self, value: Value<'d>, items_min: usize) -> Field<Value<'d>> {
        self.list(value, items_min, |text| Name::parse(text).is_some())
    }

    /// Walks an object's members; `read` says false to a name it does not know.
    fn object<'d>(
        &mut self,
        value: Value<'d>,
        mut read: impl FnMut(&mut Self, &str, Value<'d>) -> bool,
    ) -> bool {
        if !value.is_object() {
            self.refuse();
            return false;
        }
        for (name, member) in value.members() {
            if !read(self, name, member) {
                self.refuse();
            }
        }
        true
    }

    fn task_spec<'d>(&mut self, root: Value<'d>) -> TaskSpec<'d> {
        let mut spec = TaskSpec { block: Some(root), ..TaskSpec::default() };
        let (mut source, mut target, mut routing, mut intent) = (false, false, false, false);
        let (mut acceptance, mut safety, mut audit, mut authorship) = (false, false, false, Field::Absent);
        let mut review_members = 0;
        self.object(root, |shape, name, value| {
            match name {
                "taskSpecVersion" => spec.version = shape.word(value),
                "handoffId" => spec.handoff_id = shape.text(value),
                "parentHandoffId" => spec.parent_handoff_id = shape.text(value),
                "correlationId" => spec.correlation_id = shape.text(value),
                "createdAt" => spec.created_at = shape.instant(value),
                "source" => (source, spec.source) = (true, shape.source(value)),
                "target" => (target, spec.target) = (true, shape.target(value)),
                "routing" => (routing, spec.routing) = (true, shape.routing(value)),
                "mode" => spec.mode = shape.word(value),
                "authorship" => authorship = Field::Is(value),
                "intent" => (intent, spec.intent) = (true, shape.intent(value)),
                "acceptance" => {
                    acceptance = true;
                    shape.acceptance(value);
                }
                "safety" => (safety, spec.safety) = (true, shape.safety(value)),
                "rollback" => spec.rollback = shape.rollback(value),
                "audit" => (audit, spec.audit) = (true, shape.audit(value)),
                _ => {
                    review_members += 1;
                    return shape.review(&mut spec.review, name, value);
                }
            }
            true
        });
        self.require(&spec.version);
        self.require(&spec.handoff_id);
        self.require(&spec.correlation_id);
        self.require(&spec.created_at);
        self.require(&spec.mode);
        if !(source && target && routing && intent && acceptance && safety && audit) {
            self.refuse();
        }
        if spec.version == Field::Is(Version::V1_1) {
            self.require_review(root);
        } else if review_members > 0 {
            self.refuse();
        }
        if let Field::Is(block) = authorship {
            spec.authorship = self.authorship(block);
        }
        self.agree(&spec);
        spec
    }

    fn review<'d>(&mut self, review: &mut Review<'d>, name: &str, value: Value<'d>) -> bool {
        match name {
            "loop_id" => review.loop_id = self.text(value),
            "proposed_by" => review.proposed_by = self.text(value),
            "risk_profile" => {
                if !matches!(value.as_str(), Some("low" | "medium" | "high" | "critical")) {
                    self.refuse();
                }
            }
            "review_depth" => drop(self.integer(value, 1, 10)),
            "review_feedback_required" => drop(self.flag(value)),
            "auto_approve_window" => drop(self.integer(value, 0, 86_400)),
            "review_reason" => self.prose(value, 0, 1000),
            _ => return false,
        }
        true
    }

    fn require_review(&mut self, root: Value<'_>) {
        const REQUIRED: [&str; 6] = [
            "loop_id",
            "proposed_by",
            "risk_profile",
            "review_depth",
            "review_feedback_required",
            "auto_approve_window",
        ];
        if !REQUIRED.iter().all(|name| root.get(name).is_some()) {
            self.refuse();
        }
    }

    /// What one block says about another: delegation blocks come with delegation, and only with it.
    fn agree(&mut self, spec: &TaskSpec<'_>) {
        let Authorship { mode, mention_mode, delegation, mention } = &spec.authorship;
        match mode.or_default_to(AuthorshipMode::Direct) {
            Some(AuthorshipMode::DelegatedHumanProxy) => {
                self.require(&delegation.policy);
                self.require(&delegation.envelope);
                self.require(&delegation.risk);
                self.require(&spec.audit.delegation);
                if mention_mode.get() == Some(MentionMode::Gated) {
                    self.require(mention);
                }
            }
            Some(AuthorshipMode::Direct) => {
                let any = !delegation.policy.is_absent()
                    || !delegation.envelope.is_absent()
                    || !delegation.risk.is_absent()
                    || !spec.audit.delegation.is_absent();
                if any {
                    self.refuse();
                }
            }
            None => {}
        }
        if mention_mode.or_default_to(MentionMode::Disabled) == Some(MentionMode::Disabled)
            && !mention.is_absent()
        {
            self.refuse();
        }
    }

    fn source<'d>(&mut self, block: Value<'d>) -> Source<'d> {
        let mut source = Source::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "agentId" => source.agent_id = shape.text(value),
                "sessionId" => source.session_id = shape.text(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&source.agent_id);
            self.require(&source.session_id);
        }
        source
    }

    fn target<'d>(&mut self, block: Value<'d>) -> Target<'d> {
        let mut target = Target::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "agentId" => target.agent_id = shape.text(value),
                "capability" => target.capability = shape.text(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&target.agent_id);
            self.require(&target.capability);
        }
        target
    }

    fn routing<'d>(&mut self, block: Value<'d>) -> Routing<'d> {
        let mut routing = Routing::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "strategy" => routing.strategy = shape.word(value),
                "routeKey" => routing.route_key = shape.text(value),
                "fallbackAgentId" => routing.fallback_agent_id = shape.text(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&routing.strategy);
            self.require(&routing.route_key);
        }
        routing
    }

    fn intent<'d>(&mut self, block: Value<'d>) -> Intent<'d> {
        let mut intent = Intent::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "operation" => intent.operation = shape.text(value),
                "summary" => shape.prose(value, 0, 500),
                "inputSchemaRef" => intent.input_schema_ref = shape.text(value),
                "input" => intent.input = shape.keep(value.is_object().then_some(value)),
                _ => return false,
            }
            true
        });
        if read {
            intent.block = Some(block);
            self.require(&intent.operation);
            self.require(&intent.input_schema_ref);
            self.require(&intent.input);
        }
        intent
    }

    fn acceptance(&mut self, block: Value<'_>) {
        let mut done_when = Field::Absent;
        let read = self.object(block, |shape, name, value| {
            match name {
                "doneWhen" => done_when = shape.list(value, 1, |text| has_chars(text, 3, 280)),
                "expectedArtifacts" => drop(shape.list(value, 0, |text| has_chars(text, 1, 280))),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&done_when);
        }
    }

    fn safety<'d>(&mut self, block: Value<'d>) -> Safety<'d> {
        let mut safety = Safety::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "e2eActor" => safety.e2e_actor = shape.text(value),
                "allowExternalSideEffects" => safety.allow_external_side_effects = shape.flag(value),
                "requiresHumanApproval" => safety.requires_human_approval = shape.flag(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&safety.e2e_actor);
        } else {
            // Nothing in it was seen, so nothing in it is absent.
            safety.allow_external_side_effects = Field::Unreadable;
            safety.requires_human_approval = Field::Unreadable;
        }
        safety
    }

    fn rollback<'d>(&mut self, block: Value<'d>) -> Field<Rollback<'d>> {
        let mut rollback = Rollback::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "required" => rollback.required = shape.flag(value),
                "planRef" => rollback.plan_ref = shape.text(value),
                "trigger" => shape.prose(value, 0, 300),
                _ => return false,
            }
            true
        });
        if read { Field::Is(rollback) } else { Field::Unreadable }
    }

    fn audit<'d>(&mut self, block: Value<'d>) -> Audit<'d> {
        let mut audit = Audit::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "requestId" => audit.request_id = shape.text(value),
                "idempotencyKey" => audit.idempotency_key = shape.text(value),
                "traceId" => shape.prose(value, 0, 180),
                "delegation" => audit.delegation = shape.audit_delegation(value),
                _ => return false,
            }
            true
        });
        if read {
            self.require(&audit.request_id);
            self.require(&audit.idempotency_key);
        } else {
            audit.delegation = Field::Unreadable;
        }
        audit
    }

    fn audit_delegation<'d>(&mut self, block: Value<'d>) -> Field<AuditDelegation<'d>> {
        let mut stated = AuditDelegation::default();
        let read = self.object(block, |shape, name, value| {
            match name {
                "policyRef" => stated.policy_ref = shape.text(value),
                "envelopeHash" => stated.envelope_hash = shape.text(value),
                "riskClassification" => stated.risk_classification = shape.word(value),
                "authorizationRef" => stated.authorization_ref = shape.prose_or_null(value, 160),
                "decision" | "validatedAt" | "recordedBy" => drop(shape.prose_or_null(value, 256)),
                _ => return false,
            }
            true
        });
        if !read {
            return Field::Unreadable;
        }
        self.require(&stated.policy_ref);
        self.require(&stated.envelope_hash);
        self.require(&stated.risk_classification);
        Field::Is(stated)
    }
}
