//! Numbers the distinct nodes of one pair.

use crate::event::NodeId;

/// A hash table for a few nodes, emptied in constant time and small enough to stay in the nearest cache.
#[derive(Debug)]
pub(crate) struct RowTable {
    slots: Vec<Slot>,
    /// Slots of another generation are empty.
    generation: u32,
    nodes: Vec<NodeId>,
    cursors: Vec<u32>,
    shift: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    generation: u32,
    node: u32,
    row: u32,
}

impl RowTable {
    /// Room for `most` distinct nodes.
    pub(crate) fn new(most: usize) -> Self {
        // At most half full, so that searches stay short.
        let size = (2 * most.max(8)).next_power_of_two();
        let shift = 64 - size.trailing_zeros();
        Self { slots: vec![Slot::default(); size], generation: 0, nodes: Vec::new(), cursors: Vec::new(), shift }
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.slots.fill(Slot::default());
            self.generation = 1;
        }
    }

    /// The nodes in order of row.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// An empty list that keeps its memory between pairs.
    pub(crate) fn cursors(&mut self) -> &mut Vec<u32> {
        self.cursors.clear();
        &mut self.cursors
    }

    /// The row of `node`, a new one if it has none yet.
    #[inline]
    pub(crate) fn row(&mut self, node: NodeId) -> u32 {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the high bits of the product are well mixed.
        let hash = u64::from(node.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        let mut at = usize::try_from(hash).expect("shifted to the size of the table");
        loop {
            let slot = &mut self.slots[at];
            if slot.generation != self.generation {
                let row = u32::try_from(self.nodes.len()).expect("fewer rows than slots");
                *slot = Slot { generation: self.generation, node: node.0, row };
                self.nodes.push(node);
                return row;
            }
            if slot.node == node.0 {
                return slot.row;
            }
            at = (at + 1) & mask;
        }
    }
}
