//! Relations between the tokens of each sequence, which bias attention.

use std::sync::{Arc, OnceLock};

use crate::cuda::{Context, Staged};
use crate::{Error, Ragged, Result};

/// Which pairs of tokens share a bias of attention, for [`Tape::encoder`](crate::Tape::encoder). A clone shares it.
///
/// The tokens of a sequence fall into classes, and some pairs of classes are related. Biases are rows of a table: row
/// [`NOT_RELATED`](Self::NOT_RELATED) for tokens of classes that are not related, row [`SAME`](Self::SAME) for tokens of one class that is
/// not related to itself, then one row for each related pair, in order. So the table has few rows where few classes are related.
///
/// ```
/// use hopedgn_tensor::{Ragged, Relations};
///
/// // Two sequences. In the first, tokens 0 and 2 are of one class, and the two classes are related.
/// let sequences = Ragged::from_lengths([3, 2]);
/// let relations = Relations::new(&sequences, vec![0, 1, 0, 0, 1], vec![[1, 0]], Ragged::from_lengths([1, 0]))?;
/// assert_eq!(relations.n_rows(), 3);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Relations(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sequences: Ragged,
    /// Of each token, within its sequence.
    classes: Vec<u32>,
    n_classes: Vec<usize>,
    pairs: Vec<[u32; 2]>,
    pairs_of: Ragged,
    staged: OnceLock<Staged>,
}

/// The relations of one sequence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SequenceRelations<'a> {
    /// Of each token.
    pub(crate) classes: &'a [u32],
    pub(crate) n_classes: usize,
    pub(crate) pairs: &'a [[u32; 2]],
    /// The row of the first pair.
    pub(crate) first_row: usize,
}

/// The sizes of [`Relations`] as kernels read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RelationSizes {
    pub(crate) sequences: usize,
    pub(crate) classes: usize,
    pub(crate) tokens: usize,
    pub(crate) pairs: usize,
}

impl Relations {
    /// The row of tokens whose classes are not related.
    pub const NOT_RELATED: usize = 0;
    /// The row of tokens of one class that is not related to itself.
    pub const SAME: usize = 1;
    /// The rows before those of related pairs.
    const SHARED_ROWS: usize = 2;

    /// The relations of tokens in `sequences`: the class of each token, numbered from 0 in each sequence, and the related pairs of
    /// `pairs_of[i]` for sequence `i`.
    ///
    /// # Errors
    /// If there are more or fewer classes than tokens or lists of pairs than sequences, if a pair names a class that its sequence does
    /// not have, or if the pairs of a sequence are not in ascending order, the higher class first.
    pub fn new(sequences: &Ragged, classes: Vec<u32>, pairs: Vec<[u32; 2]>, pairs_of: Ragged) -> Result<Self> {
        for (what, got, needed) in [
            ("classes", classes.len(), sequences.total()),
            ("lists of related pairs", pairs_of.len(), sequences.len()),
            ("related pairs", pairs.len(), pairs_of.total()),
        ] {
            if got != needed {
                return Err(Error::Relations { found: format!("{got} {what}"), expected: format!("{needed}") });
            }
        }
        let n_classes = |range: std::ops::Range<usize>| classes[range].iter().max().map_or(0, |&top| top as usize + 1);
        let n_classes: Vec<usize> = sequences.ranges().map(n_classes).collect();
        for (list, &n_classes) in pairs_of.ranges().zip(&n_classes) {
            let pairs = &pairs[list];
            let fits = |&[high, low]: &[u32; 2]| low <= high && (high as usize) < n_classes;
            let is_ordered = pairs.windows(2).all(|two| two[0] < two[1]);
            if !is_ordered || !pairs.iter().all(fits) {
                return Err(Error::Relations {
                    found: format!("{:?}", &pairs[..pairs.len().min(8)]),
                    expected: format!("pairs of {n_classes} classes in ascending order, the higher class first"),
                });
            }
        }
        let sequences = sequences.clone();
        Ok(Self(Arc::new(Inner { sequences, classes, n_classes, pairs, pairs_of, staged: OnceLock::new() })))
    }

    /// Rows of a table of biases.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        Self::SHARED_ROWS + self.0.pairs.len()
    }

    /// Whether they are of these sequences.
    pub(crate) fn fits(&self, sequences: &Ragged) -> bool {
        self.0.sequences == *sequences
    }

    /// Those of each sequence.
    pub(crate) fn of_sequences(&self) -> impl ExactSizeIterator<Item = SequenceRelations<'_>> {
        let Inner { sequences, classes, n_classes, pairs, pairs_of, .. } = &*self.0;
        (0..sequences.len()).map(|at| SequenceRelations {
            classes: &classes[sequences.range(at)],
            n_classes: n_classes[at],
            pairs: &pairs[pairs_of.range(at)],
            first_row: Self::SHARED_ROWS + pairs_of.range(at).start,
        })
    }

    pub(crate) fn staged(&self) -> Option<&Staged> {
        self.0.staged.get()
    }

    /// Copies what kernels read to pinned memory.
    pub(crate) fn stage(&self, cuda: &Arc<Context>) -> Result<()> {
        if self.staged().is_none() {
            let _ = self.0.staged.set(cuda.stage(&[&self.words()?])?);
        }
        Ok(())
    }

    pub(crate) fn sizes(&self) -> RelationSizes {
        RelationSizes {
            sequences: self.0.sequences.len(),
            classes: self.0.n_classes.iter().sum(),
            tokens: self.0.classes.len(),
            pairs: self.0.pairs.len(),
        }
    }

    /// What kernels read, see `struct Relations` in `bias.cu`: where the classes and where the pairs of each sequence begin, where the
    /// members of each class begin, the members, the class of each token, and the pairs.
    pub(crate) fn words(&self) -> Result<Vec<u32>> {
        let sizes = self.sizes();
        if self.0.n_classes.iter().any(|&n| n > 1 << 16) || sizes.pairs > u32::MAX as usize {
            return Err(Error::NotOnGpu { operation: "relations among more than 65,536 nodes of one pair" });
        }
        let mut words = Vec::with_capacity(2 * sizes.sequences + sizes.classes + 2 * sizes.tokens + sizes.pairs + 3);
        let mut first_class = 0;
        words.push(0);
        words.extend(self.0.n_classes.iter().map(|&n| {
            first_class += n;
            word(first_class)
        }));
        words.extend(self.0.pairs_of.offsets().iter().map(|&at| word(at)));
        let (mut members, mut first_token) = (Vec::with_capacity(sizes.tokens), 0);
        words.push(0);
        for SequenceRelations { classes, n_classes, .. } in self.of_sequences() {
            let mut ends = vec![0_u32; n_classes];
            for &class in classes {
                ends[class as usize] += 1;
            }
            let mut next = Vec::with_capacity(n_classes);
            let mut end = 0;
            for count in &mut ends {
                next.push(end);
                end += *count;
                *count = first_token + end;
            }
            let first = members.len();
            members.resize(first + classes.len(), 0);
            for (token, &class) in (0..).zip(classes) {
                let slot = &mut next[class as usize];
                members[first + *slot as usize] = token;
                *slot += 1;
            }
            words.extend(ends);
            first_token += end;
        }
        words.extend(members);
        words.extend(&self.0.classes);
        words.extend(self.0.pairs.iter().map(|[high, low]| high << 16 | low));
        Ok(words)
    }
}

/// An offset as kernels read it; [`Relations::words`] has checked the largest.
fn word(at: usize) -> u32 {
    u32::try_from(at).expect("fewer than 2³² tokens and pairs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Relations {
        let sequences = Ragged::from_lengths([3, 0, 4]);
        let classes = vec![0, 1, 0, 2, 1, 0, 2];
        Relations::new(&sequences, classes, vec![[1, 0], [1, 1], [2, 0]], Ragged::from_lengths([1, 0, 2])).unwrap()
    }

    #[test]
    fn words_list_members_of_classes_in_order() {
        let relations = small();
        let sizes = RelationSizes { sequences: 3, classes: 5, tokens: 7, pairs: 3 };
        assert_eq!(relations.sizes(), sizes);
        let mut words = relations.words().unwrap().into_iter();
        let mut next = |n: usize| words.by_ref().take(n).collect::<Vec<u32>>();
        assert_eq!(next(4), [0, 2, 2, 5], "classes of each sequence");
        assert_eq!(next(4), [0, 1, 1, 3], "pairs of each sequence");
        assert_eq!(next(6), [0, 2, 3, 4, 5, 7], "members of each class");
        assert_eq!(next(7), [0, 2, 1, 2, 1, 0, 3]);
        assert_eq!(next(7), [0, 1, 0, 2, 1, 0, 2]);
        assert_eq!(next(9), [1 << 16, 1 << 16 | 1, 2 << 16]);
        assert_eq!(relations.n_rows(), 5);
        assert_eq!(relations.of_sequences().nth(2).unwrap().first_row, 3);
    }

    #[test]
    fn relations_that_do_not_fit_their_sequences_are_refused() {
        let (sequences, one) = (Ragged::from_lengths([3]), Ragged::from_lengths([1]));
        let error = |classes: &[u32], pairs: &[[u32; 2]]| {
            let list = Ragged::from_lengths([pairs.len()]);
            Relations::new(&sequences, classes.to_vec(), pairs.to_vec(), list).unwrap_err().to_string()
        };
        assert_eq!(error(&[0, 1], &[]), "found 2 classes, expected 3");
        for pairs in [&[[0, 1]][..], &[[2, 0]], &[[1, 0], [1, 0]], &[[1, 1], [1, 0]]] {
            assert!(
                error(&[0, 1, 0], pairs).ends_with("pairs of 2 classes in ascending order, the higher class first")
            );
        }
        let error = Relations::new(&sequences, vec![0; 3], Vec::new(), one).unwrap_err();
        assert_eq!(error.to_string(), "found 0 related pairs, expected 1");
    }
}
