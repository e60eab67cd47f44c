//! `hopedgn evaluate`: test metrics of a trained model under every protocol, with heuristics beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use ctdg::negative::CandidateCount;
use hopedgn::evaluate::{Evaluation, Negatives, RankingMetrics};
use hopedgn::metrics::LinkMetrics;
use hopedgn::{EvaluateOptions, ModelRegistry};

use crate::commands::progress::ProgressCallback;
use crate::commands::run_args::{OtherEvents, RunArgs};
use crate::commands::table::Table;
use crate::output::{Outcome, Output};

/// Test a trained model: transductive and inductive, each kind of negatives, ranking; heuristics beside it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn evaluate runs/collegemsg-hopedgn-0
  hopedgn evaluate runs/mine --negatives all --ranking 100 --json")]
pub(crate) struct Evaluate {
    /// Negatives for AP and AUC
    #[arg(long, value_enum, default_value_t = NegativesArg::Random)]
    negatives: NegativesArg,
    /// Also rank each true destination against so many others, or against `all`
    #[arg(long, value_name = "K")]
    ranking: Option<Candidates>,
    #[command(flatten)]
    run: RunArgs,
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

pub(crate) fn run(args: &Evaluate, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let predictor = args.run.load(OtherEvents::Refused, registry, output)?;
    let options =
        EvaluateOptions { negatives: args.negatives.kinds(), ranking: args.ranking.map(|Candidates(count)| count) };
    let mut progress = ProgressCallback::new(output)?;
    let evaluation = predictor.evaluate_with(predictor.events(), &options, &mut progress)?;
    for (kind, _) in evaluation.negatives.iter().filter(|(_, scorers)| scorers.is_empty()) {
        output.remark(format_args!("no {kind} negatives could be drawn: too few distinct pairs"));
    }
    output.answer(text(&evaluation), &evaluation)?;
    Ok(Outcome::Done)
}

fn text(evaluation: &Evaluation) -> String {
    let percent = |value: f64| format!("{:.2}", 100.0 * value);
    let mut text = format!("{} on {}, test events\n", evaluation.model, evaluation.data);
    for (negatives, scorers) in &evaluation.negatives {
        let title = format!("{negatives} negatives");
        let mut table =
            Table::new([&title, "AP", "AUC", "whole: AP", "AUC", "new nodes: AP", "AUC", "whole: AP", "AUC"]);
        let cells = |metrics: Option<LinkMetrics>| match metrics {
            Some(LinkMetrics { ap, auc, ap_global, auc_global }) => [ap, auc, ap_global, auc_global].map(percent),
            None => [const { String::new() }; 4],
        };
        for (name, settings) in model_first(scorers, &evaluation.model) {
            table.row(name, [cells(settings.transductive), cells(settings.inductive)].concat());
        }
        let _ = write!(text, "\n{table}");
    }
    if let Some(ranking) = &evaluation.ranking {
        let title = match ranking.candidates.as_u64() {
            Some(count) => format!("ranked against at most {count}"),
            None => "ranked against all".to_owned(),
        };
        let mut table = Table::new([&title, "MRR", "Hits@10", "new nodes: MRR", "Hits@10"]);
        let cells = |metrics: Option<RankingMetrics>| match metrics {
            Some(RankingMetrics { mrr, hits_at_10 }) => [mrr, hits_at_10].map(percent),
            None => [const { String::new() }; 2],
        };
        for (name, settings) in model_first(&ranking.scorers, &evaluation.model) {
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
