//! `hopedgn evaluate`: a trained model under every protocol, heuristics beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use ctdg::negative::CandidateCount;
use hopedgn::Weights;
use hopedgn::evaluate::Evaluator;
use hopedgn::evaluate::{Evaluation, Negatives, RankingMetrics, RankingTest};
use hopedgn::metrics::LinkMetrics;
use hopedgn::run::TrainedModel;
use hopedgn::task::Task;

use crate::commands::progress::ProgressCallback;
use crate::commands::run_args::{Opened, RunArgs};
use crate::commands::table::Table;
use crate::output::{Outcome, Output};

/// Test a trained model: transductive and inductive, each kind of negatives, ranking; heuristics beside it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn evaluate runs/collegemsg-hopedgn-0
  hopedgn evaluate runs/mine --negatives all --ranking 100 --json")]
pub(crate) struct Evaluate {
    #[command(flatten)]
    of: RunArgs,
    /// Which pairs that did not happen stand against those that did
    #[arg(long, value_enum, default_value_t = NegativesArg::Random)]
    negatives: NegativesArg,
    /// Also rank each true destination against so many others, or against `all`
    #[arg(long, value_name = "K")]
    ranking: Option<Candidates>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NegativesArg {
    Random,
    Historical,
    Inductive,
    All,
}

impl NegativesArg {
    fn kinds(self) -> Vec<Negatives> {
        match self {
            Self::Random => vec![Negatives::Random],
            Self::Historical => vec![Negatives::Historical],
            Self::Inductive => vec![Negatives::Inductive],
            Self::All => Negatives::ALL.to_vec(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Candidates(CandidateCount);

impl FromStr for Candidates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(Self(CandidateCount::All)),
            (_, Ok(count @ 1..)) => Ok(Self(CandidateCount::Some(count))),
            _ => Err("expected a number of at least 1, or `all`".into()),
        }
    }
}

pub(crate) fn run(args: &Evaluate, output: &Output) -> anyhow::Result<Outcome> {
    let Opened { folder, config, manifest, loaded } = args.of.open(output)?;
    let device = args.of.device.open_for(&config.model, output)?;
    manifest.data.check(&loaded.stream)?;
    let task = Task::with_rule(&loaded.stream, &manifest.split)?;
    let TrainedModel { model, parameters, memory } = folder.model(&config, task.tables.widths())?;
    let weights = Weights::new(&device, parameters)?;
    let (memory, batch) = (memory.as_ref(), config.train.batch);
    let examination = Evaluator { task: &task, model: &*model, weights: &weights, memory, batch };
    let mut watch = ProgressCallback::new(output)?;
    let mut negatives = BTreeMap::new();
    for kind in args.negatives.kinds() {
        let by_scorer = examination.links(kind, &mut watch)?;
        if by_scorer.is_empty() {
            output.remark(format_args!("no {} negatives could be drawn: too few distinct pairs", kind.as_str()));
        }
        negatives.insert(kind.as_str().to_owned(), by_scorer);
    }
    let ranking = args.ranking.map(|Candidates(count)| -> anyhow::Result<_> {
        let candidates = match count {
            CandidateCount::Some(count) => serde_json::json!(count),
            CandidateCount::All => serde_json::json!("all"),
        };
        Ok(RankingTest { candidates, scorers: examination.ranks(count, &mut watch)? })
    });
    let answer = Evaluation {
        run: args.of.run.display().to_string(),
        data: config.data,
        model: config.model.name().as_str().to_owned(),
        device: device.name().to_owned(),
        negatives,
        ranking: ranking.transpose()?,
    };
    output.answer(text(&answer), &answer)?;
    Ok(Outcome::Done)
}

fn text(answer: &Evaluation) -> String {
    let percent = |value: f64| format!("{:.2}", 100.0 * value);
    let mut text = format!("{} on {}, test events\n", answer.model, answer.data);
    for (negatives, scorers) in &answer.negatives {
        let title = format!("{negatives} negatives");
        let mut table =
            Table::new([&title, "AP", "AUC", "whole: AP", "AUC", "new nodes: AP", "AUC", "whole: AP", "AUC"]);
        let cells = |metrics: Option<LinkMetrics>| match metrics {
            Some(LinkMetrics { ap, auc, ap_global, auc_global }) => [ap, auc, ap_global, auc_global].map(percent),
            None => [const { String::new() }; 4],
        };
        for (name, settings) in model_first(scorers, &answer.model) {
            table.row(name, [cells(settings.transductive), cells(settings.inductive)].concat());
        }
        let _ = write!(text, "\n{table}");
    }
    if let Some(ranking) = &answer.ranking {
        let title = match ranking.candidates.as_u64() {
            Some(count) => format!("ranked against at most {count}"),
            None => "ranked against all".to_owned(),
        };
        let mut table = Table::new([&title, "MRR", "Hits@10", "new nodes: MRR", "Hits@10"]);
        let cells = |metrics: Option<RankingMetrics>| match metrics {
            Some(RankingMetrics { mrr, hits_at_10 }) => [mrr, hits_at_10].map(percent),
            None => [const { String::new() }; 2],
        };
        for (name, settings) in model_first(&ranking.scorers, &answer.model) {
            table.row(name, [cells(settings.transductive), cells(settings.inductive)].concat());
        }
        let _ = write!(text, "\n{table}");
    }
    text + "\nAP and AUC are means over batches, as papers report them; `whole` is over all events at once.\n"
}

/// The model, then the heuristics.
fn model_first<'a, M>(scorers: &'a BTreeMap<String, M>, model: &str) -> Vec<(&'a String, &'a M)> {
    let mut rows: Vec<_> = scorers.iter().collect();
    rows.sort_by_key(|(name, _)| name.as_str() != model);
    rows
}
