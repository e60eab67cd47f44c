//! The settings of a run: every default in one place, presets as data, `a.b=v` on top.
//!
//! A configuration is resolved from the defaults below, then a preset of `presets.toml`, then single settings; each
//! later one wins. Unknown names are errors everywhere.

mod model;
mod preset;

use ctdg::split;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

pub use model::{
    MessageOrder, MiteHistory, ModelConfig, ModelName, Normaliser, Padding, PairStart, Pooling, Replacing, SamplingName,
};
pub use preset::{Preset, data_stem};

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
    /// The defaults, changed by those of `model`, by each of `presets`, then by `settings` such as `model.k=16`.
    pub fn resolve(model: ModelName, presets: &[&Preset], settings: &[String]) -> Result<Self> {
        let mut table = toml::Table::try_from(Self::default()).map_err(|error| wrong("defaults", &error))?;
        // A model brings its own defaults, so that its name is looked for before anything else.
        let named = settings.iter().rev().find_map(|setting| {
            let (path, value) = setting.split_once('=')?;
            (path.trim() == "model.name").then(|| value.trim().trim_matches('"'))
        });
        let model = named.map_or(Ok(model), ModelName::named)?;
        let name = toml::Table::from_iter([("name".to_owned(), model.as_str().into())]);
        merge(&mut table, toml::Table::from_iter([("model".to_owned(), name.into())]));
        merge(&mut table, preset::of_model(model));
        for preset in presets {
            for layer in preset.layers(model) {
                merge(&mut table, layer);
            }
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

    /// These settings, changed by `settings` such as `train.epochs=20`.
    pub fn changed_by(&self, settings: &[String]) -> Result<Self> {
        let mut table = toml::Table::try_from(self).map_err(|error| wrong("configuration", &error))?;
        for setting in settings {
            set(&mut table, setting).map_err(|detail| Error::Config { place: setting.clone(), detail })?;
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
        Config::resolve(
            ModelName::Hopedgn,
            &[],
            &settings.iter().map(|&setting| setting.to_owned()).collect::<Vec<_>>(),
        )
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
        for (model, setting) in [("graphmixer", "neighbors=1048576"), ("cawn", "n-heads=16384"), ("tcl", "d-out=16384")]
        {
            let message =
                resolve(&[&format!("model.name={model}"), &format!("model.{setting}")]).unwrap_err().to_string();
            assert!(message.ends_with("a model of fewer than 268 million weights"), "{message}");
        }
        assert!(resolve(&["model.name=tgat", "model.neighbors=513"]).is_err());
    }

    #[test]
    fn every_interval_has_a_normal_form() {
        let normal = |normaliser: Normaliser| {
            let mut intervals = [-62.0, -1.0, 0.0, 1.0, 1e30];
            normaliser.apply(&mut intervals);
            intervals
        };
        let log = normal(Normaliser::Log1p);
        assert_eq!(log[..3], [0.0; 3]);
        assert!((log[3] - 2.0_f32.ln()).abs() < 1e-7 && (log[4] - 1e30_f32.ln()).abs() < 1e-5);
        assert_eq!(normal(Normaliser::Reciprocal), log.map(|log| 1.0 / (1.0 + log)));
    }

    #[test]
    fn every_preset_is_a_sound_configuration() {
        for preset in Preset::all() {
            for model in ModelName::ALL {
                let config = Config::resolve(model, &[preset], &[]).unwrap();
                assert_eq!((config.model.name, config.model.mite), (model, model == ModelName::Hopedgn));
            }
        }
        let resolve = |model, presets: &[&str], setting: &str| {
            let presets: Vec<&Preset> = presets.iter().map(|name| Preset::named(name).unwrap()).collect();
            Config::resolve(model, &presets, &[setting.to_owned()]).unwrap().model
        };
        let enron = resolve(ModelName::Hopedgn, &["enron"], "model.dropout=0.3");
        assert_eq!((enron.length, enron.patch, enron.dropout), (256, 8, 0.3));
        for quoted in ["model.name = tgn", "model.name=\"tgn\""] {
            assert!(!resolve(ModelName::Hopedgn, &[], quoted).mite);
        }
        let named = resolve(ModelName::Hopedgn, &["collegemsg", "dyglib"], "model.name=cawn");
        assert_eq!((named.name, named.neighbors, named.padding), (ModelName::Cawn, 64, Padding::Dyglib));
    }
}
