//! The members of a request's objects, read with their types and with pointers to what is wrong.

use super::error::RpcError;
use crate::json::{Value, pointer};
use crate::limits;

/// An object in a request, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Params<'d> {
    value: Value<'d>,
    pointer: String,
}

impl<'d> Params<'d> {
    /// The object at this place; nothing else will do.
    pub(super) fn of(value: Value<'d>, pointer: impl Into<String>) -> Result<Self, RpcError> {
        let pointer = pointer.into();
        if value.is_object() {
            return Ok(Self { value, pointer });
        }
        Err(RpcError::params(pointer, "this must be an object", "send a JSON object here"))
    }

    /// Where the object stands.
    pub(super) fn place(&self) -> &str {
        &self.pointer
    }

    /// Where a member stands.
    pub(super) fn at(&self, name: &str) -> String {
        pointer::join(&self.pointer, name)
    }

    /// The member of that name; `null` is none.
    pub(super) fn get(&self, name: &str) -> Option<Value<'d>> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn value(&self) -> Value<'d> {
        self.value
    }

    pub(super) fn missing(&self, name: &str, hint: &str) -> RpcError {
        RpcError::params(self.at(name), format!("`{name}` is missing"), hint)
    }

    fn wrong(&self, name: &str, what: &str) -> RpcError {
        RpcError::params(
            self.at(name),
            format!("`{name}` must be {what}"),
            format!("send {what}, or leave it out"),
        )
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'d str>, RpcError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(name, "a string"))
    }

    /// A text that is not empty and not longer than an id may be.
    pub(super) fn id(&self, name: &str) -> Result<Option<&'d str>, RpcError> {
        // Protocol buffers write an absent text as an empty one.
        let Some(text) = self.text(name)?.filter(|text| !text.is_empty()) else { return Ok(None) };
        if text.chars().count() > limits::A2A_ID_CHARS_MAX || text.chars().any(char::is_control) {
            let what = format!("1 to {} characters without control characters", limits::A2A_ID_CHARS_MAX);
            return Err(self.wrong(name, &what));
        }
        Ok(Some(text))
    }

    pub(super) fn needed_id(&self, name: &str, hint: &str) -> Result<&'d str, RpcError> {
        self.id(name)?.ok_or_else(|| self.missing(name, hint))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, RpcError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(name, "true or false"))
    }

    /// A whole number that is not negative; `100.0` is one.
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>, RpcError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok());
        count.map(Some).ok_or_else(|| self.wrong(name, "a whole number from 0 on"))
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, RpcError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        if !value.is_object() {
            return Err(self.wrong(name, "an object"));
        }
        Ok(Some(Self { value, pointer: self.at(name) }))
    }

    /// An object as it is, whatever it holds.
    pub(super) fn free(&self, name: &str) -> Result<Option<serde_json::Value>, RpcError> {
        Ok(self.object(name)?.map(|object| object.value.to_json()))
    }

    /// The items of a list with their places; nothing for one that is absent.
    pub(super) fn list(&self, name: &str) -> Result<Vec<(Value<'d>, String)>, RpcError> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        if !value.is_array() {
            return Err(self.wrong(name, "an array"));
        }
        let base = self.at(name);
        let items = value.items().enumerate();
        Ok(items.map(|(n, item)| (item, pointer::join(&base, &n.to_string()))).collect())
    }

    /// A list of texts, at most so many.
    pub(super) fn texts(&self, name: &str, count_max: usize) -> Result<Vec<String>, RpcError> {
        let list = self.list(name)?;
        if list.len() > count_max {
            return Err(self.wrong(name, &format!("an array of at most {count_max} strings")));
        }
        let text = |(item, place): &(Value<'d>, String)| {
            let wrong = || RpcError::params(place.clone(), "this must be a string", "send a string here");
            item.as_str().map(str::to_owned).ok_or_else(wrong)
        };
        list.iter().map(text).collect()
    }
}
