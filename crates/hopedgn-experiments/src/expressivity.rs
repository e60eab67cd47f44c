//! Expressivity: which models separate which graphs and pairs, with random and with trained weights, beside 1-DWL, 2-DWL and marked
//! DWL.
//!
//! Two pairs are *separated* by a model if their logits differ by more than [`TOLERANCE`] for at least one of several
//! draws of its weights; two graphs, if the sorted logits of all their ordered pairs do. Where 2-DWL does not separate, global
//! HopeDGN adds the same terms in the same order, and a difference of one bit counts.
//!
//! | module | what it holds |
//! |---|---|
//! | `families` | graphs and pairs that are hard to separate |
//! | `models` | the tested models |
//! | `weights` | random and trained weights |
//! | `separation` | whether a model separates a case |
//! | `matrix`, `picture`, `page` | findings as a matrix, as SVG and as HTML |

mod families;
mod matrix;
mod models;
mod page;
mod picture;
mod separation;
mod weights;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use hopedgn::{Error, Result};

pub use families::{Case, Family, all as families};
pub use matrix::{Cell, Line, Mark, Matrix};
pub use models::{Bound, TestedModel, all as models};
pub use page::html;
pub use picture::svg;
pub use separation::{TOLERANCE, dwl, logits, max_difference, separates};
pub use weights::{TRAINING, Training, WeightSource, WeightedModel, enlarge};

/// What to test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressivityConfig {
    /// Cases of each random family.
    pub n_cases: u64,
    /// Random draws of each model's weights, and as many trainings.
    pub n_draws: u64,
    /// Seed of cases and weights.
    pub seed: u64,
    /// Families by name; all if empty.
    pub families: Vec<String>,
    /// Models by name; all if empty.
    pub models: Vec<String>,
}

impl Default for ExpressivityConfig {
    fn default() -> Self {
        Self { n_cases: 5, n_draws: 3, seed: 0, families: Vec::new(), models: Vec::new() }
    }
}

/// Those of `all` with a name in `wanted`; all if it is empty.
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
    /// Random.
    Random,
    /// Trained.
    Trained,
}

impl Origin {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Random, Self::Trained];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Trained => "trained",
        }
    }
}

/// Results of all cases and models.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Findings {
    /// The models, in the order of [`Verdicts::random`] and [`Verdicts::trained`].
    #[serde(rename = "subjects")]
    pub models: Vec<String>,
    /// The bound of each.
    pub bounds: Vec<Option<Bound>>,
    /// See [`TOLERANCE`].
    pub tolerance: f32,
    /// Draws of each model's weights.
    pub n_draws: u64,
    /// Seed of cases and weights.
    pub seed: u64,
    /// One for each family.
    pub families: Vec<Row>,
    /// Cases that a model separates and its bound does not.
    pub beyond: Vec<Discrepancy>,
    /// Cases that 2-DWL separates and global HopeDGN did not.
    pub missed: Vec<Discrepancy>,
    /// Cases that 2-DWL, or marked DWL, separates and a local HopeDGN with that bound did not.
    pub lost: Vec<Discrepancy>,
    /// All trainings.
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

/// Which tests and models separate a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// The round in which 1-DWL, 2-DWL, marked DWL, and marked DWL by nodes that met the pair separate it, if they do.
    pub dwl: [Option<usize>; 4],
    /// Whether a node has two simultaneous events.
    pub ties: bool,
    /// Each model with random weights.
    pub random: Vec<bool>,
    /// Each model with trained weights.
    pub trained: Vec<bool>,
}

impl Verdicts {
    /// The round in which the test of `bound` separates the case, if it does.
    #[must_use]
    pub fn round(&self, bound: Bound) -> Option<usize> {
        self.dwl[bound as usize]
    }

    /// Each model, by the origin of its weights.
    #[must_use]
    pub fn models(&self, origin: Origin) -> &[bool] {
        match origin {
            Origin::Random => &self.random,
            Origin::Trained => &self.trained,
        }
    }
}

/// A case on which a model differs from its k-DWL test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discrepancy {
    /// The family.
    pub family: String,
    /// The case, from 0.
    pub case: usize,
    /// The model.
    #[serde(rename = "subject")]
    pub model: String,
    /// Its weights.
    pub weights: Origin,
    /// The test.
    pub bound: Bound,
    /// Whether a node has two simultaneous events: a memory that keeps one of several simultaneous messages then depends on
    /// the order of the file, which is no property of the graph.
    pub ties: bool,
}

impl Discrepancy {
    /// Grouped by model, origin of the weights and family.
    #[must_use]
    pub fn by_family(discrepancies: &[Self]) -> Vec<Vec<&Self>> {
        let mut groups: BTreeMap<(&str, &str, &str), Vec<&Self>> = BTreeMap::new();
        for one in discrepancies {
            groups.entry((&one.model, one.weights.as_str(), &one.family)).or_default().push(one);
        }
        groups.into_values().collect()
    }
}

impl Findings {
    /// Contradictions to a proposition that the order of simultaneous events does not explain: errors of the implementation.
    pub fn broken(&self) -> impl Iterator<Item = &Discrepancy> {
        self.beyond.iter().filter(|discrepancy| discrepancy.bound != Bound::One || !discrepancy.ties)
    }
}

impl Row {
    /// Cases for which `separated` holds.
    pub fn count(&self, separated: impl Fn(&Verdicts) -> bool) -> usize {
        self.cases.iter().filter(|case| separated(case)).count()
    }

    /// The first and the last round in which the test of `bound` separates a case.
    #[must_use]
    pub fn rounds(&self, bound: Bound) -> Option<[usize; 2]> {
        let rounds = || self.cases.iter().filter_map(|case| case.round(bound));
        Some([rounds().min()?, rounds().max()?])
    }
}

/// Trains all [`models`] and tests them on all [`families`]. `done` is called with the share of the work that is done.
pub fn run(config: &ExpressivityConfig, done: &(dyn Fn(f64) + Sync)) -> Result<Findings> {
    let models = chosen(models::all()?, |model| &model.name, &config.models, "--model")?;
    let families = families::all(config.n_cases, config.seed)?;
    let families = chosen(families, |family| &family.name, &config.families, "--family")?;
    let source = WeightSource::new(config.seed)?;
    let progress = Progress::new(&families, &models, config, done);

    let draws = || (0..config.n_draws).flat_map(|draw| (0..models.len()).map(move |at| (at, draw)));
    let random = draws().map(|(at, draw)| source.random(&models[at], config.seed + draw));
    let random: Vec<WeightedModel> = random.collect::<Result<_>>()?;
    // The slowest first.
    let mut order: Vec<(usize, u64)> = draws().collect();
    order.sort_by_key(|&(at, _)| !models[at].is_global());
    let trained = order.par_iter().with_max_len(1).map(|&(at, draw)| {
        let trained = source.trained(&models[at], config.seed + draw)?;
        progress.trained(&models[at]);
        Ok(((draw, at), trained))
    });
    let mut trained: Vec<_> = trained.collect::<Result<_>>()?;
    trained.sort_by_key(|&(key, _)| key);
    let (trained, training): (Vec<WeightedModel>, Vec<Training>) = trained.into_iter().map(|(_, one)| one).unzip();

    let mut rows = Vec::new();
    for family in &families {
        let mut cases = Vec::new();
        for case in &family.cases {
            let dwl = separation::dwl(case)?;
            let separated = |at: usize| -> Result<[bool; 2]> {
                let tolerance = models[at].tolerance(dwl[1]);
                let by = |weighted: &[WeightedModel]| {
                    separation::separates(case, weighted.iter().skip(at).step_by(models.len()), tolerance)
                };
                let separated = [by(&random)?, by(&trained)?];
                progress.tested(case, &models[at]);
                Ok(separated)
            };
            let all = (0..models.len()).into_par_iter().with_max_len(1).map(separated).collect::<Result<Vec<_>>>()?;
            let (random, trained) = all.into_iter().map(|[random, trained]| (random, trained)).unzip();
            cases.push(Verdicts { dwl, ties: case.has_ties(), random, trained });
        }
        let of_pairs = family.cases.iter().any(|case| case.pairs.is_some());
        rows.push(Row { name: family.name.clone(), about: family.about.clone(), of_pairs, cases });
    }
    Ok(findings(config, &models, rows, training))
}

fn findings(config: &ExpressivityConfig, models: &[TestedModel], rows: Vec<Row>, training: Vec<Training>) -> Findings {
    let (mut beyond, mut missed, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        for (case, verdicts) in row.cases.iter().enumerate() {
            for (weights, (at, tested)) in
                Origin::ALL.into_iter().flat_map(|origin| models.iter().enumerate().map(move |one| (origin, one)))
            {
                let Some(bound) = tested.bound else { continue };
                let is_separated = verdicts.round(bound).is_some();
                let list = match (verdicts.models(weights)[at], is_separated) {
                    (true, false) => &mut beyond,
                    (false, true) if tested.is_global() => &mut missed,
                    (false, true) if bound != Bound::One => &mut lost,
                    _ => continue,
                };
                let (family, name) = (row.name.clone(), tested.name.clone());
                list.push(Discrepancy { family, case, model: name, weights, bound, ties: verdicts.ties });
            }
        }
    }
    Findings {
        models: models.iter().map(|tested| tested.name.clone()).collect(),
        bounds: models.iter().map(|tested| tested.bound).collect(),
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

/// Share of the work that is done, by estimated time.
struct Progress<'a> {
    total: f64,
    spent: std::sync::Mutex<f64>,
    done: &'a (dyn Fn(f64) + Sync),
}

impl<'a> Progress<'a> {
    fn new(
        families: &[Family],
        models: &[TestedModel],
        config: &ExpressivityConfig,
        done: &'a (dyn Fn(f64) + Sync),
    ) -> Self {
        let cases = families.iter().flat_map(|family| &family.cases);
        let testing: f64 = cases.flat_map(|case| models.iter().map(|one| one.cost(case))).sum();
        let training: f64 = models.iter().map(TestedModel::cost_of_training).sum();
        Self { total: testing + training * config.n_draws as f64, spent: std::sync::Mutex::new(0.0), done }
    }

    fn trained(&self, tested: &TestedModel) {
        self.add(tested.cost_of_training());
    }

    fn tested(&self, case: &Case, tested: &TestedModel) {
        self.add(tested.cost(case));
    }

    fn add(&self, cost: f64) {
        if let Ok(mut spent) = self.spent.lock() {
            *spent += cost;
            (self.done)((*spent / self.total).min(1.0));
        }
    }
}
