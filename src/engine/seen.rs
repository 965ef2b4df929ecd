//! Names that may have been claimed: a filter that answers "never" without a read.
//!
//! A blocked Bloom filter: each name sets eight bits in one block of 32 bytes, so that asking touches one line of
//! the processor's cache. It only ever errs towards "maybe", which costs a look at the views and nothing else: a
//! bit is never cleared, and what was given back stays in it. When a layer is full a larger one is put on top.

use std::hash::{BuildHasher as _, RandomState};

use crate::limits;
use crate::views::Claimed;

type Block = [u32; 8];

const BLOCK_BITS: usize = 256;

/// One for each word of a block: odd, and unlike each other.
const SALTS: Block =
    [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1, 0xd3a2_646d, 0xfd70_46c5, 0xb55a_4f09];

pub(super) struct Seen {
    /// Of this process alone, so that nobody can choose names that collide.
    hashing: RandomState,
    /// Names are put into the last.
    layers: Vec<Layer>,
}

struct Layer {
    blocks: Vec<Block>,
    names: usize,
}

impl Seen {
    /// Empty, with room for so many names before it grows.
    pub(super) fn with_room_for(names: usize) -> Self {
        let layers = vec![Layer::with_room_for(names.max(limits::CLAIM_FILTER_NAMES_MIN))];
        Self { hashing: RandomState::new(), layers }
    }

    pub(super) fn add(&mut self, name: &Claimed<'_>) {
        let hash = self.hashing.hash_one(name);
        if self.holds(hash) {
            return;
        }
        if let Some(full) = self.layers.last().filter(|layer| layer.is_full()) {
            let names = full.names * 2;
            self.layers.push(Layer::with_room_for(names));
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.add(hash);
        }
    }

    /// False only if the name was never added.
    pub(super) fn may_hold(&self, name: &Claimed<'_>) -> bool {
        self.holds(self.hashing.hash_one(name))
    }

    fn holds(&self, hash: u64) -> bool {
        self.layers.iter().any(|layer| layer.holds(hash))
    }
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seen({} layers)", self.layers.len())
    }
}

impl Layer {
    fn with_room_for(names: usize) -> Self {
        let blocks = (names * limits::CLAIM_FILTER_BITS).div_ceil(BLOCK_BITS).max(1);
        Self { blocks: vec![[0; 8]; blocks], names: 0 }
    }

    fn is_full(&self) -> bool {
        self.names * limits::CLAIM_FILTER_BITS >= self.blocks.len() * BLOCK_BITS
    }

    /// The upper half of a hash chooses the block.
    fn place(&self, hash: u64) -> usize {
        (((hash >> 32) * self.blocks.len() as u64) >> 32) as usize
    }

    fn add(&mut self, hash: u64) {
        let place = self.place(hash);
        if let Some(block) = self.blocks.get_mut(place) {
            block.iter_mut().zip(bits(hash)).for_each(|(word, bit)| *word |= bit);
            self.names += 1;
        }
    }

    fn holds(&self, hash: u64) -> bool {
        let block = self.blocks.get(self.place(hash));
        // A place outside cannot be; if it were, "maybe" would be the safe answer.
        block.is_none_or(|block| block.iter().zip(bits(hash)).all(|(word, bit)| word & bit == bit))
    }
}

/// The lower half chooses a bit in each word of it.
fn bits(hash: u64) -> impl Iterator<Item = u32> {
    SALTS.into_iter().map(move |salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_never_denied_and_what_was_not_seldom_confirmed() {
        let mut seen = Seen::with_room_for(1_000);
        let first = limits::CLAIM_FILTER_NAMES_MIN;
        let name = |n: usize| format!("hs_{n:08}");
        for n in 0..3 * first {
            seen.add(&Claimed::Handoff(&name(n)));
        }
        assert_eq!(seen.layers.len(), 2, "it grew");
        assert!((0..3 * first).all(|n| seen.may_hold(&Claimed::Handoff(&name(n)))));
        // The same word as another kind of name is another name.
        for wrong in [
            (0..first).filter(|n| seen.may_hold(&Claimed::Message(&name(*n)))).count(),
            (3 * first..4 * first).filter(|n| seen.may_hold(&Claimed::Handoff(&name(*n)))).count(),
        ] {
            assert!(wrong * 100 < first, "{wrong} of {first}");
        }
    }

    #[test]
    fn a_name_that_is_added_again_takes_no_room() {
        let mut seen = Seen::with_room_for(0);
        for _ in 0..10 * limits::CLAIM_FILTER_NAMES_MIN {
            seen.add(&Claimed::Cycle("corr_1"));
        }
        assert_eq!((seen.layers.len(), seen.layers[0].names), (1, 1));
    }
}
