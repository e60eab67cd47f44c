//! Metrics of link prediction: average precision, ROC AUC, MRR, hits@k and NDCG@k.
//!
//! Average precision and ROC AUC are reported in two ways, which must not be mixed:
//! - [`BatchMean`] computes both metrics per batch and averages the batches with equal weight, including the shorter last
//!   one. Published tables of `DyGLib` models report this number.
//! - [`WholeSplit`] computes them once, over all scores of the split.
//!
//! [`rank`] and [`Ranking`] rank one true destination among negatives.
//!
//! Ties are never broken by position: equal scores form one group in [`average_precision`], count one half in [`roc_auc`],
//! and get the mean of the best and the worst rank in [`rank`]. So constant scores give the share of positives, one half,
//! and the middle rank.
//!
//! Scores may be infinite but not NaN, and an undefined metric is an error, never NaN.

mod binary;
mod ranking;

pub use binary::{
    BatchMean, BinaryScores, WholeSplit, average_precision, binary_scores, roc_auc, shuffled_average_precision,
};
pub use ranking::{Ranking, hits_at, mrr, ndcg_at, rank, recall_at};
