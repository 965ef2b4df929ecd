//! What an attempt and its handoff are in the sum of claims: the columns in the order of `names.rs`.

use rusqlite::types::ValueRef;

use super::{Attempt, Head, Held};
use crate::views::sum::{Of, Sum, Term, number, text};

impl Held {
    /// Both rows, as they would be saved now.
    pub(super) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        sum.put(self.head.term(&self.handoff_id));
        sum.put(self.row.term(self.head.handoff));
        sum
    }
}

impl Head {
    pub(super) fn term(&self, handoff_id: &str) -> Term {
        Term::of(
            Of::Handoff,
            [
                ValueRef::Integer(self.handoff),
                text(Some(handoff_id)),
                ValueRef::Integer(self.attempts.into()),
                number(self.accepted),
            ],
        )
    }
}

impl Attempt {
    fn term(&self, handoff: i64) -> Term {
        Term::of(
            Of::Attempt,
            [
                ValueRef::Integer(self.created),
                ValueRef::Integer(handoff),
                ValueRef::Integer(self.attempt.into()),
                number(self.listed.source),
                number(self.listed.target),
                ValueRef::Integer(self.correlation),
                text(self.parent.as_deref()),
                text(self.idempotency_key.as_deref()),
                text(self.message_id.as_deref()),
                ValueRef::from(&self.content_digest),
                ValueRef::Integer(self.accepted.into()),
                number(self.decision),
                number(self.decided),
                number(self.gates),
                number(self.policy),
                self.running_hash.as_ref().map_or(ValueRef::Null, |hash| ValueRef::Blob(hash)),
            ],
        )
    }
}
