//! CAWN: walks from each node, whose steps are known by where both nodes' walks pass, not by who they are.
//!
//! Paper: "Inductive Representation Learning in Temporal Networks via Causal Anonymous Walks".
//!
//! Shapes: `B` pairs, so `2B` roots; `T` walks of all of them, `L` roots without a past; `R` distinct nodes within the pairs;
//! `d` width of a place; `Dw`, `Dp` widths of an LSTM's state over steps and over places.
//!
//! # Differences from the paper
//! - **Walks** are of one step, as in DyGLib's experiments: the root, then a node it met. Which events they take is drawn by
//!   the time since them (`sampling = "time-interval-aware"`), and depends on the pair and the time alone, so that a pair's
//!   score does not depend on its batch.
//! - **Nobody**: a root without a past has one walk that ends where it starts, with any `padding`. In DyGLib its walks go on
//!   to a node that stands for nobody.
//! - **Shared work**: all walks of a root begin alike, so their first step is taken once, as is what an LSTM makes of a
//!   place; the way back of an LSTM has seen only the last step there. The result is the same.
//! - **Features** are not padded with zeros; states are as wide as if they were, to the width of an embedding.
//!
//! # MITE
//! Stands behind each step. It widens what the LSTM over steps reads, not its state.

use std::sync::Arc;

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Activation, Dropout, Indices, Parameters, Ragged, Tape, Var};

use super::Model;
use crate::collate::{FeatureWidths, HopInput, HopLayout, Input, Layout};
use crate::config::ModelConfig;
use crate::fmt::narrow;
use crate::nn::{HopFeatures, Linear, MiteEmbedding, PairHead, ParamBuilder, Part, PostNorm, TimeEncoding};
use crate::{Error, Result};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct Cawn {
    config: ModelConfig,
    time: TimeEncoding,
    mite: Option<MiteEmbedding>,
    position: [Linear; 2],
    walk: [Lstm; 2],
    place: [Lstm; 2],
    join: Linear,
    block: PostNorm,
    output: Linear,
    head: PairHead,
    /// The columns of a step where its place begins.
    before_place: usize,
}

/// One direction of an LSTM.
#[derive(Debug, Clone, Copy)]
struct Lstm {
    input: Linear,
    hidden: Linear,
    width: usize,
}

impl Lstm {
    fn new(layers: &mut ParamBuilder<'_>, name: &str, n_in: usize, width: usize) -> Result<Self> {
        // As in PyTorch, drawn by the width of the state.
        Ok(Self {
            input: layers.linear_as(&format!("{name}.input"), n_in, width, 4 * width)?,
            hidden: layers.linear_as(&format!("{name}.hidden"), width, width, 4 * width)?,
            width,
        })
    }

    /// The state and the cell behind a first step of `parts`, `[M, 2·width]`.
    fn first(self, tape: &mut Tape<'_>, parts: &[Part<'_>]) -> Result<Var> {
        let (input, hidden) = (self.input.bias(tape), self.hidden.bias(tape));
        let bias = tape.add(input, hidden)?;
        let gates = self.input.of_parts(tape, bias, parts)?;
        Ok(tape.lstm(gates, None)?)
    }

    /// The state behind a further step of `parts`; `before` are state and cell of every root, `roots` the one of each row.
    fn next(self, tape: &mut Tape<'_>, before: Var, roots: &Indices, parts: &[Part<'_>]) -> Result<Var> {
        let state = self.state(tape, before)?;
        let cell = tape.columns(before, self.width, self.width)?;
        let cell = tape.gather(cell, roots)?;
        let hidden = self.hidden.forward(tape, state, None)?;
        let hidden = tape.gather(hidden, roots)?;
        let bias = self.input.bias(tape);
        let input = self.input.of_parts(tape, bias, parts)?;
        let gates = tape.add(input, hidden)?;
        let after = tape.lstm(gates, Some(cell))?;
        self.state(tape, after)
    }

    /// The state without the cell.
    fn state(self, tape: &mut Tape<'_>, both: Var) -> Result<Var> {
        Ok(tape.columns(both, 0, self.width)?)
    }
}

/// Which roots walks belong to.
#[derive(Debug)]
struct Walks {
    /// The root of each walk.
    roots: Indices,
    /// The `L` roots without a past.
    lone: Indices,
    /// The walks of each root; one of its own for those without a past.
    groups: Ragged,
    /// Where these stand among the walks and, behind them, the lone roots.
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

/// The steps of some rows.
#[derive(Debug, Clone, Copy)]
struct Steps<'a> {
    /// Features of nodes, times, and features of events, where they are not zero; these are the first columns.
    own: Var,
    /// `[R, d]`: the places of all nodes.
    places: Var,
    /// `[R + 1, Dm]`
    mite: Option<Var>,
    /// The row of each.
    rows: &'a Indices,
}

impl Cawn {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, n_heads, .. } = *config;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = if config.mite { config.d_mite } else { 0 };
        let before_place = widths.node.unwrap_or(0) + d_time + widths.edge.unwrap_or(0);
        let step = before_place + d + d_mite;
        // Half of a step with node features, edge features and place.
        let d_walk = usize::midpoint(3 * d, d_time).max(1);
        let d_place = (d / 2).max(1);
        let width = d_walk.next_multiple_of(n_heads);
        let model = Self {
            config: config.clone(),
            time: layers.time_encoding("time", d_time)?,
            mite: layers.mite(config)?,
            position: [layers.linear("position.hidden", 2, d)?, layers.linear("position.out", d, d)?],
            walk: [Lstm::new(layers, "walk.forward", step, d_walk)?, Lstm::new(layers, "walk.backward", step, d_walk)?],
            place: [Lstm::new(layers, "place.forward", d, d_place)?, Lstm::new(layers, "place.backward", d, d_place)?],
            join: layers.linear("join", 2 * (d_walk + d_place), width)?,
            block: layers.post_norm("block", width, n_heads)?,
            output: layers.linear("output", width, d)?,
            head: layers.pair_head(d)?,
            before_place,
        };
        Ok((model, parameters))
    }

    /// Where each node stands in the walks of source and destination, `[R, d]`: f of the one plus f of the other.
    fn places(&self, tape: &mut Tape<'_>, input: &HopInput) -> Result<Var> {
        let landing = tape.input(Arc::clone(input.landing.as_ref().ok_or(Error::MissingInput)?)); // [2R, 2]
        let n_rows = tape.shape(landing).rows() / 2;
        let hidden = self.position[0].forward(tape, landing, Some(Activation::Relu))?; // [2R, d]
        // The second layer is linear: it may as well see the sum, if its bias counts twice.
        let pairs = Ragged::from_lengths(std::iter::repeat_n(2, n_rows));
        let hidden = tape.segment_sum(hidden, None, &pairs)?; // [R, d]
        let bias = self.position[1].bias(tape);
        let twice = tape.add(bias, bias)?;
        self.position[1].of_parts(tape, twice, &[Part::own(0, hidden)])
    }

    fn parts<'a>(&self, steps: Steps<'a>) -> Vec<Part<'a>> {
        let Steps { own, places, mite, rows } = steps;
        let mut parts = vec![Part::own(0, own), Part::shared(self.before_place, places, rows)];
        parts.extend(mite.map(|mite| Part::shared(self.before_place + self.config.d_out, mite, rows)));
        parts
    }

    /// What the LSTMs make of each walk and, behind them, of each lone root, `[T + L, 2 (Dw + Dp)]`.
    fn walked(&self, tape: &mut Tape<'_>, input: &HopInput, walks: &Walks) -> Result<Var> {
        let known = HopFeatures::new(tape, input, self.mite)?;
        let places = self.places(tape, input)?;
        let (roots, ends) = (&input.roots, &input.first.entries);
        let [root_rows, end_rows] = [roots, ends].map(|entries| entries.rows.as_ref().ok_or(Error::MissingInput));
        let (root_rows, end_rows) = (root_rows?, end_rows?);

        // The first step of all walks of a root: it has no event.
        let now = self.time.of_now(tape, roots.len)?;
        let own: Vec<Var> = known.nodes(tape, roots)?.into_iter().chain([now]).collect();
        let own = tape.concat(&own)?;
        let start = Steps { own, places, mite: known.mite_of_all(), rows: root_rows };
        let walk_start = self.walk[0].first(tape, &self.parts(start))?; // [2B, 2 Dw]
        let place_start = self.place[0].first(tape, &[Part::shared(0, places, root_rows)])?; // [2B, 2 Dp]

        // The step on, and the way back, which is at its first step there.
        let times = self.time.of_hop(tape, &input.first)?;
        let (nodes, edges) = (known.nodes(tape, ends)?, known.edges(tape, &input.first)?);
        let own: Vec<Var> = nodes.into_iter().chain([times]).chain(edges).collect();
        let own = tape.concat(&own)?;
        let end_parts = self.parts(Steps { own, rows: end_rows, ..start });
        let on = self.walk[0].next(tape, walk_start, &walks.roots, &end_parts)?; // [T, Dw]
        let back = self.walk[1].first(tape, &end_parts)?;
        let back = self.walk[1].state(tape, back)?; // [T, Dw]
        let place_on = self.place[0].next(tape, place_start, &walks.roots, &[Part::shared(0, places, end_rows)])?;
        let place_back = self.place[1].first(tape, &[Part::own(0, places)])?;
        let place_back = self.place[1].state(tape, place_back)?; // [R, Dp]
        let end_back = tape.gather(place_back, end_rows)?;
        let walked = tape.concat(&[on, back, place_on, end_back])?;
        if walks.lone.is_empty() {
            return Ok(walked);
        }

        // The start is also the end of those that lead nowhere.
        let lone_rows: Indices = walks.lone.iter().map(|&root| root_rows[root as usize]).collect();
        let own = tape.gather(start.own, &walks.lone)?;
        let back = self.walk[1].first(tape, &self.parts(Steps { own, rows: &lone_rows, ..start }))?;
        let back = self.walk[1].state(tape, back)?; // [L, Dw]
        let on = self.walk[0].state(tape, walk_start)?;
        let on = tape.gather(on, &walks.lone)?;
        let place_on = self.place[0].state(tape, place_start)?;
        let place_on = tape.gather(place_on, &walks.lone)?;
        let end_back = tape.gather(place_back, lone_rows)?;
        let stayed = tape.concat(&[on, back, place_on, end_back])?;
        Ok(tape.stack(&[walked, stayed])?)
    }
}

impl Model for Cawn {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.encoding(self.config.neighbors + 1)
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout { with_landing: true, ..HopLayout::default() })
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let walks = Walks::of(input);
        let walked = self.walked(tape, input, &walks)?;
        let mut x = self.join.forward(tape, walked, None)?; // [T + L, width]
        if !walks.lone.is_empty() {
            x = tape.gather(x, &walks.order)?;
        }
        let x = self.block.forward(tape, x, x, &walks.groups, &walks.groups, dropout)?;
        let mean = tape.segment_mean(x, &walks.groups)?; // [2B, width]
        self.output.forward(tape, mean, None)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}
