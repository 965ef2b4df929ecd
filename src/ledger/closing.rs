//! The mark of a ledger that nobody may append to, because a copy of it does or will take its place.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::printable;

/// Why a ledger is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "closed", rename_all = "camelCase", deny_unknown_fields)]
pub enum Closing {
    /// It was copied, or is being copied, and the copy goes on in its place.
    Copied { to: String },
    /// A copy into it has not been finished.
    Unfinished { from: String },
}

impl Closing {
    /// The text that stands in a file or a row.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Reads such a text.
pub(crate) fn parse(text: &str) -> Option<Closing> {
    serde_json::from_str(text).ok()
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copied { to } => write!(f, "it was copied to `{}`, which takes its place", printable(to)),
            Self::Unfinished { from } => {
                write!(
                    f,
                    "a copy of `{}` into it has not been finished; run `handoffd ledger copy` again",
                    printable(from)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else_is() {
        for (closing, text) in [
            (Closing::Copied { to: "a \"b\"".to_owned() }, r#"{"closed":"copied","to":"a \"b\""}"#),
            (Closing::Unfinished { from: "x".to_owned() }, r#"{"closed":"unfinished","from":"x"}"#),
        ] {
            assert_eq!(closing.to_text(), text);
            assert_eq!(parse(text), Some(closing));
        }
        for text in ["", "{}", "null", r#"{"closed":"copied"}"#, r#"{"closed":"lost","to":"a"}"#] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
