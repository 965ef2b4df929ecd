//! The mutator, and the loop around a target.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::seed::{is_long, seed};
use crate::support::Dice;
use crate::tree;

/// Pieces of text that readers trip over.
const PIECES: [&[u8]; 46] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b" ",
    b"\n",
    b"\r\n",
    b"\t",
    b"0",
    b"-0",
    b"-",
    b"1e400",
    b"1.0",
    b"1E2",
    b"100.0",
    b"9007199254740993",
    b"18446744073709551616",
    b"0.1",
    b"-1",
    b"01",
    b"\"a\":1,",
    b"\\u0000",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\\/",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\x00",
    b"\x7f",
    "\u{212a}".as_bytes(),
    b"/*",
    b"NaN",
    b"..",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

/// One change, or a few: of the bytes, or in a document that stays one.
fn mutate(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = &seeds[dice.roll(seeds.len())];
    if dice.roll(8) > 2
        && let Some(document) = tree::mutate(dice, seed, seeds)
    {
        return document;
    }
    let mut bytes = seed.clone();
    for _ in 0..[1, 1, 1, 2, 3, 8][dice.roll(6)] {
        change(dice, &mut bytes, seeds);
    }
    bytes
}

fn change(dice: &mut Dice, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = dice.roll(bytes.len() + 1);
    match dice.roll(9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
        1 if at < bytes.len() => bytes[at] = u8::try_from(dice.roll(256)).unwrap(),
        2 => {
            let end = (at + 1 + dice.roll(16)).min(bytes.len());
            drop(bytes.drain(at.min(end)..end));
        }
        3 | 4 => {
            let piece = PIECES[dice.roll(PIECES.len())];
            drop(bytes.splice(at..at, piece.iter().copied()));
        }
        5 => bytes.truncate(at),
        6 => {
            // A part of it again, elsewhere: a member twice, a line twice.
            let (from, to) = part(dice, bytes);
            let copy = bytes[from..to].to_vec();
            drop(bytes.splice(at..at, copy));
        }
        7 => {
            let other = &seeds[dice.roll(seeds.len())];
            let (from, to) = part(dice, other);
            let end = (at + dice.roll(40)).min(bytes.len());
            drop(bytes.splice(at..end, other[from..to].iter().copied()));
        }
        _ => {
            // A whole token in the place of another one.
            let (from, to) = part(dice, bytes);
            let piece = PIECES[dice.roll(PIECES.len())];
            drop(bytes.splice(from..to, piece.iter().copied()));
        }
    }
    bytes.truncate(64 * 1024);
}

/// Some part, mostly from one mark of punctuation to another.
fn part(dice: &mut Dice, bytes: &[u8]) -> (usize, usize) {
    let marks: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| b",{}[]:\"\n".contains(byte)).map(|(at, _)| at).collect();
    if marks.len() < 2 || dice.roll(4) == 0 {
        let from = dice.roll(bytes.len() + 1);
        return (from, (from + dice.roll(64)).min(bytes.len()));
    }
    let first = dice.roll(marks.len() - 1);
    let last = (first + 1 + dice.roll(6)).min(marks.len() - 1);
    (marks[first], marks[last])
}

/// Files below a directory of the repository, sorted.
pub(crate) fn files(directory: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let Ok(entries) = std::fs::read_dir(&root) else { return Vec::new() };
    let mut paths: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Those of them that are not too large to be bent often.
pub(crate) fn small_files(directory: &str) -> Vec<Vec<u8>> {
    let mut all = files(directory);
    all.retain(|bytes| bytes.len() < 16 * 1024);
    all
}

/// Tries what broke before, then the seeds, then so many mutations, or a minute of them.
pub(crate) fn fuzz(target: &str, seeds: Vec<Vec<u8>>, rounds: usize, check: impl Fn(&[u8])) {
    let mut seeds = seeds;
    seeds.extend(small_files(&format!("tests/fuzz/corpus/{target}")));
    assert!(seeds.len() > 1, "{target} has no seeds");
    let long = is_long();
    let until = Instant::now() + Duration::from_secs(60);
    let seed = seed("FUZZ_SEED", 0x5eed);
    let mut dice = Dice(seed);
    let first = files(&format!("tests/fuzz/regressions/{target}")).into_iter().chain(seeds.clone());
    let bent = std::iter::repeat_with(|| mutate(&mut dice, &seeds));
    let (mut tried, mut read): (u64, u64) = (0, 0);
    for (n, input) in first.chain(bent).enumerate() {
        if if long { Instant::now() > until } else { n > rounds } {
            break;
        }
        tried += 1;
        read += u64::from(tree::is_json(&input));
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            let path = std::env::temp_dir().join(format!("handoffd-fuzz-{target}-{n}"));
            crate::support::write(&path, &input);
            eprintln!("{target}: input {n} of FUZZ_SEED={seed} broke it, and is in {}", path.display());
            resume_unwind(why);
        }
    }
    eprintln!("{target}: {tried} inputs of FUZZ_SEED={seed}, {read} of them JSON");
    // Otherwise most of them would say something of the reader of JSON, and nothing of the target.
    assert!(read * 2 > tried, "{target}: only {read} of {tried} inputs were JSON");
}

#[test]
fn what_broke_before_is_tried_whatever_its_size_and_only_small_files_are_bent() {
    let directory = tempfile::tempdir().unwrap();
    let (large, small) = (vec![b'x'; 48 * 1024], b"{}".to_vec());
    for (name, bytes) in [("large", &large), ("small", &small)] {
        crate::support::write(&directory.path().join(name), bytes);
    }
    let directory = directory.path().to_str().unwrap();
    assert_eq!(files(directory), [large, small.clone()]);
    assert_eq!(small_files(directory), [small]);
}
