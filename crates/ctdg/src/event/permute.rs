//! Columns in another order.

use std::io;

use bytemuck::Pod;

use crate::error::limit::TO_SORT;
use crate::error::{Problem, Result};
use crate::event::{Column, Features, MAX_NARROW, Spill, Spool};

/// Input positions sorted by `(time, position)`.
pub(super) fn chronological(time: &[f64]) -> Result<Vec<u32>> {
    let n = u32::try_from(time.len()).map_err(|_| Problem::TooMany { what: TO_SORT, max: MAX_NARROW })?;
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| time[a as usize].total_cmp(&time[b as usize]).then(a.cmp(&b)));
    Ok(order)
}

/// The values of `column` with that at `order[i]` moved to `i` for all `i`: in place, or into a new column that may be larger than memory.
pub(super) fn permuted<T: Pod>(order: &[u32], column: Column<T>, spill: Option<&Spill>) -> io::Result<Column<T>> {
    if spill.is_some() {
        let mut moved = Spool::with(spill);
        order.iter().try_for_each(|&from| moved.push(column[from as usize]))?;
        return moved.finish();
    }
    let mut values = column.into_vec();
    permute(order, &mut values);
    Ok(values.into())
}

fn permute<T: Copy>(order: &[u32], values: &mut [T]) {
    let mut saved = None;
    follow_cycles(order, |step| match step {
        Step::Save(from) => saved = Some(values[from]),
        Step::Move { from, to } => values[to] = values[from],
        Step::Restore(to) => values[to] = saved.expect("saved before"),
    });
}

/// The same for rows of features.
pub(super) fn permuted_rows(order: &[u32], features: Features, spill: Option<&Spill>) -> Result<Features> {
    let width = features.width();
    if spill.is_some() {
        let mut moved = Spool::with(spill);
        let all = order.iter().try_for_each(|&from| moved.extend(features.row(from as usize)));
        return Features::new(width, all.and_then(|()| moved.finish()).map_err(Problem::spill)?);
    }
    let mut values = features.into_values();
    let mut saved = Vec::with_capacity(width);
    follow_cycles(order, |step| match step {
        Step::Save(from) => saved.splice(.., values[from * width..][..width].iter().copied()).for_each(drop),
        Step::Move { from, to } => values.copy_within(from * width..(from + 1) * width, to * width),
        Step::Restore(to) => values[to * width..][..width].copy_from_slice(&saved),
    });
    Features::new(width, values)
}

/// One step of an in-place permutation.
enum Step {
    /// Save the value at this index.
    Save(usize),
    Move {
        from: usize,
        to: usize,
    },
    /// Write the saved value to this index.
    Restore(usize),
}

/// Calls `apply` with the steps that move `order[i]` to `i`, cycle by cycle.
fn follow_cycles(order: &[u32], mut apply: impl FnMut(Step)) {
    let mut done = vec![false; order.len()];
    for start in 0..order.len() {
        if done[start] {
            continue;
        }
        apply(Step::Save(start));
        let mut to = start;
        loop {
            done[to] = true;
            let from = order[to] as usize;
            if from == start {
                apply(Step::Restore(to));
                break;
            }
            apply(Step::Move { from, to });
            to = from;
        }
    }
}
