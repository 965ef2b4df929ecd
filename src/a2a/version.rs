//! The two versions of the protocol that are spoken.

use std::fmt;

use crate::json::printable;

/// A version of A2A, without its patch number, which never counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    V0_3,
    V1_0,
}

/// A version that is not spoken here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVersion(String);

impl Version {
    pub const ALL: [Self; 2] = [Self::V0_3, Self::V1_0];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// What an `A2A-Version` header or query parameter asks for; nothing, or an empty one, asks for 0.3.
    ///
    /// `0.3.0` is 0.3: clients copy it from cards.
    pub fn asked(text: Option<&str>) -> Result<Self, UnknownVersion> {
        let text = text.map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Ok(Self::V0_3);
        }
        let spoken = |version: &Self| match text.strip_prefix(version.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(is_number),
            None => false,
        };
        Self::ALL.into_iter().find(spoken).ok_or_else(|| UnknownVersion(text.to_owned()))
    }

    /// The version in which somebody who asked so is told what is wrong. Whoever asks for one that is not spoken knows
    /// the header, which is newer than 0.3.
    pub fn told(asked: Option<&str>) -> Self {
        Self::asked(asked).unwrap_or(Self::V1_0)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "A2A `{}` is not spoken here", printable(&self.0))
    }
}

impl std::error::Error for UnknownVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_by_its_first_two_numbers() {
        let check = |text: Option<&str>, expected: Option<Version>| {
            assert_eq!(Version::asked(text).ok(), expected, "{text:?}");
        };
        for text in [None, Some(""), Some("  "), Some("0.3"), Some("0.3.0"), Some("0.3.12")] {
            check(text, Some(Version::V0_3));
        }
        for text in [Some("1.0"), Some(" 1.0 "), Some("1.0.7")] {
            check(text, Some(Version::V1_0));
        }
        for text in ["1", "1.", "1.1", "1.0.", "1.0.x", "1.00", "0.30", "0.2", "2.0", "v1.0", "latest"] {
            check(Some(text), None);
        }
    }
}
