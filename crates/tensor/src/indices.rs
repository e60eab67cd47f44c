//! Numbers of rows, to be picked or put somewhere.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::cuda::Staged;
use crate::{Error, Result};

/// Numbers of rows. A clone is the same numbers.
///
/// What operations ask of all of them is found out where they are made, which may be a thread ahead of its use; see also
/// [`Device::stage_indices`](crate::Device::stage_indices).
#[derive(Debug, Clone)]
pub struct Indices(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rows: Vec<u32>,
    /// Behind the largest.
    end: usize,
    is_rising: bool,
    staged: OnceLock<StagedIndices>,
}

/// The numbers on their way to a card, and perhaps behind them where each number stands.
#[derive(Debug)]
pub(crate) struct StagedIndices {
    pub(crate) staged: Staged,
    pub(crate) lists: Option<ListSizes>,
}

/// For each of some rows the positions at which numbers name it, in order.
#[derive(Debug)]
pub(crate) struct Lists {
    /// Where each list begins, and the last one ends.
    pub(crate) starts: Vec<u32>,
    pub(crate) positions: Vec<u32>,
    /// Where lists are long, all are cut into pieces, and `starts` is of those: the first piece of each row, and behind
    /// the last. Empty where none is long.
    pub(crate) pieces: Vec<u32>,
}

/// How large [`Lists`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListSizes {
    pub(crate) rows: usize,
    /// Lists, or pieces of them.
    pub(crate) lists: usize,
    pub(crate) positions: usize,
    /// Whether they are pieces.
    pub(crate) is_cut: bool,
}

/// Positions of a list, or a piece of one, that are summed one after another.
const PIECE: u32 = 1024;

impl Indices {
    /// Whether each is larger than the one before it.
    pub(crate) fn is_rising(&self) -> bool {
        self.0.is_rising
    }

    /// Refuses numbers that `rows` rows do not have.
    pub(crate) fn check(&self, operation: &'static str, rows: usize) -> Result<()> {
        if self.0.end <= rows {
            return Ok(());
        }
        let position = self.iter().position(|&index| index as usize >= rows).unwrap_or_default();
        Err(Error::Index { operation, position, index: self[position], rows })
    }

    /// Where each of `n_rows` rows is named.
    pub(crate) fn lists(&self, n_rows: usize) -> Lists {
        let mut starts = vec![0_u32; n_rows + 1];
        for &index in self.iter() {
            starts[index as usize + 1] += 1;
        }
        let is_long = starts.iter().copied().fold(0, u32::max) > PIECE;
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut positions = vec![0_u32; self.len()];
        for (position, &index) in (0..).zip(self.iter()) {
            let place = &mut next[index as usize];
            positions[*place as usize] = position;
            *place += 1;
        }
        let lists = Lists { starts, positions, pieces: Vec::new() };
        if is_long { lists.cut() } else { lists }
    }

    /// Whether they are clones of one another; those that are not may still be equal.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn staged(&self) -> Option<&StagedIndices> {
        self.0.staged.get()
    }

    pub(crate) fn set_staged(&self, staged: StagedIndices) {
        let _ = self.0.staged.set(staged);
    }
}

impl Lists {
    fn cut(self) -> Self {
        let (mut starts, mut pieces, mut n_pieces) = (Vec::new(), Vec::with_capacity(self.starts.len()), 0);
        for list in self.starts.windows(2) {
            pieces.push(n_pieces);
            for start in (list[0]..list[1]).step_by(PIECE as usize) {
                starts.push(start);
                n_pieces += 1;
            }
        }
        pieces.push(n_pieces);
        starts.extend(self.starts.last());
        Self { starts, pieces, ..self }
    }

    pub(crate) fn sizes(&self) -> ListSizes {
        let (is_cut, lists) = (!self.pieces.is_empty(), self.starts.len() - 1);
        let rows = if is_cut { self.pieces.len() - 1 } else { lists };
        ListSizes { rows, lists, positions: self.positions.len(), is_cut }
    }

    /// All of it, one behind another.
    pub(crate) fn parts(&self) -> [&[u32]; 3] {
        [&self.starts, &self.positions, &self.pieces]
    }
}

impl Deref for Indices {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0.rows
    }
}

impl From<Vec<u32>> for Indices {
    fn from(rows: Vec<u32>) -> Self {
        let largest = rows.iter().copied().fold(0, u32::max);
        let end = if rows.is_empty() { 0 } else { largest as usize + 1 };
        let is_rising = rows.windows(2).all(|pair| pair[0] < pair[1]);
        Self(Arc::new(Inner { rows, end, is_rising, staged: OnceLock::new() }))
    }
}

impl<const N: usize> From<[u32; N]> for Indices {
    fn from(rows: [u32; N]) -> Self {
        Vec::from(rows).into()
    }
}

impl From<&Self> for Indices {
    fn from(indices: &Self) -> Self {
        indices.clone()
    }
}

impl FromIterator<u32> for Indices {
    fn from_iter<T: IntoIterator<Item = u32>>(rows: T) -> Self {
        rows.into_iter().collect::<Vec<u32>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_every_position_once_in_order() {
        let lists = Indices::from([2, 0, 2, 3, 2, 0]).lists(5);
        assert_eq!(lists.starts, [0, 2, 2, 5, 6, 6]);
        assert_eq!(lists.positions, [1, 5, 0, 2, 4, 3]);
        assert!(lists.pieces.is_empty() && !lists.sizes().is_cut);
    }

    #[test]
    fn long_lists_are_cut_into_pieces() {
        let many = (0..2500).map(|i| if i % 100 == 0 { 3 } else { 1 });
        let lists = many.collect::<Indices>().lists(5);
        // 2,475 times row 1 in three pieces, 25 times row 3.
        assert_eq!(lists.pieces, [0, 0, 3, 3, 4, 4]);
        assert_eq!(lists.starts, [0, 1024, 2048, 2475, 2500]);
        assert_eq!(lists.sizes(), ListSizes { rows: 5, lists: 4, positions: 2500, is_cut: true });
    }

    #[test]
    fn what_is_said_of_all_of_them_is_true() {
        for (rows, is_rising, end) in [
            (vec![], true, 0),
            (vec![3], true, 4),
            (vec![0, 2, 5], true, 6),
            (vec![2, 2], false, 3),
            (vec![4, 1], false, 5),
        ] {
            let indices = Indices::from(rows);
            assert_eq!(indices.is_rising(), is_rising);
            assert!(indices.check("gather", end).is_ok());
            assert!(end == 0 || indices.check("gather", end - 1).is_err());
        }
        let error = Indices::from([0, 3, 1, 9]).check("gather", 3).unwrap_err();
        assert_eq!(error.to_string(), "gather: index 3 at position 1 is past the last of 3 rows");
    }
}
