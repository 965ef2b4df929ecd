//! Bytes that cannot be printed and do not outlive their use.

use std::fmt;

use zeroize::Zeroizing;

/// A secret: wiped when dropped, shown as `[secret]`.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A secret as a person keeps it in a file: the bytes without one final newline.
    pub fn from_file_bytes(mut bytes: Vec<u8>) -> Self {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Self::new(bytes)
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
