//! Padding of ragged lists on the CPU.

use super::PadRagged;
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::add_to;
use crate::{Ragged, Result, Shape, Tensor, Var};

impl CpuTape<'_> {
    pub(crate) fn pad_ragged(&mut self, x: Var, lists: &Ragged, form: PadRagged, shape: Shape) -> Result<Var> {
        let x_values = self.value(x).values();
        let mut values = scratch::take_zeros(shape.len());
        self.threads().rows(&mut values, form.width(), |first, rows| {
            for (row, to) in (first..).zip(rows.chunks_exact_mut(form.width())) {
                let (padded, mask) = to.split_at_mut(form.values_per_row());
                if form.fill_value != 0.0 {
                    padded.fill(form.fill_value);
                }
                for list in 0..form.lists_per_row {
                    let list_values = &x_values[lists.range(row * form.lists_per_row + list)];
                    let begin = list * form.max_len;
                    padded[begin..begin + list_values.len()].copy_from_slice(list_values);
                    if form.with_mask {
                        mask[begin..begin + list_values.len()].fill(1.0);
                    }
                }
            }
        });
        let lists = lists.clone();
        let backward = move |grad: Scratch, _: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(x, |sum| {
                for (index, list) in lists.ranges().enumerate() {
                    let begin = form.begin(index);
                    add_to(&mut sum[list.clone()], &grad[begin..begin + list.len()]);
                }
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }
}
