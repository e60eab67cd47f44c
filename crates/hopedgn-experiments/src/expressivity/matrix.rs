//! Findings as a matrix: a row for each test and model, a column for each family.

use super::{Bound, Discrepancy, Findings, Origin, Row};

/// One of the matrices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// The tests first, then the models.
    pub lines: Vec<Line>,
}

/// A test or a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Whether it is a test.
    pub is_test: bool,
    /// Its bound.
    pub bound: Option<Bound>,
    /// One for each family.
    pub cells: Vec<Cell>,
}

/// Cases of a family that a test or a model separates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Cases separated.
    pub n: usize,
    /// All cases.
    pub all: usize,
    /// The rounds in which a test separates, the fewest and the most.
    pub rounds: Option<[usize; 2]>,
    /// A remark, if there is one.
    pub mark: Option<Mark>,
}

/// A remark about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Its bound separates more, and this is a local HopeDGN, or TGAT with MITE.
    Lost,
    /// 2-DWL separates more, and this is global HopeDGN.
    Missed,
    /// More than its bound allows, by the order of simultaneous events in the file.
    Ties,
    /// More than its bound allows.
    Broken,
}

impl Mark {
    /// All remarks with their texts.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Broken, "contradicts a proposition"),
        (Self::Ties, "beyond its bound by the order of simultaneous events in the file"),
        (Self::Missed, "separated by 2-DWL, missed by global HopeDGN"),
        (Self::Lost, "separated by its bound, not by this local model"),
    ];

    /// CSS class.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Ties => "ties",
            Self::Missed => "missed",
            Self::Lost => "lost",
        }
    }
}

impl Cell {
    /// `yes` or `no` of a single case, otherwise how many of them.
    #[must_use]
    pub fn text(&self) -> String {
        match (self.all, self.n) {
            (1, 0) => "no".to_owned(),
            (1, _) => "yes".to_owned(),
            (all, n) => format!("{n}/{all}"),
        }
    }

    /// `2`, or `1–3`.
    #[must_use]
    pub fn rounds_text(&self) -> Option<String> {
        let [first, last] = self.rounds?;
        Some(if first == last { first.to_string() } else { format!("{first}–{last}") })
    }

    /// CSS class.
    pub(super) fn class(&self) -> &'static str {
        match self.n {
            0 => "no",
            n if n == self.all => "yes",
            _ => "some",
        }
    }
}

impl Matrix {
    /// The matrix of one origin of weights.
    #[must_use]
    pub fn of(findings: &Findings, origin: Origin) -> Self {
        let Findings { families, models, bounds, .. } = findings;
        let test = |bound: Bound| {
            let cell = |row: &Row| {
                let n = row.count(|case| case.round(bound).is_some());
                Cell { n, all: row.cases.len(), rounds: row.rounds(bound), mark: None }
            };
            let cells = families.iter().map(cell).collect();
            Line { name: bound.as_str().to_owned(), is_test: true, bound: None, cells }
        };
        let model = |at: usize| {
            let name = &models[at];
            let cell = |row: &Row| {
                let n = row.count(|case| case.models(origin)[at]);
                Cell { n, all: row.cases.len(), rounds: None, mark: findings.mark(origin, name, &row.name) }
            };
            Line { name: name.clone(), is_test: false, bound: bounds[at], cells: families.iter().map(cell).collect() }
        };
        let tests = Bound::ALL.into_iter().map(test);
        Self { lines: tests.chain((0..models.len()).map(model)).collect() }
    }
}

impl Findings {
    /// The most serious remark about a model on a family.
    fn mark(&self, origin: Origin, model: &str, family: &str) -> Option<Mark> {
        let is_it = |one: &&Discrepancy| one.weights == origin && one.model == model && one.family == family;
        let any = |mut list: std::slice::Iter<'_, Discrepancy>| list.any(|one| is_it(&one));
        if self.broken().any(|one| is_it(&one)) {
            return Some(Mark::Broken);
        }
        let lists = [(&self.beyond, Mark::Ties), (&self.missed, Mark::Missed), (&self.lost, Mark::Lost)];
        lists.into_iter().find(|(list, _)| any(list.iter())).map(|(_, mark)| mark)
    }
}
