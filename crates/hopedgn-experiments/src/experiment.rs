//! Experiments as data: a TOML file declares a grid of runs; tables, figures and checks are made from the results of the runs.
//!
//! | step | where |
//! |---|---|
//! | read a file and the files it extends, refuse unknown keys | `file`, `inherit`, `paper` |
//! | expand the grid, resolve and validate the settings of every cell, hash them | `grid` |
//! | find results of the cells, in their folders or in archives | `state`, `archived_runs`, `content`, `outcome` |
//! | means over seeds, beside published values; mean ranks | `measure`, `table`, `standings` |
//! | pages with tables and figures | `page`, `markdown`, `figure`, `index` |
//! | tables for papers and programs | `latex`, `long_csv` |
//! | comparison with expected values | `check` |
//!
//! The command line runs the cells, each as a training process of its own.

mod archived_runs;
mod check;
mod content;
mod figure;
mod file;
mod grid;
mod index;
mod inherit;
mod latex;
mod long_csv;
mod markdown;
mod measure;
mod outcome;
mod page;
mod paper;
mod standings;
mod state;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopedgn::{ModelRegistry, Result};

pub use archived_runs::{Archived, RunArchive, archive};
pub use check::{Verdict, check};
pub use content::Content;
pub use figure::{Figure, Picture};
pub use file::{Evaluate, Kind, Wanted};
pub use grid::Cell;
pub use index::{Listed, index};
pub use latex::latex;
pub use long_csv::long_csv;
pub use markdown::{markdown, tables as markdown_tables};
pub use measure::{Heuristic, Measure, Metric, Setting};
pub use outcome::{Outcome, Pace, Provenance};
pub use page::html;
pub use standings::{Standing, Standings};
pub use state::{Found, State, Step, reason};
pub use table::{Entry, Reference, Table};

/// An experiment file with its cells, resolved and validated.
#[derive(Debug)]
pub struct Experiment {
    path: PathBuf,
    file: file::File,
    cells: Vec<Cell>,
    is_smoke: bool,
    registry: Arc<ModelRegistry>,
}

impl Experiment {
    /// Reads a file and resolves every cell of its grid, whose models are those of `registry`.
    pub fn read(path: &Path, registry: &ModelRegistry) -> Result<Self> {
        Self::open(path, registry, false)
    }

    /// The same grid with one seed and tiny settings: about a second a cell.
    pub fn read_small(path: &Path, registry: &ModelRegistry) -> Result<Self> {
        Self::open(path, registry, true)
    }

    fn open(path: &Path, registry: &ModelRegistry, is_smoke: bool) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| ctdg::Error::io(path, "read", source))?;
        Self::parse(path, &text, registry, is_smoke)
    }

    fn parse(path: &Path, text: &str, registry: &ModelRegistry, is_smoke: bool) -> Result<Self> {
        let file = file::File::parse(path, text)?;
        file.check_models(path, text, registry)?;
        let registry = Arc::new(registry.clone());
        let mut experiment = Self { path: path.to_owned(), file, cells: Vec::new(), is_smoke, registry };
        experiment.cells = grid::cells(&experiment)?;
        experiment.check_references()?;
        Ok(experiment)
    }

    /// The models that its cells may name.
    #[must_use]
    pub fn registry(&self) -> &ModelRegistry {
        &self.registry
    }

    /// Its title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Its purpose.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.file.about
    }

    /// A note on its numbers.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.file.note
    }

    /// Whether it states expected values.
    #[must_use]
    pub fn has_expectations(&self) -> bool {
        !self.file.expect.is_empty()
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the file without its extension.
    #[must_use]
    pub fn stem(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Every run, in order.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The datasets, in order.
    #[must_use]
    pub fn data(&self) -> &[String] {
        &self.file.grid.data
    }

    /// Refuses published values, expectations and figures that fit no cell.
    fn check_references(&self) -> Result<()> {
        self.file.check_published(&self.cells)?;
        for expect in &self.file.expect {
            let value = &expect.item;
            if value.at_least.is_some() == value.below_paper_at_most.is_some() {
                let detail = "expected one of at-least and below-paper-at-most, found both or none; state one";
                return Err(expect.at.wrong(detail.to_owned()));
            }
            if !self.cells.iter().any(|cell| value.when.fits(cell)) {
                return Err(expect.at.wrong(file::matches_nothing("an expectation")));
            }
        }
        if let Some(row) = &self.file.improvement_of
            && !self.cells.iter().any(|cell| cell.row() == row.item)
        {
            let detail = format!(
                "found improvement-of = {:?}, expected the name of a row as its tables have it, such as \"HopeDGN\"",
                row.item
            );
            return Err(row.at.wrong(detail));
        }
        self.check_figures()
    }
}
