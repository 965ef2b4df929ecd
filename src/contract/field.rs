//! One member of a TaskSpec as it was found.

/// A member that was absent, could not be read, or has a value.
///
/// The gates run on whatever could be read, and "absent" and "unreadable" are not the same to them: an
/// absent rollback plan is refused for being absent, an unreadable one only for its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Field<T> {
    #[default]
    Absent,
    Unreadable,
    Is(T),
}

impl<T> Field<T> {
    /// The value, if there is one.
    pub fn get(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Unreadable => None,
        }
    }

    /// The value by reference, if there is one.
    pub fn as_ref(&self) -> Field<&T> {
        match self {
            Self::Is(value) => Field::Is(value),
            Self::Absent => Field::Absent,
            Self::Unreadable => Field::Unreadable,
        }
    }

    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value, `default` if it is absent, and nothing if it could not be read.
    pub fn or_default_to(self, default: T) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent => Some(default),
            Self::Unreadable => None,
        }
    }
}
