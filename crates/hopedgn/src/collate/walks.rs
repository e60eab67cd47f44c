//! Temporal walks of pairs, and of the nodes in their past, as tensors.

use std::ops::Range;
use std::sync::Arc;

use ctdg::mite::{PairQuery, PairTokens};
use ctdg::walks::{TemporalWalks, WalkConfig};
use hopedgn_tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::SIDES;
use crate::Result;

/// Settings of the [temporal walks](ctdg::walks) of a pair, which a perceptron embeds beside what the model reads.
///
/// ```
/// use hopedgn::{Config, ModelName};
///
/// let config = Config::resolve(ModelName::Tgat, &[], &["model.walks=true".to_owned()])?;
/// let walks = config.model.common.statistics.walks;
/// assert!(walks.config().is_some_and(|walks| walks.layers == 3 && walks.n_features() == 36));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct WalkSettings {
    /// Whether the model reads them.
    #[serde(rename = "walks")]
    pub enabled: bool,
    /// Length of the longest walks.
    #[serde(rename = "walk-layers")]
    pub layers: usize,
    /// Width of a node's random projection.
    pub d_walk: usize,
    /// How fast walks lose weight, per unit of time: an event counts `exp(-walk-decay · Δt)`.
    #[serde(rename = "walk-decay")]
    pub decay: f64,
}

impl WalkSettings {
    /// Switched off.
    pub const DEFAULT: Self = Self { enabled: false, layers: 3, d_walk: 128, decay: 1e-6 };

    /// What the walks of the model are like, if it reads them.
    #[must_use]
    pub fn config(&self) -> Option<WalkConfig> {
        self.enabled.then_some(WalkConfig { layers: self.layers, width: self.d_walk, decay: self.decay })
    }
}

impl Default for WalkSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The walks of `B` pairs, for models that read them: ln(1 + x) of inner products, of which negative ones count as 0.
///
/// Part of an [`Input`](super::Input).
#[derive(Debug, Clone)]
pub struct WalkInput {
    /// `[B, W]`: of the source with the destination.
    pub pairs: Arc<Tensor>,
    /// `[2R, W]`: of each distinct node within a pair with the source, then with the destination; for a
    /// [`HopLayout`](super::HopLayout) that asks for them.
    pub nodes: Option<Arc<Tensor>>,
}

/// The walks of all pairs of a batch.
#[derive(Debug)]
pub(crate) struct WalkRows {
    width: usize,
    pairs: Vec<f32>,
    /// Of the nodes of all pairs, where the model reads them.
    nodes: Option<Vec<f32>>,
}

impl WalkRows {
    /// Of `queries`, and of the nodes among their `tokens`. All are asked for at once, since walks go forward in time only.
    pub(crate) fn of(walks: &mut TemporalWalks, queries: &[PairQuery], tokens: Option<&PairTokens>) -> Self {
        let mut all = queries.to_vec();
        if let Some(tokens) = tokens {
            all.extend(node_queries(tokens, queries));
        }
        let mut pairs = walks.rows(&all);
        for product in &mut pairs {
            *product = product.clamp(0.0, f32::MAX);
        }
        hopedgn_tensor::ln_1p(&mut pairs);
        let width = pairs.len() / all.len().max(1);
        let nodes = pairs.split_off(queries.len() * width);
        Self { width, pairs, nodes: tokens.map(|_| nodes) }
    }

    /// Of the pairs, row by row.
    pub(crate) fn pairs(&self) -> &[f32] {
        &self.pairs
    }

    /// Those of some of the pairs, whose distinct nodes are `rows`.
    pub(crate) fn input(&self, pairs: Range<usize>, rows: Range<usize>) -> Result<WalkInput> {
        let tensor = |values: &[f32], rows: Range<usize>| -> Result<Arc<Tensor>> {
            let values = values[rows.start * self.width..rows.end * self.width].to_vec();
            Ok(Tensor::matrix(rows.len(), self.width, values)?.into())
        };
        let nodes = self.nodes.as_ref().map(|nodes| tensor(nodes, 2 * rows.start..2 * rows.end)).transpose()?;
        Ok(WalkInput { pairs: tensor(&self.pairs, pairs)?, nodes })
    }
}

/// For each row of `tokens` its node with the source, and with the destination of its pair.
fn node_queries(tokens: &PairTokens, queries: &[PairQuery]) -> Vec<PairQuery> {
    let mut all = Vec::with_capacity(2 * tokens.n_rows());
    for (pair, query) in queries.iter().enumerate() {
        let rows = tokens.rows_of_pair(pair);
        let first = all.len();
        all.resize(first + 2 * rows.len(), *query);
        for token in SIDES.into_iter().flat_map(|side| tokens.tokens(pair, side)) {
            let at = first + 2 * (tokens.rows()[token] as usize - rows.start);
            let src = tokens.nodes()[token];
            all[at] = PairQuery { src, dst: query.src, ..*query };
            all[at + 1] = PairQuery { src, dst: query.dst, ..*query };
        }
    }
    all
}
