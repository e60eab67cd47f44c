//! How good are scores? Average precision, area under the ROC curve, ranks.
//!
//! Link prediction is scored in two ways, and their numbers must not be mixed:
//! - [`BatchMean`] computes both metrics inside every batch and averages the batches with equal weight, the short last
//!   one included. Published tables of `DyGLib` models hold this number.
//! - [`WholeSplit`] computes them once, over all scores of the split.
//!
//! Ranking one true destination among many wrong ones is [`rank`] and [`Ranking`].
//!
//! Ties are never broken by position: equal scores form one group in [`average_precision`], count one half in
//! [`roc_auc`], and share the mean of the best and the worst place in [`rank`]. So a model that scores everything
//! equally gets the share of positives, one half, and the middle rank.
//!
//! Scores may be infinite but never NaN, and a metric of which the value is not defined is an error, never a NaN.

mod binary;
mod ranking;

pub use binary::{
    BatchMean, BinaryScores, WholeSplit, average_precision, binary_scores, roc_auc, shuffled_average_precision,
};
pub use ranking::{Ranking, hits_at, mrr, rank};
