//! Cells of the grid, with all settings resolved.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ctdg::dataset::ReadOptions;
use sha2::{Digest, Sha256};

use super::file::{Evaluate, Kind};
use super::inherit::At;
use super::{Content, Experiment, file};
use std::sync::Arc;

use hopedgn::classify::LabelConfig;
use hopedgn::config::{Config, ModelName, Preset, Protocol};
use hopedgn::metrics::Classification;
use hopedgn::{Error, ModelRegistry, Result};

/// One run of an experiment.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Also the name of its run folder.
    pub name: String,
    /// The dataset.
    pub data: String,
    /// The model.
    pub model: ModelName,
    /// Whether the model uses MITE, if the grid states it.
    pub mite: Option<bool>,
    /// The variant, if the grid has any.
    pub variant: Option<String>,
    /// Follows the model in tables.
    title: String,
    /// The seed.
    pub seed: u64,
    /// All settings.
    pub config: Config,
    /// How the file of the dataset is read.
    pub read: ReadOptions,
    /// The content of the dataset at hand, where it is known.
    pub content: Option<Content>,
    /// Hash of `config`, independent of the path of the data. Evaluation is no part of it, so that experiments share runs.
    pub hash: String,
    /// Evaluation after training, if requested.
    pub evaluate: Option<Evaluate>,
    /// Whether node classification follows.
    pub classify: bool,
    /// Whether it is a smoke test, on one small dataset for all cells.
    pub is_smoke: bool,
    preset: Option<Preset>,
    settings: Vec<String>,
    pub(super) registry: Arc<ModelRegistry>,
}

/// Settings of smoke tests, below those of the variant, for models that have them.
const SMALL: [(&str, usize); 10] = [
    ("d-channel", 4),
    ("d-time", 8),
    ("d-out", 8),
    ("d-mite", 4),
    ("d-cooccurrence", 4),
    ("k", 4),
    ("length", 8),
    ("patch", 2),
    ("neighbors", 4),
    ("n-heads", 2),
];

/// Settings of smoke tests, above those of the variant.
const SHORT: [&str; 2] = ["train.epochs=1", "train.batch=50"];

/// Most ranking candidates of smoke tests.
const SMALL_RANKING: usize = 5;

impl Cell {
    /// Whether the model uses MITE.
    #[must_use]
    pub fn has_mite(&self) -> bool {
        self.mite.unwrap_or(self.model == ModelName::HopeDgn)
    }

    /// Model and MITE: the beginning of a table row's name.
    #[must_use]
    pub fn model_row(&self) -> String {
        let mut row = self.model.title().to_owned();
        if self.mite.is_some() && self.has_mite() && self.model != ModelName::HopeDgn {
            row.push_str(" with MITE");
        } else if self.mite == Some(false) && self.model == ModelName::HopeDgn {
            row.push_str(" without MITE");
        }
        row
    }

    /// Model, MITE and variant: the name of a table row.
    #[must_use]
    pub fn row(&self) -> String {
        let mut row = self.model_row();
        if !self.title.is_empty() {
            let _ = write!(row, ", {}", self.title);
        }
        row
    }

    /// The title of the variant, or of the model where there is none.
    #[must_use]
    pub fn variant_title(&self) -> &str {
        if self.title.is_empty() { self.model.title() } else { &self.title }
    }

    /// The hash of `config` as a cell of this dataset.
    pub(super) fn hash_of(&self, config: &Config) -> Result<String> {
        hash(config, if self.is_smoke { "smoke" } else { &self.data })
    }

    /// Whether a run whose data was read with `options` is one of this cell. Runs count however they were read, unless the file of the
    /// experiment says how.
    pub(super) fn is_read_with(&self, options: Option<&ReadOptions>) -> bool {
        let default = ReadOptions::default();
        self.is_smoke || self.read == default || self.read == *options.unwrap_or(&default)
    }

    /// Whether a run on this content is one of this cell. Where either is unknown the name of the data decides.
    pub(super) fn is_trained_on(&self, content: Option<&Content>) -> bool {
        self.is_smoke || self.content.as_ref().zip(content).is_none_or(|(own, other)| own.is_same(other))
    }

    /// Whether `found` is a complete classification of this cell's model with default settings.
    pub(super) fn is_usual(&self, found: &Classification) -> bool {
        let LabelConfig { epochs, patience, .. } = LabelConfig::default();
        let is_over = found.epochs >= epochs || found.epochs >= found.best_epoch + patience;
        found.model == self.model.as_str() && found.seed == self.seed && (is_over || self.is_smoke)
    }

    /// Arguments of `hopedgn train` besides data, device and folder.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--model".to_owned(), self.model.as_str().to_owned()];
        arguments.extend(["--seed".to_owned(), self.seed.to_string()]);
        if let Some(preset) = self.preset {
            arguments.extend(["--preset".to_owned(), preset.name().to_owned()]);
        }
        for setting in &self.settings {
            arguments.extend(["--set".to_owned(), setting.clone()]);
        }
        arguments
    }

    /// The text of a file for `hopedgn train --config` that says how the data is read; nothing if the experiment does not say so.
    pub fn read_settings(&self) -> Result<Option<String>> {
        if self.is_smoke || self.read == ReadOptions::default() {
            return Ok(None);
        }
        let table = BTreeMap::from([("read", &self.read)]);
        let text = toml::to_string(&table)
            .map_err(|error| Error::Config { place: self.name.clone(), detail: error.to_string() })?;
        Ok(Some(text))
    }

    /// The settings of training under the protocol of its evaluation, where that is not the usual one.
    fn protocol_settings(&self) -> Vec<String> {
        let protocol =
            self.evaluate.map(|evaluate| evaluate.protocol).filter(|protocol| *protocol != Protocol::default());
        protocol.map(Protocol::settings).unwrap_or_default()
    }

    /// Those of [`SMALL`] that the model has.
    fn small_settings(&self) -> Result<Vec<String>> {
        let defaults = self.registry.defaults(self.model)?;
        let known = SMALL.into_iter().filter(|(name, _)| defaults.has(name));
        Ok(known.map(|(name, value)| format!("model.{name}={value}")).collect())
    }

    fn resolve(&self, settings: &[String]) -> Result<Config> {
        let presets: Vec<Preset> = self.preset.into_iter().collect();
        let seed = std::iter::once(format!("seed={}", self.seed));
        let settings: Vec<String> = seed.chain(settings.iter().cloned()).collect();
        let mut config = Config::resolve_with(&self.registry, self.model, &presets, &settings)?;
        config.data.clone_from(&self.data);
        Ok(config)
    }
}

/// Hash of all settings, with `data` as the name of the dataset.
pub(super) fn hash(config: &Config, data: &str) -> Result<String> {
    let text = Config { data: data.to_owned(), ..config.clone() }.to_toml()?;
    Ok(Sha256::digest(text).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// All cells, resolved and validated; every override and exclusion fits some.
pub(super) fn cells(experiment: &Experiment) -> Result<Vec<Cell>> {
    let file::File { variants, excludes, overrides, .. } = &experiment.file;
    let mut cells = product(experiment)?;
    for exclude in excludes {
        let before = cells.len();
        cells.retain(|cell| !exclude.item.when.fits(cell));
        // A smoke test has one seed: what leaves out others fits nothing.
        if cells.len() == before && !experiment.is_smoke {
            return Err(exclude.at.wrong(file::matches_nothing("an exclusion")));
        }
    }
    if let (true, Some(last)) = (cells.is_empty(), excludes.last()) {
        let detail = "found that all cells are excluded, expected at least one; exclude less";
        return Err(last.at.wrong(detail.to_owned()));
    }
    for layer in overrides {
        if !cells.iter().any(|cell| layer.item.when.fits(cell)) {
            return Err(layer.at.wrong(file::matches_nothing("an override")));
        }
    }
    for cell in &mut cells {
        // Each with its location in the file.
        let mut layers: Vec<(Option<&At>, Vec<String>)> = Vec::new();
        layers.push((None, cell.protocol_settings()));
        layers.push((None, cell.mite.map(|mite| format!("model.mite={mite}")).into_iter().collect()));
        let variants = variants.iter().filter(|variant| cell.variant.as_ref() == Some(&variant.item.name));
        let variants = variants.map(|variant| (Some(&variant.at), settings(&variant.item.set)));
        let fitting = overrides.iter().filter(|layer| layer.item.when.fits(cell));
        let fitting = fitting.map(|layer| (Some(&layer.at), settings(&layer.item.set)));
        if experiment.is_smoke {
            layers.extend(fitting);
            layers.push((None, cell.small_settings()?));
            layers.extend(variants);
            layers.push((None, SHORT.map(str::to_owned).to_vec()));
        } else {
            layers.extend(variants);
            layers.extend(fitting);
        }
        let mut all: Vec<String> = layers.iter().flat_map(|(_, settings)| settings.clone()).collect();
        let config = cell.resolve(&all).map_err(|error| locate_error(experiment, cell, &layers, &error))?;
        // One list may be for several models: what changes nothing for this one is left out.
        all.retain(|setting| config.check_effects(std::slice::from_ref(setting)).is_ok());
        cell.config = cell.resolve(&all)?;
        cell.hash = cell.hash_of(&cell.config)?;
        cell.settings = all;
    }
    Ok(cells)
}

/// The product of the grid, settings not resolved.
fn product(experiment: &Experiment) -> Result<Vec<Cell>> {
    let file::File { grid, variants, read, .. } = &experiment.file;
    let mites: Vec<Option<bool>> = match grid.mite.as_slice() {
        [] => vec![None],
        mites => mites.iter().copied().map(Some).collect(),
    };
    let has_baseline = !experiment.file.baseline || variants.iter().any(|variant| variant.item.is_baseline());
    let plain = (variants.is_empty() || !has_baseline).then_some(None);
    let variants: Vec<Option<&file::Variant>> =
        plain.into_iter().chain(variants.iter().map(|variant| Some(&variant.item))).collect();
    let evaluate = experiment.file.evaluate.map(|evaluate| {
        let most = if experiment.is_smoke { SMALL_RANKING } else { usize::MAX };
        Evaluate { ranking: evaluate.candidates().map(|n| n.min(most)), ..evaluate }
    });
    let seeds = if experiment.is_smoke { &grid.seed[..1] } else { &grid.seed };
    let mut cells = Vec::new();
    for data in &grid.data {
        for &model in &grid.model {
            for &mite in &mites {
                for variant in &variants {
                    for &seed in seeds {
                        let variant = variant.as_ref();
                        let title = variant.map(|variant| variant.title.as_ref().unwrap_or(&variant.name).clone());
                        let mut name = format!("{data}-{}", model.as_str());
                        name.push_str(if mite == Some(true) { "-mite" } else { "" });
                        if let Some(variant) = variant {
                            let _ = write!(name, "-{}", variant.name);
                        }
                        let _ = write!(name, "-{seed}");
                        cells.push(Cell {
                            name,
                            data: data.clone(),
                            model,
                            mite,
                            variant: variant.map(|variant| variant.name.clone()),
                            title: title.unwrap_or_default(),
                            seed,
                            config: Config::default(),
                            read: read.get(data).map(|options| options.item.clone()).unwrap_or_default(),
                            content: None,
                            hash: String::new(),
                            evaluate,
                            classify: experiment.file.kind == Kind::NodeClassification,
                            is_smoke: experiment.is_smoke,
                            preset: Preset::for_data(data),
                            settings: Vec::new(),
                            registry: Arc::clone(&experiment.registry),
                        });
                    }
                }
            }
        }
    }
    let twice = cells.iter().enumerate().find(|(place, cell)| cells[..*place].iter().any(|c| c.name == cell.name));
    if let Some((_, cell)) = twice {
        let detail = format!("found two cells called {}, expected one; give a variant another name", cell.name);
        return Err(Error::Experiment { file: experiment.path.clone(), line: None, detail });
    }
    Ok(cells)
}

/// The error of a cell, at the first layer that causes it.
fn locate_error(experiment: &Experiment, cell: &Cell, layers: &[(Option<&At>, Vec<String>)], error: &Error) -> Error {
    let upto = |n: usize| layers[..=n].iter().flat_map(|(_, settings)| settings.clone()).collect::<Vec<_>>();
    let first = (0..layers.len()).find(|&n| cell.resolve(&upto(n)).is_err());
    let detail = format!("cell {}: {error}", cell.name);
    match first.and_then(|n| layers[n].0) {
        Some(at) => at.wrong(detail),
        None => Error::Experiment { file: experiment.path.clone(), line: None, detail },
    }
}

/// A table of settings as `a.b=v`.
fn settings(table: &toml::Table) -> Vec<String> {
    let mut out = Vec::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(inner) => {
                out.extend(settings(inner).into_iter().map(|setting| format!("{name}.{setting}")));
            }
            toml::Value::String(text) => out.push(format!("{name}={text}")),
            value => out.push(format!("{name}={value}")),
        }
    }
    out
}
