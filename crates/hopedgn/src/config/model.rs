//! The settings of models.

use ctdg::mite::{PairEncoding, Scope, Second, SecondTime, TimePrecision};
use ctdg::sample::Sampling;
use hopedgn_tensor::PadRagged;
use serde::{Deserialize, Serialize};

use super::{refuse, within};
use crate::{Error, Result};

/// The sizes and choices of a model. The defaults here are HopeDGN's, as the paper has them where it says; those of other
/// models stand in `presets.toml`. A model leaves alone what it has no use for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in a file people write")]
pub struct ModelConfig {
    /// Which model.
    pub name: ModelName,
    /// Tokens a side at most, the node itself included: HopeDGN and DyGFormer.
    pub length: usize,
    /// Events of a node that are drawn at most: all other models. CAWN calls them walks.
    pub neighbors: usize,
    /// How those are drawn.
    pub sampling: SamplingName,
    /// Consecutive tokens joined into one.
    pub patch: usize,
    /// Width of each of the four channels; the transformer is four times as wide.
    pub d_channel: usize,
    /// Width of the time encoding.
    pub d_time: usize,
    /// Width of an embedding, and of memories.
    pub d_out: usize,
    /// Width of DyGFormer's co-occurrence encoding.
    pub d_cooccurrence: usize,
    /// Transformer blocks, mixers, or hops.
    pub n_blocks: usize,
    /// Attention heads; the transformer's width is a multiple of it.
    pub n_heads: usize,
    /// Share of values dropped in training.
    pub dropout: f32,
    /// Whether tokens know how old they are.
    pub time_encoding: bool,
    /// Whether tokens know when their node met the source and the destination.
    pub mite: bool,
    /// Width of the MITE embedding.
    pub d_mite: usize,
    /// Intervals kept per token and side.
    pub k: usize,
    /// Which meetings count.
    pub mite_history: MiteHistory,
    /// What makes intervals small numbers.
    pub mite_normaliser: Normaliser,
    /// What stands where there is no interval.
    pub mite_filler: f32,
    /// Whether a second value for each interval says if there is one.
    pub mite_valid_bit: bool,
    /// Whether tokens that are not there take part.
    pub padding: Padding,
    /// What is averaged.
    pub pooling: Pooling,
    /// Which of a node's messages of one batch its memory gets.
    pub message_order: MessageOrder,
    /// How fast PINT forgets, per unit of time.
    pub beta: f32,
    /// Which nodes global HopeDGN puts into a pair.
    pub replacing: Replacing,
    /// What global HopeDGN knows of a pair at first.
    pub pair_start: PairStart,
    /// Round event times to `f32` before subtracting, as DyGLib stores them.
    pub f32_times: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            name: ModelName::Hopedgn,
            length: 32,
            neighbors: 20,
            sampling: SamplingName::Recent,
            patch: 1,
            d_channel: 50,
            d_time: 100,
            d_out: 172,
            d_cooccurrence: 50,
            n_blocks: 2,
            n_heads: 2,
            dropout: 0.1,
            time_encoding: true,
            mite: true,
            d_mite: 50,
            k: 32,
            mite_history: MiteHistory::Truncated,
            mite_normaliser: Normaliser::Log1p,
            mite_filler: 0.0,
            mite_valid_bit: true,
            padding: Padding::None,
            pooling: Pooling::Pair,
            message_order: MessageOrder::Newest,
            beta: 1e-5,
            replacing: Replacing::All,
            pair_start: PairStart::Features,
            f32_times: false,
        }
    }
}

/// Which model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// HopeDGN over the last events of both nodes.
    #[default]
    Hopedgn,
    /// HopeDGN over all pairs of nodes.
    HopedgnGlobal,
    /// Transformer over the histories of both nodes, with co-occurrence counts.
    Dygformer,
    /// Attention over neighbours of neighbours.
    Tgat,
    /// Transformer over both neighbourhoods that look at one another.
    Tcl,
    /// Perceptrons over the newest events.
    Graphmixer,
    /// Walks whose nodes are known by where they were met.
    Cawn,
    /// A memory that drifts with time.
    Jodie,
    /// A memory that hears of its partner's neighbours.
    Dyrep,
    /// A memory, and attention over neighbours.
    Tgn,
    /// A memory, and counts of walks as positions.
    Pint,
}

impl ModelName {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Hopedgn,
        Self::HopedgnGlobal,
        Self::Dygformer,
        Self::Tgat,
        Self::Tcl,
        Self::Graphmixer,
        Self::Cawn,
        Self::Jodie,
        Self::Dyrep,
        Self::Tgn,
        Self::Pint,
    ];

    /// As in configurations and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// As its authors write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Hopedgn => ("hopedgn", "HopeDGN"),
            Self::HopedgnGlobal => ("hopedgn-global", "Global HopeDGN"),
            Self::Dygformer => ("dygformer", "DyGFormer"),
            Self::Tgat => ("tgat", "TGAT"),
            Self::Tcl => ("tcl", "TCL"),
            Self::Graphmixer => ("graphmixer", "GraphMixer"),
            Self::Cawn => ("cawn", "CAWN"),
            Self::Jodie => ("jodie", "JODIE"),
            Self::Dyrep => ("dyrep", "DyRep"),
            Self::Tgn => ("tgn", "TGN"),
            Self::Pint => ("pint", "PINT"),
        }
    }

    /// The model called `name`.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|model| model.as_str() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::Setting { name: "model.name", found: name.to_owned(), expected: format!("one of {known}") }
        })
    }
}

/// Which part of a node's past is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingName {
    /// The newest events.
    #[default]
    Recent,
    /// All alike, with replacement.
    Uniform,
    /// Newer and lonelier ones more often, with replacement.
    TimeIntervalAware,
}

/// Which of a node's messages of one batch its memory gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageOrder {
    /// That of its newest event.
    #[default]
    Newest,
    /// As in DyGLib: that of its newest event as a destination, where there is one.
    Dyglib,
}

/// Which nodes global HopeDGN puts into a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacing {
    /// All that met anybody: the paper's global equation.
    #[default]
    All,
    /// Those that one of the two met: its local equation.
    MiteIntervals,
}

/// What global HopeDGN knows of a pair at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairStart {
    /// The features of both nodes, as in the paper.
    #[default]
    Features,
    /// Also whether they are one node, and when they met.
    Types,
}

/// Which meetings MITE counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiteHistory {
    /// Those among the tokens.
    #[default]
    Truncated,
    /// All before the query.
    Full,
}

/// What is done to an interval before the first layer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normaliser {
    /// ln(1 + Δt).
    #[default]
    Log1p,
    /// 1 / (1 + ln(1 + Δt)): near 1 for what just happened, near 0 for what is long ago.
    Reciprocal,
}

impl Normaliser {
    /// Normalises all of `intervals`. Times that are rounded before subtracting may leave some below 0, which count as 0.
    pub fn apply(self, intervals: &mut [f32]) {
        for interval in &mut *intervals {
            *interval = interval.max(0.0);
        }
        hopedgn_tensor::ln_1p(intervals);
        if self == Self::Reciprocal {
            for log in intervals {
                *log = 1.0 / (1.0 + *log);
            }
        }
    }
}

/// Whether tokens that are not there take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// No: a pair's score does not depend on its batch.
    #[default]
    None,
    /// As in DyGLib: each side is padded to the longest of the batch, and the padding is attended to and averaged.
    Dyglib,
}

/// What is averaged into an embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The tokens of both sides: one embedding for the pair.
    #[default]
    Pair,
    /// The tokens of each side: one embedding for each node, joined by the head.
    Node,
}

/// Weights of the blocks at most: with Adam's means and the gradients, that many times 16 bytes and more.
const MOST_WEIGHTS: usize = 1 << 28;

/// Neighbours at most of a model that looks at theirs as well.
const MOST_OF_TWO_HOPS: usize = 1 << 9;

impl ModelConfig {
    /// Refuses values outside their bounds.
    pub fn check(&self) -> Result<()> {
        let model = self;
        within(&[
            ("model.length", model.length, 1 << 20),
            ("model.neighbors", model.neighbors, 1 << 20),
            ("model.patch", model.patch, model.length),
            ("model.d-channel", model.d_channel, 1 << 12),
            ("model.d-time", model.d_time, 1 << 14),
            ("model.d-out", model.d_out, 1 << 14),
            ("model.d-mite", model.d_mite, 1 << 14),
            ("model.d-cooccurrence", model.d_cooccurrence, 1 << 14),
            ("model.k", model.k, 1 << 14),
            ("model.n-blocks", model.n_blocks, 1 << 10),
            ("model.n-heads", model.n_heads, 1 << 14),
        ])?;
        if let Some(width) = self.encoder_width() {
            self.check_heads(&[(&format!("{} · model.d-channel", width / model.d_channel), width)])?;
        }
        self.check_size()?;
        if model.mite && model.name == ModelName::Jodie {
            return refuse("model.mite", true, "false: JODIE looks at no neighbours");
        }
        if !(0.0..1.0).contains(&model.dropout) {
            return refuse("model.dropout", model.dropout, "a number from 0 up to but not including 1");
        }
        if !model.mite_filler.is_finite() {
            return refuse("model.mite-filler", model.mite_filler, "a finite number");
        }
        if !(model.beta.is_finite() && model.beta >= 0.0) {
            return refuse("model.beta", model.beta, "a number of at least 0");
        }
        Ok(())
    }

    /// Refuses what no memory holds, by its largest matrices.
    fn check_size(&self) -> Result<()> {
        let Self { d_out: d, d_time, neighbors, n_blocks, n_heads, .. } = *self;
        let square = |width: usize| width.saturating_mul(width);
        let (name, found, each) = match self.name {
            ModelName::Hopedgn | ModelName::Dygformer => {
                ("model.d-channel", self.d_channel, 12 * square(self.encoder_width().unwrap_or(0)))
            }
            ModelName::Graphmixer if neighbors > d => ("model.neighbors", neighbors, square(neighbors)),
            ModelName::Cawn => ("model.d-out", d, 6 * square(3 * d + d_time + n_heads)),
            _ => ("model.d-out", d, 12 * square(d + d_time)),
        };
        if n_blocks.saturating_mul(each) > MOST_WEIGHTS {
            return refuse(name, found, "a model of fewer than 268 million weights");
        }
        let has_two_hops = matches!(self.name, ModelName::Tgat | ModelName::Pint) && n_blocks > 1;
        if has_two_hops && neighbors > MOST_OF_TWO_HOPS {
            let expected = format!("at most {MOST_OF_TWO_HOPS}: two hops see the square of it");
            return refuse("model.neighbors", neighbors, &expected);
        }
        Ok(())
    }

    /// Refuses heads that do not equally share a width, which is made of some settings.
    pub(crate) fn check_heads(&self, parts: &[(&str, usize)]) -> Result<()> {
        let width: usize = parts.iter().map(|(_, width)| width).sum();
        if width.is_multiple_of(self.n_heads) {
            return Ok(());
        }
        let names: Vec<&str> = parts.iter().filter(|(_, width)| *width > 0).map(|(name, _)| *name).collect();
        refuse("model.n-heads", self.n_heads, &format!("a divisor of the width {width} ({})", names.join(" + ")))
    }

    /// The width of the transformer, of the models that are one over channels.
    #[must_use]
    pub fn encoder_width(&self) -> Option<usize> {
        match self.name {
            ModelName::Hopedgn => Some(4 * self.d_channel),
            ModelName::Dygformer => Some((4 + usize::from(self.mite)) * self.d_channel),
            _ => None,
        }
    }

    /// Embeddings that the head of the model reads: one for the pair, or one for each of its nodes.
    #[must_use]
    pub fn n_embeddings(&self) -> usize {
        match self.pooling {
            Pooling::Pair => 1,
            Pooling::Node => 2,
        }
    }

    /// How the intervals of a token with source and destination become a row.
    #[must_use]
    pub fn mite_slots(&self) -> PadRagged {
        PadRagged { lists: 2, places: self.k, filler: self.mite_filler, with_flags: self.mite_valid_bit }
    }

    /// Refuses more hops than a model looks at.
    pub(crate) fn check_hops(&self, most: usize) -> Result<()> {
        if self.n_blocks <= most {
            return Ok(());
        }
        refuse("model.n-blocks", self.n_blocks, if most == 1 { "1 hop" } else { "1 or 2 hops" })
    }

    /// How pairs become hops, as many as there are blocks; the second goes back from `time`.
    pub(crate) fn hops(&self, time: SecondTime) -> PairEncoding {
        let second = (self.n_blocks == 2).then_some(Second { length: self.neighbors, time });
        PairEncoding { second, ..self.encoding(self.neighbors + 1) }
    }

    /// How pairs become tokens, `length` of them a side at most.
    #[must_use]
    pub fn encoding(&self, length: usize) -> PairEncoding {
        PairEncoding {
            length,
            k: if self.mite { self.k } else { 0 },
            scope: match self.mite_history {
                MiteHistory::Full if self.mite => Scope::Full,
                MiteHistory::Full | MiteHistory::Truncated => Scope::Truncated,
            },
            precision: if self.f32_times { TimePrecision::F32 } else { TimePrecision::F64 },
            sampling: match self.sampling {
                SamplingName::Recent => Sampling::Recent,
                SamplingName::Uniform => Sampling::Uniform,
                SamplingName::TimeIntervalAware => Sampling::TimeIntervalAware { a: 1e-6 },
            },
            second: None,
        }
    }
}
