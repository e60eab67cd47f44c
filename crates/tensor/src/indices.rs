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

/// The numbers on their way to a card, and perhaps behind them where each number stands: [`Indices::lists`].
#[derive(Debug)]
pub(crate) struct StagedIndices {
    pub(crate) staged: Staged,
    /// Of how many rows the lists are.
    pub(crate) lists_of: Option<usize>,
}

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

    /// For each of `n_rows` rows the positions at which it is named, in order: where each list begins, and the lists.
    pub(crate) fn lists(&self, n_rows: usize) -> (Vec<u32>, Vec<u32>) {
        let mut starts = vec![0_u32; n_rows + 1];
        for &index in self.iter() {
            starts[index as usize + 1] += 1;
        }
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
        (starts, positions)
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
        let (starts, positions) = Indices::from([2, 0, 2, 3, 2, 0]).lists(5);
        assert_eq!(starts, [0, 2, 2, 5, 6, 6]);
        assert_eq!(positions, [1, 5, 0, 2, 4, 3]);
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
