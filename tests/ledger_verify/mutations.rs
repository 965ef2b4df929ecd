//! What must be found: every change to a ledger of which somebody kept a checkpoint.
//!
//! Three changes leave the entries as they were and are no findings: a body line dropped, moved or written
//! twice (bodies stand outside the chain and may go), and a commit line dropped that is not the last of its
//! segment (two batches become one).

use std::path::{Path, PathBuf};

use handoffd::ledger::verify::{Checkpoint, Finding, Report, verify_segments};

use super::support::*;

/// An honest ledger on disk that is changed in one segment at a time.
struct Bench {
    honest: Ledger,
    checkpoint: [Checkpoint; 1],
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let honest = Ledger::honest();
        let dir = tempfile::tempdir().unwrap();
        honest.write(dir.path());
        Self { checkpoint: [honest.checkpoint()], honest, dir }
    }

    fn path(&self, segment: usize) -> PathBuf {
        self.dir.path().join(self.honest.name(segment))
    }

    fn verify(&self) -> Result<Report, Finding> {
        verify_segments(self.dir.path(), &self.checkpoint, &mut |_| ())
    }

    fn with(&self, segment: usize, bytes: &[u8]) -> Result<Report, Finding> {
        write(&self.path(segment), bytes);
        let result = self.verify();
        write(&self.path(segment), self.honest.text(segment).as_bytes());
        result
    }

    fn with_lines(&self, segment: usize, lines: &[String]) -> Result<Report, Finding> {
        self.with(segment, lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes())
    }

    /// Each segment with each of its lines.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let segments = self.honest.segments.iter().enumerate();
        segments.flat_map(|(segment, lines)| (0..lines.len()).map(move |line| (segment, line)))
    }
}

/// LONG=1 makes it a hundred times as many.
fn rounds(usual: usize) -> usize {
    if std::env::var_os("LONG").is_some() { usual * 100 } else { usual }
}

/// The lines that the entries and their batches consist of.
fn skeleton(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| !is_body(line)).collect()
}

#[test]
fn a_flipped_bit_is_always_found() {
    let bench = Bench::new();
    let mut dice = Dice(1);
    for _ in 0..rounds(2000) {
        let segment = dice.roll(3);
        let mut bytes = bench.honest.text(segment).into_bytes();
        let (at, bit) = (dice.roll(bytes.len()), dice.roll(8));
        bytes[at] ^= 1 << bit;
        let found = bench.with(segment, &bytes);
        assert!(found.is_err(), "bit {bit} of byte {at} in segment {segment}");
    }
}

#[test]
fn a_flipped_bit_is_found_in_its_own_line() {
    let bench = Bench::new();
    let mut dice = Dice(2);
    for _ in 0..rounds(300) {
        let segment = dice.roll(3);
        let mut bytes = bench.honest.text(segment).into_bytes();
        let at = dice.roll(bytes.len());
        // A line feed that is gone joins two lines; one that appears parts one.
        if bytes[at] == b'\n' || bytes[at] ^ 1 == b'\n' {
            continue;
        }
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        bytes[at] ^= 1;
        let finding = bench.with(segment, &bytes).unwrap_err();
        assert_eq!((finding.segment, finding.line), (Some(bench.honest.name(segment)), Some(line)));
    }
}

#[test]
fn a_body_that_was_tampered_with_is_found_by_its_digest() {
    let bench = Bench::new();
    for (segment, n) in bench.places().filter(|(segment, n)| is_body(&bench.honest.segments[*segment][*n])) {
        let mut lines = bench.honest.segments[segment].clone();
        lines[n] = lines[n].replace("prüfe", "prüfä");
        assert_eq!(bench.with_lines(segment, &lines).unwrap_err().kind.code(), "body_digest");
    }
}

#[test]
fn a_cut_is_always_found() {
    let bench = Bench::new();
    let check = |segment: usize, text: &str| {
        assert!(bench.with(segment, text.as_bytes()).is_err(), "{segment} cut to {} bytes", text.len());
        // The same, with all later segments gone as well.
        let dir = tempfile::tempdir().unwrap();
        (0..segment)
            .for_each(|n| write(&dir.path().join(bench.honest.name(n)), bench.honest.text(n).as_bytes()));
        write(&dir.path().join(bench.honest.name(segment)), text.as_bytes());
        let found = verify_segments(dir.path(), &bench.checkpoint, &mut |_| ());
        assert!(found.is_err(), "{segment} cut to {} bytes and the rest gone", text.len());
    };
    for (segment, lines) in bench.honest.segments.iter().enumerate() {
        for n in 0..lines.len() {
            let text: String = lines[..n].iter().map(|line| format!("{line}\n")).collect();
            check(segment, &text);
            // And in the middle of the next line.
            let half = lines[n].char_indices().nth(lines[n].chars().count() / 2).unwrap().0;
            check(segment, &(text + &lines[n][..half]));
        }
    }
    for segment in 0..3 {
        std::fs::remove_file(bench.path(segment)).unwrap();
        assert!(bench.verify().is_err(), "without segment {segment}");
        write(&bench.path(segment), bench.honest.text(segment).as_bytes());
    }
}

#[test]
fn two_swapped_lines_are_found_unless_the_entries_keep_their_order() {
    let bench = Bench::new();
    let mut dice = Dice(3);
    for round in 0..rounds(500) {
        let segment = dice.roll(3);
        let honest = &bench.honest.segments[segment];
        let a = dice.roll(honest.len());
        // Neighbours every other time: that is where a swap is easiest to miss.
        let b = if round % 2 == 0 { (a + 1) % honest.len() } else { dice.roll(honest.len()) };
        let mut lines = honest.clone();
        lines.swap(a, b);
        let harmless = skeleton(&lines) == skeleton(honest);
        assert_eq!(bench.with_lines(segment, &lines).is_ok(), harmless, "{a} and {b} of segment {segment}");
    }
}

#[test]
fn a_dropped_line_is_found_unless_it_is_a_body_or_joins_two_batches() {
    let bench = Bench::new();
    let report = bench.verify().unwrap();
    for (segment, n) in bench.places() {
        let mut lines = bench.honest.segments[segment].clone();
        let dropped = lines.remove(n);
        let expected = if is_body(&dropped) {
            Some(Report { bodies: report.bodies - 1, ..report.clone() })
        } else if is_commit(&dropped) && n < lines.len() {
            Some(Report { batches: report.batches - 1, ..report.clone() })
        } else {
            None
        };
        assert_eq!(bench.with_lines(segment, &lines).ok(), expected, "line {n} of segment {segment}");
    }
}

#[test]
fn a_line_that_stands_twice_is_found_unless_it_is_a_body() {
    let bench = Bench::new();
    let mut dice = Dice(4);
    for (segment, n) in bench.places() {
        let honest = &bench.honest.segments[segment];
        for to in [n, dice.roll(honest.len())] {
            let mut lines = honest.clone();
            lines.insert(to, honest[n].clone());
            let found = bench.with_lines(segment, &lines);
            assert_eq!(found.is_ok(), is_body(&honest[n]), "line {n} of segment {segment} again at {to}");
        }
    }
}

#[test]
fn a_rewritten_entry_is_found_by_the_checkpoint_when_the_chain_was_computed_again() {
    let bench = Bench::new();
    for n in 1..=48 {
        let forged = bench
            .honest
            .with_wire(n, |text| text.replace("\"terminal\":false", "\"terminal\":true"))
            .rechained();
        let dir = tempfile::tempdir().unwrap();
        forged.write(dir.path());
        let verify = |dir: &Path, checkpoints: &[Checkpoint]| verify_segments(dir, checkpoints, &mut |_| ());
        assert!(verify(dir.path(), &[]).is_ok(), "without a checkpoint nobody can know");
        let finding = verify(dir.path(), &bench.checkpoint).unwrap_err();
        assert_eq!((finding.kind.code(), finding.sequence), ("checkpoint_hash", Some(48)), "entry {n}");
    }
}
