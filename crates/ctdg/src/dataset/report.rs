//! What reading a file left out.

use std::fmt;
use std::path::PathBuf;

use crate::dataset::layout::Layout;
use crate::error::{Error, Problem, Result};
use crate::event::Features;

/// What of a file is not in its stream; made by [`read_with_report`](crate::dataset::read_with_report).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadReport {
    /// Columns that were not read, or not kept, in the order of the file.
    pub unused_columns: Vec<UnusedColumn>,
    /// A feature file beside the data that was not used, because columns have the features.
    pub unused_sidecar: Option<PathBuf>,
    /// Events dropped because they equal an earlier one.
    pub n_duplicates: usize,
}

/// A column that is not in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedColumn {
    /// Its name, or `column N` without one.
    pub name: String,
    /// Why it is not.
    pub reason: UnusedReason,
}

/// Why a column is not in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnusedReason {
    /// It has no role, and was not asked for as a feature.
    NoRole,
    /// It was asked for if numeric, and this in it is not a number.
    NotNumeric {
        /// The first such value, quoted, and where it is.
        found: String,
    },
}

impl fmt::Display for UnusedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            UnusedReason::NoRole => write!(f, "{}", self.name),
            UnusedReason::NotNumeric { found } => write!(f, "{} (not numbers: {found})", self.name),
        }
    }
}

/// Columns that become features if all of their values are numbers.
#[derive(Debug)]
pub(crate) struct OptionalColumns {
    pub(crate) at: Vec<usize>,
    /// The first value of each that is not a number.
    rejected: Vec<Option<String>>,
}

impl OptionalColumns {
    pub(crate) fn of(layout: &Layout) -> Self {
        Self { at: layout.optional.clone(), rejected: vec![None; layout.optional.len()] }
    }

    /// The value of column `index`, or a placeholder: a column with one bad value is dropped in the end.
    pub(crate) fn value(&mut self, index: usize, value: Option<f32>, found: impl FnOnce() -> String) -> f32 {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            value
        } else {
            self.rejected[index].get_or_insert_with(found);
            0.0
        }
    }

    /// Drops column `index` in the end, because of `error`.
    pub(crate) fn reject(&mut self, index: usize, error: &Error) {
        self.rejected[index].get_or_insert_with(|| match (error.problem(), error.place().row) {
            (Problem::WrongType { found, .. }, _) => found.clone(),
            (Problem::Null, Some(row)) => format!("no value in row {row}"),
            (problem, _) => problem.to_string(),
        });
    }

    /// Rows of `features`, whose last columns are these, without the rejected ones. `None` if no column is left.
    pub(crate) fn kept(&self, features: Vec<f32>, n_rows: usize) -> Result<Option<Features>> {
        let Some(width) = features.len().checked_div(n_rows).filter(|&width| width > 0) else { return Ok(None) };
        let n_rejected = self.rejected.iter().flatten().count();
        if n_rejected == 0 {
            return Features::new(width, features).map(Some);
        }
        if n_rejected == width {
            return Ok(None);
        }
        let first = width.saturating_sub(self.at.len());
        let is_kept = |column: usize| column < first || self.rejected[column - first].is_none();
        let kept = features.iter().enumerate().filter(|(index, _)| is_kept(index % width)).map(|(_, value)| *value);
        Features::new(width - n_rejected, kept.collect::<Vec<_>>()).map(Some)
    }

    /// The columns of `layout` that are not in the stream; `name` names a column.
    pub(crate) fn unused(self, layout: &Layout, name: impl Fn(usize) -> String) -> Vec<UnusedColumn> {
        let no_role = layout.unused().into_iter().map(|at| (at, UnusedReason::NoRole));
        let rejected = self.at.into_iter().zip(self.rejected);
        let not_numeric = rejected.filter_map(|(at, found)| Some((at, UnusedReason::NotNumeric { found: found? })));
        let mut unused: Vec<_> = no_role.chain(not_numeric).collect();
        unused.sort_unstable_by_key(|(at, _)| *at);
        unused.into_iter().map(|(at, reason)| UnusedColumn { name: name(at), reason }).collect()
    }
}

/// Rows of both tables side by side.
pub(crate) fn side_by_side(left: Option<Features>, right: Option<Features>) -> Result<Option<Features>> {
    let (left, right) = match (left, right) {
        (Some(left), Some(right)) => (left, right),
        (left, right) => return Ok(left.or(right)),
    };
    let width = left.width() + right.width();
    let mut values = Vec::with_capacity(width * left.n_rows());
    for row in 0..left.n_rows() {
        values.extend_from_slice(left.row(row));
        values.extend_from_slice(right.row(row));
    }
    Features::new(width, values).map(Some)
}
