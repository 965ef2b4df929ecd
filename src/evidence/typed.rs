//! Reading one JSON value of the type hoped for, and taking any other type as absent.
//!
//! Owns the walk over the parser. Every value goes through the parser's full reading, also the ones that are
//! dropped: the cheaper way to skip a value would let a bad number, a lone surrogate or deep nesting pass
//! where the contract refuses the packet. Of duplicate keys the last wins, because each assignment replaces
//! the one before it, also with nothing. Deliberately absent: which keys matter (`packet.rs`, `parts.rs`).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::parts::{Part, Slot};

/// A JSON type to hope for. A method that is not overridden means: this is not the type.
pub(super) trait Hope<'de>: Sized {
    type Found;

    /// Another type was there.
    fn absent() -> Self::Found;

    /// A string that had escapes and lives in the parser.
    fn text(_text: &str) -> Self::Found {
        Self::absent()
    }

    /// A string that can be borrowed from the packet.
    fn borrowed_text(_text: &'de str) -> Self::Found {
        Self::absent()
    }

    fn array<A: SeqAccess<'de>>(mut items: A) -> Result<Self::Found, A::Error> {
        while items.next_element_seed(Read::<Anything>::new())?.is_some() {}
        Ok(Self::absent())
    }

    fn object<A: MapAccess<'de>>(mut members: A) -> Result<Self::Found, A::Error> {
        while members.next_key_seed(Key)?.is_some() {
            members.next_value_seed(Read::<Anything>::new())?;
        }
        Ok(Self::absent())
    }
}

/// Reads a value in the hope of `H`.
pub(super) struct Read<H>(PhantomData<H>);

impl<H> Read<H> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, H: Hope<'de>> DeserializeSeed<'de> for Read<H> {
    type Value = H::Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<H::Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, H: Hope<'de>> Visitor<'de> for Read<H> {
    type Value = H::Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<H::Found, E> {
        Ok(H::absent())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<H::Found, E> {
        Ok(H::absent())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<H::Found, E> {
        Ok(H::absent())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<H::Found, E> {
        Ok(H::absent())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<H::Found, E> {
        Ok(H::absent())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<H::Found, E> {
        Ok(H::text(text))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<H::Found, E> {
        Ok(H::borrowed_text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<H::Found, A::Error> {
        H::array(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<H::Found, A::Error> {
        H::object(members)
    }
}

/// No hope: the value is read and dropped.
pub(super) struct Anything;

impl Hope<'_> for Anything {
    type Found = ();

    fn absent() {}
}

/// A string, borrowed from the packet where it has no escapes.
pub(super) struct Text;

impl<'de> Hope<'de> for Text {
    type Found = Option<Cow<'de, str>>;

    fn absent() -> Self::Found {
        None
    }

    fn text(text: &str) -> Self::Found {
        Some(Cow::Owned(text.to_owned()))
    }

    fn borrowed_text(text: &'de str) -> Self::Found {
        Some(Cow::Borrowed(text))
    }
}

/// An array, of which the strings are kept, sorted by bytes.
struct Texts;

impl<'de> Hope<'de> for Texts {
    type Found = Option<Vec<String>>;

    fn absent() -> Self::Found {
        None
    }

    fn array<A: SeqAccess<'de>>(mut items: A) -> Result<Self::Found, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = items.next_element_seed(Read::<Text>::new())? {
            texts.extend(item.map(Cow::into_owned));
        }
        texts.sort_unstable();
        Ok(Some(texts))
    }
}

/// An object that is one of the typed parts.
pub(super) struct Typed<P>(PhantomData<P>);

impl<'de, P: Part> Hope<'de> for Typed<P> {
    type Found = Option<P>;

    fn absent() -> Self::Found {
        None
    }

    fn object<A: MapAccess<'de>>(mut members: A) -> Result<Self::Found, A::Error> {
        let mut part = P::default();
        while let Some(key) = members.next_key_seed(Key)? {
            match part.slot(&key) {
                Some(Slot::Text(slot)) => {
                    *slot = members.next_value_seed(Read::<Text>::new())?.map(Cow::into_owned);
                }
                Some(Slot::Texts(slot)) => *slot = members.next_value_seed(Read::<Texts>::new())?,
                None => members.next_value_seed(Read::<Anything>::new())?,
            }
        }
        Ok(Some(part))
    }
}

/// The key of an object's member.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }
}
