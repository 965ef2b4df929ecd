//! Decisions per minute as bars, drawn here: an SVG of rectangles whose colours the style sheet has.

use crate::limits;
use crate::timestamp::Timestamp;
use crate::views::DecisionMinute;

/// From the bottom of a bar to its top.
pub(super) const OUTCOMES: [&str; 4] = ["allowed", "needs_approval", "expired", "denied"];

const BAR: u64 = 12;
const GAP: u64 = 2;
const HEIGHT: u64 = 180;

/// Bars for each minute of the last hour.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) bars: Vec<Bar>,
    pub(super) minutes: Vec<Minute>,
    pub(super) totals: Vec<(&'static str, u64)>,
    /// What the top of the chart stands for.
    pub(super) most: u64,
    pub(super) width: u64,
}

/// A piece of a bar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) outcome: &'static str,
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) height: u64,
}

/// A minute in words.
#[derive(Debug)]
pub(super) struct Minute {
    pub(super) x: u64,
    /// Hour and minute, UTC.
    pub(super) at: String,
    pub(super) counts: [u64; 4],
}

impl Minute {
    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// When it was, and what there was in it.
    pub(super) fn words(&self) -> String {
        format!("{} UTC: {}", self.at, self.counted())
    }

    pub(super) fn counted(&self) -> String {
        let words: Vec<String> = OUTCOMES
            .iter()
            .zip(self.counts)
            .filter(|(_, count)| *count > 0)
            .map(|(outcome, count)| format!("{count} {}", outcome.replace('_', " ")))
            .collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    }
}

impl Chart {
    pub(super) fn of(rows: &[DecisionMinute], now: Timestamp) -> Self {
        let minute_of = |at: Timestamp| at.unix_nanoseconds().unwrap_or(0).div_euclid(60_000_000_000);
        let first = minute_of(now) - limits::CONSOLE_CHART_MINUTES + 1;
        let mut minutes: Vec<Minute> = (0..limits::CONSOLE_CHART_MINUTES)
            .map(|n| {
                let at = Timestamp::from_unix_nanoseconds((first + n) * 60_000_000_000).to_milliseconds();
                let x = n.unsigned_abs() * (BAR + GAP);
                Minute { x, at: at.get(11..16).unwrap_or_default().to_owned(), counts: [0; 4] }
            })
            .collect();
        for row in rows {
            let place = usize::try_from(minute_of(row.minute) - first).ok();
            let outcome = OUTCOMES.iter().position(|outcome| *outcome == row.decision);
            let minute = place.and_then(|place| minutes.get_mut(place));
            if let Some(count) = minute.zip(outcome).and_then(|(minute, n)| minute.counts.get_mut(n)) {
                *count += row.count;
            }
        }
        let most = round_up(minutes.iter().map(Minute::total).max().unwrap_or(0));
        let mut bars = Vec::new();
        for minute in &minutes {
            let mut below = 0;
            for (outcome, count) in OUTCOMES.into_iter().zip(minute.counts) {
                let (from, to) = (scaled(below, most), scaled(below + count, most));
                below += count;
                if count > 0 {
                    // What there was is seen, however little it was.
                    let height = (to - from).max(1);
                    bars.push(Bar { outcome, x: minute.x, y: HEIGHT - (from + height).min(HEIGHT), height });
                }
            }
        }
        let total = |n: usize| minutes.iter().filter_map(|minute| minute.counts.get(n)).sum();
        let totals = OUTCOMES.iter().enumerate().map(|(n, outcome)| (*outcome, total(n))).collect();
        let width = limits::CONSOLE_CHART_MINUTES.unsigned_abs() * (BAR + GAP) - GAP;
        Self { bars, minutes, totals, most, width }
    }

    pub(super) fn total(&self) -> u64 {
        self.totals.iter().map(|(_, count)| count).sum()
    }

    /// What the line in the middle stands for.
    pub(super) fn half(&self) -> u64 {
        self.most / 2
    }

    /// Minutes in which there was something.
    pub(super) fn busy(&self) -> impl Iterator<Item = &Minute> {
        self.minutes.iter().filter(|minute| minute.total() > 0)
    }

    /// Every tenth minute has its time under it.
    pub(super) fn labels(&self) -> impl Iterator<Item = &Minute> {
        self.minutes.iter().step_by(10)
    }

    pub(super) fn summary(&self) -> String {
        let words: Vec<String> = self
            .totals
            .iter()
            .map(|(outcome, count)| format!("{count} {}", outcome.replace('_', " ")))
            .collect();
        format!("Decisions per minute in the last hour: {}", words.join(", "))
    }
}

fn scaled(count: u64, most: u64) -> u64 {
    count.saturating_mul(HEIGHT) / most.max(1)
}

/// To a number with one digit that counts, so that the scale is easy to read, and to an even one, because its half is shown, too.
fn round_up(count: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        for step in [1, 2, 3, 4, 5, 6, 8] {
            let round = power.saturating_mul(step);
            if round >= count.max(4) && (round.is_multiple_of(2) || round == u64::MAX) {
                return round;
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(minutes_ago: i64, decision: &str, count: u64) -> DecisionMinute {
        DecisionMinute { minute: now().plus_seconds(-60 * minutes_ago), decision: decision.to_owned(), count }
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-02-18T19:38:30Z").unwrap()
    }

    #[test]
    fn bars_stand_on_each_other_and_within_the_chart() {
        let chart = Chart::of(&[row(0, "allowed", 3), row(0, "denied", 1), row(59, "expired", 5)], now());
        assert_eq!((chart.most, chart.total()), (6, 9));
        assert_eq!(
            chart.bars,
            [
                Bar { outcome: "expired", x: 0, y: 30, height: 150 },
                Bar { outcome: "allowed", x: 59 * 14, y: 90, height: 90 },
                Bar { outcome: "denied", x: 59 * 14, y: 60, height: 30 },
            ]
        );
        assert_eq!(chart.minutes.last().unwrap().words(), "19:38 UTC: 3 allowed, 1 denied");
        assert_eq!(chart.minutes.first().unwrap().counted(), "5 expired");
        assert_eq!(chart.minutes[1].words(), "18:40 UTC: none");
    }

    #[test]
    fn what_is_too_old_or_unknown_is_left_out() {
        let chart = Chart::of(&[row(60, "allowed", 3), row(1, "something", 1)], now());
        assert_eq!((chart.bars.len(), chart.total()), (0, 0));
    }

    #[test]
    fn the_scale_is_round() {
        for (count, round) in
            [(0, 4), (4, 4), (5, 6), (7, 8), (9, 10), (11, 20), (24, 30), (41, 50), (61, 80), (999, 1_000)]
        {
            assert_eq!(round_up(count), round, "{count}");
        }
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }
}
