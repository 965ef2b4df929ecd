//! Body lines: a digest, and the text it is of. Read in parts, because a body may be of any size.

use std::io::BufRead;

use sha2::{Digest as _, Sha256};

use super::finding::{FindingKind, LineKind};
use super::lines::{Lines, Part};
use super::spelling::{Differs, Follower, hex, plain_bytes, unescaped};

/// Checks the body line that `lines` holds the beginning of, to its end.
pub(super) fn check(lines: &mut Lines<impl BufRead>, mut part: Part) -> Result<(), FindingKind> {
    let mut follower = Follower::new(lines.text());
    let Ok(written) = head(&mut follower) else { return Err(differs(lines, follower.at())) };
    let mut used = follower.at();
    let mut decoded = Vec::new();
    let mut sha256 = Sha256::new();
    loop {
        if part == Part::Unended {
            return Err(FindingKind::LineUnended);
        }
        let rest = lines.text().get(used..).unwrap_or_default();
        let (taken, stop) = decode(rest, &mut decoded);
        sha256.update(&decoded);
        decoded.clear();
        used += taken;
        let rest = rest.get(taken..).unwrap_or_default();
        match (part, stop) {
            (Part::Line, Stop::Open) if rest == b"\"}" => break,
            (Part::More, Stop::Open) => {
                part = lines.more(used)?;
                used = 0;
            }
            _ => return Err(differs(lines, used)),
        }
    }
    let digest: [u8; 32] = sha256.finalize().into();
    if hex(&digest) == written { Ok(()) } else { Err(FindingKind::BodyDigest) }
}

fn head(follower: &mut Follower<'_>) -> Result<[u8; 64], Differs> {
    follower.literal(b"{\"digest\":\"sha256:")?;
    let written = follower.take(64)?.try_into().map_err(|_| Differs)?;
    follower.literal(b"\",\"body\":\"")?;
    Ok(written)
}

fn differs(lines: &Lines<impl BufRead>, at: usize) -> FindingKind {
    FindingKind::LineForm { line: LineKind::Body, column: lines.column(at) }
}

enum Stop {
    /// All is well as far as this part goes; what is left of it needs the next one, or is the end.
    Open,
    Differs,
}

/// Decodes as much of a string as stands here whole. Returns how many bytes that took.
fn decode(bytes: &[u8], decoded: &mut Vec<u8>) -> (usize, Stop) {
    let (whole, broken) = match std::str::from_utf8(bytes) {
        Ok(_) => (bytes, false),
        Err(error) => (bytes.get(..error.valid_up_to()).unwrap_or_default(), error.error_len().is_some()),
    };
    let mut taken = 0;
    loop {
        let rest = whole.get(taken..).unwrap_or_default();
        let (plain, special) = rest.split_at_checked(plain_bytes(rest)).unwrap_or((rest, &[]));
        decoded.extend_from_slice(plain);
        taken += plain.len();
        match special {
            [] if broken => return (taken, Stop::Differs),
            // The closing quote, the brace, and nothing else.
            [] | [b'"'] | [b'"', b'}'] => return (taken, Stop::Open),
            [b'\\', ..] => match unescaped(special) {
                Ok(Some((byte, length))) => {
                    decoded.push(byte);
                    taken += length;
                }
                Ok(None) => return (taken, Stop::Open),
                Err(Differs) => return (taken, Stop::Differs),
            },
            _ => return (taken, Stop::Differs),
        }
    }
}
