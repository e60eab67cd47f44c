//! Published values: stated in an experiment file, or taken from a file of them.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::Cell;
use super::file::{self, When};
use super::inherit::Located;
use super::measure::{Measure, Metric, Setting};
use hopedgn::config::ModelName;
use hopedgn::evaluate::Negatives;
use hopedgn::{Error, Result};

/// Published values of one row and dataset, in percent: mean and standard deviation.
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
    /// Node classification.
    auc: Option<[f64; 2]>,
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

    pub(super) fn value(&self, measure: Measure) -> Option<[f64; 2]> {
        let Measure { metric, setting, negatives } = measure;
        if negatives.is_some_and(|negatives| negatives != Negatives::Random) {
            return None;
        }
        let values = match setting {
            Some(Setting::Transductive) => &self.transductive,
            Some(Setting::Inductive) => &self.inductive,
            None => return self.auc.filter(|_| metric == Metric::Auc),
        };
        match metric {
            Metric::Ap => values.ap,
            Metric::Auc => values.auc,
            _ => None,
        }
    }
}

/// A reference to a file of published values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PaperFrom {
    /// Relative to the file that names it.
    file: String,
    /// The cells that its values are compared with; all unless stated.
    #[serde(default)]
    when: When,
}

/// The values of such a file.
#[derive(Debug)]
pub(super) struct PaperFile {
    when: When,
    values: Vec<Paper>,
}

/// The file itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    paper: Vec<Paper>,
}

impl PaperFile {
    /// Reads the file that `from`, in the experiment file `path`, refers to.
    pub(super) fn read(from: Located<PaperFrom>, path: &Path) -> Result<Located<Self>> {
        let Located { item: PaperFrom { file, when }, at } = from;
        let file = path.parent().unwrap_or(Path::new("")).join(file);
        let text = fs::read_to_string(&file).map_err(|error| {
            at.wrong(format!("could not read {} of published values: {error}; correct the name", file.display()))
        })?;
        let document: Document = toml::from_str(&text).map_err(|error| Error::Experiment {
            file: file.clone(),
            line: error.span().map(|span| file::line(&text, span.start)),
            detail: error.message().to_owned(),
        })?;
        let mut values = document.paper;
        for value in &mut values {
            // Without `mite`: the model as published.
            value.mite.get_or_insert(value.model == ModelName::HopeDgn);
        }
        Ok(Located { item: Self { when, values }, at })
    }

    pub(super) fn value(&self, cell: &Cell, measure: Measure) -> Option<[f64; 2]> {
        let mut values = self.values.iter().filter(|value| self.when.fits(cell) && value.is_of(cell));
        values.find_map(|value| value.value(measure))
    }

    fn fits_any(&self, cells: &[Cell]) -> bool {
        cells.iter().any(|cell| self.when.fits(cell) && self.values.iter().any(|value| value.is_of(cell)))
    }
}

impl file::File {
    /// The published value beside `cell`; one stated in the experiment file wins.
    pub(super) fn published(&self, cell: &Cell, measure: Measure) -> Option<[f64; 2]> {
        let stated = self.paper.iter().filter(|paper| paper.item.is_of(cell));
        let stated = stated.filter_map(|paper| paper.item.value(measure)).next_back();
        stated.or_else(|| self.paper_files.iter().rev().find_map(|file| file.item.value(cell, measure)))
    }

    pub(super) fn has_published(&self) -> bool {
        !(self.paper.is_empty() && self.paper_files.is_empty())
    }

    /// Refuses published values that no cell is compared with.
    pub(super) fn check_published(&self, cells: &[Cell]) -> Result<()> {
        for Located { item: value, at } in &self.paper {
            if !cells.iter().any(|cell| value.is_of(cell)) {
                let detail = format!(
                    "found a published value for {} on {}, expected one for a cell of the grid; add its model and data to \
                     [grid], or remove it",
                    value.model.as_str(),
                    value.data
                );
                return Err(at.wrong(detail));
            }
        }
        match self.paper_files.iter().find(|file| !file.item.fits_any(cells)) {
            Some(file) => Err(file.at.wrong(file::matches_nothing("a reference to published values"))),
            None => Ok(()),
        }
    }
}
