//! TGAT: temporal attention over the neighbours of a node, and over theirs.
//!
//! Paper: "Inductive Representation Learning on Temporal Graphs".
//!
//! With `h⁰_u = x_u`, for each layer `l` and the events `(w, t')` of `N(u, t)`:
//!
//! ```text
//! q    = [hˡ⁻¹_u(t) ‖ Φ(0)]
//! k_w  = [hˡ⁻¹_w(t') ‖ e ‖ Φ(t − t')]
//! h̃    = multi-head attention of q over all k_w
//! hˡ_u = MLP([LN(q + Wo h̃) ‖ x_u])
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! [`TemporalAttention`] is the layer. Shapes: `B` pairs with `V` roots, at most `2B`; `F` neighbours of roots, `G` neighbours of those; `d` width
//! of an embedding; `Dm`, `De`, `Dt` widths of MITE, edge and time features.
//!
//! # Differences from the paper
//! - **Residual and layer norm** are those of DyGLib and of the authors' code.
//! - **Sampling**: the newest events, unless `sampling = "uniform"`.
//! - **Padding**: a node without events attends to nothing. In DyGLib it attends to padding with zero features and the time
//!   features of an event at time 0; `padding = "dyglib"` does the same.
//! - **Second hop**: events strictly before t'. DyGLib rounds t' to `f32` first, so that a neighbour may see the event that led to it, and
//!   events after it, those of the query included; `second-hop = "dyglib"` does the same. It is a leak, for comparisons only.
//!
//! # MITE
//! Concatenated to the features of every node, of both hops and of the roots. A node of the second hop without events with
//! source or destination has no intervals.

use ctdg::mite::{PairEncoderConfig, SecondHopTime};
use hopedgn_tensor::{Dropout, Parameters, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{check_heads, check_hops, check_size, within};
use super::{CommonSettings, Model, ModelName};
use crate::Result;
use crate::collate::{Entries, FeatureWidths, Hop, HopLayout, Input, Layout, MiteSettings, NeighborSettings, Padding};
use crate::nn::{
    HopFeatures, MiteEmbedding, PADDED_FEATURES, PaddingKeys, PairHead, ParamBuilder, TemporalAttention,
    TemporalAttentionInput, TemporalAttentionWidths, TimeEncoding, zeros,
};

/// Settings of [`Tgat`].
///
/// See [`Tgat`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TgatSettings {
    /// Sampled neighbours.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Layers, which are hops: 1 or 2.
    pub n_blocks: usize,
    /// Attention heads; a divisor of a query's width.
    pub n_heads: usize,
    /// What nodes without events attend to.
    pub padding: Padding,
    /// Before which time the second hop is sampled.
    pub second_hop: SecondHopCut,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

/// Before which time the neighbours of a neighbour are sampled.
///
/// ```
/// use hopedgn::config::{Config, ModelName, ModelSettings, Preset, SecondHopCut};
///
/// let config = Config::resolve(ModelName::Tgat, &[Preset::DyGLib], &[])?;
/// assert!(matches!(config.model.settings, ModelSettings::Tgat(of) if of.second_hop == SecondHopCut::Dyglib));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondHopCut {
    /// Strictly before the event that led to it.
    #[default]
    Event,
    /// As in DyGLib: before the time of that event rounded to `f32`, which looks ahead where rounding goes up.
    Dyglib,
}

impl Default for TgatSettings {
    fn default() -> Self {
        Self {
            past: NeighborSettings::default(),
            n_blocks: 2,
            n_heads: 2,
            padding: Padding::None,
            second_hop: SecondHopCut::Event,
            mite: MiteSettings::default(),
        }
    }
}

impl TgatSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        within(&[
            ("model.neighbors", self.past.neighbors, 1 << 20),
            ("model.n-blocks", self.n_blocks, 1 << 10),
            ("model.n-heads", self.n_heads, 1 << 14),
        ])?;
        check_size(self.n_blocks, common)?;
        check_hops(self.n_blocks, self.past.neighbors)
    }
}

/// TGAT.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, Model, Tgat, TgatSettings};
///
/// let settings = TgatSettings { n_blocks: 2, ..TgatSettings::default() };
/// let (model, _) = Tgat::new(&settings, &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert!(model.encoding().second.is_some()); // two blocks read two hops
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tgat {
    settings: TgatSettings,
    common: CommonSettings,
    time: TimeEncoding,
    mite: Option<MiteEmbedding>,
    layers: Vec<TemporalAttention>,
    head: PairHead,
}

/// What one layer computes: embeddings of `nodes` from their neighbours in `hop`.
#[derive(Debug, Clone, Copy)]
struct LayerInput<'a> {
    /// Features of the nodes before any layer.
    raw: Option<Var>,
    /// Embeddings of the nodes below this layer.
    nodes: Option<Var>,
    /// Their neighbours.
    hop: &'a Hop,
    /// Embeddings of the neighbours below this layer.
    neighbors: Option<Var>,
    /// `[e ‖ Φ(t − t')]` of the neighbours.
    events: Var,
}

impl Tgat {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &TgatSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        settings.check(common)?;
        widths.check_nodes(d)?;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = settings.mite.width();
        let raw = widths.node.map_or(0, |_| d) + d_mite;
        let d_edge = widths.edge.unwrap_or(0);
        let layer = |l: usize| {
            // Below the first layer a node is its features, above it an embedding.
            let (own, key) = if l == 1 { (d + d_mite, raw) } else { (d, d) };
            let parts = [("model.d-out", d), ("model.d-mite", own - d), ("model.d-time", d_time)];
            check_heads(settings.n_heads, &parts)?;
            let widths = TemporalAttentionWidths {
                query: own + d_time,
                key: key + d_edge + d_time,
                key_fan_in: own + d_edge.max(PADDED_FEATURES) + d_time,
                raw,
                raw_fan_in: d + d_mite,
                out: d,
            };
            builder.temporal_attention(&format!("layers.{l}"), settings.n_heads, widths)
        };
        let layers = (1..=settings.n_blocks).map(layer).collect::<Result<_>>()?;
        let model = Self {
            settings: *settings,
            common: *common,
            time: builder.time_encoding("time", d_time)?,
            mite: builder.mite(&settings.mite)?,
            layers,
            head: builder.pair_head(d, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// h⁰ with MITE, `[entries, raw]`; nothing where there are no features.
    fn raw(&self, tape: &mut Tape<'_>, features: &HopFeatures<'_>, entries: &Entries) -> Result<Option<Var>> {
        let nodes = features.nodes_padded_to(tape, entries, self.common.d_out)?; // [entries, d]
        let mite = features.mite(tape, entries)?; // [entries, Dm]
        let parts: Vec<Var> = nodes.into_iter().chain(mite).collect();
        if parts.is_empty() { Ok(None) } else { Ok(Some(tape.concat(&parts)?)) }
    }

    /// `[e ‖ Φ(t − t')]` of a hop, `[entries, De + Dt]`.
    fn events(&self, tape: &mut Tape<'_>, features: &HopFeatures<'_>, hop: &Hop) -> Result<Var> {
        let edges = features.edges(tape, hop)?;
        let times = self.time.of_hop(tape, hop)?;
        match edges {
            Some(edges) => Ok(tape.concat(&[edges, times])?),
            None => Ok(times),
        }
    }

    /// Layer `l`, from 1: `[nodes, d]`.
    fn layer(
        &self,
        tape: &mut Tape<'_>,
        l: usize,
        features: &HopFeatures<'_>,
        input: LayerInput<'_>,
        dropout: Dropout,
    ) -> Result<Var> {
        let LayerInput { raw, nodes, hop, neighbors, events } = input;
        let n_nodes = hop.groups.len();
        let now = self.time.of_now(tape, n_nodes)?; // [nodes, Dt]
        // Nodes without features are zeros, in front of MITE.
        let lacks_features = l == 1 && features.input().nodes.is_none();
        let zeros = if lacks_features { Some(zeros(tape, n_nodes, self.common.d_out)?) } else { None };
        let query: Vec<Var> = zeros.into_iter().chain(nodes).chain([now]).collect();
        let keys: Vec<Var> = neighbors.into_iter().chain([events]).collect();
        let (queries, keys) = (tape.concat(&query)?, tape.concat(&keys)?);
        let padding = PaddingKeys::new(tape, hop, self.time, keys)?;
        let input = TemporalAttentionInput { queries, keys, groups: &hop.groups, raw, padding };
        self.layers[l - 1].forward(tape, input, dropout)
    }
}

impl Model for Tgat {
    fn name(&self) -> ModelName {
        ModelName::Tgat
    }

    fn encoding(&self) -> PairEncoderConfig {
        let TgatSettings { past, n_blocks, mite, .. } = &self.settings;
        let time = match self.settings.second_hop {
            SecondHopCut::Event => SecondHopTime::Event,
            SecondHopCut::Dyglib => SecondHopTime::EventAsF32,
        };
        past.hops(mite, *n_blocks, time)
    }

    fn layout(&self) -> Layout {
        let TgatSettings { past, padding, mite, .. } = self.settings;
        let shares_roots = past.share_roots(&mite);
        Layout::Hops(HopLayout { padding, mite: mite.normaliser(), shares_roots, ..HopLayout::default() })
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let (roots, first) = (&input.roots, &input.first);
        let features = HopFeatures::new(tape, input, self.mite)?;
        let x_roots = self.raw(tape, &features, roots)?; // [V, raw]
        let x_first = self.raw(tape, &features, &first.entries)?; // [F, raw]
        let events = self.events(tape, &features, first)?; // [F, De + Dt]
        let of_roots = LayerInput { raw: x_roots, nodes: x_roots, hop: first, neighbors: x_first, events };
        let h1_roots = self.layer(tape, 1, &features, of_roots, dropout.site(0))?; // [V, d]
        let Some(second) = &input.second else { return input.by_side(tape, h1_roots) };

        let x_second = self.raw(tape, &features, &second.entries)?; // [G, raw]
        let events = self.events(tape, &features, second)?; // [G, De + Dt]
        let of_first = LayerInput { raw: x_first, nodes: x_first, hop: second, neighbors: x_second, events };
        let h1_first = self.layer(tape, 1, &features, of_first, dropout.site(8))?; // [F, d]
        let of_roots = LayerInput { nodes: Some(h1_roots), neighbors: Some(h1_first), ..of_roots };
        let h2_roots = self.layer(tape, 2, &features, of_roots, dropout.site(16))?; // [V, d]
        input.by_side(tape, h2_roots) // [2B, d]
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}
