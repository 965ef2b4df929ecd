//! What a text looks like where it was written as it is, in hexadecimal or in Base64.

use std::collections::HashMap;

/// So many last bytes of a form are looked up. No text that is planted is shorter.
const END: usize = 8;

/// Forms by how they end, each with the number of its text. One pass finds whichever of them are there.
#[derive(Default)]
pub(super) struct Forms(HashMap<[u8; END], Vec<(usize, String)>>);

impl Forms {
    pub(super) fn add(&mut self, number: usize, text: &str) {
        for form in forms(text) {
            let end = form.as_bytes().last_chunk::<END>().unwrap();
            self.0.entry(*end).or_default().push((number, form));
        }
    }

    /// All that is in there, with the form that it is there in.
    pub(super) fn found_in<'f>(&'f self, text: &[u8]) -> Vec<(usize, &'f str)> {
        let mut found = Vec::new();
        for (at, end) in text.windows(END).enumerate() {
            for (number, form) in self.0.get(end).into_iter().flatten() {
                if text[..at + END].ends_with(form.as_bytes()) {
                    found.push((*number, form.as_str()));
                }
            }
        }
        found
    }
}

fn forms(text: &str) -> Vec<String> {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![text.to_owned(), hex.to_uppercase(), hex];
    for before in 0..3 {
        let standard = base64_within(text.as_bytes(), before);
        let url = standard.replace('+', "-").replace('/', "_");
        all.extend([standard, url]);
    }
    all.sort();
    all.dedup();
    all
}

/// What stays the same of it in Base64 with so many bytes before it, whatever they are and whatever follows.
pub(super) fn base64_within(bytes: &[u8], before: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = vec![0; before]
        .iter()
        .chain(bytes)
        .flat_map(|byte| (0..8).rev().map(move |bit| (byte >> bit) & 1))
        .collect();
    let letters =
        bits.chunks_exact(6).map(|six| six.iter().fold(0, |number, bit| (number << 1) | usize::from(*bit)));
    letters.skip((before * 8).div_ceil(6)).map(|number| char::from(LETTERS[number])).collect()
}

#[test]
fn a_text_is_found_however_it_was_written() {
    let mut all = Forms::default();
    all.add(7, "canary0001zq");
    all.add(8, "canary0002zq");
    // `?canary0001zq!`, `>>canary0001zq` and `canary0001zq` in Base64, the first two with more around.
    for text in [
        "it is canary0001zq.",
        "63616e617279303030317a71",
        "0x63616E617279303030317A71",
        "P2NhbmFyeTAwMDF6cSE=",
        "Pj5jYW5hcnkwMDAxenE",
        "Basic Y2FuYXJ5MDAwMXpx",
    ] {
        let found: Vec<usize> = all.found_in(text.as_bytes()).iter().map(|(number, _)| *number).collect();
        assert_eq!(found, [7], "{text}");
    }
    assert!(all.found_in(b"canary0003zq, canary0001z, Y2FuYXJ5MDAwMXp").is_empty());
}
