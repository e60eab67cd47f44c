//! Exact interning: equal rows get equal ids, different rows different ones, by full comparison.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Rows of words, numbered by first appearance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    rows: Vec<Arc<[u64]>>,
    numbers: FxHashMap<Arc<[u64]>, u32>,
}

impl Table {
    /// The number of `row`, a new one if it was not interned yet.
    ///
    /// # Panics
    /// When there are more different rows than a stream has events or nodes.
    pub(crate) fn number(&mut self, row: &[u64]) -> u32 {
        if let Some(&number) = self.numbers.get(row) {
            return number;
        }
        let number = u32::try_from(self.rows.len()).expect("at most one row per event, node or tuple");
        let row: Arc<[u64]> = row.into();
        self.rows.push(Arc::clone(&row));
        self.numbers.insert(row, number);
        number
    }

    /// The row called `number`.
    pub(crate) fn row(&self, number: u32) -> &[u64] {
        &self.rows[number as usize]
    }

    /// All rows in order of their numbers.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.rows.iter().map(|row| &**row)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_share_a_number_and_different_rows_do_not() {
        let mut table = Table::default();
        let numbers = [[1, 2], [2, 1], [1, 2]].map(|row| table.number(&row));
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!(table.number(&[]), 2, "the empty row is a row");
        assert_eq!(table.row(1), [2, 1]);
        assert_eq!(table.len(), 3);
    }
}
