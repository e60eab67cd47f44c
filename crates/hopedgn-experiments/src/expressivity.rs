//! The laboratory of expressive power: which models, with weights drawn at random and with trained ones, tell which graphs
//! and pairs apart, beside what 1-DWL and 2-DWL say of them.
//!
//! Two pairs are *separated* by a model if their logits differ by more than [`TOLERANCE`] for at least one of several
//! draws of its weights; two graphs, if the logits of all their ordered pairs do, each list in order of size. Where 2-DWL does
//! not separate, the sums of global HopeDGN are those of the same terms in the same order, and one bit is a difference.
//!
//! | module | what it holds |
//! |---|---|
//! | `families` | graphs and pairs that are hard to tell apart |
//! | `subject` | the models in small |
//! | `learn` | how they get their weights |
//! | `judge` | one case, one model: separated or not |
//! | `matrix`, `picture`, `page` | what was found, as a matrix, as SVG and as HTML |

mod families;
mod judge;
mod learn;
mod matrix;
mod page;
mod picture;
mod subject;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use hopedgn::{Error, Result};

pub use families::{Case, Family, all as families};
pub use judge::{TOLERANCE, dwl, furthest, logits, separates};
pub use learn::{Ready, School, TRAINING, Training, spread};
pub use matrix::{Cell, Line, Mark, Matrix};
pub use page::html;
pub use picture::svg;
pub use subject::{Bound, Subject, all as subjects};

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabConfig {
    /// Cases of each random family.
    pub n_cases: u64,
    /// Draws of each model's weights, and trainings from as many starts.
    pub n_draws: u64,
    /// Of cases and weights.
    pub seed: u64,
    /// The families to try, by name; all without a name.
    pub families: Vec<String>,
    /// The models to try, by name; all without a name.
    pub subjects: Vec<String>,
}

impl Default for LabConfig {
    fn default() -> Self {
        Self { n_cases: 5, n_draws: 3, seed: 0, families: Vec::new(), subjects: Vec::new() }
    }
}

/// Those of `all` that are called as `wanted` says.
fn chosen<T>(all: Vec<T>, name: fn(&T) -> &str, wanted: &[String], option: &'static str) -> Result<Vec<T>> {
    if let Some(unknown) = wanted.iter().find(|wanted| !all.iter().any(|one| name(one) == *wanted)) {
        let known: Vec<&str> = all.iter().map(name).collect();
        let expected = format!("one of: {}", known.join("; "));
        return Err(Error::Setting { name: option, found: unknown.clone(), expected });
    }
    Ok(all.into_iter().filter(|one| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name(one))).collect())
}

/// Where weights come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Drawn.
    Random,
    /// Learned.
    Trained,
}

impl Origin {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Random, Self::Trained];

    /// As people read it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Trained => "trained",
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Findings {
    /// The models, in the order of [`Verdicts::random`] and [`Verdicts::trained`].
    pub subjects: Vec<String>,
    /// What bounds each of them.
    pub bounds: Vec<Option<Bound>>,
    /// See [`TOLERANCE`].
    pub tolerance: f32,
    /// Draws of each model's weights.
    pub n_draws: u64,
    /// Of cases and weights.
    pub seed: u64,
    /// One for each family.
    pub families: Vec<Row>,
    /// What a proposition excludes, and was seen.
    pub beyond: Vec<Surprise>,
    /// Cases that 2-DWL separates and global HopeDGN did not.
    pub missed: Vec<Surprise>,
    /// Cases that 2-DWL separates and a local HopeDGN did not.
    pub lost: Vec<Surprise>,
    /// How training went.
    pub training: Vec<Training>,
}

/// A family and its cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// Of the family.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Whether the cases are pairs of nodes, not graphs.
    pub of_pairs: bool,
    /// Of each case.
    pub cases: Vec<Verdicts>,
}

/// Who separates a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// The round in which 1-DWL and 2-DWL separate it, if they do.
    pub dwl: [Option<usize>; 2],
    /// Whether some node meets two others at once.
    pub ties: bool,
    /// Each model with weights drawn at random.
    pub random: Vec<bool>,
    /// Each model with trained weights.
    pub trained: Vec<bool>,
}

impl Verdicts {
    /// Each model with weights of such an origin.
    #[must_use]
    pub fn models(&self, origin: Origin) -> &[bool] {
        match origin {
            Origin::Random => &self.random,
            Origin::Trained => &self.trained,
        }
    }
}

/// A case and a model that did not do what a test of colours does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Surprise {
    /// The family.
    pub family: String,
    /// The case, from 0.
    pub case: usize,
    /// The model.
    pub subject: String,
    /// Its weights.
    pub weights: Origin,
    /// The test.
    pub bound: Bound,
    /// Whether some node meets two others at once: a memory that keeps one of several simultaneous messages then sees the
    /// order of the file, which no graph has.
    pub ties: bool,
}

impl Surprise {
    /// Those of one model, one kind of weights and one family together.
    #[must_use]
    pub fn by_family(surprises: &[Self]) -> Vec<Vec<&Self>> {
        let mut groups: BTreeMap<(&str, &str, &str), Vec<&Self>> = BTreeMap::new();
        for one in surprises {
            groups.entry((&one.subject, one.weights.as_str(), &one.family)).or_default().push(one);
        }
        groups.into_values().collect()
    }
}

impl Findings {
    /// What no proposition allows and no order of simultaneous events explains: something is wrong then.
    pub fn broken(&self) -> impl Iterator<Item = &Surprise> {
        self.beyond.iter().filter(|surprise| surprise.bound == Bound::Two || !surprise.ties)
    }
}

impl Row {
    /// How many cases `separated` holds of.
    pub fn count(&self, separated: impl Fn(&Verdicts) -> bool) -> usize {
        self.cases.iter().filter(|case| separated(case)).count()
    }

    /// The rounds in which k-DWL separates cases, the fewest and the most.
    #[must_use]
    pub fn rounds(&self, k: usize) -> Option<[usize; 2]> {
        let rounds = || self.cases.iter().filter_map(|case| case.dwl[k - 1]);
        Some([rounds().min()?, rounds().max()?])
    }
}

/// Trains all [`subjects`] and tries them on all [`families`]. `done` is called with the share of the work that is behind us.
pub fn run(config: &LabConfig, done: &(dyn Fn(f64) + Sync)) -> Result<Findings> {
    let subjects = chosen(subject::all()?, |subject| &subject.name, &config.subjects, "--model")?;
    let families = families::all(config.n_cases, config.seed)?;
    let families = chosen(families, |family| &family.name, &config.families, "--family")?;
    let school = School::new(config.seed)?;
    let progress = Progress::new(&families, &subjects, config, done);

    let draws = || (0..config.n_draws).flat_map(|draw| (0..subjects.len()).map(move |at| (at, draw)));
    let drawn = draws().map(|(at, draw)| school.drawn(&subjects[at], config.seed + draw));
    let drawn: Vec<Ready> = drawn.collect::<Result<_>>()?;
    // Those that look at all pairs take longest: they begin.
    let mut order: Vec<(usize, u64)> = draws().collect();
    order.sort_by_key(|&(at, _)| !subjects[at].is_global());
    let taught = order.par_iter().with_max_len(1).map(|&(at, draw)| {
        let taught = school.taught(&subjects[at], config.seed + draw)?;
        progress.trained(&subjects[at]);
        Ok(((draw, at), taught))
    });
    let mut taught: Vec<_> = taught.collect::<Result<_>>()?;
    taught.sort_by_key(|&(key, _)| key);
    let (trained, training): (Vec<Ready>, Vec<Training>) = taught.into_iter().map(|(_, taught)| taught).unzip();

    let mut rows = Vec::new();
    for family in &families {
        let mut cases = Vec::new();
        for case in &family.cases {
            let dwl = judge::dwl(case)?;
            let tell = |at: usize| -> Result<[bool; 2]> {
                let tolerance = subjects[at].tolerance(dwl[1]);
                let of =
                    |ready: &[Ready]| judge::separates(case, ready.iter().skip(at).step_by(subjects.len()), tolerance);
                let told = [of(&drawn)?, of(&trained)?];
                progress.judged(case, &subjects[at]);
                Ok(told)
            };
            let told = (0..subjects.len()).into_par_iter().with_max_len(1).map(tell).collect::<Result<Vec<_>>>()?;
            let (random, trained) = told.into_iter().map(|[random, trained]| (random, trained)).unzip();
            cases.push(Verdicts { dwl, ties: case.has_ties(), random, trained });
        }
        let of_pairs = family.cases.iter().any(|case| case.pairs.is_some());
        rows.push(Row { name: family.name.clone(), about: family.about.clone(), of_pairs, cases });
    }
    Ok(findings(config, &subjects, rows, training))
}

fn findings(config: &LabConfig, subjects: &[Subject], rows: Vec<Row>, training: Vec<Training>) -> Findings {
    let (mut beyond, mut missed, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        for (case, verdicts) in row.cases.iter().enumerate() {
            for (weights, (at, subject)) in
                Origin::ALL.into_iter().flat_map(|origin| subjects.iter().enumerate().map(move |one| (origin, one)))
            {
                let Some(bound) = subject.bound else { continue };
                let told = verdicts.dwl[bound.k() - 1].is_some();
                let list = match (verdicts.models(weights)[at], told) {
                    (true, false) => &mut beyond,
                    (false, true) if subject.is_global() => &mut missed,
                    (false, true) if bound == Bound::Two => &mut lost,
                    _ => continue,
                };
                let (family, name) = (row.name.clone(), subject.name.clone());
                list.push(Surprise { family, case, subject: name, weights, bound, ties: verdicts.ties });
            }
        }
    }
    Findings {
        subjects: subjects.iter().map(|subject| subject.name.clone()).collect(),
        bounds: subjects.iter().map(|subject| subject.bound).collect(),
        tolerance: TOLERANCE,
        n_draws: config.n_draws,
        seed: config.seed,
        families: rows,
        beyond,
        missed,
        lost,
        training,
    }
}

/// Counts the work that is done, in units of about the same time.
struct Progress<'a> {
    total: f64,
    behind: std::sync::Mutex<f64>,
    done: &'a (dyn Fn(f64) + Sync),
}

impl<'a> Progress<'a> {
    fn new(families: &[Family], subjects: &[Subject], config: &LabConfig, done: &'a (dyn Fn(f64) + Sync)) -> Self {
        let cases = families.iter().flat_map(|family| &family.cases);
        let judging: f64 = cases.flat_map(|case| subjects.iter().map(|one| one.cost(case))).sum();
        let training: f64 = subjects.iter().map(Subject::cost_of_training).sum();
        Self { total: judging + training * config.n_draws as f64, behind: std::sync::Mutex::new(0.0), done }
    }

    fn trained(&self, subject: &Subject) {
        self.add(subject.cost_of_training());
    }

    fn judged(&self, case: &Case, subject: &Subject) {
        self.add(subject.cost(case));
    }

    fn add(&self, cost: f64) {
        if let Ok(mut behind) = self.behind.lock() {
            *behind += cost;
            (self.done)((*behind / self.total).min(1.0));
        }
    }
}
