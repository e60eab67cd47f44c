//! Ragged batches: sequences of any lengths, packed without padding.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::cuda::{Staged, dim};
use crate::{Error, Result};

/// The offsets of a ragged batch: sequence `i` is the rows `offsets[i]..offsets[i + 1]` of a matrix. A clone shares them.
///
/// ```
/// use hopedgn_tensor::{Parameters, Ragged, Tape, Tensor};
///
/// let batch = Ragged::from_lengths([2, 0, 1]);
/// assert_eq!((batch.len(), batch.total()), (3, 3));
/// assert_eq!(batch.range(2), 2..3);
/// assert_eq!(batch, Ragged::new(vec![0, 2, 2, 3])?);
///
/// let parameters = Parameters::default();
/// let mut tape = Tape::new(&parameters);
/// let x = tape.input(Tensor::matrix(3, 1, vec![1.0, 3.0, 5.0])?);
/// let means = tape.segment_mean(x, &batch)?; // `[3, 1]`
/// assert_eq!(tape.read(means)?, [2.0, 0.0, 5.0]);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ragged(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    offsets: Vec<usize>,
    longest: usize,
    /// The offsets in pinned memory.
    staged: OnceLock<Staged>,
}

impl PartialEq for Ragged {
    fn eq(&self, other: &Self) -> bool {
        self.offsets() == other.offsets()
    }
}

impl Eq for Ragged {}

impl Ragged {
    /// A batch of `offsets.len() - 1` sequences.
    ///
    /// # Errors
    /// If the offsets do not start at 0, or decrease.
    pub fn new(offsets: Vec<usize>) -> Result<Self> {
        if offsets.first() != Some(&0) {
            return Err(Error::Offsets { position: 0, offset: offsets.first().copied().unwrap_or_default() });
        }
        if let Some(at) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Error::Offsets { position: at + 1, offset: offsets[at + 1] });
        }
        Ok(Self::from_offsets(offsets))
    }

    /// A batch of sequences of these lengths.
    #[must_use]
    pub fn from_lengths(lengths: impl IntoIterator<Item = usize>) -> Self {
        let lengths = lengths.into_iter();
        let mut offsets = Vec::with_capacity(lengths.size_hint().0 + 1);
        offsets.push(0);
        let mut end = 0;
        for length in lengths {
            end += length;
            offsets.push(end);
        }
        Self::from_offsets(offsets)
    }

    fn from_offsets(offsets: Vec<usize>) -> Self {
        let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).fold(0, usize::max);
        Self(Arc::new(Inner { offsets, longest, staged: OnceLock::new() }))
    }

    /// The number of sequences.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets().len() - 1
    }

    /// Whether there are no sequences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows of all sequences together.
    #[must_use]
    pub fn total(&self) -> usize {
        self.offsets()[self.len()]
    }

    /// The length of the longest sequence.
    pub(crate) fn longest(&self) -> usize {
        self.0.longest
    }

    pub(crate) fn offsets(&self) -> &[usize] {
        &self.0.offsets
    }

    /// The offsets as kernels read them.
    pub(crate) fn offsets_u32(&self) -> Vec<u32> {
        self.offsets().iter().map(|&at| dim(at)).collect()
    }

    pub(crate) fn staged(&self) -> Option<&Staged> {
        self.0.staged.get()
    }

    pub(crate) fn set_staged(&self, staged: Staged) {
        let _ = self.0.staged.set(staged);
    }

    /// Whether they share one allocation.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The rows of sequence `index`.
    ///
    /// # Panics
    /// If there is no such sequence.
    #[must_use]
    pub fn range(&self, index: usize) -> Range<usize> {
        self.offsets()[index]..self.offsets()[index + 1]
    }

    /// The rows of each sequence, in order.
    #[must_use]
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        (0..self.len()).map(|index| self.range(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_do_not_start_at_zero_or_decrease_are_refused() {
        assert!(Ragged::new(vec![]).is_err());
        assert!(Ragged::new(vec![1, 2]).is_err());
        let error = Ragged::new(vec![0, 3, 2]).unwrap_err();
        assert!(error.to_string().ends_with("offset 2 is 2"), "{error}");
    }

    #[test]
    fn lengths_and_offsets_give_the_same_batch() {
        let batch = Ragged::from_lengths([2, 0, 3]);
        assert_eq!(batch, Ragged::new(vec![0, 2, 2, 5]).unwrap());
        assert_eq!((batch.len(), batch.total(), batch.longest()), (3, 5, 3));
        assert_eq!(batch.ranges().collect::<Vec<_>>(), [0..2, 2..2, 2..5]);
    }
}
