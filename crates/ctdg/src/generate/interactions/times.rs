//! The times of a synthetic stream: bursts and lulls with an exact span and number of distinct times.

use std::io;

use super::InteractionSpec;
use super::process::Quota;
use crate::random::RandomStream;

/// Relative mean gaps in a burst and in a lull, and the probability to switch after a gap.
const BURST: f64 = 0.25;
const LULL: f64 = 4.0;
const SWITCH: f64 = 1.0 / 64.0;

/// The time of every event, in order: the first 0, the last `spec.span`, except that a single time is 0.
pub(super) fn times(
    spec: &InteractionSpec,
    random: &RandomStream,
    mut each: impl FnMut(f64) -> io::Result<()>,
) -> io::Result<()> {
    // Drawn twice: the last mark scales the others.
    let (mut n_last, mut last) = (0.0, 0.0);
    marks(spec, &mut random.clone(), |n_before, elapsed| {
        (n_last, last) = (n_before, elapsed);
        Ok(())
    })?;
    // Distinct times are at least one tick apart; the gaps share the remaining ticks. All are integers below 2⁵³, hence
    // exact.
    let ticks = f64::from(spec.ticks_per_second);
    let spare = f64::from(spec.span) * ticks - n_last;
    let scale = if last > 0.0 { last } else { 1.0 };
    marks(spec, &mut random.clone(), |n_before, elapsed| each((n_before + (elapsed / scale * spare).floor()) / ticks))
}

/// Calls `each` with the number of distinct times before every event, and the unscaled sum of the gaps up to it.
fn marks(
    spec: &InteractionSpec,
    random: &mut RandomStream,
    mut each: impl FnMut(f64, f64) -> io::Result<()>,
) -> io::Result<()> {
    let mut moves = Quota::new(spec.n_times - 1, (spec.n_events - 1).max(1), 1.0);
    let (mut n_before, mut elapsed, mut is_burst) = (0.0, 0.0, true);
    each(n_before, elapsed)?;
    for _ in 1..spec.n_events {
        if moves.draw(false, random) {
            is_burst ^= random.chance(SWITCH);
            n_before += 1.0;
            elapsed += random.exponential(if is_burst { BURST } else { LULL });
        }
        each(n_before, elapsed)?;
    }
    Ok(())
}
