//! Experiments as data: a file declares a grid of runs, and every table is made from what the runs wrote down.
//!
//! | step | where |
//! |---|---|
//! | read a file and what it extends, refuse what is not known | `file`, `extend` |
//! | multiply the grid out, resolve and check every cell, name it by a hash of its settings | `grid` |
//! | look at what lies in the folders of the cells, or among runs that were kept | `state`, `kept`, `outcome` |
//! | means over seeds, beside the paper's values | `measure`, `table` |
//! | the same for people | `page`, `markdown`, `figure`, `index` |
//! | the same against what was expected | `check` |
//!
//! Running the cells is the command line's affair: each is a `hopedgn train` of its own, and what follows it.

mod archived_runs;
mod check;
mod figure;
mod file;
mod grid;
mod index;
mod inherit;
mod markdown;
mod measure;
mod outcome;
mod page;
mod paper;
mod state;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use hopedgn::Result;

pub use archived_runs::{Archived, RunArchive, archive};
pub use check::{Verdict, check};
pub use figure::{Figure, Picture};
pub use file::{Evaluate, Kind, Wanted};
pub use grid::Cell;
pub use index::{Listed, index};
pub use markdown::markdown;
pub use measure::{Heuristic, Measure, Metric, Setting};
pub use outcome::{Outcome, Pace, Provenance};
pub use page::html;
pub use state::{Found, State, Step, reason};
pub use table::{Entry, Reference, Table};

/// A file of an experiment with its cells, resolved and checked.
#[derive(Debug)]
pub struct Experiment {
    path: PathBuf,
    file: file::File,
    cells: Vec<Cell>,
    is_smoke: bool,
}

impl Experiment {
    /// Reads a file and resolves every cell of its grid.
    pub fn read(path: &Path) -> Result<Self> {
        Self::open(path, false)
    }

    /// The same grid with one seed and so small that each cell takes a second.
    pub fn read_small(path: &Path) -> Result<Self> {
        Self::open(path, true)
    }

    fn open(path: &Path, is_smoke: bool) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| ctdg::Error::io(path, "read", source))?;
        Self::parse(path, &text, is_smoke)
    }

    fn parse(path: &Path, text: &str, is_smoke: bool) -> Result<Self> {
        let file = file::File::parse(path, text)?;
        let mut experiment = Self { path: path.to_owned(), file, cells: Vec::new(), is_smoke };
        experiment.cells = grid::cells(&experiment)?;
        experiment.check_references()?;
        Ok(experiment)
    }

    /// What it is called.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// What it is for.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.file.about
    }

    /// What a reader must know of its numbers.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.file.note
    }

    /// Whether it says what is expected of its numbers.
    #[must_use]
    pub fn has_expectations(&self) -> bool {
        !self.file.expect.is_empty()
    }

    /// Where it was read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of its file without the ending.
    #[must_use]
    pub fn stem(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Every run, in order.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The data sets, in order.
    #[must_use]
    pub fn data(&self) -> &[String] {
        &self.file.grid.data
    }

    /// Refuses values of the paper and expectations that no cell will ever be compared with.
    fn check_references(&self) -> Result<()> {
        self.file.check_published(&self.cells)?;
        for expect in &self.file.expect {
            let value = &expect.item;
            if value.at_least.is_some() == value.below_paper_at_most.is_some() {
                let detail = "expected one of at-least and below-paper-at-most, found both or none; state one";
                return Err(expect.at.wrong(detail.to_owned()));
            }
            if !self.cells.iter().any(|cell| value.when.fits(cell)) {
                return Err(expect.at.wrong(file::matches_nothing("expectation")));
            }
        }
        self.check_figures()
    }
}
