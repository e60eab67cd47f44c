//! Hash table from a few distinct nodes to row numbers.

use crate::event::NodeId;

/// Small open-addressing table, cleared in constant time by a generation counter.
#[derive(Debug)]
pub(crate) struct RowTable {
    slots: Vec<Slot>,
    /// Slots with another generation are empty.
    generation: u32,
    nodes: Vec<NodeId>,
    cursors: Vec<[u32; 2]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    generation: u32,
    node: u32,
    row: u32,
}

impl Default for RowTable {
    fn default() -> Self {
        Self { slots: vec![Slot::default(); 128], generation: 0, nodes: Vec::new(), cursors: Vec::new() }
    }
}

impl RowTable {
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

    /// Empty scratch list of `[next, end]` cursors; keeps its allocation between pairs.
    pub(crate) fn cursors(&mut self) -> &mut Vec<[u32; 2]> {
        self.cursors.clear();
        &mut self.cursors
    }

    /// The row of `node`, if it has one.
    #[inline]
    pub(crate) fn get(&self, node: NodeId) -> Option<u32> {
        let slot = self.slots[self.find(node)];
        (slot.generation == self.generation).then_some(slot.row)
    }

    /// The row of `node`, a new one if it has none yet.
    #[inline]
    pub(crate) fn row(&mut self, node: NodeId) -> u32 {
        let at = self.find(node);
        if self.slots[at].generation == self.generation {
            return self.slots[at].row;
        }
        let row = u32::try_from(self.nodes.len()).expect("no more rows than tokens of a pair");
        self.slots[at] = Slot { generation: self.generation, node: node.0, row };
        self.nodes.push(node);
        // At most half full, to keep probe sequences short.
        if 2 * self.nodes.len() > self.slots.len() {
            self.grow();
        }
        row
    }

    /// The slot of `node`, or the empty slot where it belongs.
    #[inline]
    fn find(&self, node: NodeId) -> usize {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the high bits of the product are well mixed.
        let hash = u64::from(node.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.slots.len().trailing_zeros());
        let mut at = usize::try_from(hash).expect("shifted to the size of the table");
        while self.slots[at].generation == self.generation && self.slots[at].node != node.0 {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![Slot::default(); 2 * self.slots.len()];
        let nodes = std::mem::take(&mut self.nodes);
        for (row, &node) in (0..).zip(&nodes) {
            let at = self.find(node);
            self.slots[at] = Slot { generation: self.generation, node: node.0, row };
        }
        self.nodes = nodes;
    }
}
