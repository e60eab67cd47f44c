//! A model of your own: [`DeepSets`] over the recent events of both nodes, with MITE.
//!
//! ```text
//! x_i     = [Φ(Δt_i) ‖ MITE(w_i)]             token i: elapsed time, and when its node met the source and the destination
//! h(u, v) = mean_i ReLU(W₁ x_i + b₁)          over the tokens of both nodes
//! logit   = W₃ ReLU(W₂ h(u, v) + b₂) + b₃
//! ```
//!
//! Shapes: `B` pairs, `T` tokens of all pairs, `R` distinct nodes within the pairs, `d` width.
//!
//! `cargo run --release --example custom_model` trains it on the bundled messages, then compares it with an untrained heuristic.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use hopedgn::collate::{Input, Layout, MiteSettings, Normaliser, PatchLayout};
use hopedgn::ctdg::mite::PairEncoderConfig;
use hopedgn::model::{CommonSettings, CustomModel};
use hopedgn::nn::{Linear, MiteEmbedding, ParamBuilder, TimeEncoding};
use hopedgn::tensor::{Activation, Dropout, Parameters, Tape, Var};
use hopedgn::{Error, Events, LinkPredictor, Model, ModelName, Result};
use serde::{Deserialize, Serialize};

// ANCHOR: settings
/// Settings of [`DeepSets`], changed by `model.tokens=16` and the like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DeepSetsSettings {
    /// Tokens of each node: the node itself and its newest events.
    pub tokens: usize,
    /// MITE intervals kept for each node and side.
    pub intervals: usize,
}

impl Default for DeepSetsSettings {
    fn default() -> Self {
        Self { tokens: 20, intervals: 4 }
    }
}
// ANCHOR_END: settings

// ANCHOR: layers
/// The layers of the model; their weights are in [`Parameters`].
#[derive(Debug, Clone)]
pub struct DeepSets {
    settings: DeepSetsSettings,
    dropout: f32,
    time: TimeEncoding,
    mite: MiteEmbedding,
    token: Linear,
    hidden: Linear,
    out: Linear,
}

impl CustomModel for DeepSets {
    const NAME: &'static str = "deep-sets";
    type Settings = DeepSetsSettings;

    fn common() -> CommonSettings {
        CommonSettings { d_out: 64, d_time: 32, ..CommonSettings::DEFAULT }
    }

    fn new(
        settings: &DeepSetsSettings,
        common: &CommonSettings,
        _widths: hopedgn::collate::FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let mut parameters = Parameters::default();
        let mut layers = ParamBuilder::new(&mut parameters, seed);
        let d = common.d_out;
        let mite = MiteSettings { enabled: true, d_mite: 32, k: settings.intervals, ..MiteSettings::default() };
        let model = Self {
            settings: settings.clone(),
            dropout: common.dropout,
            time: layers.time_encoding("time", common.d_time)?,
            mite: layers.mite(&mite)?.ok_or(Error::MissingInput)?,
            token: layers.linear("token", common.d_time + mite.d_mite, d)?,
            hidden: layers.linear("head.hidden", d, d)?,
            out: layers.linear("head.out", d, 1)?,
        };
        Ok((model, parameters))
    }
}
// ANCHOR_END: layers

// ANCHOR: model
impl Model for DeepSets {
    fn name(&self) -> ModelName {
        ModelName::Custom(Self::NAME)
    }

    /// The newest events of both nodes, and the newest `k` intervals of each of their neighbours.
    fn encoding(&self) -> PairEncoderConfig {
        PairEncoderConfig { length: self.settings.tokens, k: self.settings.intervals, ..PairEncoderConfig::default() }
    }

    fn layout(&self) -> Layout {
        Layout::Patches(PatchLayout { mite: Some(Normaliser::Log1p), ..PatchLayout::default() })
    }

    fn dropout(&self) -> f32 {
        self.dropout
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.patches()?;
        let ages = tape.input(input.ages.clone()); // [T, 1]
        let time = self.time.forward(tape, ages)?; // [T, Dt]
        let nodes = self.mite.forward(tape, input.mite.as_ref())?; // [R, Dm]
        let mite = tape.gather(nodes, &input.rows)?; // [T, Dm]
        let x = tape.concat(&[time, mite])?; // [T, Dt + Dm]
        let x = self.token.forward(tape, x, Some(Activation::Relu))?; // [T, d]
        let x = tape.dropout(x, dropout);
        let h = tape.segment_mean(x, &input.pairs)?; // [B, d]
        let h = self.hidden.forward(tape, h, Some(Activation::Relu))?; // [B, d]
        self.out.forward(tape, h, None) // [B, 1]
    }
}
// ANCHOR_END: model

// ANCHOR: main
fn main() -> Result<()> {
    let epochs = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2);
    let events = Events::collegemsg()?;
    let predictor =
        LinkPredictor::builder().register::<DeepSets>()?.set("train.lr=0.001").epochs(epochs).fit(&events)?;
    let Some(summary) = predictor.summary() else { return Ok(()) };
    let ap = |metrics: hopedgn::metrics::PerSetting| metrics.transductive.map_or(f64::NAN, |metrics| metrics.ap);
    println!("deep-sets: test AP {:.4} with {} parameters", ap(summary.test), summary.parameters);
    for (name, metrics) in &summary.heuristics {
        println!("untrained {name}: test AP {:.4}", ap(*metrics));
    }
    println!("9 -> 32: {:.3}", predictor.predict("9", "32", events.end())?);
    Ok(())
}
// ANCHOR_END: main
