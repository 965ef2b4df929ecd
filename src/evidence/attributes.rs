//! The packet's `attributes`, in the order in which they are emitted.
//!
//! Owns the ordering: object keys sorted by bytes at every level, arrays of nothing but strings sorted by
//! bytes, every other array as it came. Unlike the other parts, `attributes` is emitted whatever its JSON
//! type; only `discovery` asks that it be an object. Deliberately absent: any meaning of a key.

use serde::Serialize;
use serde_json::Value;

/// INVARIANT (sorted attributes): the value inside is ordered; [`Attributes::sorted`] is the only way in.
/// The canonical writer relies on it and does not sort again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Attributes(Value);

impl Attributes {
    pub(super) fn sorted(mut value: Value) -> Self {
        sort(&mut value);
        Self(value)
    }

    /// The value at a top-level key; nothing when the attributes are no object.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(super) fn value(&self) -> &Value {
        &self.0
    }
}

/// The parser has bounded the depth, so recursion is safe here.
fn sort(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(sort);
            members.sort_keys();
        }
        Value::Array(items) => {
            if items.iter().all(Value::is_string) {
                items.sort_unstable_by(|a, b| a.as_str().cmp(&b.as_str()));
            } else {
                items.iter_mut().for_each(sort);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: &str, emitted: &str) {
        let attributes = Attributes::sorted(serde_json::from_str(sent).unwrap());
        assert_eq!(serde_json::to_string(&attributes).unwrap(), emitted);
    }

    #[test]
    fn attributes_are_ordered_at_every_level() {
        check(r#"{"b": 1, "a": {"d": 2, "c": 3}}"#, r#"{"a":{"c":3,"d":2},"b":1}"#);
        check(r#"[{"b": 1, "a": 2}, 3]"#, r#"[{"a":2,"b":1},3]"#);
        check(r#"{"é": 1, "z": 2, "Z": 3, "": 4}"#, r#"{"":4,"Z":3,"z":2,"é":1}"#);
    }

    #[test]
    fn only_arrays_of_nothing_but_strings_are_reordered() {
        check(r#"["b", "a", "b"]"#, r#"["a","b","b"]"#);
        check(r#"["b", 1, "a"]"#, r#"["b",1,"a"]"#);
        check(r#"[["b", "a"], ["d", "c"]]"#, r#"[["a","b"],["c","d"]]"#);
        check("[3, 1, 2]", "[3,1,2]");
    }

    #[test]
    fn attributes_of_any_type_are_kept() {
        for scalar in ["null", "1", "true", r#""assay_g4""#, "[]", "{}"] {
            check(scalar, scalar);
        }
    }
}
