//! Row indices for gather and scatter.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::cuda::Staged;
use crate::{Error, Result};

/// Row indices, for [`Tape::gather`](crate::Tape::gather) and [`Tape::scatter`](crate::Tape::scatter). A clone shares them.
///
/// Their largest value and their order are computed once, when they are made, possibly by a prefetch thread; see also
/// [`Device::stage_indices`](crate::Device::stage_indices).
///
/// ```
/// use hopedgn_tensor::{Indices, Parameters, Tape, Tensor};
///
/// let indices: Indices = (0..3).rev().collect();
/// assert_eq!(indices[..], [2, 1, 0]);
///
/// let parameters = Parameters::default();
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(3, 1, vec![10.0, 11.0, 12.0])?);
/// let reversed = tape.gather(x, &indices)?;
/// assert_eq!(tape.read(reversed)?, [12.0, 11.0, 10.0]);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Indices(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rows: Vec<u32>,
    /// One more than the largest index.
    end: usize,
    is_increasing: bool,
    staged: OnceLock<StagedIndices>,
}

/// Indices in pinned memory, followed by their row lists if there are sizes.
#[derive(Debug)]
pub(crate) struct StagedIndices {
    pub(crate) staged: Staged,
    pub(crate) lists: Option<RowListSizes>,
}

/// For each row, the positions of the indices that are equal to it, in order.
#[derive(Debug)]
pub(crate) struct RowLists {
    /// Where each list begins, and where the last one ends.
    pub(crate) starts: Vec<u32>,
    pub(crate) positions: Vec<u32>,
    /// Long lists are split into pieces, and `starts` is that of the pieces: here is the first piece of each row, then the
    /// number of pieces. Empty where no list is long.
    pub(crate) pieces: Vec<u32>,
}

/// The sizes of [`RowLists`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowListSizes {
    pub(crate) rows: usize,
    /// Lists, or pieces of lists.
    pub(crate) lists: usize,
    pub(crate) positions: usize,
    /// Whether lists are split into pieces.
    pub(crate) is_split: bool,
}

/// The most positions of a list, or of a piece, which one thread sums in order.
const MAX_PIECE: u32 = 1024;

impl Indices {
    /// Whether each index is larger than the previous one.
    pub(crate) fn is_increasing(&self) -> bool {
        self.0.is_increasing
    }

    /// Refuses indices that are not less than `rows`.
    pub(crate) fn check(&self, operation: &'static str, rows: usize) -> Result<()> {
        if self.0.end <= rows {
            return Ok(());
        }
        let position = self.iter().position(|&index| index as usize >= rows).unwrap_or_default();
        Err(Error::Index { operation, position, index: self[position], rows })
    }

    /// The positions of each of `n_rows` rows among the indices.
    pub(crate) fn row_lists(&self, n_rows: usize) -> RowLists {
        let mut starts = vec![0_u32; n_rows + 1];
        for &index in self.iter() {
            starts[index as usize + 1] += 1;
        }
        let is_long = starts.iter().copied().fold(0, u32::max) > MAX_PIECE;
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut positions = vec![0_u32; self.len()];
        for (position, &index) in (0..).zip(self.iter()) {
            let slot = &mut next[index as usize];
            positions[*slot as usize] = position;
            *slot += 1;
        }
        let lists = RowLists { starts, positions, pieces: Vec::new() };
        if is_long { lists.split() } else { lists }
    }

    /// Whether they share one allocation.
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

impl RowLists {
    fn split(self) -> Self {
        let (mut starts, mut pieces, mut n_pieces) = (Vec::new(), Vec::with_capacity(self.starts.len()), 0);
        for list in self.starts.windows(2) {
            pieces.push(n_pieces);
            for start in (list[0]..list[1]).step_by(MAX_PIECE as usize) {
                starts.push(start);
                n_pieces += 1;
            }
        }
        pieces.push(n_pieces);
        starts.extend(self.starts.last());
        Self { starts, pieces, ..self }
    }

    pub(crate) fn sizes(&self) -> RowListSizes {
        let (is_split, lists) = (!self.pieces.is_empty(), self.starts.len() - 1);
        let rows = if is_split { self.pieces.len() - 1 } else { lists };
        RowListSizes { rows, lists, positions: self.positions.len(), is_split }
    }

    /// All arrays, in the order of GPU memory.
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
        let is_increasing = rows.windows(2).all(|pair| pair[0] < pair[1]);
        Self(Arc::new(Inner { rows, end, is_increasing, staged: OnceLock::new() }))
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
    fn row_lists_hold_every_position_once_in_order() {
        let lists = Indices::from([2, 0, 2, 3, 2, 0]).row_lists(5);
        assert_eq!(lists.starts, [0, 2, 2, 5, 6, 6]);
        assert_eq!(lists.positions, [1, 5, 0, 2, 4, 3]);
        assert!(lists.pieces.is_empty() && !lists.sizes().is_split);
    }

    #[test]
    fn long_lists_are_split_into_pieces() {
        let many = (0..2500).map(|i| if i % 100 == 0 { 3 } else { 1 });
        let lists = many.collect::<Indices>().row_lists(5);
        // 2,475 times row 1 in three pieces, 25 times row 3.
        assert_eq!(lists.pieces, [0, 0, 3, 3, 4, 4]);
        assert_eq!(lists.starts, [0, 1024, 2048, 2475, 2500]);
        assert_eq!(lists.sizes(), RowListSizes { rows: 5, lists: 4, positions: 2500, is_split: true });
    }

    #[test]
    fn the_bound_and_the_order_of_indices_are_right() {
        for (rows, is_increasing, end) in [
            (vec![], true, 0),
            (vec![3], true, 4),
            (vec![0, 2, 5], true, 6),
            (vec![2, 2], false, 3),
            (vec![4, 1], false, 5),
        ] {
            let indices = Indices::from(rows);
            assert_eq!(indices.is_increasing(), is_increasing);
            assert!(indices.check("gather", end).is_ok());
            assert!(end == 0 || indices.check("gather", end - 1).is_err());
        }
        let error = Indices::from([0, 3, 1, 9]).check("gather", 3).unwrap_err();
        assert_eq!(error.to_string(), "gather: index 3 at position 1 is past the last of 3 rows");
    }
}
