//! What the file of an experiment says. Whatever it does not know is an error with its line.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::Cell;
use crate::config::ModelName;
use crate::{Error, Result};

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) title: String,
    #[serde(default)]
    pub(super) about: String,
    #[expect(dead_code, reason = "there is one kind so far, and a file states it")]
    pub(super) kind: Kind,
    #[serde(default = "Metric::all")]
    pub(super) metrics: Vec<Metric>,
    pub(super) grid: Grid,
    #[serde(default, rename = "variant")]
    pub(super) variants: Vec<Spanned<Variant>>,
    #[serde(default, rename = "exclude")]
    pub(super) excludes: Vec<Spanned<Exclude>>,
    #[serde(default, rename = "override")]
    pub(super) overrides: Vec<Spanned<Override>>,
    #[serde(default)]
    pub(super) paper: Vec<Spanned<Paper>>,
    #[serde(default)]
    pub(super) expect: Vec<Spanned<Expect>>,
}

/// What the runs are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Train, then tell events from random pairs.
    LinkPrediction,
}

/// A number of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Average precision.
    Ap,
    /// Area under the ROC curve.
    Auc,
}

impl Metric {
    fn all() -> Vec<Self> {
        vec![Self::Ap, Self::Auc]
    }

    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Ap => "AP",
            Self::Auc => "AUC",
        }
    }
}

/// Which events of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// All.
    Transductive,
    /// Those with a node that training never showed.
    Inductive,
}

impl Setting {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Transductive, Self::Inductive];

    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Transductive => "transductive",
            Self::Inductive => "inductive",
        }
    }
}

/// The product of these lists, and of the variants, is the experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Grid {
    pub(super) model: Vec<ModelName>,
    pub(super) data: Vec<String>,
    pub(super) seed: Vec<u64>,
    /// Nothing: as the model has it.
    #[serde(default)]
    pub(super) mite: Vec<bool>,
}

/// Settings under a name, as another dimension of the grid.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Variant {
    pub(super) name: String,
    #[serde(default)]
    pub(super) set: toml::Table,
}

/// Cells that the grid leaves out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Exclude {
    pub(super) when: When,
}

/// Settings of some of the cells; later ones win.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Override {
    pub(super) when: When,
    pub(super) set: toml::Table,
    /// Where the numbers were published.
    #[expect(dead_code, reason = "for those who read the file")]
    pub(super) source: String,
}

/// Which cells: all that fit everything it names.
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

/// What the paper states of one cell, in percent: the mean over its runs and their deviation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Paper {
    pub(super) model: ModelName,
    pub(super) data: String,
    mite: Option<bool>,
    variant: Option<String>,
    #[serde(default)]
    transductive: Values,
    #[serde(default)]
    inductive: Values,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Values {
    ap: Option<[f64; 2]>,
    auc: Option<[f64; 2]>,
}

impl Paper {
    pub(super) fn is_of(&self, cell: &Cell) -> bool {
        self.model == cell.model
            && self.data == cell.data
            && self.mite.is_none_or(|mite| mite == cell.has_mite())
            && (self.variant.is_none() || self.variant == cell.variant)
    }

    pub(super) fn value(&self, setting: Setting, metric: Metric) -> Option<[f64; 2]> {
        let values = match setting {
            Setting::Transductive => &self.transductive,
            Setting::Inductive => &self.inductive,
        };
        match metric {
            Metric::Ap => values.ap,
            Metric::Auc => values.auc,
        }
    }
}

/// What the mean over seeds must reach, in percent.
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
    /// How far below the paper's value it may lie.
    pub(super) below_paper_at_most: Option<f64>,
}

impl File {
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self> {
        let file: Self = toml::from_str(text).map_err(|error| Error::Experiment {
            file: path.to_owned(),
            line: error.span().map(|span| line(text, span.start)),
            detail: format!("{}; `hopedgn experiment --help` shows a whole file", error.message()),
        })?;
        let wrong = |detail: String| Err(Error::Experiment { file: path.to_owned(), line: None, detail });
        let Grid { model, data, seed, mite } = &file.grid;
        for (name, is_empty) in [("model", model.is_empty()), ("data", data.is_empty()), ("seed", seed.is_empty())] {
            if is_empty {
                return wrong(format!("found nothing in grid.{name}, expected at least one; name one"));
            }
        }
        let names: Vec<&String> = file.variants.iter().map(|variant| &variant.get_ref().name).collect();
        let twice = [has_twice(model), has_twice(data), has_twice(seed), has_twice(mite), has_twice(&names)];
        if twice.contains(&true) {
            return wrong("found something twice in the grid, expected each once; take one out".to_owned());
        }
        let is_plain = |name: &&String| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if let Some(name) = data.iter().chain(names).find(|name| !is_plain(name)) {
            return wrong(format!(
                "found the name {name:?}, expected letters, digits, - and _: folders are called so; where the file of a data \
                 set lies is said with --data-dir"
            ));
        }
        Ok(file)
    }
}

fn has_twice<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().any(|(place, value)| list[..place].contains(value))
}

/// The line of a byte, from 1.
pub(super) fn line(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count()
}

/// What is said of something that fits no cell.
pub(super) fn matches_nothing(what: &str) -> String {
    format!("found an {what} that fits no cell, expected one that fits some; correct its `when`, or take it out")
}
