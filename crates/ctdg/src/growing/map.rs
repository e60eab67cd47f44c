//! Growing lists by a 64-bit key.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use bytemuck::Pod;
use rustc_hash::FxHashMap;

use super::GrowingList;

/// Maps that are locked one at a time, so that a reader hardly ever waits.
const N_SHARDS: usize = 64;

/// Lists by key. A lookup holds a lock for the time of a hash lookup; what it returns is read without one.
pub(crate) struct PairMap<T> {
    shards: Vec<RwLock<FxHashMap<u64, u32>>>,
    lists: boxcar::Vec<GrowingList<T>>,
}

impl<T> Default for PairMap<T> {
    fn default() -> Self {
        Self { shards: (0..N_SHARDS).map(|_| RwLock::default()).collect(), lists: boxcar::Vec::new() }
    }
}

impl<T: Pod> PairMap<T> {
    fn shard(&self, key: u64) -> &RwLock<FxHashMap<u64, u32>> {
        // Multiplied, so that consecutive nodes are in different shards.
        &self.shards[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize]
    }

    /// The list of `key`, if it has been written to.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&[T]> {
        let slot = *self.shard(key).read().unwrap_or_else(PoisonError::into_inner).get(&key)?;
        Some(self.lists[slot as usize].as_slice())
    }

    /// Appends a value to the list of `key`, which begins with `first` if it is new; only one thread may do so at a time.
    pub(crate) fn push<I: ExactSizeIterator<Item = T>>(&self, key: u64, first: impl FnOnce() -> I, value: T) {
        let known = self.shard(key).read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some(slot) = known {
            return self.lists[slot as usize].push(value);
        }
        let list = GrowingList::from_iter(first());
        list.push(value);
        let slot = u32::try_from(self.lists.push(list)).expect("no more pairs than events");
        self.shard(key).write().unwrap_or_else(PoisonError::into_inner).insert(key, slot);
    }
}

impl<T> fmt::Debug for PairMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairMap").field("lists", &self.lists.count()).finish_non_exhaustive()
    }
}
