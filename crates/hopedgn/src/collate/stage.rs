//! What a batch brings to a card.

use std::sync::Arc;

use hopedgn_tensor::{Device, Indices, Tensor};

use super::{Hop, HopInput, Input, MiteIntervals, PairInput};
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

    fn met(&self) -> Option<&MiteIntervals> {
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
    let of_hops = hops(input).flat_map(|hop| [Some(&hop.ages), hop.empty.as_ref().map(|empty| &empty.times)]);
    of_hops.chain([input.landing.as_ref(), input.node_means.as_ref()]).flatten()
}

fn hops(input: &HopInput) -> impl Iterator<Item = &Hop> {
    std::iter::once(&input.first).chain(&input.second)
}

/// The distinct nodes of all pairs, known from what there are two of for each.
fn n_rows(met: Option<&MiteIntervals>, beside: Option<&Arc<Tensor>>) -> Option<usize> {
    let lists = met.map(|met| met.lists.len()).or_else(|| beside.map(|table| table.rows()));
    lists.map(|lists| lists / 2)
}

fn picked_by_tokens(input: &PairInput) -> Vec<Picked<'_>> {
    let of_tables = [&input.nodes, &input.edges].into_iter().flatten().flat_map(|rows| &rows.chosen);
    let mut picked: Vec<Picked<'_>> = of_tables.map(|(rows, _)| (rows, None)).collect();
    picked.extend(input.places.iter().map(|places| (places, None)));
    let n_rows = n_rows(input.mite.as_ref(), input.counts.as_ref());
    picked.extend(n_rows.map(|n_rows| (&input.rows, Some(n_rows))));
    picked
}

fn picked_by_hops(input: &HopInput) -> Vec<Picked<'_>> {
    let n_rows = n_rows(input.mite.as_ref(), input.landing.as_ref());
    let mut picked = Vec::new();
    for entries in std::iter::once(&input.roots).chain(hops(input).map(|hop| &hop.entries)) {
        picked.extend([&entries.nodes, &entries.edges].into_iter().flatten().map(|rows| (rows, None)));
        picked.extend(n_rows.and_then(|n_rows| Some((entries.rows.as_ref()?, Some(n_rows)))));
    }
    picked
}
