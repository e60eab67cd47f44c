//! CAWN: causal anonymous walks from both nodes, whose steps are identified by where they occur in all walks.
//!
//! Paper: "Inductive Representation Learning in Temporal Networks via Causal Anonymous Walks".
//!
//! A walk of `u` is `u, w` for an event `(w, t')` of `N(u, t)`. With `g(w; u)` the rates at which `w` is at each step of the walks
//! of `u`:
//!
//! ```text
//! a_w   = f(g(w; u)) + f(g(w; v))                       anonymised identity; f is a two-layer MLP
//! step  = [x_w ‖ Φ(t − t') ‖ e ‖ a_w]
//! walk  = [BiLSTM(steps) ‖ BiLSTM(a of the steps)]
//! h_u   = W_out MEAN(Block(W_join walk)) + b_out        self-attention over the walks of u
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! Shapes: `B` pairs, so `2B` roots; `F` walks of all of them, `L` roots without events; `R` distinct nodes within the pairs; `d`
//! width of an identity and an embedding; `Dw`, `Dp` widths of the LSTM states over steps and over identities; `Dm` width of
//! MITE.
//!
//! # Differences from the paper
//! - **Walks** have one step, as in DyGLib's experiments. Events are sampled by the time since them
//!   (`sampling = "time-interval-aware"`).
//! - **A root without events** has one walk that ends where it starts. In DyGLib it has as many as are sampled, all of them equal, which
//!   gives the same embedding.
//! - **Shared work**: all walks of a root start alike, so the first LSTM step is computed once per root; the backward LSTM has
//!   read only the last step when it gets there. The result is the same.
//! - **Width of LSTM states**: as if features were as wide as an embedding.
//!
//! # MITE
//! Concatenated to each step. It widens the input of the LSTM over steps, not its state.

use std::sync::Arc;

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Activation, Dropout, Indices, Parameters, Ragged, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{check_weights, square, within};
use super::{CommonSettings, Model, ModelName};
use crate::collate::{FeatureWidths, HopInput, HopLayout, Input, Layout, MiteSettings, NeighborSettings, SamplingName};
use crate::fmt::narrow;
use crate::nn::{
    CrossAttentionInput, HopFeatures, InputColumns, Linear, MiteEmbedding, PairHead, ParamBuilder, PostNormBlock,
    TimeEncoding,
};
use crate::{Error, Result};

/// Settings of [`Cawn`].
///
/// See [`Cawn`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CawnSettings {
    /// Sampled walks: 32 by default, recent events with higher probability.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Attention heads.
    pub n_heads: usize,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

impl Default for CawnSettings {
    fn default() -> Self {
        let past = NeighborSettings { neighbors: 32, sampling: SamplingName::TimeIntervalAware, f32_times: false };
        Self { past, n_heads: 8, mite: MiteSettings::default() }
    }
}

impl CawnSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        within(&[("model.neighbors", self.past.neighbors, 1 << 20), ("model.n-heads", self.n_heads, 1 << 14)])?;
        check_weights(("model.d-out", d), 1, 6 * square(3 * d + d_time + self.n_heads))
    }
}

/// CAWN.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{Cawn, CawnSettings, CommonSettings, Model};
///
/// let (model, _) = Cawn::new(&CawnSettings::default(), &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert_eq!(model.name().title(), "CAWN");
/// assert!(hopedgn::explain::check(&model).is_err()); // it samples walks at random
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cawn {
    settings: CawnSettings,
    common: CommonSettings,
    time: TimeEncoding,
    mite: Option<MiteEmbedding>,
    /// f of the identity.
    identity: [Linear; 2],
    /// Over steps: forward and backward.
    walk_lstm: [Lstm; 2],
    /// Over identities: forward and backward.
    identity_lstm: [Lstm; 2],
    join: Linear,
    block: PostNormBlock,
    output: Linear,
    head: PairHead,
    /// The column of a step where its identity begins.
    identity_column: usize,
}

/// One direction of an LSTM.
#[derive(Debug, Clone, Copy)]
struct Lstm {
    input: Linear,
    hidden: Linear,
    width: usize,
}

impl Lstm {
    fn new(builder: &mut ParamBuilder<'_>, name: &str, n_in: usize, width: usize) -> Result<Self> {
        // As in PyTorch, both matrices are initialised by the width of the state.
        Ok(Self {
            input: builder.linear_with_fan_in(&format!("{name}.input"), n_in, width, 4 * width)?,
            hidden: builder.linear_with_fan_in(&format!("{name}.hidden"), width, width, 4 * width)?,
            width,
        })
    }

    /// State and cell after a first step, `[M, 2·width]`.
    fn first(self, tape: &mut Tape<'_>, step: &[InputColumns<'_>]) -> Result<Var> {
        let (input, hidden) = (self.input.bias(tape), self.hidden.bias(tape));
        let bias = tape.add(input, hidden)?;
        let gates = self.input.forward_columns(tape, bias, step)?; // [M, 4·width]
        Ok(tape.lstm(gates, None)?)
    }

    /// The state after a further step, `[M, width]`; `before` are state and cell of every root, `roots` the root of each row.
    fn next(self, tape: &mut Tape<'_>, before: Var, roots: &Indices, step: &[InputColumns<'_>]) -> Result<Var> {
        let state = self.state(tape, before)?;
        let cell = tape.columns(before, self.width, self.width)?;
        let cell = tape.gather(cell, roots)?; // [M, width]
        let hidden = self.hidden.forward(tape, state, None)?;
        let hidden = tape.gather(hidden, roots)?; // [M, 4·width]
        let bias = self.input.bias(tape);
        let input = self.input.forward_columns(tape, bias, step)?; // [M, 4·width]
        let gates = tape.add(input, hidden)?;
        let after = tape.lstm(gates, Some(cell))?;
        self.state(tape, after)
    }

    /// The state without the cell.
    fn state(self, tape: &mut Tape<'_>, both: Var) -> Result<Var> {
        Ok(tape.columns(both, 0, self.width)?)
    }
}

/// The walks of each root.
#[derive(Debug)]
struct Walks {
    /// `[F]`: the root of each walk.
    roots: Indices,
    /// The `L` roots without events.
    lone: Indices,
    /// The walks of each root; one for a root without events.
    groups: Ragged,
    /// `[F + L]`: the rows of these groups, with the walks first, then the lone roots.
    order: Indices,
}

impl Walks {
    fn of(input: &HopInput) -> Self {
        let (mut roots, mut lone, mut order) = (Vec::new(), Vec::new(), Vec::new());
        for (root, walks) in input.first.groups.ranges().enumerate() {
            if walks.is_empty() {
                order.push(narrow(input.first.entries.len + lone.len()));
                lone.push(narrow(root));
            }
            roots.extend(walks.clone().map(|_| narrow(root)));
            order.extend(walks.map(narrow));
        }
        let groups = Ragged::from_lengths(input.first.groups.ranges().map(|walks| walks.len().max(1)));
        Self { roots: roots.into(), lone: lone.into(), groups, order: order.into() }
    }
}

/// One step of some walks.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    /// `[x ‖ Φ ‖ e]`, the first columns; without `e` for the first step.
    own: Var,
    /// a of all nodes, `[R, d]`.
    identities: Var,
    /// `[R + 1, Dm]`
    mite: Option<Var>,
    /// The row of each node.
    rows: &'a Indices,
}

impl Cawn {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &CawnSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let identity_column = widths.node.unwrap_or(0) + d_time + widths.edge.unwrap_or(0);
        let step = identity_column + d + settings.mite.width();
        // Half of a step with node features, edge features and identity.
        let d_walk = usize::midpoint(3 * d, d_time).max(1);
        let d_identity = (d / 2).max(1);
        let width = d_walk.next_multiple_of(settings.n_heads);
        let model = Self {
            settings: *settings,
            common: *common,
            time: builder.time_encoding("time", d_time)?,
            mite: builder.mite(&settings.mite)?,
            identity: [builder.linear("position.hidden", 2, d)?, builder.linear("position.out", d, d)?],
            walk_lstm: [
                Lstm::new(builder, "walk.forward", step, d_walk)?,
                Lstm::new(builder, "walk.backward", step, d_walk)?,
            ],
            identity_lstm: [
                Lstm::new(builder, "place.forward", d, d_identity)?,
                Lstm::new(builder, "place.backward", d, d_identity)?,
            ],
            join: builder.linear("join", 2 * (d_walk + d_identity), width)?,
            block: builder.post_norm_block("block", width, settings.n_heads)?,
            output: builder.linear("output", width, d)?,
            head: builder.pair_head(d, &common.statistics)?,
            identity_column,
        };
        Ok((model, parameters))
    }

    /// a of every node, `[R, d]`.
    fn identities(&self, tape: &mut Tape<'_>, input: &HopInput) -> Result<Var> {
        let rates = tape.input(Arc::clone(input.hitting_rates.as_ref().ok_or(Error::MissingInput)?)); // [2R, 2]
        let n_rows = tape.shape(rates).rows() / 2;
        let hidden = self.identity[0].forward(tape, rates, Some(Activation::Relu))?; // [2R, d]
        // The second layer is linear: W h + b + W h' + b = W (h + h') + 2b.
        let pairs = Ragged::from_lengths(std::iter::repeat_n(2, n_rows));
        let hidden = tape.segment_sum(hidden, None, &pairs)?; // [R, d]
        let bias = self.identity[1].bias(tape);
        let twice = tape.add(bias, bias)?;
        self.identity[1].forward_columns(tape, twice, &[InputColumns::own(0, hidden)])
    }

    fn columns<'a>(&self, step: Step<'a>) -> Vec<InputColumns<'a>> {
        let Step { own, identities, mite, rows } = step;
        let mut columns = vec![InputColumns::own(0, own), InputColumns::shared(self.identity_column, identities, rows)];
        let mite_column = self.identity_column + self.common.d_out;
        columns.extend(mite.map(|mite| InputColumns::shared(mite_column, mite, rows)));
        columns
    }

    /// The encoding of each walk, then of each lone root, `[F + L, 2 (Dw + Dp)]`.
    fn walks(&self, tape: &mut Tape<'_>, input: &HopInput, walks: &Walks) -> Result<Var> {
        let features = HopFeatures::new(tape, input, self.mite)?;
        let identities = self.identities(tape, input)?;
        let (roots, ends) = (&input.roots, &input.first.entries);
        let [root_rows, end_rows] = [roots, ends].map(|entries| entries.rows.as_ref().ok_or(Error::MissingInput));
        let (root_rows, end_rows) = (root_rows?, end_rows?);
        let ([walk_forward, walk_backward], [id_forward, id_backward]) = (self.walk_lstm, self.identity_lstm);

        // The first step of all walks of a root has no event.
        let now = self.time.of_now(tape, roots.len)?;
        let own: Vec<Var> = features.nodes(tape, roots)?.into_iter().chain([now]).collect();
        let own = tape.concat(&own)?;
        let start = Step { own, identities, mite: features.mite_table(), rows: root_rows };
        let walk_start = walk_forward.first(tape, &self.columns(start))?; // [2B, 2·Dw]
        let id_start = id_forward.first(tape, &[InputColumns::shared(0, identities, root_rows)])?; // [2B, 2·Dp]

        // The second step of the forward LSTM is the first of the backward LSTM.
        let times = self.time.of_hop(tape, &input.first)?;
        let (nodes, edges) = (features.nodes(tape, ends)?, features.edges(tape, &input.first)?);
        let own: Vec<Var> = nodes.into_iter().chain([times]).chain(edges).collect();
        let own = tape.concat(&own)?;
        let end = self.columns(Step { own, rows: end_rows, ..start });
        let forward = walk_forward.next(tape, walk_start, &walks.roots, &end)?; // [F, Dw]
        let backward = walk_backward.first(tape, &end)?;
        let backward = walk_backward.state(tape, backward)?; // [F, Dw]
        let id_end = [InputColumns::shared(0, identities, end_rows)];
        let id_on = id_forward.next(tape, id_start, &walks.roots, &id_end)?; // [F, Dp]
        let id_back = id_backward.first(tape, &[InputColumns::own(0, identities)])?;
        let id_back = id_backward.state(tape, id_back)?; // [R, Dp]
        let end_back = tape.gather(id_back, end_rows)?; // [F, Dp]
        let walked = tape.concat(&[forward, backward, id_on, end_back])?;
        if walks.lone.is_empty() {
            return Ok(walked);
        }

        // The walk of a lone root ends where it starts.
        let lone_rows: Indices = walks.lone.iter().map(|&root| root_rows[root as usize]).collect();
        let own = tape.gather(start.own, &walks.lone)?;
        let backward = walk_backward.first(tape, &self.columns(Step { own, rows: &lone_rows, ..start }))?;
        let backward = walk_backward.state(tape, backward)?; // [L, Dw]
        let forward = walk_forward.state(tape, walk_start)?;
        let forward = tape.gather(forward, &walks.lone)?; // [L, Dw]
        let id_on = id_forward.state(tape, id_start)?;
        let id_on = tape.gather(id_on, &walks.lone)?; // [L, Dp]
        let end_back = tape.gather(id_back, lone_rows)?; // [L, Dp]
        let lone = tape.concat(&[forward, backward, id_on, end_back])?;
        Ok(tape.concat_rows(&[walked, lone])?)
    }
}

impl Model for Cawn {
    fn name(&self) -> ModelName {
        ModelName::Cawn
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.past.encoding(&self.settings.mite)
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout {
            with_hitting_rates: true,
            mite: self.settings.mite.normaliser(),
            ..HopLayout::default()
        })
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let walks = Walks::of(input);
        let walked = self.walks(tape, input, &walks)?; // [F + L, 2 (Dw + Dp)]
        let mut x = self.join.forward(tape, walked, None)?; // [F + L, width]
        if !walks.lone.is_empty() {
            x = tape.gather(x, &walks.order)?;
        }
        let x = self.block.forward(tape, CrossAttentionInput::within(x, &walks.groups), dropout)?;
        let mean = tape.segment_mean(x, &walks.groups)?; // [2B, width]
        self.output.forward(tape, mean, None) // [2B, d]
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}
