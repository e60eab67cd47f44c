//! Lists that one thread appends to while others read what is there already.
//!
//! A slice that a reader holds never changes and never moves: entries are written behind it, and when a block of memory is full its values
//! are copied to a larger one while the old block stays. So readers take no lock and copy nothing.

mod block;
mod list;
mod map;

pub(crate) use block::{Block, GrowingColumn};
pub(crate) use list::{GrowingList, NodeTable};
pub(crate) use map::PairMap;
