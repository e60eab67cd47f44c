//! Statistics of pairs as a tensor.

use std::sync::Arc;

use ctdg::event::EventId;
use ctdg::mite::PairQuery;
use ctdg::statistics::N_STATISTICS;
use ctdg::store::Store;
use ctdg::triads::{N_TRIADS, TriadFinder};
use hopedgn_tensor::Tensor;
use rayon::prelude::*;

use crate::Result;

/// Rows that are worth a task of their own.
const CHUNK: usize = 256;

/// ln(1 + x) of the statistics of `queries`, `[B, N]`, with the columns of triads after them if asked for; as if the events of `left_out`, one
/// list for each query or none at all, were not in the store.
pub(crate) fn statistics(
    store: &Store,
    queries: &[PairQuery],
    left_out: &[&[EventId]],
    with_triads: bool,
) -> Result<Arc<Tensor>> {
    let width = N_STATISTICS + if with_triads { N_TRIADS } else { 0 };
    let statistics = store.statistics();
    let mut values = vec![0.0; queries.len() * width];
    values.par_chunks_mut(CHUNK * width).enumerate().for_each(|(chunk, rows)| {
        let mut triads = TriadFinder::new(store);
        for (row, at) in rows.chunks_exact_mut(width).zip(chunk * CHUNK..) {
            let left_out = left_out.get(at).copied().unwrap_or_default();
            let (columns, of_triads) = row.split_at_mut(N_STATISTICS);
            statistics.write_without(&queries[at], left_out, columns);
            if with_triads {
                triads.write(&queries[at], left_out, of_triads);
            }
        }
    });
    hopedgn_tensor::ln_1p(&mut values);
    Ok(Tensor::matrix(queries.len(), width, values)?.into())
}
