//! Statistics of pairs as a tensor.

use std::sync::Arc;

use ctdg::event::EventId;
use ctdg::mite::PairQuery;
use ctdg::statistics::N_STATISTICS;
use ctdg::store::Store;
use hopedgn_tensor::Tensor;

use crate::Result;

/// ln(1 + x) of the statistics of `queries`, `[B, N]`; as if the events of `left_out`, one list for each query or none at all, were not in
/// the store.
pub(crate) fn statistics(store: &Store, queries: &[PairQuery], left_out: &[&[EventId]]) -> Result<Arc<Tensor>> {
    let mut values = if left_out.is_empty() {
        store.statistics().rows(queries)
    } else {
        let mut rows = vec![0.0; queries.len() * N_STATISTICS];
        for ((row, query), events) in rows.chunks_exact_mut(N_STATISTICS).zip(queries).zip(left_out) {
            store.statistics().write_without(query, events, row);
        }
        rows
    };
    hopedgn_tensor::ln_1p(&mut values);
    Ok(Tensor::matrix(queries.len(), N_STATISTICS, values)?.into())
}
