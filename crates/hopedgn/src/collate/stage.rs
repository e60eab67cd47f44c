//! Host-to-device copies of a batch.

use std::sync::Arc;

use hopedgn_tensor::{Device, Indices, Tensor};

use super::{Hop, HopInput, Input, MiteIntervals, PairInput, PastInput, RelationInput};
use crate::Result;

/// Row numbers of a gather, and how many rows its table has where the table has a gradient.
type Gathered<'a> = (&'a Indices, Option<usize>);

impl Input {
    /// Copies values, row numbers and intervals of this batch to memory that `device` reads asynchronously; for training also
    /// what the backward pass takes. What is read from a memory is not part of it.
    pub(crate) fn stage(&self, device: &Device, for_training: bool) -> Result<()> {
        for tensor in self.tensors() {
            device.stage(tensor)?;
        }
        if let Some(mite) = self.mite() {
            device.stage_offsets(&mite.lists)?;
        }
        if let Some(relations) = self.relations() {
            device.stage_relations(&relations.of_tokens)?;
        }
        for (indices, n_table_rows) in self.gathered() {
            device.stage_indices(indices, n_table_rows.filter(|_| for_training))?;
        }
        Ok(())
    }

    fn mite(&self) -> Option<&MiteIntervals> {
        match &self.past {
            PastInput::Patches(input) => input.mite.as_ref(),
            PastInput::Hops(input) => input.mite.as_ref(),
            PastInput::Pairs(_) | PastInput::Nothing => None,
        }
    }

    fn relations(&self) -> Option<&RelationInput> {
        match &self.past {
            PastInput::Patches(input) => input.relations.as_ref(),
            PastInput::Hops(_) | PastInput::Pairs(_) | PastInput::Nothing => None,
        }
    }

    fn tensors(&self) -> Vec<&Arc<Tensor>> {
        let mut tensors: Vec<_> = self.mite().map(|mite| &mite.intervals).into_iter().collect();
        tensors.extend(self.relations().map(|relations| &relations.features));
        tensors.extend(&self.statistics);
        tensors.extend(self.walks.iter().flat_map(|walks| std::iter::once(&walks.pairs).chain(&walks.nodes)));
        match &self.past {
            PastInput::Patches(input) => {
                tensors.extend(std::iter::once(&input.ages).chain(&input.counts).chain(&input.directions));
            }
            PastInput::Hops(input) => tensors.extend(of_hops(input)),
            PastInput::Pairs(input) => tensors.extend([&input.ages, &input.log_ages, &input.same]),
            PastInput::Nothing => {}
        }
        tensors
    }

    fn gathered(&self) -> Vec<Gathered<'_>> {
        match &self.past {
            PastInput::Patches(input) => gathered_by_tokens(input),
            PastInput::Hops(input) => {
                let walks = self.walks.as_ref().and_then(|walks| walks.nodes.as_ref());
                gathered_by_hops(input, walks)
            }
            PastInput::Pairs(_) | PastInput::Nothing => Vec::new(),
        }
    }
}

fn of_hops(input: &HopInput) -> impl Iterator<Item = &Arc<Tensor>> {
    let of_hops = hops(input).flat_map(|hop| [Some(&hop.ages), hop.empty.as_ref().map(|empty| &empty.times)]);
    of_hops.chain([input.hitting_rates.as_ref(), input.node_means.as_ref()]).flatten()
}

fn hops(input: &HopInput) -> impl Iterator<Item = &Hop> {
    std::iter::once(&input.first).chain(&input.second)
}

/// The number of distinct nodes of all pairs; MITE and the other table have two entries for each.
fn n_rows(mite: Option<&MiteIntervals>, table: Option<&Arc<Tensor>>) -> Option<usize> {
    let lists = mite.map(|mite| mite.lists.len()).or_else(|| table.map(|table| table.rows()));
    lists.map(|lists| lists / 2)
}

fn gathered_by_tokens(input: &PairInput) -> Vec<Gathered<'_>> {
    let of_tables = [&input.nodes, &input.edges].into_iter().flatten().flat_map(|rows| &rows.chosen);
    let mut gathered: Vec<Gathered<'_>> = of_tables.map(|choice| (&choice.rows, None)).collect();
    gathered.extend(input.places.iter().map(|places| (places, None)));
    let n_rows = n_rows(input.mite.as_ref(), input.counts.as_ref());
    gathered.extend(n_rows.map(|n_rows| (&input.rows, Some(n_rows))));
    gathered
}

fn gathered_by_hops<'a>(input: &'a HopInput, walks: Option<&Arc<Tensor>>) -> Vec<Gathered<'a>> {
    let n_rows = n_rows(input.mite.as_ref(), input.hitting_rates.as_ref().or(walks));
    let mut gathered: Vec<Gathered<'_>> = input.of_pairs.iter().map(|sides| (sides, Some(input.roots.len))).collect();
    for entries in std::iter::once(&input.roots).chain(hops(input).map(|hop| &hop.entries)) {
        gathered.extend([&entries.nodes, &entries.edges].into_iter().flatten().map(|rows| (rows, None)));
        gathered.extend(n_rows.and_then(|n_rows| Some((entries.rows.as_ref()?, Some(n_rows)))));
    }
    gathered
}
