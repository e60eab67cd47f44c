//! Statistics of pairs as a tensor.

use std::sync::Arc;

use ctdg::mite::PairQuery;
use ctdg::statistics::N_STATISTICS;
use ctdg::store::Store;
use hopedgn_tensor::Tensor;

use crate::Result;

/// ln(1 + x) of the statistics of `queries`, `[B, N]`.
pub(crate) fn statistics(store: &Store, queries: &[PairQuery]) -> Result<Arc<Tensor>> {
    let mut values = store.statistics().rows(queries);
    hopedgn_tensor::ln_1p(&mut values);
    Ok(Tensor::matrix(queries.len(), N_STATISTICS, values)?.into())
}
