//! The text of one Agent Wire v1.1 event: canonical, of the right shape, and what the chain asks of it.
//!
//! One pass does all three. serde_json reads the text, a [`Follower`] is told how each value would be
//! written, and the members of the envelope are noted on the way.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::finding::FindingKind;
use super::spelling::{Differs, Follower};

const WIRE_BYTES_MAX: usize = 8192;
const WIRE_LEVELS_MAX: usize = 64;
/// Beyond it a whole number is not the same number to every reader.
const WHOLE_NUMBER_MAX: u64 = (1 << 53) - 1;

/// What an event says about its own place.
#[derive(Debug)]
pub(super) struct Place<'w> {
    pub(super) wire_id: Cow<'w, str>,
    pub(super) stream_id: Cow<'w, str>,
    pub(super) stream_seq: u64,
}

pub(super) fn place(text: &str) -> Result<Place<'_>, FindingKind> {
    if text.len() > WIRE_BYTES_MAX {
        return Err(FindingKind::WireTooLong { bytes: text.len(), bytes_max: WIRE_BYTES_MAX });
    }
    let mut notes = Notes::default();
    let root = canonical(text, &mut notes)?;
    let envelope = |member| FindingKind::WireEnvelope { member };
    if !matches!(root, Seen::Object) {
        return Err(envelope(""));
    }
    if let Some(member) = notes.wrong.or_else(|| notes.missing()) {
        return Err(envelope(member));
    }
    if notes.wire != "1.1" {
        return Err(FindingKind::WireVersion);
    }
    if !is_wire_id(&notes.wire_id) {
        return Err(FindingKind::WireId);
    }
    Ok(Place { wire_id: notes.wire_id, stream_id: notes.stream_id, stream_seq: notes.stream_seq })
}

fn is_wire_id(text: &str) -> bool {
    text.strip_prefix("wire_")
        .is_some_and(|id| (8..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Is this the RFC 8785 form of itself?
fn canonical<'w>(text: &'w str, notes: &mut Notes<'w>) -> Result<Seen<'w>, FindingKind> {
    let mut follower = Follower::new(text.as_bytes());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let copy =
        Copy { follower: &mut follower, notes, within: Within::Envelope, levels_left: WIRE_LEVELS_MAX };
    let byte = match copy.deserialize(&mut deserializer) {
        Ok(seen) if follower.end().is_ok() => return Ok(seen),
        // JSON so far, but the follower said no, or something stands behind it.
        Ok(_) => follower.at() + 1,
        Err(error) if error.classify() == Category::Data => follower.at() + 1,
        Err(error) => error.column().max(1),
    };
    Err(FindingKind::WireForm { byte })
}

/// Where a member stands, as far as the envelope is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Envelope,
    Stream,
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Texts,
    Whole,
    Object,
}

/// What a value turned out to be.
enum Seen<'w> {
    Text(Cow<'w, str>),
    List { all_texts: bool },
    Whole(u64),
    Object,
    Other,
}

impl Seen<'_> {
    fn is(&self, shape: Shape) -> bool {
        match shape {
            Shape::Text => matches!(self, Seen::Text(_)),
            Shape::Texts => matches!(self, Seen::List { all_texts: true }),
            Shape::Whole => matches!(self, Seen::Whole(_)),
            Shape::Object => matches!(self, Seen::Object),
        }
    }
}

const REQUIRED: bool = true;
const OPTIONAL: bool = false;

/// The envelope's members and those of its `stream`; there are no others.
const MEMBERS: [(Within, &str, Shape, bool); 16] = [
    (Within::Envelope, "extensions", Shape::Object, OPTIONAL),
    (Within::Envelope, "payload", Shape::Object, REQUIRED),
    (Within::Envelope, "sender", Shape::Text, REQUIRED),
    (Within::Envelope, "state", Shape::Object, OPTIONAL),
    (Within::Stream, "causation_id", Shape::Text, OPTIONAL),
    (Within::Stream, "context_id", Shape::Text, REQUIRED),
    (Within::Stream, "correlation_id", Shape::Text, REQUIRED),
    (Within::Stream, "parent_task_id", Shape::Text, OPTIONAL),
    (Within::Stream, "reference_task_ids", Shape::Texts, OPTIONAL),
    (Within::Stream, "stream_id", Shape::Text, REQUIRED),
    (Within::Stream, "stream_seq", Shape::Whole, REQUIRED),
    (Within::Envelope, "stream", Shape::Object, REQUIRED),
    (Within::Envelope, "ts", Shape::Text, REQUIRED),
    (Within::Envelope, "type", Shape::Text, REQUIRED),
    (Within::Envelope, "wire", Shape::Text, REQUIRED),
    (Within::Envelope, "wire_id", Shape::Text, REQUIRED),
];

/// What was noted of the envelope.
#[derive(Default)]
struct Notes<'w> {
    wire: Cow<'w, str>,
    wire_id: Cow<'w, str>,
    stream_id: Cow<'w, str>,
    stream_seq: u64,
    /// One bit for each of [`MEMBERS`].
    present: u32,
    /// The first member that is of another type; empty for one that has no name of ours.
    wrong: Option<&'static str>,
}

impl<'w> Notes<'w> {
    fn member(&mut self, within: Within, name: &str, seen: Seen<'w>) {
        if within == Within::Elsewhere {
            return;
        }
        let known = MEMBERS.iter().enumerate().find(|(_, member)| member.0 == within && member.1 == name);
        let Some((n, (_, own_name, shape, _))) = known else {
            self.wrong.get_or_insert("");
            return;
        };
        if !seen.is(*shape) {
            self.wrong.get_or_insert(own_name);
        }
        self.present |= 1 << n;
        match (*own_name, seen) {
            ("wire", Seen::Text(text)) => self.wire = text,
            ("wire_id", Seen::Text(text)) => self.wire_id = text,
            ("stream_id", Seen::Text(text)) => self.stream_id = text,
            ("stream_seq", Seen::Whole(number)) => self.stream_seq = number,
            _ => {}
        }
    }

    fn missing(&self) -> Option<&'static str> {
        let members = MEMBERS.iter().enumerate();
        let mut missing = members.filter(|(n, member)| member.3 && self.present & 1 << n == 0);
        missing.next().map(|(_, member)| member.1)
    }
}

/// Visits a value, tells the follower how it is written, and says what it was.
struct Copy<'c, 'w> {
    follower: &'c mut Follower<'w>,
    notes: &'c mut Notes<'w>,
    within: Within,
    levels_left: usize,
}

impl<'w> Copy<'_, 'w> {
    /// For a value inside the one that was entered.
    fn inner(&mut self, within: Within) -> Copy<'_, 'w> {
        Copy { follower: self.follower, notes: self.notes, within, levels_left: self.levels_left }
    }

    fn enter(&mut self, bracket: &[u8]) -> Result<(), Differs> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or(Differs)?;
        self.follower.literal(bracket)
    }

    fn comma(&mut self, first: &mut bool) -> Result<(), Differs> {
        if std::mem::take(first) { Ok(()) } else { self.follower.literal(b",") }
    }

    fn name(&mut self, name: &str, before: Option<&Name<'_>>) -> Result<(), Differs> {
        // Strictly ascending: so none stands twice, either.
        if before.is_some_and(|before| !precedes(&before.0, name)) {
            return Err(Differs);
        }
        self.follower.string(name)?;
        self.follower.literal(b":")
    }

    fn whole(self, value: impl fmt::Display, magnitude: u64) -> Result<(), Differs> {
        if magnitude > WHOLE_NUMBER_MAX { Err(Differs) } else { self.follower.number(value) }
    }
}

/// By UTF-16 code units. UTF-8 bytes sort alike unless both texts go beyond ASCII.
fn precedes(a: &str, b: &str) -> bool {
    if a.is_ascii() || b.is_ascii() { a < b } else { a.encode_utf16().lt(b.encode_utf16()) }
}

impl<'w> DeserializeSeed<'w> for Copy<'_, 'w> {
    type Value = Seen<'w>;

    fn deserialize<D: Deserializer<'w>>(self, deserializer: D) -> Result<Seen<'w>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Fractions and exponents have no `visit` here, so serde refuses them.
impl<'w> Visitor<'w> for Copy<'_, 'w> {
    type Value = Seen<'w>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("canonical JSON with whole numbers only")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Seen<'w>, E> {
        self.follower.literal(b"null").map_err(refused)?;
        Ok(Seen::Other)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Seen<'w>, E> {
        self.follower.literal(if value { b"true" } else { b"false" }).map_err(refused)?;
        Ok(Seen::Other)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Seen<'w>, E> {
        self.whole(value, value).map_err(refused)?;
        Ok(Seen::Whole(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Seen<'w>, E> {
        self.whole(value, value.unsigned_abs()).map_err(refused)?;
        Ok(Seen::Other)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'w str) -> Result<Seen<'w>, E> {
        self.follower.plain_string(value).map_err(refused)?;
        Ok(Seen::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Seen<'w>, E> {
        self.follower.string(value).map_err(refused)?;
        Ok(Seen::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'w>>(mut self, mut items: A) -> Result<Seen<'w>, A::Error> {
        self.enter(b"[").map_err(refused)?;
        let (mut first, mut all_texts) = (true, true);
        while let Some(seen) = items.next_element_seed(Item { list: &mut self, first: &mut first })? {
            all_texts &= seen.is(Shape::Text);
        }
        self.follower.literal(b"]").map_err(refused)?;
        Ok(Seen::List { all_texts })
    }

    fn visit_map<A: MapAccess<'w>>(mut self, mut members: A) -> Result<Seen<'w>, A::Error> {
        self.enter(b"{").map_err(refused)?;
        let mut first = true;
        let mut before: Option<Name<'w>> = None;
        while let Some(name) = members.next_key::<Name<'w>>()? {
            self.comma(&mut first).map_err(refused)?;
            self.name(&name.0, before.as_ref()).map_err(refused)?;
            let within = match (self.within, &*name.0) {
                (Within::Envelope, "stream") => Within::Stream,
                _ => Within::Elsewhere,
            };
            let seen = members.next_value_seed(self.inner(within))?;
            self.notes.member(self.within, &name.0, seen);
            before = Some(name);
        }
        self.follower.literal(b"}").map_err(refused)?;
        Ok(Seen::Object)
    }
}

/// A list's item, with the comma before it.
struct Item<'i, 'c, 'w> {
    list: &'i mut Copy<'c, 'w>,
    first: &'i mut bool,
}

impl<'w> DeserializeSeed<'w> for Item<'_, '_, 'w> {
    type Value = Seen<'w>;

    fn deserialize<D: Deserializer<'w>>(self, deserializer: D) -> Result<Seen<'w>, D::Error> {
        self.list.comma(self.first).map_err(refused)?;
        self.list.inner(Within::Elsewhere).deserialize(deserializer)
    }
}

fn refused<E: serde::de::Error>(_: Differs) -> E {
    E::custom("differs")
}

#[derive(Deserialize)]
struct Name<'w>(#[serde(borrow)] Cow<'w, str>);
