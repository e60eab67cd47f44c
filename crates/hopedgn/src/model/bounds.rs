//! Bounds of settings: counts, widths that heads divide, numbers of weights.

use super::CommonSettings;
use crate::collate::WalkSettings;
use crate::{Error, Result};

/// Weights at most: with Adam's moments and the gradients, 16 bytes each.
const MOST_WEIGHTS: usize = 1 << 28;

/// Neighbours at most of a model that also reads their neighbours.
const MOST_OF_TWO_HOPS: usize = 1 << 9;

/// Refuses counts outside 1 to their maximum.
pub(crate) fn within(counts: &[(&'static str, usize, usize)]) -> Result<()> {
    match counts.iter().find(|(_, found, most)| !(1..=*most).contains(found)) {
        Some((name, found, most)) => refuse(name, found, &format!("1 to {most}")),
        None => Ok(()),
    }
}

/// The error of a setting outside its bounds.
pub(crate) fn refuse(name: &'static str, found: impl std::fmt::Display, expected: &str) -> Result<()> {
    Err(Error::Setting { name, found: found.to_string(), expected: expected.to_owned() })
}

/// Refuses walks that are too long, too wide, or grow with time.
pub(super) fn check_walks(walks: &WalkSettings) -> Result<()> {
    within(&[("model.walk-layers", walks.layers, 8), ("model.d-walk", walks.d_walk, 1 << 14)])?;
    if walks.decay >= 0.0 && walks.decay.is_finite() {
        return Ok(());
    }
    refuse("model.walk-decay", walks.decay, "a number of at least 0")
}

/// Refuses a number of heads that does not divide a width, the sum of named settings.
pub(super) fn check_heads(n_heads: usize, parts: &[(&str, usize)]) -> Result<()> {
    let width: usize = parts.iter().map(|(_, width)| width).sum();
    if width.is_multiple_of(n_heads) {
        return Ok(());
    }
    let names: Vec<&str> = parts.iter().filter(|(_, width)| *width > 0).map(|(name, _)| *name).collect();
    refuse("model.n-heads", n_heads, &format!("a divisor of the width {width} ({})", names.join(" + ")))
}

/// Refuses `n_blocks` blocks of `each` weights that would not fit into memory; `setting` is the one to blame.
pub(super) fn check_weights(setting: (&'static str, usize), n_blocks: usize, each: usize) -> Result<()> {
    if n_blocks.saturating_mul(each) <= MOST_WEIGHTS {
        return Ok(());
    }
    refuse(setting.0, setting.1, "a model of fewer than 268 million weights")
}

/// The same for models whose largest matrices are as wide as an embedding and a time encoding.
pub(super) fn check_size(n_blocks: usize, common: &CommonSettings) -> Result<()> {
    let each = 12 * square(common.d_out + common.d_time);
    check_weights(("model.d-out", common.d_out), n_blocks, each)
}

/// Refuses more hops than a model reads, and too many neighbours for two.
pub(super) fn check_hops(n_blocks: usize, neighbors: usize) -> Result<()> {
    if n_blocks > 2 {
        return refuse("model.n-blocks", n_blocks, "1 or 2 hops");
    }
    if n_blocks == 2 && neighbors > MOST_OF_TWO_HOPS {
        let expected = format!("at most {MOST_OF_TWO_HOPS}: two hops read the square of it");
        return refuse("model.neighbors", neighbors, &expected);
    }
    Ok(())
}

pub(super) fn square(width: usize) -> usize {
    width.saturating_mul(width)
}
