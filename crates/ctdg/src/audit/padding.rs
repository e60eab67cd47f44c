//! The padded length of a batch, seen as a score.
//!
//! `DyGLib` pads the sequences of all destinations of a batch to the longest of them, positives and negatives in separate
//! batches. A model that attends to padding sees that length: one number for all positives and another for all negatives.
//! Sources do not matter: those of random negatives are the true ones, so both batches pad them alike.

use std::cmp::Ordering;

use serde::Serialize;

use super::batches::{Batches, PerSetting, TEST_PASSES, share};
use crate::error::Result;
use crate::event::PairQuery;
use crate::negative::Pass;
use crate::store::Store;

/// Longest sequence and patch size: all that `DyGLib` and the paper publish, 32 patches each.
pub const PADDING_SETTINGS: [(usize, usize); 7] =
    [(32, 1), (64, 2), (128, 4), (256, 8), (512, 16), (1024, 32), (2048, 64)];

/// What the padded length tells where sequences are cut to `length`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Padding {
    /// Longest sequence: the node itself and its newest neighbours.
    pub length: usize,
    /// Tokens of a patch; the padded length is counted in patches.
    pub patch: usize,
    /// By setting.
    #[serde(flatten)]
    pub scores: PerSetting<PaddingScores>,
}

/// Which side of a batch is taken for the positives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Longer {
    /// The one that is padded to more patches.
    Positives,
    /// The one that is padded to fewer.
    Negatives,
}

/// Test batches whose sides are compared by their padded length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PaddingScores {
    /// How validation batches say that the length is to be read.
    pub longer: Longer,
    /// AP of that score on validation batches, if there are any.
    pub val_ap: Option<f64>,
    /// AP of that score on test batches.
    pub ap: f64,
    /// Share of test batches whose positives have fewer patches than their negatives.
    pub positives_shorter: f64,
    /// Share of test batches in which both have the same number.
    pub same: f64,
}

/// The longest history of the destinations of positives and of negatives, by batch.
type Longest = Vec<[usize; 2]>;

/// All of `settings`. `draw` gives the batches of a pass with random negatives.
pub(super) fn measure<'a>(
    store: &Store,
    settings: &[(usize, usize)],
    draw: impl Fn(Pass) -> Result<Option<Batches<'a>>>,
) -> Result<Vec<Padding>> {
    let longest =
        |pass| -> Result<Longest> { Ok(draw(pass)?.map(|batches| longest(store, &batches)).unwrap_or_default()) };
    let val: [Longest; 2] = [longest(Pass::Val)?, longest(Pass::NewNodeVal)?];
    let [all, new] = TEST_PASSES;
    let test: [Longest; 2] = [longest(all)?, longest(new)?];
    let of = |&(length, patch): &(usize, usize)| {
        let (length, patch) = (length.max(1), patch.max(1));
        let [transductive, inductive] = [0, 1].map(|pass| scores(&val[pass], &test[pass], length, patch));
        Padding { length, patch, scores: PerSetting { transductive, inductive } }
    };
    Ok(settings.iter().map(of).collect())
}

fn longest(store: &Store, batches: &Batches<'_>) -> Longest {
    let of = |queries: &[PairQuery]| {
        let lengths = queries.iter().map(|query| store.history(query.dst, store.cut(query.time)).len());
        lengths.max().unwrap_or(0)
    };
    batches.0.iter().map(|batch| [of(batch.positives()), of(batch.negatives())]).collect()
}

fn scores(val: &Longest, test: &Longest, length: usize, patch: usize) -> Option<PaddingScores> {
    if test.is_empty() {
        return None;
    }
    // The node itself takes one place of the sequence.
    let n_patches = |history: usize| (history.min(length - 1) + 1).div_ceil(patch);
    let count = |part: &Longest, order: Ordering| {
        part.iter().filter(|[positives, negatives]| n_patches(*positives).cmp(&n_patches(*negatives)) == order).count()
    };
    let is_longer = count(val, Ordering::Greater) > count(val, Ordering::Less);
    let (longer, right) =
        if is_longer { (Longer::Positives, Ordering::Greater) } else { (Longer::Negatives, Ordering::Less) };
    // One score for all positives and one for all negatives: the precision at full recall is 1, or that of chance.
    let ap = |part: &Longest| 0.5 + 0.5 * share(count(part, right), part.len());
    Some(PaddingScores {
        longer,
        val_ap: (!val.is_empty()).then(|| ap(val)),
        ap: ap(test),
        positives_shorter: share(count(test, Ordering::Less), test.len()),
        same: share(count(test, Ordering::Equal), test.len()),
    })
}
