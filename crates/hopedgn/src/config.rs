//! The settings of a run: every default in one place, presets as data, `a.b=v` on top.
//!
//! A configuration is resolved from the defaults below, then a preset of `presets.toml`, then single settings; each
//! later one wins. Unknown names are errors everywhere.

mod preset;

use ctdg::mite::{PairEncoding, Scope, TimePrecision};
use ctdg::split;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

pub use preset::Preset;

/// Everything that decides a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    /// A data set's name, or a file, as the person gave it.
    pub data: String,
    /// Decides initial weights, training negatives and dropout.
    pub seed: u64,
    /// How masked nodes are drawn.
    pub split: split::Mode,
    /// The model.
    pub model: ModelConfig,
    /// The optimisation.
    pub train: TrainConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: ctdg::dataset::COLLEGEMSG.to_owned(),
            seed: 0,
            split: split::Mode::Dyglib,
            model: ModelConfig::default(),
            train: TrainConfig::default(),
        }
    }
}

/// The sizes and choices of HopeDGN. Defaults are the paper's, where it says; the rest is said where the model is defined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in a file people write")]
pub struct ModelConfig {
    /// Which model.
    pub name: ModelName,
    /// Tokens a side at most, the node itself included.
    pub length: usize,
    /// Consecutive tokens joined into one.
    pub patch: usize,
    /// Width of each of the four channels; the transformer is four times as wide.
    pub d_channel: usize,
    /// Width of the time encoding.
    pub d_time: usize,
    /// Width of the pair's embedding.
    pub d_out: usize,
    /// Transformer blocks.
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
    /// Round event times to `f32` before subtracting, as DyGLib stores them.
    pub f32_times: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            name: ModelName::Hopedgn,
            length: 32,
            patch: 1,
            d_channel: 50,
            d_time: 100,
            d_out: 172,
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
}

impl ModelName {
    /// As in configurations and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hopedgn => "hopedgn",
        }
    }

    /// As its authors write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Hopedgn => "HopeDGN",
        }
    }
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
    /// The normalised interval.
    #[must_use]
    pub fn apply(self, interval: f32) -> f32 {
        match self {
            Self::Log1p => interval.ln_1p(),
            Self::Reciprocal => 1.0 / (1.0 + interval.ln_1p()),
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

/// How weights are learned; defaults are the paper's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TrainConfig {
    /// At most so many passes over the training events.
    pub epochs: usize,
    /// Epochs without a better validation after which training stops.
    pub patience: usize,
    /// Events a step, each with one negative.
    pub batch: usize,
    /// Learning rate of Adam.
    pub lr: f64,
    /// Seconds between two saved states inside an epoch.
    pub save_every: f64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self { epochs: 50, patience: 10, batch: 200, lr: 1e-4, save_every: 60.0 }
    }
}

impl Config {
    /// The defaults, changed by `preset`, then by `settings` such as `model.k=16`.
    pub fn resolve(preset: Option<&Preset>, settings: &[String]) -> Result<Self> {
        let mut table = toml::Table::try_from(Self::default()).map_err(|error| wrong("defaults", &error))?;
        if let Some(preset) = preset {
            merge(&mut table, preset.settings.clone());
            read::<Self>(table.clone(), &format!("preset {}", preset.name))?;
        }
        for setting in settings {
            let place = format!("--set {setting}");
            set(&mut table, setting).map_err(|detail| Error::Config { place: place.clone(), detail })?;
            read::<Self>(table.clone(), &place)?;
        }
        let config = read::<Self>(table, "configuration")?;
        config.check()?;
        Ok(config)
    }

    /// From the text of a `config.toml`; `place` names it in errors.
    pub fn from_toml(text: &str, place: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| wrong(place, &error))?;
        config.check()?;
        Ok(config)
    }

    /// The text of a `config.toml`.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| wrong("configuration", &error))
    }

    /// Refuses values outside their bounds.
    pub fn check(&self) -> Result<()> {
        let train = &self.train;
        self.model.check()?;
        within(&[
            ("train.epochs", train.epochs, 1 << 20),
            ("train.patience", train.patience, 1 << 20),
            ("train.batch", train.batch, 1 << 20),
        ])?;
        if !(train.lr > 0.0 && train.lr.is_finite()) {
            return refuse("train.lr", train.lr, "a positive number");
        }
        if !train.save_every.is_finite() || train.save_every < 0.0 {
            return refuse("train.save-every", train.save_every, "seconds, at least 0");
        }
        if u32::try_from(self.seed).is_err() {
            return refuse("seed", self.seed, "0 to 4294967295, as NumPy's generator takes");
        }
        Ok(())
    }
}

/// Weights of the blocks at most: with Adam's means and the gradients, that many times 16 bytes and more.
const MOST_WEIGHTS: usize = 1 << 28;

/// Refuses counts outside 1 to their maximum.
fn within(counts: &[(&'static str, usize, usize)]) -> Result<()> {
    match counts.iter().find(|(_, found, most)| !(1..=*most).contains(found)) {
        Some((name, found, most)) => refuse(name, found, &format!("1 to {most}")),
        None => Ok(()),
    }
}

fn refuse(name: &'static str, found: impl std::fmt::Display, expected: &str) -> Result<()> {
    Err(Error::Setting { name, found: found.to_string(), expected: expected.to_owned() })
}

impl ModelConfig {
    /// Refuses values outside their bounds.
    pub fn check(&self) -> Result<()> {
        let model = self;
        within(&[
            ("model.length", model.length, 1 << 20),
            ("model.patch", model.patch, model.length),
            ("model.d-channel", model.d_channel, 1 << 12),
            ("model.d-time", model.d_time, 1 << 14),
            ("model.d-out", model.d_out, 1 << 14),
            ("model.d-mite", model.d_mite, 1 << 14),
            ("model.k", model.k, 1 << 14),
            ("model.n-blocks", model.n_blocks, 1 << 10),
            ("model.n-heads", model.n_heads, 4 * model.d_channel),
        ])?;
        if !self.d_model().is_multiple_of(model.n_heads) {
            let expected = format!("a divisor of the width {} (4 · model.d-channel)", self.d_model());
            return refuse("model.n-heads", model.n_heads, &expected);
        }
        // Twelve squares of the width a block.
        if self.n_blocks * 12 * self.d_model() * self.d_model() > MOST_WEIGHTS {
            return refuse("model.d-channel", model.d_channel, "a model of fewer than 268 million weights");
        }
        if !(0.0..1.0).contains(&model.dropout) {
            return refuse("model.dropout", model.dropout, "a number from 0 up to but not including 1");
        }
        if !model.mite_filler.is_finite() {
            return refuse("model.mite-filler", model.mite_filler, "a finite number");
        }
        Ok(())
    }

    /// Embeddings that the head of the model reads: one for the pair, or one for each of its nodes.
    #[must_use]
    pub fn n_embeddings(&self) -> usize {
        match self.pooling {
            Pooling::Pair => 1,
            Pooling::Node => 2,
        }
    }

    /// Width of the transformer.
    #[must_use]
    pub fn d_model(&self) -> usize {
        4 * self.d_channel
    }

    /// Values that describe the intervals of one token.
    #[must_use]
    pub fn mite_inputs(&self) -> usize {
        2 * self.k * if self.mite_valid_bit { 2 } else { 1 }
    }

    /// How pairs become tokens.
    #[must_use]
    pub fn encoding(&self) -> PairEncoding {
        PairEncoding {
            length: self.length,
            k: if self.mite { self.k } else { 0 },
            scope: match self.mite_history {
                MiteHistory::Truncated => Scope::Truncated,
                MiteHistory::Full => Scope::Full,
            },
            precision: if self.f32_times { TimePrecision::F32 } else { TimePrecision::F64 },
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(table: toml::Table, place: &str) -> Result<T> {
    table.try_into().map_err(|error| wrong(place, &error))
}

fn wrong(place: &str, error: &impl std::fmt::Display) -> Error {
    Error::Config { place: place.to_owned(), detail: error.to_string().trim().replace('\n', " ") }
}

/// `over` wins; tables are joined.
fn merge(table: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(over)) => merge(below, over),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Applies `a.b=v`. What is no TOML value is text, so that words need no quotes; an integer may stand for a real number.
fn set(table: &mut toml::Table, setting: &str) -> Result<(), String> {
    let (path, text) = setting.split_once('=').ok_or("expected NAME=VALUE, e.g. model.k=16")?;
    let (path, text) = (path.trim(), text.trim());
    let (parents, name) = path.rsplit_once('.').map_or((None, path), |(parents, name)| (Some(parents), name));
    let mut inner = table;
    for parent in parents.iter().flat_map(|parents| parents.split('.')) {
        let tables = names(inner, toml::Value::is_table);
        inner = inner
            .get_mut(parent)
            .and_then(toml::Value::as_table_mut)
            .ok_or_else(|| format!("found no group {parent}, expected one of {tables}"))?;
    }
    let known = names(inner, |value| !value.is_table());
    let before = inner.get_mut(name).ok_or_else(|| format!("found no setting {name}, expected one of {known}"))?;
    let parsed = format!("value = {text}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    *before = match (&*before, value) {
        #[expect(clippy::cast_precision_loss, reason = "a setting typed by a person")]
        (toml::Value::Float(_), toml::Value::Integer(whole)) => toml::Value::Float(whole as f64),
        (toml::Value::String(_), value) if !value.is_str() => toml::Value::String(text.to_owned()),
        (_, value) => value,
    };
    Ok(())
}

fn names(table: &toml::Table, wanted: impl Fn(&toml::Value) -> bool) -> String {
    let names: Vec<&str> = table.iter().filter(|(_, value)| wanted(value)).map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(settings: &[&str]) -> Result<Config> {
        Config::resolve(None, &settings.iter().map(|&setting| setting.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_configuration_survives_its_file() {
        let config = resolve(&["model.k=7", "data=a b.csv", "train.lr=1", "model.pooling=node"]).unwrap();
        assert_eq!((config.model.k, config.data.as_str(), config.train.lr), (7, "a b.csv", 1.0));
        assert_eq!(Config::from_toml(&config.to_toml().unwrap(), "config.toml").unwrap(), config);
    }

    #[test]
    fn a_wrong_setting_says_what_would_be_right() {
        let message = |setting: &str| resolve(&[setting]).unwrap_err().to_string();
        assert!(message("model.kay=7").contains("found no setting kay, expected one of"), "{}", message("model.kay=7"));
        assert!(message("modle.k=7").contains("found no group modle, expected one of model, train"));
        assert!(message("model.k").contains("expected NAME=VALUE"));
        assert!(message("model.k=many").contains("--set model.k=many: invalid type: string \"many\""));
        assert!(message("model.padding=some").contains("unknown variant `some`, expected `none` or `dyglib`"));
        assert_eq!(
            message("model.n-heads=3"),
            "found model.n-heads = 3, expected a divisor of the width 200 (4 · model.d-channel)"
        );
        assert_eq!(
            message("model.dropout=1"),
            "found model.dropout = 1, expected a number from 0 up to but not including 1"
        );
        assert_eq!(message("model.patch=33"), "found model.patch = 33, expected 1 to 32");
    }

    #[test]
    fn every_preset_is_a_sound_configuration() {
        for preset in Preset::all() {
            Config::resolve(Some(preset), &[]).unwrap();
        }
        let enron = Config::resolve(Some(Preset::named("enron").unwrap()), &["model.dropout=0.3".into()]).unwrap();
        assert_eq!((enron.model.length, enron.model.patch, enron.model.dropout), (256, 8, 0.3));
    }
}
