//! TGN and DyRep: a memory of each node, and temporal attention over the memories of its neighbours.
//!
//! Papers: "Temporal Graph Networks for Deep Learning on Dynamic Graphs" (numbers below); "DyRep: Learning Representations over
//! Dynamic Graphs".
//!
//! ```text
//! m_u  = [s_u ‖ p_v ‖ Φ(Δt) ‖ e]                    (1)   message of an event of u and v
//! m̄_u  = the last m_u of the batch                  (3)
//! s_u ← cell(m̄_u, s_u)                              (4)
//! g_u  = attention of [s_u + x_u ‖ Φ(0)] over [s_w + x_w ‖ e ‖ Φ(t − t')], (w, t') of N(u, t)
//!
//!          TGN             DyRep
//! cell     GRU             tanh RNN
//! p_v      s_v             g_v                       what the other node sends
//! h_u      g_u             s_u                       (5)   the embedding
//!
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! [`MemoryUpdater`] is (1) to (4), [`TemporalAttention`] is g. Shapes: `B` pairs with `V` roots, at most `2B`; `F` neighbours; `U` distinct nodes
//! of the batch; `d` width of a memory; `Dm`, `De`, `Dt` widths of MITE, edge and time features.
//!
//! # Differences from the papers
//! Both are the models of published comparisons, after TGN's code and DyGLib: DyRep has no point process.
//! - **Messages**: of several events of a node in one batch the newest counts. In DyGLib it is the newest in which the node was
//!   the destination; `message-order = "dyglib"` does the same.
//! - **DyRep's attention is not trained**: it reaches the loss only through the memory of later batches, and gradients do not
//!   cross batches. That holds for every implementation that detaches the memory between batches.
//! - **Padding**: as in TGAT.
//!
//! # MITE
//! Concatenated to the memory of every node wherever attention reads it.

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Dropout, Indices, Parameters, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{check_heads, check_size, within};
use super::{CommonSettings, Model, ModelName};
use crate::Result;
use crate::collate::{
    Entries, FeatureWidths, HopInput, HopLayout, Input, Layout, MiteSettings, NeighborSettings, Padding,
};
use crate::memory::{MemoryForm, MessageOrder};
use crate::nn::{
    HopFeatures, Memories, MemoryCell, MemoryUpdater, MemoryWidths, MiteEmbedding, PADDED_FEATURES, PaddingKeys,
    PairHead, ParamBuilder, TemporalAttention, TemporalAttentionInput, TemporalAttentionWidths, TimeEncoding,
};

/// Settings of [`Tgn`], as TGN and as DyRep.
///
/// See [`Tgn`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TgnSettings {
    /// Sampled neighbours, 10 by default.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Attention heads; a divisor of a query's width.
    pub n_heads: usize,
    /// What nodes without events attend to.
    pub padding: Padding,
    /// Which message of a batch updates a node's memory.
    pub message_order: MessageOrder,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

impl Default for TgnSettings {
    fn default() -> Self {
        Self {
            past: NeighborSettings { neighbors: 10, ..NeighborSettings::default() },
            n_heads: 2,
            padding: Padding::None,
            message_order: MessageOrder::Newest,
            mite: MiteSettings::default(),
        }
    }
}

impl TgnSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        within(&[("model.neighbors", self.past.neighbors, 1 << 20), ("model.n-heads", self.n_heads, 1 << 14)])?;
        check_size(1, common)
    }
}

/// TGN or DyRep.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, Model, ModelName, Tgn, TgnSettings};
///
/// let (settings, widths) = (TgnSettings::default(), FeatureWidths::default());
/// let (tgn, _) = Tgn::new(&settings, &CommonSettings::DEFAULT, widths, 0)?;
/// let (dyrep, _) = Tgn::dyrep(&settings, &CommonSettings::DEFAULT, widths, 0)?;
/// assert_eq!((tgn.name(), dyrep.name()), (ModelName::Tgn, ModelName::DyRep));
/// assert!(tgn.memory().is_some() && dyrep.memory().is_some());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tgn {
    kind: Kind,
    settings: TgnSettings,
    common: CommonSettings,
    memory: MemoryUpdater,
    time: TimeEncoding,
    mite: Option<MiteEmbedding>,
    layer: TemporalAttention,
    head: PairHead,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tgn,
    DyRep,
}

impl Tgn {
    /// TGN for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &TgnSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        Self::of_kind(Kind::Tgn, settings, common, widths, seed)
    }

    /// DyRep for features of these widths, with parameters drawn from `seed`.
    pub fn dyrep(
        settings: &TgnSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        Self::of_kind(Kind::DyRep, settings, common, widths, seed)
    }

    fn of_kind(
        kind: Kind,
        settings: &TgnSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        widths.check_nodes(d)?;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = settings.mite.width();
        let own = d + d_mite;
        let parts = [("model.d-out", d), ("model.d-mite", d_mite), ("model.d-time", d_time)];
        check_heads(settings.n_heads, &parts)?;
        let d_edge = widths.edge.unwrap_or(0);
        let attention_widths = TemporalAttentionWidths {
            query: own + d_time,
            key: own + d_edge + d_time,
            key_fan_in: own + d_edge.max(PADDED_FEATURES) + d_time,
            raw: own,
            raw_fan_in: own,
            out: d,
        };
        let time = builder.time_encoding("time", d_time)?;
        let cell = match kind {
            Kind::Tgn => MemoryCell::Gru,
            Kind::DyRep => MemoryCell::Tanh,
        };
        let memory_widths = MemoryWidths { state: d, time: d_time, features: widths };
        let model = Self {
            kind,
            settings: *settings,
            common: *common,
            memory: builder.memory_updater(memory_widths, cell, time, settings.message_order)?,
            time,
            mite: builder.mite(&settings.mite)?,
            layer: builder.temporal_attention("layers.1", settings.n_heads, attention_widths)?,
            head: builder.pair_head(d, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// g of both nodes of each pair, `[2B, d]`.
    fn attend(&self, tape: &mut Tape<'_>, input: &HopInput, memories: &Memories<'_>, dropout: Dropout) -> Result<Var> {
        let Memories { read, nodes, .. } = *memories;
        let (roots, first) = (&input.roots, &input.first);
        let features = HopFeatures::new(tape, input, self.mite)?;
        let own = self.states(tape, &features, roots, nodes, &read.roots)?; // [V, d + Dm]
        let neighbors = self.states(tape, &features, &first.entries, nodes, &read.first)?; // [F, d + Dm]
        let now = self.time.of_now(tape, roots.len)?; // [V, Dt]
        let times = self.time.of_hop(tape, first)?; // [F, Dt]
        let edges = features.edges(tape, first)?; // [F, De]
        let keys: Vec<Var> = [neighbors].into_iter().chain(edges).chain([times]).collect();
        let (queries, keys) = (tape.concat(&[own, now])?, tape.concat(&keys)?);
        let padding = PaddingKeys::new(tape, first, self.time, keys)?;
        let of_roots = TemporalAttentionInput { queries, keys, groups: &first.groups, raw: Some(own), padding };
        let g = self.layer.forward(tape, of_roots, dropout)?; // [V, d]
        input.by_side(tape, g)
    }

    /// `s + x` with MITE of `entries`, which are rows `rows` of `nodes` `[U, d]`: `[entries, d + Dm]`.
    fn states(
        &self,
        tape: &mut Tape<'_>,
        features: &HopFeatures<'_>,
        entries: &Entries,
        nodes: Var,
        rows: &Indices,
    ) -> Result<Var> {
        let mut states = tape.gather(nodes, rows)?; // [entries, d]
        if let Some(x) = features.nodes_padded_to(tape, entries, self.common.d_out)? {
            states = tape.add(states, x)?;
        }
        match features.mite(tape, entries)? {
            Some(mite) => Ok(tape.concat(&[states, mite])?),
            None => Ok(states),
        }
    }
}

impl Model for Tgn {
    fn name(&self) -> ModelName {
        match self.kind {
            Kind::Tgn => ModelName::Tgn,
            Kind::DyRep => ModelName::DyRep,
        }
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.past.encoding(&self.settings.mite)
    }

    fn layout(&self) -> Layout {
        let TgnSettings { past, padding, mite, .. } = self.settings;
        let shares_roots = past.share_roots(&mite);
        Layout::Hops(HopLayout { padding, mite: mite.normaliser(), shares_roots, ..HopLayout::default() })
    }

    fn memory(&self) -> Option<MemoryForm> {
        Some(self.memory.form())
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        match self.kind {
            Kind::Tgn => {
                let memories = self.memory.advance(tape, input)?; // [U, d], [2B, d]
                self.attend(tape, input, &memories, dropout)
            }
            Kind::DyRep => {
                let memories = self.memory.read(tape, input)?; // [U, d], [2B, d]
                // g is sent in messages only.
                if memories.read.update.is_some() {
                    let g = self.attend(tape, input, &memories, dropout)?;
                    self.memory.update(tape, input, &memories, g)?;
                }
                Ok(memories.sides)
            }
        }
    }

    fn memory_updater(&self) -> Option<MemoryUpdater> {
        (self.kind == Kind::Tgn).then_some(self.memory)
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}
