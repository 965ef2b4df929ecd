//! Names and values, as an address or a form carries them, and back.

use crate::http::percent_decoded;

/// What a form or a query says; of a name that is given several times, all.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Nothing if it is not percent-encoded UTF-8.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut fields = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Browsers send CRLF for each break of a line, and count it as one character.
            fields.push((percent_decoded(name)?, percent_decoded(value)?.replace("\r\n", "\n")));
        }
        Some(Self(fields))
    }

    /// The first value of that name; nothing if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.trim())
            .filter(|v| !v.is_empty())
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// All words under that name, however they were separated.
    pub(super) fn words(&self, name: &str) -> Vec<&str> {
        let values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        values
            .flat_map(|value| value.split([',', ' ', '\n', '\r', '\t']))
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// Everything that was asked for, and one more, as a query. What proves a form is left out of it.
    pub(super) fn query_with(&self, name: &str, value: &str) -> String {
        let rest = self.0.iter().filter(|(known, _)| known != "form" && known != name);
        let rest = rest.map(|(name, value)| (name.as_str(), value.as_str()));
        query(rest.chain([(name, value)]))
    }

    /// Everything but these names, as a query.
    pub(super) fn query_without(&self, names: &[&str]) -> String {
        let rest =
            self.0.iter().filter(|(known, value)| !names.contains(&known.as_str()) && !value.is_empty());
        query(rest.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// These names and their values, where there are any, as a query.
    pub(super) fn query_of(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((*name, self.get(name)?)));
        query(given)
    }
}

/// A query of names and values.
pub(super) fn query<'f>(fields: impl IntoIterator<Item = (&'f str, &'f str)>) -> String {
    let pairs: Vec<String> =
        fields.into_iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}

/// Percent-encoding of all but what needs none anywhere in an address.
pub(super) fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back() {
        let nasty = "a b&c=d%/\"<é>+";
        let text = query([("name", nasty), ("other", "x")]);
        assert!(!text.contains(['<', '"', ' ', '+']), "{text}");
        let fields = Fields::read(&text).unwrap();
        assert_eq!(
            (fields.get("name"), fields.get("other"), fields.get("none")),
            (Some(nasty), Some("x"), None)
        );
        assert!(Fields::read("a=%zz").is_none());
        assert_eq!(Fields::read("a=one%0D%0Atwo%0D%0a%0Dx").unwrap().get("a"), Some("one\ntwo\n\rx"));
    }

    #[test]
    fn words_are_taken_apart_and_an_empty_value_is_none() {
        let fields = Fields::read("agents=a,%20b&agents=c&empty=&blank=++").unwrap();
        assert_eq!(fields.words("agents"), ["a", "b", "c"]);
        assert_eq!((fields.get("empty"), fields.get("blank")), (None, None));
        assert_eq!(fields.query_of(&["empty", "agents"]), "agents=a%2C%20b");
        let fields = Fields::read("form=word&id=a%20b&whole=no").unwrap();
        assert_eq!(fields.query_with("whole", "yes"), "id=a%20b&whole=yes");
        assert_eq!(fields.query_without(&["form", "whole"]), "id=a%20b");
    }
}
