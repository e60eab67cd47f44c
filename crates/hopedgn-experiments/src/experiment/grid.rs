//! The cells of a grid: what each is, with every setting resolved.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::file::{Evaluate, Kind};
use super::inherit::At;
use super::{Experiment, file};
use hopedgn::classify::LabelConfig;
use hopedgn::config::{Config, ModelName, Preset};
use hopedgn::metrics::Classification;
use hopedgn::{Error, Result};

/// One run of an experiment.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Its folder is called so.
    pub name: String,
    /// The data set.
    pub data: String,
    /// The model.
    pub model: ModelName,
    /// Whether the model sees MITE, if the grid says.
    pub mite: Option<bool>,
    /// The variant, if the grid has any.
    pub variant: Option<String>,
    /// What stands behind the model in tables.
    title: String,
    /// The seed.
    pub seed: u64,
    /// Everything that decides it.
    pub config: Config,
    /// Of `config`, wherever the data lie. What is done with a finished run is no part of it, so that experiments share runs.
    pub hash: String,
    /// The test under more rules, if that is asked for.
    pub evaluate: Option<Evaluate>,
    /// Whether labels of nodes are learned after that.
    pub classify: bool,
    /// Tried only, on data that are the same for all.
    pub is_smoke: bool,
    preset: Option<Preset>,
    settings: Vec<String>,
}

/// What is put on top of a cell that is only to be tried.
const SMALL: [&str; 10] = [
    "model.d-channel=4",
    "model.d-time=8",
    "model.d-out=8",
    "model.d-mite=4",
    "model.d-cooccurrence=4",
    "model.k=4",
    "model.length=8",
    "model.patch=2",
    "model.neighbors=4",
    "model.n-heads=2",
];

/// The same on top of its variant, which is what the cell is tried for.
const SHORT: [&str; 2] = ["train.epochs=1", "train.batch=50"];

/// Candidates of such a cell at most.
const SMALL_RANKING: usize = 5;

impl Cell {
    /// Whether the model sees MITE.
    #[must_use]
    pub fn has_mite(&self) -> bool {
        self.mite.unwrap_or(self.model == ModelName::HopeDgn)
    }

    /// Model and MITE, as rows of a table begin.
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

    /// Model, MITE and variant, as a row of a table is called.
    #[must_use]
    pub fn row(&self) -> String {
        let mut row = self.model_row();
        if !self.title.is_empty() {
            let _ = write!(row, ", {}", self.title);
        }
        row
    }

    /// What stands behind the model in the name of its row, or the model.
    #[must_use]
    pub fn variant_title(&self) -> &str {
        if self.title.is_empty() { self.model.title() } else { &self.title }
    }

    /// The hash that `config` has as a cell like this one.
    pub(super) fn hash_of(&self, config: &Config) -> Result<String> {
        hash(config, if self.is_smoke { "smoke" } else { &self.data })
    }

    /// Whether labels were learned from this cell's model as it is done unless somebody asks otherwise.
    pub(super) fn is_usual(&self, found: &Classification) -> bool {
        let LabelConfig { epochs, patience, .. } = LabelConfig::default();
        let is_over = found.epochs >= epochs || found.epochs >= found.best_epoch + patience;
        found.model == self.model.as_str() && found.seed == self.seed && (is_over || self.is_smoke)
    }

    /// What `hopedgn train` takes besides data, device and folder to train this cell.
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

    fn resolve(&self, settings: &[String]) -> Result<Config> {
        let presets: Vec<Preset> = self.preset.into_iter().collect();
        let seed = std::iter::once(format!("seed={}", self.seed));
        let settings: Vec<String> = seed.chain(settings.iter().cloned()).collect();
        let mut config = Config::resolve(self.model, &presets, &settings)?;
        config.data.clone_from(&self.data);
        Ok(config)
    }
}

/// Of every setting, with the data called `data`.
pub(super) fn hash(config: &Config, data: &str) -> Result<String> {
    let text = Config { data: data.to_owned(), ..config.clone() }.to_toml()?;
    Ok(Sha256::digest(text).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Every cell, resolved and checked; every override fits some.
pub(super) fn cells(experiment: &Experiment) -> Result<Vec<Cell>> {
    let file::File { variants, excludes, overrides, .. } = &experiment.file;
    let mut cells = bare(experiment)?;
    for exclude in excludes {
        let before = cells.len();
        cells.retain(|cell| !exclude.item.when.fits(cell));
        if cells.len() == before {
            return Err(exclude.at.wrong(file::matches_nothing("exclusion")));
        }
    }
    if let (true, Some(last)) = (cells.is_empty(), excludes.last()) {
        let detail = "found that nothing is left of the grid, expected a cell; exclude less";
        return Err(last.at.wrong(detail.to_owned()));
    }
    for layer in overrides {
        if !cells.iter().any(|cell| layer.item.when.fits(cell)) {
            return Err(layer.at.wrong(file::matches_nothing("override")));
        }
    }
    for cell in &mut cells {
        // Each with the place in the file that it comes from.
        let mut layers: Vec<(Option<&At>, Vec<String>)> = Vec::new();
        layers.push((None, cell.mite.map(|mite| format!("model.mite={mite}")).into_iter().collect()));
        let variants = variants.iter().filter(|variant| cell.variant.as_ref() == Some(&variant.item.name));
        let variants = variants.map(|variant| (Some(&variant.at), settings(&variant.item.set)));
        let fitting = overrides.iter().filter(|layer| layer.item.when.fits(cell));
        let fitting = fitting.map(|layer| (Some(&layer.at), settings(&layer.item.set)));
        if experiment.is_smoke {
            layers.extend(fitting);
            layers.push((None, SMALL.map(str::to_owned).to_vec()));
            layers.extend(variants);
            layers.push((None, SHORT.map(str::to_owned).to_vec()));
        } else {
            layers.extend(variants);
            layers.extend(fitting);
        }
        let all: Vec<String> = layers.iter().flat_map(|(_, settings)| settings.clone()).collect();
        cell.config = cell.resolve(&all).map_err(|error| blame(experiment, cell, &layers, &error))?;
        cell.hash = cell.hash_of(&cell.config)?;
        cell.settings = all;
    }
    Ok(cells)
}

/// The product of the grid, nothing resolved.
fn bare(experiment: &Experiment) -> Result<Vec<Cell>> {
    let file::File { grid, variants, .. } = &experiment.file;
    let mites: Vec<Option<bool>> = match grid.mite.as_slice() {
        [] => vec![None],
        mites => mites.iter().copied().map(Some).collect(),
    };
    let variants: Vec<Option<&file::Variant>> = match variants.as_slice() {
        [] => vec![None],
        variants => variants.iter().map(|variant| Some(&variant.item)).collect(),
    };
    let evaluate = experiment.file.evaluate.map(|evaluate| {
        let most = if experiment.is_smoke { SMALL_RANKING } else { usize::MAX };
        Evaluate { ranking: evaluate.ranking.map(|n| n.min(most)), ..evaluate }
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
                            hash: String::new(),
                            evaluate,
                            classify: experiment.file.kind == Kind::NodeClassification,
                            is_smoke: experiment.is_smoke,
                            preset: Preset::for_data(data),
                            settings: Vec::new(),
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

/// The error of a cell, at the first layer with which it appears.
fn blame(experiment: &Experiment, cell: &Cell, layers: &[(Option<&At>, Vec<String>)], error: &Error) -> Error {
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
