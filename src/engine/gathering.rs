//! How long it is worth to wait for those who were answered just now, before the next batch goes to a shared ledger.
//!
//! An append to a database takes long beside what a caller needs to ask again. Without a wait the first who asks again is
//! written alone, and all others wait for that append and then for their own.

use std::time::{Duration, Instant};

use crate::limits;

/// What was sent out last, and who is expected back.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// When the batch that is being written was sent out, and how many wait for it.
    sent: Option<(Instant, usize)>,
    /// Until when more are waited for, and how many there may be.
    open: Option<(Instant, usize)>,
}

impl Gathering {
    /// A batch goes out, for so many.
    pub(super) fn sends(&mut self, now: Instant, answers: usize) {
        (self.sent, self.open) = (Some((now, answers)), None);
    }

    /// It is durable, and all for whom it was are answered; so many wait already. They are given up to half of what the
    /// append took.
    pub(super) fn begins(&mut self, now: Instant, waiting: usize) {
        let Some((sent, answered)) = self.sent.take() else { return };
        let at_most = Duration::from_micros(limits::GATHER_US_MAX).min(now.duration_since(sent) / 2);
        self.open = Some((now + at_most, waiting + answered));
    }

    /// How much longer to wait while so many are there; nothing once it is time to go.
    pub(super) fn left(&mut self, now: Instant, waiting: usize) -> Option<Duration> {
        let (until, expected) = self.open?;
        let left = until.saturating_duration_since(now);
        if waiting >= expected || left.is_zero() {
            self.open = None;
            return None;
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn those_who_were_answered_together_are_written_together_again() {
        let (mut gathering, begun) = (Gathering::default(), Instant::now());
        assert_eq!(gathering.left(begun, 0), None, "nobody was answered yet");
        gathering.sends(begun, 3);
        assert_eq!(gathering.left(begun, 1), None, "nobody is waited for while a batch is under way");
        let durable = begun + 8 * MS;
        gathering.begins(durable, 1);
        assert_eq!(gathering.left(durable, 1), Some(4 * MS));
        assert_eq!(gathering.left(durable + 3 * MS, 3), Some(MS));
        assert_eq!(gathering.left(durable + 3 * MS, 4), None, "all are there");
        assert_eq!(gathering.left(durable + 3 * MS, 1), None, "and that was that");
    }

    #[test]
    fn nobody_waits_long_for_one_who_does_not_come_back() {
        let begun = Instant::now();
        for (took, at_most) in [(8 * MS, 4 * MS), (400 * MS, Duration::from_micros(limits::GATHER_US_MAX))] {
            let (mut gathering, durable) = (Gathering::default(), begun + took);
            gathering.sends(begun, 2);
            gathering.begins(durable, 0);
            assert_eq!(gathering.left(durable, 1), Some(at_most));
            assert_eq!(gathering.left(durable + at_most, 1), None);
        }
    }

    #[test]
    fn who_is_alone_waits_for_nobody() {
        let (mut gathering, begun) = (Gathering::default(), Instant::now());
        gathering.sends(begun, 1);
        gathering.begins(begun + 8 * MS, 0);
        assert_eq!(gathering.left(begun + 9 * MS, 1), None);
    }
}
