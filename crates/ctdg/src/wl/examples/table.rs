//! Table of the verdicts on all examples.

use std::fmt;

use crate::error::Result;
use crate::wl::dwl::{Dwl, Variant};
use crate::wl::examples::{Example, all};
use crate::wl::graph::{Graph, GraphOptions, Times};
use crate::wl::isomorphism::tuple_isomorphism;
use crate::wl::marked::Reach;

/// Dimensions shown.
const KS: [usize; 3] = [1, 2, 3];

/// Verdicts on one example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Name of the example.
    pub name: &'static str,
    /// What is compared: `graphs`, or the tuples.
    pub question: String,
    /// Nodes of each graph.
    pub n_nodes: usize,
    /// Round in which k-DWL separates them, for `k` = 1, 2, 3.
    pub dynamic: [Option<usize>; 3],
    /// The same for marked DWL, by all nodes and by those that interacted with the pair.
    pub marked: [Option<usize>; 2],
    /// The same for 1-WL, 2-FWL and 3-FWL on the graphs without times.
    pub fixed: [Option<usize>; 3],
    /// Whether they are isomorphic, by exhaustive search.
    pub isomorphic: bool,
}

/// All rows; displays as a Markdown table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table(pub Vec<Row>);

/// Runs every example, calling `observe` before each. Takes seconds.
pub fn table(mut observe: impl FnMut(&Example)) -> Result<Table> {
    let rows = all()?.into_iter().map(|example| {
        observe(&example);
        row(&example)
    });
    Ok(Table(rows.collect::<Result<_>>()?))
}

fn row(example: &Example) -> Result<Row> {
    let read = |times| {
        let options = GraphOptions { until: example.until, times, ..GraphOptions::default() };
        Ok::<_, crate::Error>((Graph::new(&example.a, &options)?, Graph::new(&example.b, &options)?))
    };
    let (a, b) = read(Times::Kept)?;
    let (static_a, static_b) = read(Times::Dropped)?;
    let tuples = example.tuples.as_ref().map(|[s, t]| (s.as_slice(), t.as_slice()));
    let (mut dynamic, mut fixed) = ([None; 3], [None; 3]);
    for (index, k) in KS.into_iter().enumerate() {
        let run = Dwl::new(k)?.compare_with_progress((&a, &b), tuples, &mut |_| {})?;
        dynamic[index] = run.verdict().round;
        let test = Dwl::static_test(k, Variant::Folklore)?;
        fixed[index] = test.compare_with_progress((&static_a, &static_b), tuples, &mut |_| {})?.verdict().round;
    }
    let marked = |reach| -> Result<Option<usize>> {
        Ok(Dwl::marked(reach)?.compare_with_progress((&a, &b), tuples, &mut |_| {})?.verdict().round)
    };
    let marked = [marked(Reach::All)?, marked(Reach::Met)?];
    let (s, t) = tuples.unwrap_or_default();
    let isomorphic = tuple_isomorphism((&a, s), (&b, t))?.is_some();
    let question = example.tuple_argument().unwrap_or_else(|| "graphs".into());
    Ok(Row { name: example.name, question, n_nodes: a.n_nodes(), dynamic, marked, fixed, isomorphic })
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEAD: [&str; 12] = [
            "example",
            "compared",
            "nodes",
            "1-DWL",
            "2-DWL",
            "marked",
            "marked, met",
            "3-DWL",
            "1-WL",
            "2-FWL",
            "3-FWL",
            "isomorphic",
        ];
        let verdict = |round: Option<usize>| round.map_or_else(|| "no".to_owned(), |round| format!("yes, {round}"));
        let cells = |row: &Row| {
            let Row { name, question, n_nodes, dynamic: [one, two, three], marked, fixed, isomorphic } = row;
            let mut cells = vec![(*name).to_owned(), question.clone(), n_nodes.to_string()];
            cells.extend([one, two].into_iter().chain(marked).chain([three]).chain(fixed).map(|&round| verdict(round)));
            cells.push(if *isomorphic { "yes" } else { "no" }.to_owned());
            cells
        };
        let rows: Vec<Vec<String>> = self.0.iter().map(cells).collect();
        let width = |column: usize| {
            rows.iter().map(|row| row[column].len()).chain([HEAD[column].len()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        let mut line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            writeln!(f, "| {} |", padded.collect::<Vec<_>>().join(" | "))
        };
        line(&HEAD.map(str::to_owned))?;
        line(&widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>())?;
        rows.iter().try_for_each(|row| line(row))
    }
}
