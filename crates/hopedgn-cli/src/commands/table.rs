//! Text tables: the first column aligned left, the others right.

use std::fmt;

use ctdg::error::printable;

pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![header.into_iter().map(str::to_owned).collect()] }
    }

    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push(std::iter::once(printable(name).into_owned()).chain(cells).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        for row in &self.rows {
            let pad = |(column, (cell, &width)): (usize, (&String, &usize))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") }
            };
            let line: String = row.iter().zip(&widths).enumerate().map(pad).collect();
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
