//! The biases of attention on the CPU: a table's rows spread over the tokens of a sequence, and their gradients.

use crate::Relations;
use crate::relations::SequenceRelations;
use crate::scratch::{Scratch, take, take_zeros};

/// The biases of one block: `cols` of the table's columns are those of all blocks, from `first_col` on this block's heads.
#[derive(Clone, Copy)]
pub(super) struct BlockBias<'a> {
    pub(super) relations: &'a Relations,
    /// `[rows, cols]`
    pub(super) table: &'a [f32],
    pub(super) cols: usize,
    pub(super) first_col: usize,
}

impl<'a> BlockBias<'a> {
    /// Those of each sequence.
    pub(super) fn of_sequences(self) -> Vec<SequenceBias<'a>> {
        self.relations.of_sequences().map(|relations| SequenceBias { relations, of: self }).collect()
    }

    /// Zeros of the shape of the table.
    pub(super) fn zero_gradients(self) -> Scratch {
        take_zeros(self.table.len())
    }
}

/// The biases of one sequence.
#[derive(Clone, Copy)]
pub(super) struct SequenceBias<'a> {
    relations: SequenceRelations<'a>,
    of: BlockBias<'a>,
}

impl SequenceBias<'_> {
    /// Adds the biases of `head` to scores `[n, n]`.
    pub(super) fn add(&self, head: usize, scores: &mut [f32]) {
        let SequenceRelations { classes, n_classes, .. } = self.relations;
        let biases = self.of_classes(head);
        for (&class, scores) in classes.iter().zip(scores.chunks_exact_mut(classes.len().max(1))) {
            let biases = &biases[class as usize * n_classes..][..n_classes];
            for (score, &other) in scores.iter_mut().zip(classes) {
                *score += biases[other as usize];
            }
        }
    }

    /// The biases of pairs of classes, `[classes, classes]`.
    fn of_classes(&self, head: usize) -> Scratch {
        let SequenceRelations { n_classes, pairs, first_row, .. } = self.relations;
        let bias = |row: usize| self.of.table[self.place(row, head)];
        let mut biases = take(n_classes * n_classes);
        biases.fill(bias(Relations::NOT_RELATED));
        for class in 0..n_classes {
            biases[class * (n_classes + 1)] = bias(Relations::SAME);
        }
        for (row, &[high, low]) in (first_row..).zip(pairs) {
            let [high, low] = [high as usize, low as usize];
            biases[high * n_classes + low] = bias(row);
            biases[low * n_classes + high] = bias(row);
        }
        biases
    }

    /// Adds the gradients of scores `[n, n]` of `head` to those of the table.
    pub(super) fn add_gradients(&self, head: usize, d_scores: &[f32], d_table: &mut [f32]) {
        let SequenceRelations { classes, n_classes, pairs, first_row } = self.relations;
        let mut sums = take_zeros(n_classes * n_classes);
        for (&class, d_scores) in classes.iter().zip(d_scores.chunks_exact(classes.len().max(1))) {
            let sums = &mut sums[class as usize * n_classes..][..n_classes];
            for (d_score, &other) in d_scores.iter().zip(classes) {
                sums[other as usize] += d_score;
            }
        }
        for (row, &[high, low]) in (first_row..).zip(pairs) {
            let places = [high as usize * n_classes + low as usize, low as usize * n_classes + high as usize];
            // Of a class with itself the second is 0 by now. What is left in the end has no row of its own.
            d_table[self.place(row, head)] += places.map(|place| std::mem::take(&mut sums[place])).iter().sum::<f32>();
        }
        let mut same = 0.0;
        for class in 0..n_classes {
            same += std::mem::take(&mut sums[class * (n_classes + 1)]);
        }
        d_table[self.place(Relations::SAME, head)] += same;
        d_table[self.place(Relations::NOT_RELATED, head)] += sums.iter().sum::<f32>();
    }

    /// Where the table has the bias of a row for `head`.
    fn place(&self, row: usize, head: usize) -> usize {
        row * self.of.cols + self.of.first_col + head
    }
}
