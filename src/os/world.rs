//! The world as the engine takes it: the clock, and randomness for event ids.

use crate::engine::World;
use crate::timestamp::Timestamp;

/// The real one.
#[derive(Debug)]
pub struct RealWorld;

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        super::clock::now()
    }

    fn random(&mut self) -> [u8; 10] {
        // An id that could not be made random is still unique by the chain it stands in; the operating system
        // has not failed to give ten bytes on any platform we run on.
        super::random::secret_bytes::<10>().map(|bytes| *bytes).unwrap_or_default()
    }
}
