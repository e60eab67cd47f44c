//! Settings of a run: defaults, presets, single settings such as `model.k=16`.
//!
//! A configuration is resolved from the model's defaults, then presets, then single settings; each later one wins. A setting
//! that does not exist, or that another model has, is an error.

mod difference;
mod effects;
mod file;
mod objective;
mod preset;
mod schedule;
mod selection;

use std::path::Path;

use ctdg::split;
use serde::{Deserialize, Serialize};

use crate::collate::FeatureWidths;
use crate::file_format;
use crate::fmt::{did_you_mean, in_words, nearest};
use crate::model::bounds::{refuse, within};
use crate::model::table::{fitting, names, parse};
use crate::model::{BuiltModel, IntensityModel};
use crate::{Error, Result};

pub use crate::collate::{
    MiteHistory, MiteSelfLoops, MiteSettings, NeighborSettings, Normaliser, Padding, PairStart, Replacing, SamplingName,
};
pub use crate::error::SettingDifference;
pub use crate::memory::MessageOrder;
pub use crate::model::{
    CawnSettings, CommonSettings, CustomModel, CustomSettings, DyGFormerSettings, GlobalHopeDgnSettings,
    GraphMixerSettings, HopeDgnSettings, JodieSettings, ModelConfig, ModelName, ModelRegistry, ModelSettings,
    NoSettings, PatchSettings, PintSettings, Pooling, SecondHopCut, StatsSettings, TclSettings, TgatSettings,
    TgnSettings,
};
pub use difference::CHANGEABLE;
pub use file::ConfigFile;
pub use objective::Objective;
pub use preset::{Preset, data_stem, folder_stem};
pub use schedule::Schedule;
pub use selection::{Protocol, Selection};

/// Everything that decides a run.
///
/// ```
/// use hopedgn::config::{Config, ModelName, Preset};
/// let config = Config::resolve(ModelName::HopeDgn, &[Preset::Quick], &["model.k=8".to_owned()])?;
/// assert_eq!(Config::from_toml(&config.to_toml()?, "config.toml")?, config);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    /// The name of a dataset, or a file.
    pub data: String,
    /// Seed of initial weights, training negatives and dropout.
    pub seed: u64,
    /// How masked nodes are drawn, if any.
    pub split: split::SplitMode,
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
            split: split::SplitMode::Dyglib,
            model: ModelConfig::default(),
            train: TrainConfig::default(),
        }
    }
}

/// How weights are learned; defaults are the paper's.
///
/// ```
/// use hopedgn::{Config, ModelName};
///
/// let config = Config::resolve(ModelName::Tgn, &[], &["train.batch=100".to_owned()])?;
/// assert_eq!((config.train.batch, config.train.patience), (100, 10));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TrainConfig {
    /// Epochs at most.
    pub epochs: usize,
    /// Epochs without a better validation after which training stops.
    pub patience: usize,
    /// Events per batch, each with one negative.
    pub batch: usize,
    /// Learning rate of Adam.
    pub lr: f64,
    /// How it changes during training.
    pub schedule: Schedule,
    /// What is minimised.
    pub objective: Objective,
    /// With the objective intensity: whether positives that never met before take part in the loss against past pairs. They teach that
    /// "never met" means "positive", which is true of historical negatives alone.
    pub unmet_positives: bool,
    /// With the objective intensity: the weight of the loss against past pairs beside that of destinations. More of it helps against
    /// historical negatives and costs a little against random ones.
    pub pair_weight: f32,
    /// By which validation metric the best epoch is chosen.
    pub select: Selection,
    /// Validation events at most that are ranked for that, evenly spaced; 0 for all.
    pub select_events: usize,
    /// Destinations at most that each of them is ranked among.
    pub select_candidates: usize,
    /// Seconds between two checkpoints inside an epoch.
    pub save_every: f64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            epochs: 50,
            patience: 10,
            batch: 200,
            lr: 1e-4,
            schedule: Schedule::Constant,
            objective: Objective::Dyglib,
            unmet_positives: false,
            pair_weight: 0.5,
            select: Selection::Ap,
            select_events: 2000,
            select_candidates: 100,
            save_every: 60.0,
        }
    }
}

impl TrainConfig {
    /// The defaults for a model: those of its paper, and for [`Stats`](crate::model::Stats), which is of none, what validation chose.
    ///
    /// ```
    /// use hopedgn::config::{ModelName, Objective, TrainConfig};
    ///
    /// assert_eq!(TrainConfig::of(ModelName::Stats).objective, Objective::Intensity);
    /// assert_eq!(TrainConfig::of(ModelName::HopeDgn), TrainConfig::default());
    /// ```
    #[must_use]
    pub fn of(model: ModelName) -> Self {
        match model {
            ModelName::Stats => Self { epochs: 20, lr: 1e-3, objective: Objective::Intensity, ..Self::default() },
            _ => Self::default(),
        }
    }
}

impl Config {
    /// The defaults of a built-in model, changed by each of `presets`, then by `settings` such as `model.k=16`.
    ///
    /// ```
    /// use hopedgn::{Config, ModelName, Preset};
    ///
    /// let settings = ["model.length=8".to_owned(), "seed=3".to_owned()];
    /// let config = Config::resolve(ModelName::DyGFormer, &[Preset::Quick], &settings)?;
    /// assert_eq!((config.model.name(), config.seed), (ModelName::DyGFormer, 3));
    /// assert!(Config::resolve(ModelName::Jodie, &[], &settings).is_err()); // JODIE has no `length`
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn resolve(model: ModelName, presets: &[Preset], settings: &[String]) -> Result<Self> {
        Self::resolve_with(&ModelRegistry::default(), model, presets, settings)
    }

    /// [`Config::resolve`] for any model of `registry`.
    pub fn resolve_with(
        registry: &ModelRegistry,
        model: ModelName,
        presets: &[Preset],
        settings: &[String],
    ) -> Result<Self> {
        Self::before_settings(registry, model, presets, settings)?.changed_by(registry, settings)
    }

    /// The defaults of a model, changed by each of `presets`; `settings`, which are not applied yet, may name another model.
    fn before_settings(
        registry: &ModelRegistry,
        model: ModelName,
        presets: &[Preset],
        settings: &[String],
    ) -> Result<Self> {
        // The model decides the defaults, so its name is looked for first.
        let named = settings.iter().rev().find_map(|setting| {
            let (path, value) = setting.split_once('=')?;
            (path.trim() == "model.name").then(|| value.trim().trim_matches('"'))
        });
        let model = named.map_or(Ok(model), |name| registry.named(name))?;
        let mut config = Self { model: registry.defaults(model)?, train: TrainConfig::of(model), ..Self::default() };
        for (at, preset) in presets.iter().enumerate() {
            let mut table = config.table()?;
            for mut layer in preset.layers(model, &presets[..at]) {
                // Sizes of built-in models; a custom model states its own.
                if matches!(model, ModelName::Custom(_)) {
                    layer.remove("model");
                }
                merge_known(&mut table, layer);
            }
            config = config.read(registry, table, &format!("preset {}", preset.name()))?;
        }
        Ok(config)
    }

    /// These settings, changed by `settings` such as `train.epochs=20`.
    ///
    /// ```
    /// use hopedgn::{Config, ModelRegistry};
    ///
    /// let longer = Config::default().changed_by(&ModelRegistry::default(), &["train.epochs=20".to_owned()])?;
    /// assert_eq!(longer.train.epochs, 20);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn changed_by(&self, registry: &ModelRegistry, settings: &[String]) -> Result<Self> {
        let mut config = self.clone();
        for setting in settings {
            let mut table = config.table()?;
            config.set(registry, &mut table, setting)?;
            config = config.read(registry, table, setting)?;
        }
        config.check()?;
        Ok(config)
    }

    /// From the text of a `config.toml` of a built-in model; `place` names it in errors.
    ///
    /// ```
    /// use hopedgn::Config;
    ///
    /// let config = Config::from_toml("seed = 1\n[model]\nname = \"tcl\"\nneighbors = 5", "my.toml")?;
    /// assert_eq!(config.model.name().title(), "TCL");
    /// let error = Config::from_toml("sed = 1", "my.toml").unwrap_err();
    /// assert!(error.to_string().starts_with("my.toml: found no setting `sed`"), "{error}");
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn from_toml(text: &str, place: &str) -> Result<Self> {
        Self::from_toml_with(&ModelRegistry::default(), text, place)
    }

    /// [`Config::from_toml`] for any model of `registry`.
    pub fn from_toml_with(registry: &ModelRegistry, text: &str, place: &str) -> Result<Self> {
        Self::parse_toml(registry, text, place).map_err(|error| match error {
            // Bounds of settings are checked without knowing where they stand.
            error @ Error::Setting { .. } => wrong(place, &error),
            error => error,
        })
    }

    fn parse_toml(registry: &ModelRegistry, text: &str, place: &str) -> Result<Self> {
        let mut found: toml::Table = toml::from_str(text).map_err(|error| wrong(place, &error))?;
        check_format(&mut found, place)?;
        let model = match found.remove("model") {
            Some(toml::Value::Table(mut model)) => {
                add_settings_of_its_time(&mut model);
                registry.read(model, place)?
            }
            Some(other) => return Err(wrong(place, &format!("found model = {other}, expected a group of settings"))),
            None => ModelConfig::default(),
        };
        let defaults = Self { train: TrainConfig::of(model.name()), model, ..Self::default() };
        let (mut table, all) = (defaults.table()?, defaults.table()?);
        merge(&mut table, found, "", &all).map_err(|detail| wrong(place, &detail))?;
        let config = defaults.read(registry, table, place)?;
        config.check()?;
        Ok(config)
    }

    /// The model of these settings, with initial parameters.
    ///
    /// ```
    /// use hopedgn::{Config, ModelRegistry, collate::FeatureWidths};
    ///
    /// let (model, parameters) = Config::default().build(&ModelRegistry::default(), FeatureWidths::default())?;
    /// assert!(model.name().as_str() == "hopedgn" && parameters.n_values() > 0);
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn build(&self, registry: &ModelRegistry, widths: FeatureWidths) -> Result<BuiltModel> {
        let (model, parameters) = registry.build(&self.model, widths, self.seed)?;
        match self.train.objective {
            Objective::Dyglib => Ok((model, parameters)),
            Objective::Intensity => {
                let (model, parameters) = IntensityModel::new(model, parameters, self.seed)?;
                Ok((Box::new(model), parameters))
            }
        }
    }

    /// The text of a `config.toml`.
    ///
    /// ```
    /// let text = hopedgn::Config::default().to_toml()?;
    /// assert!(text.contains("[model]") && text.contains("epochs = 50"));
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| wrong("configuration", &error))
    }

    /// The content of a run's `config.toml`: the settings after the format of the file.
    pub(crate) fn to_file(&self) -> Result<String> {
        Ok(format!("{} = {}\n{}", file_format::KEY, file_format::FORMAT, self.to_toml()?))
    }

    /// Refuses values outside their bounds.
    ///
    /// ```
    /// let mut config = hopedgn::Config::default();
    /// config.train.lr = -1.0;
    /// assert_eq!(config.check().unwrap_err().to_string(), "found train.lr = -1, expected a positive number");
    /// ```
    pub fn check(&self) -> Result<()> {
        let train = &self.train;
        self.model.check()?;
        within(&[
            ("train.epochs", train.epochs, 1 << 20),
            ("train.patience", train.patience, 1 << 20),
            ("train.batch", train.batch, 1 << 20),
            ("train.select-candidates", train.select_candidates, 1 << 32),
        ])?;
        if !(train.lr > 0.0 && train.lr.is_finite()) {
            return refuse("train.lr", train.lr, "a positive number");
        }
        if !(train.pair_weight >= 0.0 && train.pair_weight.is_finite()) {
            return refuse("train.pair-weight", train.pair_weight, "a number, at least 0");
        }
        if !train.save_every.is_finite() || train.save_every < 0.0 {
            return refuse("train.save-every", train.save_every, "seconds, at least 0");
        }
        if u32::try_from(self.seed).is_err() {
            return refuse("seed", self.seed, "0 to 4294967295, as NumPy's generator takes");
        }
        Ok(())
    }

    /// All settings, group by group.
    pub(crate) fn table(&self) -> Result<toml::Table> {
        toml::Table::try_from(self).map_err(|error| wrong("configuration", &error))
    }

    /// The same model with the settings of `table`, which has all of them; `place` names it in errors.
    fn read(&self, registry: &ModelRegistry, mut table: toml::Table, place: &str) -> Result<Self> {
        let model = match table.remove("model") {
            Some(toml::Value::Table(model)) => registry.checked(self.model.read(model, place)?, place)?,
            _ => self.model.clone(),
        };
        let rest: Self = table.try_into().map_err(|error: toml::de::Error| wrong(place, &error))?;
        Ok(Self { model, ..rest })
    }

    /// Applies `a.b=v` to `table`.
    fn set(&self, registry: &ModelRegistry, table: &mut toml::Table, setting: &str) -> Result<()> {
        let (path, text) =
            setting.split_once('=').ok_or_else(|| wrong(setting, &"expected NAME=VALUE, e.g. model.k=16"))?;
        let (path, text) = (path.trim(), text.trim());
        let (group, name) = path.rsplit_once('.').map_or((None, path), |(group, name)| (Some(group), name));
        let meant = meant(table, path);
        let mut inner = table;
        if let Some(group) = group {
            let groups = names(inner, toml::Value::is_table);
            inner = inner.get_mut(group).and_then(toml::Value::as_table_mut).ok_or_else(|| {
                let meant = did_you_mean(meant.as_deref());
                wrong(setting, &format!("found no group `{group}`, expected one of {groups}{meant}"))
            })?;
        }
        let known = names(inner, |value| !value.is_table());
        let Some(before) = inner.get_mut(name) else {
            let detail = match group {
                Some("model") => registry.foreign(&self.model, name)?,
                _ => format!("found no setting `{name}`, expected one of {known}"),
            };
            let has_advice = detail.contains("did you mean") || detail.contains("which belongs to");
            let meant = if has_advice { String::new() } else { did_you_mean(meant.as_deref()) };
            return Err(wrong(setting, &(detail + &meant)));
        };
        *before = parse(before, text).map_err(|detail| wrong(setting, &detail))?;
        Ok(())
    }
}

/// A complete file without a setting was written before there was one: what programs did then is not always today's default.
fn add_settings_of_its_time(model: &mut toml::Table) {
    if model.get("name").and_then(toml::Value::as_str) == Some(ModelName::Pint.as_str()) {
        model.entry("revision").or_insert(toml::Value::Integer(1));
    }
    if model.get("mite").and_then(toml::Value::as_bool) == Some(true) {
        model.entry("mite-self-loops").or_insert_with(|| "twice".into());
    }
}

/// Removes the format of a file of settings; refuses one that only newer versions know. Whether there was one: only files that a
/// program wrote have it, and they are complete.
fn check_format(table: &mut toml::Table, place: &str) -> Result<bool> {
    let Some(format) = table.remove(file_format::KEY) else { return Ok(false) };
    let number = format.as_integer().and_then(|format| u64::try_from(format).ok());
    let expected = || wrong(place, &format!("found format = {format}, expected a whole number"));
    file_format::check(Path::new(place), number.ok_or_else(expected)?)?;
    Ok(true)
}

fn wrong(place: &str, error: &impl std::fmt::Display) -> Error {
    Error::Config { place: place.to_owned(), detail: in_words(error) }
}

/// `over` wins; groups are joined. Settings that `table` does not have are left out.
fn merge_known(table: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(over)) => merge_known(below, over),
            (Some(below), value) => *below = value,
            (None, _) => {}
        }
    }
}

/// The same, but settings that `table` does not have, and values of another kind, are errors. `all` are the settings of all
/// groups.
fn merge(table: &mut toml::Table, over: toml::Table, group: &str, all: &toml::Table) -> Result<(), String> {
    let known = names(table, |_| true);
    for (key, value) in over {
        let path = format!("{group}{key}");
        let below = table.get_mut(&key).ok_or_else(|| {
            let meant = did_you_mean(meant(all, &path).as_deref());
            format!("found no setting `{path}`, expected one of {known}{meant}")
        })?;
        match (below, value) {
            (toml::Value::Table(below), toml::Value::Table(over)) => merge(below, over, &format!("{path}."), all)?,
            (below, value) => *below = fitting(below, value).map_err(|detail| format!("{path}: {detail}"))?,
        }
    }
    Ok(())
}

/// The setting or group that `path`, which is none, most likely means: one of that name in another group, or of a similar name.
fn meant(table: &toml::Table, path: &str) -> Option<String> {
    let mut known: Vec<(String, &str)> = Vec::new();
    for (group, value) in table {
        known.push((group.clone(), group));
        let inner = value.as_table().into_iter().flat_map(toml::Table::keys);
        known.extend(inner.map(|name| (format!("{group}.{name}"), name.as_str())));
    }
    let name = path.rsplit('.').next().unwrap_or(path);
    let similar = || nearest(name, known.iter().map(|(_, known)| *known));
    let name = if known.iter().any(|(_, known)| *known == name) { name } else { similar()? };
    known.iter().find(|(_, known)| *known == name).map(|(path, _)| path.clone())
}

#[cfg(test)]
mod tests;
