//! A small writer of the test's own, made from `docs/ledger.md`; it shares nothing with handoffd's.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use ed25519_dalek::{Signer as _, SigningKey};
use handoffd::ledger::verify::{Checkpoint, PublicKeys};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub(crate) const TOPIC: &str = "0.0.8830671";
pub(crate) const KEY_ID: &str = "gateway-2026";

/// Segments, each a list of lines without their line feeds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    pub(crate) segments: Vec<Vec<String>>,
    entries: u64,
    hash: Option<[u8; 32]>,
}

pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut sha256 = Sha256::new();
    for part in parts {
        sha256.update(part);
    }
    sha256.finalize().into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Entries are a little more than a second apart, so that minutes, hours and days roll over.
pub(crate) fn timestamp(n: u64) -> String {
    let (second, nanosecond) = (n * 13, n * 7_654_321 % 1_000_000_000);
    let (day, hour, minute) = (1 + second / 86_400, second / 3600 % 24, second / 60 % 60);
    let (month, day) = (1 + (day - 1) / 28, 1 + (day - 1) % 28);
    let (year, month) = (2026 + (month - 1) / 12, 1 + (month - 1) % 12);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{nanosecond:09}Z", second % 60)
}

/// RFC 8785 for values whose numbers are whole.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, member)| format!("{}:{}", json!(name), canonical(member)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

pub(crate) fn wire(n: u64, stream_id: &str, stream_seq: u64, payload: Value) -> Value {
    json!({
        "wire": "1.1", "wire_id": format!("wire_01HZY{n:021}"), "type": "task.started",
        "sender": "agent:quinn-03", "ts": "2026-05-06T16:00:00Z", "payload": payload,
        "stream": {
            "stream_id": stream_id, "stream_seq": stream_seq, "context_id": "project:knowledgevault-m01r",
            "correlation_id": "project:knowledgevault-m01r", "causation_id": "wire_01HZX0000000000",
            "reference_task_ids": ["0.0.8830669"], "parent_task_id": "0.0.8830668",
        },
        "state": {"category": "working", "terminal": false},
        "extensions": {"handoffd.traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    })
}

impl Ledger {
    /// One segment, and nothing in it yet.
    pub(crate) fn started() -> Self {
        Self { segments: vec![Vec::new()], ..Self::default() }
    }

    /// Segments, batches, bodies and streams of different sizes, and text beyond ASCII.
    pub(crate) fn honest() -> Self {
        let mut ledger = Self::default();
        let streams = ["task:hf-1:attempt:1", "task:Übergabe-2:attempt:1", "project:0.0.8830671"];
        let mut lengths = [0; 3];
        for n in 1..=48_u64 {
            if n == 1 || n == 18 || n == 38 {
                ledger.segments.push(Vec::new());
            }
            if n % 3 == 1 {
                ledger.body(&format!("{{\n\t\"objective\": \"prüfe № {n} 😀\u{1}\u{1f} \\ \u{7f}\"\r\n}}"));
            }
            let stream = (n * 7 % 11 % 3) as usize;
            lengths[stream] += 1;
            let payload = json!({
                "reason": format!("wartet auf „{n}“\n\"\\\u{2}"), "version": n, "\u{fb33}": [null, true],
                "😀": {}, "offset": -5, "empty": [],
            });
            let wire = wire(n, streams[stream], lengths[stream], payload);
            ledger.event(&canonical(&wire));
            if n % 5 == 2 || n % 5 == 4 || n == 48 {
                ledger.commit();
            }
        }
        ledger
    }

    fn line(&mut self, line: String) {
        self.segments.last_mut().unwrap().push(line);
    }

    pub(crate) fn body(&mut self, body: &str) {
        self.line(format!(
            "{{\"digest\":\"sha256:{}\",\"body\":{}}}",
            hex(&sha256(&[body.as_bytes()])),
            json!(body)
        ));
    }

    pub(crate) fn event(&mut self, wire: &str) {
        let line = self.chained(TOPIC, &timestamp(self.entries + 1), wire);
        self.line(line);
    }

    fn chained(&mut self, topic: &str, timestamp: &str, wire: &str) -> String {
        let before = self.hash.unwrap_or(sha256(&[b"handoffd/ledger/v1", topic.as_bytes()]));
        self.entries += 1;
        let wire_hash = sha256(&[wire.as_bytes()]);
        let hash = sha256(&[&before, &self.entries.to_be_bytes(), timestamp.as_bytes(), &wire_hash]);
        self.hash = Some(hash);
        format!(
            "{{\"hcs\":{{\"topic_id\":{},\"sequence_number\":{},\"consensus_timestamp\":{},\
             \"running_hash\":\"{}\"}},\"wire\":{}}}",
            json!(topic),
            self.entries,
            json!(timestamp),
            hex(&hash),
            json!(wire)
        )
    }

    pub(crate) fn commit(&mut self) {
        let hash = hex(&self.hash.unwrap_or_default());
        self.line(format!("{{\"commit\":{{\"sequence\":{},\"running_hash\":\"{hash}\"}}}}", self.entries));
    }

    /// The same lines with the chain computed again from the first to the last, as a forger would.
    pub(crate) fn rechained(&self) -> Self {
        let mut again = Self::default();
        for segment in &self.segments {
            again.segments.push(Vec::new());
            for line in segment {
                let value: Value = serde_json::from_str(line).unwrap();
                if let Some(hcs) = value.get("hcs") {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    let topic = text(&hcs["topic_id"]);
                    let timestamp = text(&hcs["consensus_timestamp"]);
                    let line = again.chained(&topic, &timestamp, &text(&value["wire"]));
                    again.line(line);
                } else if value.get("commit").is_some() {
                    again.commit();
                } else {
                    again.line(line.clone());
                }
            }
        }
        again
    }

    /// Replaces an entry's wire text and nothing else.
    pub(crate) fn with_wire(&self, n: u64, edit: impl FnOnce(String) -> String) -> Self {
        let mut edited = self.clone();
        let line = edited.event_line(n);
        let value: Value = serde_json::from_str(line).unwrap();
        let hcs = value["hcs"].to_string();
        *line =
            format!("{{\"hcs\":{hcs},\"wire\":{}}}", json!(edit(value["wire"].as_str().unwrap().to_owned())));
        edited
    }

    pub(crate) fn event_line(&mut self, n: u64) -> &mut String {
        let events = self.segments.iter_mut().flatten().filter(|line| line.starts_with("{\"hcs\""));
        events.into_iter().nth(n as usize - 1).unwrap()
    }

    /// The name of a segment as an honest writer gives it.
    pub(crate) fn name(&self, segment: usize) -> String {
        let before: usize = self.segments[..segment].iter().flatten().filter(|line| is_event(line)).count();
        format!("{:020}.jsonl", before + 1)
    }

    pub(crate) fn text(&self, segment: usize) -> String {
        self.segments[segment].iter().map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn write(&self, dir: &Path) {
        for segment in 0..self.segments.len() {
            write(&dir.join(self.name(segment)), self.text(segment).as_bytes());
        }
    }

    pub(crate) fn export(&self) -> String {
        let events = self.segments.iter().flatten().filter(|line| is_event(line));
        events.map(|line| format!("{line}\n")).collect()
    }

    /// What the gateway signs after the last entry.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let text = checkpoint_text(TOPIC, self.entries, &hex(&self.hash.unwrap()));
        Checkpoint::parse(text.as_bytes()).unwrap().verify(&public_keys()).unwrap()
    }

    pub(crate) fn checkpoint_text(&self) -> String {
        checkpoint_text(TOPIC, self.entries, &hex(&self.hash.unwrap()))
    }
}

pub(crate) fn is_event(line: &str) -> bool {
    line.starts_with("{\"hcs\"")
}

pub(crate) fn is_body(line: &str) -> bool {
    line.starts_with("{\"digest\"")
}

pub(crate) fn is_commit(line: &str) -> bool {
    line.starts_with("{\"commit\"")
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    File::create(path).unwrap().write_all(bytes).unwrap();
}

fn signing_key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn public_key() -> String {
    hex(signing_key().verifying_key().as_bytes())
}

pub(crate) fn public_keys() -> PublicKeys {
    let mut keys = PublicKeys::default();
    keys.add(KEY_ID, &public_key()).unwrap();
    keys
}

pub(crate) fn checkpoint_text(topic: &str, sequence: u64, running_hash: &str) -> String {
    let mut value = json!({
        "topic_id": topic, "sequence": sequence, "running_hash": running_hash,
        "time": "2026-05-06T16:00:02Z", "key_id": KEY_ID,
    });
    let signature = signing_key().sign(canonical(&value).as_bytes());
    value["signature"] = json!(hex(&signature.to_bytes()));
    serde_json::to_string_pretty(&value).unwrap()
}

/// SplitMix64: the same mutations in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}
