//! The mark of a ledger that nobody may append to: a copy of it does or will take its place, or it has lost its end.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::printable;

/// Why a ledger is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "closed", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Closing {
    /// It was copied, or is being copied, and the copy goes on in its place.
    Copied { to: String },
    /// A copy into it has not been finished.
    Unfinished { from: String },
    /// A gateway has a record of an entry that is not there any more, or is another one. Where the ledger ended then.
    Lost { gateway: String, sequence: u64, found: u64 },
    /// Somebody has said that what is left counts. The next gateway that starts begins a new epoch on top of it.
    Settled { kept: u64, running_hash: String, time: String },
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
            Self::Lost { gateway, sequence, found } => {
                let gateway = printable(gateway);
                if found < sequence {
                    write!(f, "it ends at entry {found}, and gateway `{gateway}` had entry {sequence}")?;
                } else {
                    write!(f, "its entry {sequence} is another one than gateway `{gateway}` had")?;
                }
                write!(
                    f,
                    ": it was put back from a backup, or a failover lost its end; `handoffd ledger settle` shows what is lost and how to go on"
                )
            }
            Self::Settled { kept, .. } => {
                write!(
                    f,
                    "what came after entry {kept} was given up, and the loss is settled: start the gateway again; the first one begins a new epoch"
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
            (
                Closing::Lost { gateway: "gw_a".to_owned(), sequence: 9, found: 7 },
                r#"{"closed":"lost","gateway":"gw_a","sequence":9,"found":7}"#,
            ),
            (
                Closing::Settled { kept: 7, running_hash: "ab".to_owned(), time: "t".to_owned() },
                r#"{"closed":"settled","kept":7,"runningHash":"ab","time":"t"}"#,
            ),
        ] {
            assert_eq!(closing.to_text(), text);
            assert_eq!(parse(text), Some(closing));
        }
        for text in ["", "{}", "null", r#"{"closed":"copied"}"#, r#"{"closed":"lost","to":"a"}"#] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
