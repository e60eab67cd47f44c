//! The experiment file. Unknown keys are errors with their line.

use std::collections::BTreeMap;
use std::path::Path;

use ctdg::dataset::ReadOptions;
use serde::Deserialize;
use toml::Spanned;

use super::Cell;
use super::inherit::{At, Located};
use super::measure::{Heuristic, Metric, Setting};
use super::paper::{Paper, PaperFile, PaperFrom};
use hopedgn::config::{ModelName, Protocol};
use hopedgn::evaluate::Negatives;
use hopedgn::fmt::nearest;
use hopedgn::{Error, ModelRegistry, Result};

/// A file merged with the files it extends.
#[derive(Debug)]
pub(super) struct File {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) note: String,
    pub(super) kind: Kind,
    pub(super) metrics: Vec<Metric>,
    pub(super) negatives: Vec<Negatives>,
    pub(super) heuristics: Vec<Heuristic>,
    /// Whether rows are compared by their mean rank over all tables.
    pub(super) standings: bool,
    /// The row whose improvement over the best other one is shown below each table.
    pub(super) improvement_of: Option<Located<String>>,
    pub(super) grid: Grid,
    pub(super) read: BTreeMap<String, Located<ReadOptions>>,
    pub(super) evaluate: Option<Evaluate>,
    /// Whether variants have the plain model beside them.
    pub(super) baseline: bool,
    pub(super) variants: Vec<Located<Variant>>,
    pub(super) excludes: Vec<Located<Exclude>>,
    pub(super) overrides: Vec<Located<Override>>,
    pub(super) paper: Vec<Located<Paper>>,
    pub(super) paper_files: Vec<Located<PaperFile>>,
    pub(super) expect: Vec<Located<Expect>>,
    pub(super) figures: Vec<Located<Figure>>,
}

/// One file before merging.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Layer {
    pub(super) extends: Option<Spanned<String>>,
    pub(super) title: Option<String>,
    pub(super) about: Option<String>,
    pub(super) note: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) metrics: Option<Spanned<Vec<Metric>>>,
    pub(super) negatives: Option<Spanned<Vec<Negatives>>>,
    pub(super) heuristics: Option<Vec<Heuristic>>,
    pub(super) standings: Option<bool>,
    pub(super) improvement_of: Option<Spanned<String>>,
    pub(super) grid: GridLayer,
    /// How the file of a dataset is read.
    pub(super) read: BTreeMap<String, Spanned<ReadOptions>>,
    pub(super) evaluate: Option<Evaluate>,
    pub(super) baseline: Option<bool>,
    #[serde(rename = "variant")]
    pub(super) variants: Vec<Spanned<Variant>>,
    #[serde(rename = "exclude")]
    pub(super) excludes: Vec<Spanned<Exclude>>,
    #[serde(rename = "override")]
    pub(super) overrides: Vec<Spanned<Override>>,
    pub(super) paper: Vec<Spanned<Paper>>,
    #[serde(rename = "paper-from")]
    pub(super) paper_from: Vec<Spanned<PaperFrom>>,
    pub(super) expect: Vec<Spanned<Expect>>,
    #[serde(rename = "figure")]
    pub(super) figures: Vec<Spanned<Figure>>,
}

/// The task of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Train, then score test events against negatives.
    LinkPrediction,
    /// Train, then train a classifier of node labels on the frozen model.
    NodeClassification,
}

/// Candidates under TGB's protocol, unless stated.
const TGB_CANDIDATES: usize = 999;

/// Evaluation of each run with other negatives, and ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Evaluate {
    /// Whose rules: for training, and for the candidates of the ranking.
    #[serde(default)]
    pub protocol: Protocol,
    /// Which negatives; random ones unless stated, none under TGB's protocol.
    pub negatives: Option<Wanted>,
    /// How many candidates each true destination is ranked against; 999 unless stated under TGB's protocol.
    pub ranking: Option<usize>,
}

/// Requested kinds of negatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// Random destinations.
    Random,
    /// Pairs with earlier events.
    Historical,
    /// Those whose first event is after training.
    Inductive,
    /// All three.
    All,
}

impl Wanted {
    /// The kinds it stands for.
    #[must_use]
    pub fn kinds(self) -> Vec<Negatives> {
        match self {
            Self::Random => vec![Negatives::Random],
            Self::Historical => vec![Negatives::Historical],
            Self::Inductive => vec![Negatives::Inductive],
            Self::All => Negatives::ALL.to_vec(),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            one => one.kinds()[0].as_str(),
        }
    }
}

impl Evaluate {
    /// The kinds of negatives that it measures.
    #[must_use]
    pub fn kinds(&self) -> Vec<Negatives> {
        match (self.negatives, self.protocol) {
            (Some(wanted), _) => wanted.kinds(),
            (None, Protocol::Dyglib) => Wanted::Random.kinds(),
            (None, Protocol::Tgb) => Vec::new(),
        }
    }

    /// Candidates of the ranking at most, if there is one.
    #[must_use]
    pub fn candidates(&self) -> Option<usize> {
        self.ranking.or((self.protocol == Protocol::Tgb).then_some(TGB_CANDIDATES))
    }

    /// Arguments of `hopedgn evaluate` besides run, data and device.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.protocol != Protocol::default() {
            arguments.extend(["--protocol".to_owned(), self.protocol.as_str().to_owned()]);
        }
        if let Some(wanted) = self.negatives.or((self.protocol == Protocol::Dyglib).then_some(Wanted::Random)) {
            arguments.extend(["--negatives".to_owned(), wanted.as_str().to_owned()]);
        }
        if let Some(n) = self.candidates() {
            arguments.extend(["--ranking".to_owned(), n.to_string()]);
        }
        arguments
    }
}

/// The cells are the product of these lists and of the variants.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) model: Vec<ModelName>,
    pub(super) data: Vec<String>,
    pub(super) seed: Vec<u64>,
    /// Empty: the model's default.
    pub(super) mite: Vec<bool>,
}

/// The lists of one file; missing ones are inherited.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct GridLayer {
    pub(super) model: Option<Vec<ModelName>>,
    pub(super) data: Option<Vec<String>>,
    pub(super) seed: Option<Vec<u64>>,
    pub(super) mite: Option<Vec<bool>>,
}

/// Named settings, another dimension of the grid. The plain model is added as the first row, unless a variant stands for it: one
/// without settings or without a title.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Variant {
    pub(super) name: String,
    /// Follows the model in tables; its name unless stated, nothing if empty.
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) set: toml::Table,
}

/// Cells that are left out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Exclude {
    pub(super) when: When,
}

/// Settings of some cells; later ones win.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Override {
    pub(super) when: When,
    pub(super) set: toml::Table,
    /// Where the numbers were published.
    #[expect(dead_code, reason = "documents the file")]
    pub(super) source: String,
}

/// A figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Figure {
    /// Part of its file names.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) kind: Shape,
    /// The vertical axis.
    pub(super) metric: Metric,
    /// Both unless stated, a panel each.
    pub(super) setting: Option<Setting>,
    /// Lines: variants named so, `-` and a number are the points.
    pub(super) sweep: Option<String>,
    /// Lines: title of the horizontal axis.
    pub(super) axis: Option<String>,
    /// Scatter plots: the horizontal axis.
    pub(super) against: Option<Metric>,
}

/// Kinds of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Shape {
    /// A group of bars for each dataset, a bar for each row.
    Bars,
    /// A line for each dataset, over the numbers of a sweep.
    Lines,
    /// A labelled point for each row, a panel for each dataset.
    Scatter,
}

/// A condition on cells: all stated keys must fit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct When {
    model: Option<OneOrMany<ModelName>>,
    data: Option<OneOrMany<String>>,
    variant: Option<OneOrMany<String>>,
    seed: Option<OneOrMany<u64>>,
    mite: Option<bool>,
}

/// One or many.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: PartialEq> OneOrMany<T> {
    fn has(&self, value: &T) -> bool {
        match self {
            Self::One(one) => one == value,
            Self::Many(many) => many.contains(value),
        }
    }
}

impl When {
    pub(super) fn fits(&self, cell: &Cell) -> bool {
        self.model.as_ref().is_none_or(|some| some.has(&cell.model))
            && self.data.as_ref().is_none_or(|some| some.has(&cell.data))
            && self.seed.as_ref().is_none_or(|some| some.has(&cell.seed))
            && self.variant.as_ref().is_none_or(|some| cell.variant.as_ref().is_some_and(|name| some.has(name)))
            && self.mite.is_none_or(|mite| cell.has_mite() == mite)
    }
}

/// A lower bound for the mean over seeds, in percent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Expect {
    #[serde(default)]
    pub(super) when: When,
    /// Both unless stated.
    pub(super) setting: Option<Setting>,
    /// All of the experiment unless stated.
    pub(super) metric: Option<Metric>,
    /// The least value.
    pub(super) at_least: Option<f64>,
    /// How far below the published value it may be.
    pub(super) below_paper_at_most: Option<f64>,
}

impl File {
    /// Refuses models that `registry` does not know.
    pub(super) fn check_models(&self, path: &Path, text: &str, registry: &ModelRegistry) -> Result<()> {
        for model in &self.grid.model {
            if registry.named(model.as_str()).is_err() {
                let known: Vec<&str> = registry.names().map(ModelName::as_str).collect();
                let detail = format!("found the model {:?}, expected one of {}", model.as_str(), known.join(", "));
                let quoted = format!("{:?}", model.as_str());
                let line = text.lines().position(|line| line.contains(&quoted)).map(|index| index + 1);
                return Err(Error::Experiment { file: path.to_owned(), line, detail });
            }
        }
        Ok(())
    }

    /// Refuses empty lists, duplicates and names that are no file names.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let wrong = |detail: String| Err(Error::Experiment { file: path.to_owned(), line: None, detail });
        let Grid { model, data, seed, mite } = &self.grid;
        for (name, is_empty) in [("model", model.is_empty()), ("data", data.is_empty()), ("seed", seed.is_empty())] {
            if is_empty {
                return wrong(format!("found nothing in grid.{name}, expected at least one; name one"));
            }
        }
        let names: Vec<&String> = self.variants.iter().map(|variant| &variant.item.name).collect();
        let titles: Vec<&String> =
            self.variants.iter().map(|Located { item, .. }| item.title.as_ref().unwrap_or(&item.name)).collect();
        let figures: Vec<&String> = self.figures.iter().map(|figure| &figure.item.name).collect();
        let lists = [has_twice(model), has_twice(data), has_twice(seed), has_twice(mite)];
        if lists.contains(&true) || [&names, &titles, &figures].into_iter().any(|names| has_twice(names)) {
            return wrong("found a duplicate in the grid or among titles, expected each once; remove one".to_owned());
        }
        let is_plain = |name: &&String| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if let Some((name, options)) = self.read.iter().find(|(name, _)| !data.contains(name)) {
            let meant = nearest(name, data.iter().map(String::as_str));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            return Err(options.at.wrong(format!("found [read.{name}], expected one of grid.data{meant}")));
        }
        if let Some(name) = data.iter().chain(names).chain(figures).find(|name| !is_plain(name)) {
            return wrong(format!(
                "found the name {name:?}, expected letters, digits, - and _, as for a folder; a dataset is named without the \
                 path of its file (--data-dir)"
            ));
        }
        Ok(())
    }

    /// Refuses, at `at`, a metric that no run of the experiment has.
    pub(super) fn check_metric(&self, metric: Metric, at: &At) -> Result<()> {
        let detail = match (self.kind, metric) {
            (_, metric) if metric.is_ranking() && self.evaluate.and_then(|it| it.candidates()).is_none() => {
                "expected [evaluate] with ranking = N for ranking metrics; add it"
            }
            (Kind::NodeClassification, Metric::Ap | Metric::Mrr | Metric::HitsAt10 | Metric::NdcgAt10) => {
                "expected auc or a cost for node classification; remove it"
            }
            _ => return Ok(()),
        };
        Err(at.wrong(format!("found the metric {}, {detail}", metric.title())))
    }

    /// Refuses, at `at`, negatives that no run is evaluated with.
    pub(super) fn check_negatives(&self, at: &At) -> Result<()> {
        let tested = self.evaluate.map(|evaluate| evaluate.kinds()).unwrap_or_default();
        let is_there = |kind: &Negatives| *kind == Negatives::Random || tested.contains(kind);
        match self.negatives.iter().find(|kind| !is_there(kind)) {
            Some(kind) => {
                let kind = kind.as_str();
                Err(at.wrong(format!(
                    "found {kind} negatives, expected [evaluate] with negatives = \"{kind}\" or \"all\"; add it"
                )))
            }
            None => Ok(()),
        }
    }
}

impl Variant {
    /// Whether it stands for the plain model.
    pub(super) fn is_baseline(&self) -> bool {
        self.set.is_empty() || self.title.as_deref() == Some("")
    }
}

fn has_twice<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().any(|(place, value)| list[..place].contains(value))
}

/// The line of a byte, from 1.
pub(super) fn line(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count()
}

/// The message about something that fits no cell.
pub(super) fn matches_nothing(what: &str) -> String {
    format!("found {what} that fits no cell, expected one that fits some; correct its `when`, or remove it")
}
