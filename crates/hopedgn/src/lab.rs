//! The laboratory of expressive power: which models, with weights drawn at random, tell which graphs and pairs apart, beside
//! what 1-DWL and 2-DWL say of them.
//!
//! Two pairs are *separated* by a model if their logits differ by more than [`TOLERANCE`] for at least one of several
//! draws of its weights, each [twice](spread) what learning would start with; two graphs, if the logits of all their ordered pairs do, each list in order of size.

mod families;

use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::mite::PairQuery;
use ctdg::store::Store;
use ctdg::wl::{Dwl, Graph, Reading};
use hopedgn_tensor::{Device, Dropout, Parameters, Weights};
use rayon::prelude::*;
use serde::Serialize;

use crate::Result;
use crate::config::{Config, ModelConfig, ModelName};
use crate::encode::{FeatureTables, GlobalInput, Input, Layout};
use crate::memory::Memory;
use crate::model::{self, Model};
use crate::score::PairScorer;

pub use families::{Case, Family, all as families};

/// Logits that differ by less, in units of the larger of 1 and the largest logit, count as equal: sums of up to a hundred
/// terms in another order, some ten layers deep, move an `f32` by up to some 1e-6.
pub const TOLERANCE: f32 = 1e-5;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabConfig {
    /// Cases of each random family.
    pub n_cases: u64,
    /// Draws of each model's weights.
    pub n_draws: u64,
    /// Of cases and weights.
    pub seed: u64,
}

impl Default for LabConfig {
    fn default() -> Self {
        Self { n_cases: 10, n_draws: 3, seed: 0 }
    }
}

/// A model in small.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Its name, with what is changed.
    pub name: String,
    /// Its settings.
    pub config: ModelConfig,
    /// Whether it is bound by 1-DWL: it represents nodes one by one and knows nothing of what they have in common.
    pub is_of_nodes: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Findings {
    /// The models, in the order of [`Verdicts::models`].
    pub subjects: Vec<String>,
    /// Of these, the models of nodes.
    pub of_nodes: Vec<String>,
    /// See [`TOLERANCE`].
    pub tolerance: f32,
    /// Draws of each model's weights.
    pub n_draws: u64,
    /// One for each family.
    pub families: Vec<Row>,
    /// What a proposition excludes, and was seen.
    pub beyond: Vec<Surprise>,
    /// Cases that 2-DWL separates and global HopeDGN did not.
    pub missed: Vec<Surprise>,
}

/// A family and its cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Of the family.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Of each case.
    pub cases: Vec<Verdicts>,
}

/// Who separates a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// 1-DWL, 2-DWL.
    pub dwl: [bool; 2],
    /// Each model.
    pub models: Vec<bool>,
}

/// A case and a model that did not do what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Surprise {
    /// The family.
    pub family: String,
    /// The case, from 0.
    pub case: usize,
    /// The model.
    pub subject: String,
    /// What bounds it.
    pub bound: String,
}

/// Every model in small, some also with MITE, and global HopeDGN also with its local equation.
pub fn subjects() -> Result<Vec<Subject>> {
    use ModelName::{Dyrep, Graphmixer, HopedgnGlobal, Jodie, Tcl, Tgat, Tgn};
    let of_nodes = [Tgat, Tcl, Graphmixer, Jodie, Dyrep, Tgn];
    let mut subjects = Vec::new();
    for name in ModelName::ALL {
        subjects.push(Subject {
            name: name.as_str().to_owned(),
            config: small(name, &[])?,
            is_of_nodes: of_nodes.contains(&name),
        });
        if name == HopedgnGlobal {
            let config = small(name, &["replacing=met"])?;
            subjects.push(Subject { name: "hopedgn-global, met".to_owned(), config, is_of_nodes: false });
        }
        if [Tgat, Tcl, Graphmixer, Tgn].contains(&name) {
            let config = small(name, &["mite=true"])?;
            subjects.push(Subject { name: format!("{} + MITE", name.as_str()), config, is_of_nodes: false });
        }
    }
    Ok(subjects)
}

/// `name` with lists long enough for every event of every family, and nothing drawn at random.
fn small(name: ModelName, more: &[&str]) -> Result<ModelConfig> {
    let sizes = ["length=17", "neighbors=16", "k=8", "d-channel=6", "d-time=8", "d-mite=8", "d-cooccurrence=6"];
    let others = ["n-heads=2", "dropout=0", "beta=0.1", "sampling=recent"];
    // What is lost by a narrow width is not the equation's fault.
    let own: &[&str] =
        if name == ModelName::HopedgnGlobal { &["d-out=32", "n-blocks=3", "d-mite=16"] } else { &["d-out=16"] };
    let settings = sizes.iter().chain(&others).chain(own).chain(more);
    let settings: Vec<String> = settings.map(|setting| format!("model.{setting}")).collect();
    Ok(Config::resolve(name, &[], &settings)?.model)
}

/// Tries all [`subjects`] on all [`families`]; `done` is called after each case.
pub fn run(config: &LabConfig, done: &(dyn Fn() + Sync)) -> Result<Findings> {
    let subjects = subjects()?;
    let mut rows = Vec::new();
    for family in families(config.n_cases, config.seed)? {
        let judge = |case: &Case| {
            let verdicts = judge(case, &subjects, config);
            done();
            verdicts
        };
        let cases = family.cases.par_iter().map(judge).collect::<Result<Vec<_>>>()?;
        rows.push(Row { name: family.name, about: family.about, cases });
    }
    let names = |wanted: &dyn Fn(&Subject) -> bool| {
        subjects.iter().filter(|subject| wanted(subject)).map(|subject| subject.name.clone()).collect()
    };
    let (mut beyond, mut missed) = (Vec::new(), Vec::new());
    for row in &rows {
        for (case, verdicts) in row.cases.iter().enumerate() {
            for (subject, &separated) in subjects.iter().zip(&verdicts.models) {
                let is_global = subject.config.name == ModelName::HopedgnGlobal;
                let (k, bound) = if subject.is_of_nodes { (0, "1-DWL") } else { (1, "2-DWL") };
                let (family, name, bound) = (row.name.clone(), subject.name.clone(), bound.to_owned());
                let surprise = Surprise { family, case, subject: name, bound };
                match (separated, verdicts.dwl[k]) {
                    (true, false) if is_global || subject.is_of_nodes => beyond.push(surprise),
                    (false, true) if is_global => missed.push(surprise),
                    _ => {}
                }
            }
        }
    }
    Ok(Findings {
        subjects: names(&|_| true),
        of_nodes: names(&|subject| subject.is_of_nodes),
        tolerance: TOLERANCE,
        n_draws: config.n_draws,
        families: rows,
        beyond,
        missed,
    })
}

fn judge(case: &Case, subjects: &[Subject], config: &LabConfig) -> Result<Verdicts> {
    let tell = |subject: &Subject| separates(case, &subject.config, config);
    Ok(Verdicts { dwl: dwl(case)?, models: subjects.iter().map(tell).collect::<Result<_>>()? })
}

/// What 1-DWL and 2-DWL say of `case`.
pub fn dwl(case: &Case) -> Result<[bool; 2]> {
    let reading = Reading { until: Some(case.until), ..Reading::default() };
    let graphs = [Graph::new(&case.a, &reading)?, Graph::new(&case.b, &reading)?];
    let verdict = |k: usize| -> Result<bool> {
        let test = Dwl::new(k)?;
        let comparison = match &case.pairs {
            Some([s, t]) => test.compare_tuples((&graphs[0], s), (&graphs[1], t))?,
            None => test.compare(&graphs[0], &graphs[1])?,
        };
        Ok(comparison.verdict().separated())
    };
    Ok([verdict(1)?, verdict(2)?])
}

/// Whether one of the draws of `model`'s weights tells `case` apart.
pub fn separates(case: &Case, model: &ModelConfig, config: &LabConfig) -> Result<bool> {
    for draw in 0..config.n_draws {
        let seed = config.seed.wrapping_add(draw);
        let [a, b] = [scores(&case.a, case, 0, model, seed)?, scores(&case.b, case, 1, model, seed)?];
        if furthest(&a, &b) > TOLERANCE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Doubles all weights: as they are drawn for learning, each layer brings values closer together, and differences that
/// come from far are lost in roundings.
pub fn spread(parameters: &mut Parameters) {
    let ids: Vec<_> = parameters.iter().map(|(id, ..)| id).collect();
    for id in ids {
        parameters.get_mut(id).values_mut().iter_mut().for_each(|weight| *weight *= 2.0);
    }
}

/// How far apart two lists are, value by value, in units of the larger of 1 and the largest value.
#[must_use]
pub fn furthest(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return f32::INFINITY;
    }
    let scale = a.iter().chain(b).fold(1.0_f32, |scale, value| scale.max(value.abs()));
    a.iter().zip(b).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs())) / scale
}

/// The logit of the pair in question, or those of all ordered pairs in order of size.
fn scores(stream: &EventStream, case: &Case, side: usize, config: &ModelConfig, seed: u64) -> Result<Vec<f32>> {
    let query = |src: NodeId, dst: NodeId| PairQuery { src, dst, time: case.until };
    let nodes = || (0..stream.n_nodes()).filter_map(NodeId::from_index);
    let queries: Vec<PairQuery> = match &case.pairs {
        Some(pairs) => vec![query(pairs[side][0], pairs[side][1])],
        None => nodes().flat_map(|src| nodes().map(move |dst| query(src, dst))).collect(),
    };
    let tables = FeatureTables::of(stream)?;
    let (model, mut parameters) = model::build(config, tables.widths(), seed)?;
    spread(&mut parameters);
    let weights = Weights::new(&Device::cpu(), parameters)?;
    let mut logits = logits(stream, &tables, &*model, &weights, &queries)?;
    logits.sort_by(f32::total_cmp);
    Ok(logits)
}

/// The logits of `queries`, all of one time. What has a memory lives through all events before, those of one time together:
/// they are simultaneous, and must not see one another.
pub fn logits(
    stream: &EventStream,
    tables: &FeatureTables,
    model: &dyn Model,
    weights: &Weights,
    queries: &[PairQuery],
) -> Result<Vec<f32>> {
    let store = Store::build(stream)?;
    if let Layout::Pairs(layout) = model.layout() {
        // All at once: they look at one another.
        let input = Input::Pairs(Box::new(GlobalInput::of(layout, tables, &store, queries)?));
        let scores = weights.evaluate(&[input], |tape, input| -> Result<Vec<f32>> {
            let logits = model.logits(tape, input, Dropout::NONE)?;
            Ok(tape.read(logits)?)
        })?;
        return Ok(scores.concat());
    }
    let mut scorer = PairScorer::new(model, tables, &store);
    let Some(form) = model.memory() else { return scorer.logits(weights, queries, 1) };
    let until = queries.first().map_or(f64::INFINITY, |query| query.time);
    let past: Vec<EventId> = stream.ids().take(store.cut(until).n_events()).collect();
    let mut memory = Memory::new(weights.device(), form, stream, &past)?;
    for events in past.chunk_by(|&one, &other| store.time(one) == store.time(other)) {
        scorer.logits_with(weights, &PairQuery::of(stream, events), &mut memory, events)?;
    }
    scorer.logits_with(weights, queries, &mut memory, &[])
}
