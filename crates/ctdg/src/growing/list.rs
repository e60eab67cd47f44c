//! Many short lists: one for each node or pair.

use std::fmt;
use std::sync::OnceLock;

use bytemuck::Pod;

use super::Block;

/// A list that grows while it is read. Blocks that became too small stay until the list is dropped.
pub(crate) struct GrowingList<T> {
    first: OnceLock<Box<Link<T>>>,
}

struct Link<T> {
    block: Block<T>,
    /// A larger block with the same values and later ones.
    next: OnceLock<Box<Link<T>>>,
}

impl<T> Default for GrowingList<T> {
    fn default() -> Self {
        Self { first: OnceLock::new() }
    }
}

impl<T: Pod> GrowingList<T> {
    /// A list that begins with `values`.
    pub(crate) fn new(values: &[T]) -> Self {
        let list = Self::default();
        list.first.get_or_init(|| Box::new(Link::new(values)));
        list
    }

    /// A list that begins with what `values` gives.
    pub(crate) fn from_iter(values: impl ExactSizeIterator<Item = T>) -> Self {
        Self::new(&values.collect::<Vec<T>>())
    }

    /// The values so far.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        self.newest().map_or(&[], |link| link.block.as_slice())
    }

    /// Appends a value; only one thread may do so at a time.
    pub(crate) fn push(&self, value: T) {
        let Some(newest) = self.newest() else {
            self.first.get_or_init(|| Box::new(Link::new(&[]))).block.extend(&[value]);
            return;
        };
        if !newest.block.extend(&[value]) {
            let next = Box::new(Link::new(newest.block.as_slice()));
            next.block.extend(&[value]);
            // Published with the value in it.
            let _ = newest.next.set(next);
        }
    }

    #[inline]
    fn newest(&self) -> Option<&Link<T>> {
        let mut newest = self.first.get()?;
        while let Some(next) = newest.next.get() {
            newest = next;
        }
        Some(newest)
    }
}

impl<T: Pod> Link<T> {
    /// A block with `values` and room for half as many more.
    fn new(values: &[T]) -> Self {
        let capacity = values.len() + (values.len() / 2).max(4);
        Self { block: Block::new(values, capacity), next: OnceLock::new() }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for GrowingList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// What is kept of each node, made when it is first written to.
#[derive(Debug)]
pub(crate) struct NodeTable<L> {
    nodes: boxcar::Vec<OnceLock<Box<L>>>,
}

impl<L> Default for NodeTable<L> {
    fn default() -> Self {
        Self { nodes: boxcar::Vec::new() }
    }
}

impl<L> NodeTable<L> {
    /// That of a node, if it has been made.
    #[inline]
    pub(crate) fn get(&self, node: usize) -> Option<&L> {
        Some(&**self.nodes.get(node)?.get()?)
    }

    /// That of a node, made by `init` if there is none.
    pub(crate) fn get_or_init(&self, node: usize, init: impl FnOnce() -> L) -> &L {
        while self.nodes.count() <= node {
            self.nodes.push(OnceLock::new());
        }
        self.nodes[node].get_or_init(|| Box::new(init()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_what_it_lent() {
        let list = GrowingList::new(&[7_u32]);
        let lent = list.as_slice();
        (0..1000).for_each(|value| list.push(value));
        assert_eq!((lent, list.as_slice().len(), list.as_slice()[1000]), (&[7][..], 1001, 999));
        let empty = GrowingList::default();
        assert!(empty.as_slice().is_empty());
        empty.push(1_u32);
        assert_eq!(empty.as_slice(), [1]);
    }

    #[test]
    fn nodes_are_made_when_they_are_written_to() {
        let table = NodeTable::default();
        assert!(table.get(3).is_none());
        assert_eq!(*table.get_or_init(3, || 5), 5);
        assert_eq!((table.get(3), table.get(2), table.get(4)), (Some(&5), None, None));
        assert_eq!(*table.get_or_init(3, || 6), 5);
    }
}
