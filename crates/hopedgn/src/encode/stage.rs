//! What a batch brings to a card.

use std::sync::Arc;

use hopedgn_tensor::{Device, Indices, Tensor};

use super::{HopInput, Input, Met, PairInput};
use crate::Result;

/// Numbers of rows, and how many rows there are where a gradient comes back to them.
type Picked<'a> = (&'a Indices, Option<usize>);

impl Input {
    /// Copies values, row numbers and intervals, which change from batch to batch, to where `device` reads them by itself;
    /// `to_learn`, with what the way back takes. What a memory recalls is no part of it.
    pub(crate) fn stage(&self, device: &Device, to_learn: bool) -> Result<()> {
        for tensor in self.tensors() {
            device.stage(tensor)?;
        }
        if let Some(met) = self.met() {
            device.stage_starts(&met.lists)?;
        }
        for (indices, learned) in self.picked() {
            device.stage_indices(indices, learned.filter(|_| to_learn))?;
        }
        Ok(())
    }

    fn met(&self) -> Option<&Met> {
        match self {
            Self::Patches(input) => input.mite.as_ref(),
            Self::Hops(input) => input.mite.as_ref(),
            Self::Pairs(_) => None,
        }
    }

    fn tensors(&self) -> Vec<&Arc<Tensor>> {
        let mut tensors: Vec<_> = self.met().map(|met| &met.intervals).into_iter().collect();
        match self {
            Self::Patches(input) => tensors.extend(std::iter::once(&input.ages).chain(&input.counts)),
            Self::Hops(input) => tensors.extend(of_hops(input)),
            Self::Pairs(input) => tensors.extend([&input.ages, &input.log_ages, &input.same]),
        }
        tensors
    }

    fn picked(&self) -> Vec<Picked<'_>> {
        match self {
            Self::Patches(input) => picked_by_tokens(input),
            Self::Hops(input) => picked_by_hops(input),
            Self::Pairs(_) => Vec::new(),
        }
    }
}

fn of_hops(input: &HopInput) -> impl Iterator<Item = &Arc<Tensor>> {
    let hops = std::iter::once(&input.first).chain(&input.second);
    let of_hops = hops.flat_map(|hop| [Some(&hop.ages), hop.empty.as_ref().map(|empty| &empty.times)]);
    let others = [input.landing.as_ref(), input.node_means.as_ref()];
    of_hops.chain(others).flatten()
}

fn picked_by_tokens(input: &PairInput) -> Vec<Picked<'_>> {
    let of_tables = [&input.nodes, &input.edges].into_iter().flatten().flat_map(|rows| &rows.chosen);
    let mut picked: Vec<Picked<'_>> = of_tables.map(|(rows, _)| (rows, None)).collect();
    picked.extend(input.places.iter().map(|places| (places, None)));
    let n_rows = input.mite.as_ref().map(|met| met.lists.len() / 2);
    if let Some(n_rows) = n_rows.or_else(|| input.counts.as_ref().map(|counts| counts.rows() / 2)) {
        picked.push((&input.rows, Some(n_rows)));
    }
    picked
}

fn picked_by_hops(input: &HopInput) -> Vec<Picked<'_>> {
    let hops = std::iter::once(&input.first).chain(&input.second);
    let n_rows = input.mite.as_ref().map(|met| met.lists.len() / 2);
    let n_rows = n_rows.or_else(|| input.landing.as_ref().map(|landing| landing.rows() / 2));
    let mut picked = Vec::new();
    for entries in std::iter::once(&input.roots).chain(hops.map(|hop| &hop.entries)) {
        picked.extend([&entries.nodes, &entries.edges].into_iter().flatten().map(|rows| (rows, None)));
        picked.extend(n_rows.and_then(|n_rows| Some((entries.rows.as_ref()?, Some(n_rows)))));
    }
    picked
}
