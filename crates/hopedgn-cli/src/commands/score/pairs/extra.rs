//! Columns of a file of pairs that are kept beside the score.

use ctdg::dataset::{PairColumns, TableRow};

use crate::commands::score::rows::free_name;

/// The fields of all rows that are neither source nor destination nor time, as they are in the file: one buffer.
#[derive(Debug, Default)]
pub(crate) struct ExtraColumns {
    /// All different.
    pub(crate) names: Vec<String>,
    text: String,
    /// Where each field ends in `text`.
    ends: Vec<usize>,
    /// Where the fields of each row end in `ends`; rows may be shorter than others.
    rows: Vec<usize>,
}

impl ExtraColumns {
    /// Adds the fields of a row.
    pub(crate) fn push(&mut self, row: &TableRow, columns: PairColumns) {
        for (_, field) in row.iter().enumerate().filter(|(at, _)| is_extra(*at, columns)) {
            self.text.push_str(field);
            self.ends.push(self.text.len());
        }
        self.rows.push(self.ends.len());
    }

    /// Names the columns after the last row: `names` are those of all columns of the file, if it has names.
    pub(crate) fn finish(&mut self, columns: PairColumns, names: Option<&[String]>) {
        let starts = std::iter::once(0).chain(self.rows.iter().copied());
        let most = starts.zip(&self.rows).map(|(start, end)| end - start).max().unwrap_or(0);
        let n_columns = names.map_or(usize::MAX, <[String]>::len);
        let extra = (0..n_columns).filter(|&at| is_extra(at, columns));
        let n_extra = names.map_or(most, |names| (0..names.len()).filter(|&at| is_extra(at, columns)).count());
        for at in extra.take(n_extra) {
            let name = names.and_then(|names| names.get(at)).filter(|name| !name.is_empty());
            let name = name.cloned().unwrap_or_else(|| format!("column_{}", at + 1));
            let free = free_name(&name, |name| self.names.iter().any(|taken| taken == name)).into_owned();
            self.names.push(free);
        }
    }

    /// A field; empty where the row is too short.
    pub(crate) fn get(&self, row: usize, column: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.rows[before]);
        let at = start + column;
        if at >= self.rows[row] {
            return "";
        }
        &self.text[at.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[at]]
    }
}

fn is_extra(at: usize, columns: PairColumns) -> bool {
    at != columns.src && at != columns.dst && Some(at) != columns.time
}
