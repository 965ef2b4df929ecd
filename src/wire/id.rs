//! Event ids and stream names.

use std::fmt;

/// A ULID: 48 bits of time, 80 bits of randomness, 26 digits of Crockford's base 32. They sort by their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid([u8; 26]);

impl Ulid {
    pub fn new(unix_milliseconds: u64, random: [u8; 10]) -> Self {
        let mut number = u128::from(unix_milliseconds & 0xffff_ffff_ffff) << 80;
        for (n, byte) in random.iter().enumerate() {
            number |= u128::from(*byte) << (72 - 8 * n);
        }
        let mut digits = [0; 26];
        for (n, digit) in digits.iter_mut().enumerate() {
            *digit = base_32((number >> (125 - 5 * n)) as u8 & 31);
        }
        Self(digits)
    }

    /// Reads one as it is written: upper case, and no more than 128 bits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 26] = text.as_bytes().try_into().ok()?;
        let known = digits.iter().all(|digit| (0..32).any(|value| base_32(value) == *digit));
        (known && digits.first().is_some_and(|first| *first <= b'7')).then_some(Self(digits))
    }
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

/// The id of an event: `wire_` and a ULID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WireId(Ulid);

impl WireId {
    /// An id of a time and of randomness that nobody can guess; ids sort by their time.
    pub fn new(unix_milliseconds: u64, random: [u8; 10]) -> Self {
        Self(Ulid::new(unix_milliseconds, random))
    }
}

/// Crockford's digits: no I, L, O or U.
fn base_32(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        10..=17 => b'A' + value - 10,
        18..=19 => b'J' + value - 18,
        20..=21 => b'M' + value - 20,
        22..=26 => b'P' + value - 22,
        _ => b'V' + value - 27,
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wire_{}", self.0)
    }
}

/// The stream that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamId<'s> {
    /// One attempt at a handoff.
    Handoff { handoff_id: &'s str, attempt: u32 },
    /// A route: its promotion and rollback.
    Route { route_key: &'s str },
    /// The gateway itself: policies, freezes, mentions, grants, tokens, keys, state.
    Gateway { topic_id: &'s str },
}

/// What a stream is about, by the first word of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// One attempt at a handoff.
    Task,
    /// A route.
    Phase,
    /// The gateway itself.
    Project,
}

impl StreamKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Phase => "phase",
            Self::Project => "project",
        }
    }
}

impl<'s> StreamId<'s> {
    /// Reads a stream's name; nothing for streams that no event of ours stands in.
    pub fn parse(name: &'s str) -> Option<Self> {
        match name.split_once(':')? {
            ("task", rest) => {
                let (handoff_id, number) = rest.rsplit_once(":attempt:")?;
                let attempt: u32 = number.parse().ok()?;
                // One name for one stream: `01` and `+1` are not ours.
                (attempt.to_string() == number).then_some(Self::Handoff { handoff_id, attempt })
            }
            ("phase", route_key) => Some(Self::Route { route_key }),
            ("project", topic_id) => Some(Self::Gateway { topic_id }),
            _ => None,
        }
    }

    pub fn kind(self) -> StreamKind {
        match self {
            Self::Handoff { .. } => StreamKind::Task,
            Self::Route { .. } => StreamKind::Phase,
            Self::Gateway { .. } => StreamKind::Project,
        }
    }
}

impl fmt::Display for StreamId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handoff { handoff_id, attempt } => write!(f, "task:{handoff_id}:attempt:{attempt}"),
            Self::Route { route_key } => write!(f, "phase:{route_key}"),
            Self::Gateway { topic_id } => write!(f, "project:{topic_id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ULID specification's own example of an encoded time, and both ends of the range.
    #[test]
    fn an_id_is_a_ulid() {
        let id = |ms, random| WireId::new(ms, random).to_string();
        assert!(id(1_469_918_176_385, [0; 10]).starts_with("wire_01ARYZ6S41"));
        assert_eq!(id(0, [0; 10]), format!("wire_{}", "0".repeat(26)));
        assert_eq!(id(u64::MAX, [0xff; 10]), format!("wire_7{}", "Z".repeat(25)));
        assert_eq!(id(0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 31]), format!("wire_{}Z", "0".repeat(25)));
    }

    #[test]
    fn a_ulid_is_read_only_as_it_is_written() {
        let text = Ulid::new(1_469_918_176_385, [7; 10]).to_string();
        assert_eq!(Ulid::parse(&text).map(|ulid| ulid.to_string()), Some(text.clone()));
        let more_than_128_bits = format!("8{}", "0".repeat(25));
        for other in
            [text.to_lowercase(), format!("{text}0"), "U".repeat(26), more_than_128_bits, String::new()]
        {
            assert_eq!(Ulid::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn ids_sort_by_their_time() {
        let early = WireId::new(1_000, [0xff; 10]).to_string();
        let late = WireId::new(1_001, [0; 10]).to_string();
        assert!(early < late);
    }

    #[test]
    fn a_stream_has_the_name_that_the_protocol_gives_it() {
        let check = |stream: StreamId<'_>, name: &str| {
            assert_eq!(stream.to_string(), name);
            assert_eq!(StreamId::parse(name), Some(stream));
        };
        check(StreamId::Handoff { handoff_id: "hs_12345678", attempt: 2 }, "task:hs_12345678:attempt:2");
        check(StreamId::Route { route_key: "route.v1" }, "phase:route.v1");
        check(StreamId::Gateway { topic_id: "gw_1" }, "project:gw_1");
        check(
            StreamId::Handoff { handoff_id: "hs_1:attempt:7", attempt: 1 },
            "task:hs_1:attempt:7:attempt:1",
        );
        for name in ["task:hs_1", "task:hs_1:attempt:01", "task:hs_1:attempt:+1", "agent:x", "phase"] {
            assert_eq!(StreamId::parse(name), None, "{name}");
        }
    }
}
