//! The world as the engine takes it: the clock, and randomness for event ids.

use crate::engine::World;
use crate::timestamp::Timestamp;

/// The real one. Randomness is drawn for a hundred ids at a time: a system call each would cost more than the
/// event it names.
#[derive(Debug, Default)]
pub struct RealWorld {
    pool: Vec<u8>,
}

const POOL_BYTES: usize = 1000;

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        super::clock::now()
    }

    fn random(&mut self) -> [u8; 10] {
        if self.pool.len() < 10 {
            // Ids are unique by their time and place as well; the operating system has not failed to give a few
            // bytes on any platform that we run on.
            self.pool =
                super::random::secret_bytes::<POOL_BYTES>().map(|bytes| bytes.to_vec()).unwrap_or_default();
        }
        let rest = self.pool.len().saturating_sub(10);
        let mut bytes = [0; 10];
        for (byte, random) in bytes.iter_mut().zip(self.pool.drain(rest..)) {
            *byte = random;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ids_are_the_same() {
        let mut world = RealWorld::default();
        let ids: std::collections::HashSet<[u8; 10]> = (0..10_000).map(|_| world.random()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
