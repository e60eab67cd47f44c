//! `hopedgn evaluate`: test metrics of a trained model under every protocol, with heuristics beside it.

mod calibration;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use ctdg::negative::{self, CandidateCount, TgbRule};
use ctdg::time::TimeFormat;
use hopedgn::evaluate::{Evaluation, Negatives, RankingMetrics, RankingTest, TestRange, TestedEvents};
use hopedgn::fmt::grouped;
use hopedgn::metrics::LinkMetrics;
use hopedgn::{EvaluateOptions, Events, ModelRegistry};

use crate::commands::heuristics;
use crate::commands::progress::ProgressCallback;
use crate::commands::protocol_arg::ProtocolArg;
use crate::commands::run_args::{OtherEvents, RunArgs};
use crate::commands::table::Table;
use crate::commands::time_arg::parse_flag;
use crate::output::{Outcome, Output};
use crate::plural::count;

/// Test a trained model: transductive and inductive, each kind of negatives, ranking; heuristics beside it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn evaluate runs/collegemsg-hopedgn-0
  hopedgn evaluate runs/mine --negatives all --ranking 100 --json
  hopedgn evaluate runs/tgb --protocol tgb
  hopedgn evaluate runs/tgb --protocol tgb --candidates test-lists.jsonl.gz
  hopedgn evaluate runs/mine --data grown.csv --new
  hopedgn evaluate runs/mine --from 2024-01-01 --until 2024-02-01

What is measured on the test part is kept in evaluation.json of the run folder,
and report.html shows it. After Ctrl-C the complete passes are printed (exit
status 1), and the same command continues with the others.")]
pub(crate) struct Evaluate {
    /// Negatives for AP and AUC [default: random; none with --protocol tgb]
    #[arg(long, value_enum)]
    negatives: Option<NegativesArg>,
    /// Also rank each true destination against so many others, or against `all`; with --protocol tgb, so many of TGB's candidates
    /// [default there: 999]
    #[arg(long, value_name = "K")]
    ranking: Option<Candidates>,
    /// Whose rules: tgb ranks against candidates equal to those of TGB, for a run of `train --protocol tgb`
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    protocol: ProtocolArg,
    /// With --protocol tgb: candidates from this file (JSON Lines with src, dst, time, candidates) instead of drawn ones
    #[arg(long, value_name = "FILE", conflicts_with = "ranking")]
    candidates: Option<PathBuf>,
    /// Test on the events after those the run was trained and tested on, in a file that has grown
    #[arg(long, conflicts_with_all = ["from", "until"])]
    new: bool,
    /// Test on the events from this time on, a number or a date as in the data
    #[arg(long = "from", value_name = "T", allow_hyphen_values = true)]
    from: Option<String>,
    /// Test on events strictly before this time only
    #[arg(long, value_name = "T", requires = "from", allow_hyphen_values = true)]
    until: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

impl Evaluate {
    fn range(&self, events: &Events) -> anyhow::Result<TestRange> {
        let until = self.until.as_deref().map(|text| parse_flag("--until", text, events)).transpose()?;
        Ok(match &self.from {
            Some(text) => TestRange::Times { from: parse_flag("--from", text, events)?, until },
            None if self.new => TestRange::New,
            None => TestRange::Split,
        })
    }

    /// Kinds of negatives, and what true destinations are ranked among.
    fn tests(&self) -> anyhow::Result<(Vec<Negatives>, Option<negative::Candidates>)> {
        let count = self.ranking.map(|Candidates(count)| count);
        let stated = self.negatives.map(NegativesArg::kinds);
        if self.protocol == ProtocolArg::Dyglib {
            anyhow::ensure!(
                self.candidates.is_none(),
                "found --candidates without --protocol tgb, expected both; a file of candidates belongs to that protocol"
            );
            return Ok((stated.unwrap_or_else(|| vec![Negatives::Random]), count.map(Into::into)));
        }
        let candidates = match (&self.candidates, count) {
            (Some(file), _) => negative::Candidates::File(file.clone()),
            (None, Some(count)) => negative::Candidates::Tgb(count.into()),
            (None, None) => negative::Candidates::Tgb(TgbRule::new(TGB_CANDIDATES)),
        };
        Ok((stated.unwrap_or_default(), Some(candidates)))
    }
}

/// Candidates of each event under TGB's protocol: all of tgbl-wiki.
const TGB_CANDIDATES: usize = 999;

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
    let (negatives, ranking) = args.tests()?;
    let predictor = args.run.load(OtherEvents::Refused, registry, output)?;
    let range = args.range(predictor.events())?;
    let options = EvaluateOptions { negatives, ranking, range };
    let (n_done, n_passes) = predictor.passes_measured(&options)?;
    if n_done > 0 {
        output.remark(format_args!("continuing: {n_done} of {} measured before", format_args!("{n_passes} passes")));
    }
    let mut progress = ProgressCallback::new(output)?;
    let evaluation = predictor.evaluate_run(&options, &mut progress)?;
    for (kind, _) in evaluation.negatives.iter().filter(|(_, scorers)| scorers.is_empty()) {
        output.remark(format_args!("no {kind} negatives could be drawn: too few distinct pairs"));
    }
    if let Some(tested) = &evaluation.tested {
        remark_on(tested, predictor.events(), output);
    }
    if evaluation.is_complete() {
        if let Err(error) = predictor.keep_evaluation(&evaluation) {
            output.remark(format_args!("not kept in the run folder: {error}"));
        }
    } else {
        output.remark(match predictor.passes_measured(&options)?.0 {
            0 => "interrupted; nothing is kept, the same command starts again",
            _ => "interrupted; what is complete is kept, the same command continues with the rest",
        });
    }
    let text = text(&evaluation, predictor.events().time_format());
    let better = predictor.summary().map_or(String::new(), |summary| {
        heuristics::better(&evaluation.better_heuristics(), summary, &predictor.config().model, &args.run.run)
    });
    output.answer(format_args!("{text}{better}"), &evaluation)?;
    Ok(if evaluation.is_complete() { Outcome::Done } else { Outcome::FellShort })
}

/// What is not to be seen in the numbers: events left out, and events that the model was trained on.
fn remark_on(tested: &TestedEvents, events: &Events, output: &Output) {
    if tested.range == "test" && tested.newer > 0 {
        let newer = count(tested.newer, "newer event");
        output.remark(format_args!("{} has {newer} that the run did not know; test on them with --new", events.name()));
    }
    if tested.range != "test" && tested.trained_on > 0 {
        output.remark(format_args!(
            "the model was trained on {} of the {}; the numbers are too good for new events",
            grouped(tested.trained_on),
            count(tested.events, "tested event")
        ));
    }
}

/// Which events were tested.
fn tested_title(evaluation: &Evaluation, format: TimeFormat) -> String {
    let Some(tested) = evaluation.tested.as_ref().filter(|tested| tested.range != "test") else {
        return "test events".to_owned();
    };
    let what = if tested.range == "new" { "new event" } else { "event" };
    let [first, last] =
        [tested.first_time, tested.last_time].map(|time| time.map_or(String::new(), |t| format.show(t)));
    format!("{} from {first} to {last}", count(tested.events, what))
}

fn text(evaluation: &Evaluation, format: TimeFormat) -> String {
    let tested = tested_title(evaluation, format);
    let mut text = format!("{} on {}, {tested}\n", evaluation.model, evaluation.data);
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
        let _ = write!(text, "\n{}", ranking_table(ranking, &evaluation.model));
    }
    if let Some(calibration) = &evaluation.calibration {
        let _ = write!(text, "\n{}", calibration::text(calibration));
    }
    if !evaluation.is_complete() {
        let _ = writeln!(
            text,
            "\nIncomplete, since it was interrupted; not measured: {}.",
            evaluation.incomplete.join("; ")
        );
    }
    text.push('\n');
    if !evaluation.negatives.is_empty() {
        text.push_str(
            "AP and AUC are means over batches, as papers report them; `whole` is over all events at once.\n",
        );
    }
    if evaluation.ranking.is_some() {
        text.push_str("Hits@10 is also Recall@10: each ranking has one true destination.\n");
    }
    text
}

fn percent(value: f64) -> String {
    format!("{:.2}", 100.0 * value)
}

/// TGB's protocol has no test of new nodes.
fn ranking_table(ranking: &RankingTest, model: &str) -> Table {
    const METRICS: [&str; 3] = ["MRR", "Hits@10", "NDCG@10"];
    let tgb = if ranking.protocol.is_some() { "TGB: " } else { "" };
    let against = ranking.candidates.as_u64().map(|count| format!("at most {count}"));
    let against = against.or_else(|| ranking.candidates.as_str().map(str::to_owned)).unwrap_or_default();
    let title = format!("{tgb}ranked against {against}");
    let mut headers = [&[title.as_str()], &METRICS[..]].concat();
    if ranking.protocol.is_none() {
        headers.extend(["new nodes: MRR", METRICS[1], METRICS[2]]);
    }
    let mut table = Table::new(headers);
    let cells = |metrics: Option<RankingMetrics>| match metrics {
        Some(RankingMetrics { mrr, hits_at_10, ndcg_at_10 }) => {
            [mrr, hits_at_10, ndcg_at_10.unwrap_or(f64::NAN)].map(percent)
        }
        None => [const { String::new() }; METRICS.len()],
    };
    for (name, settings) in model_first(&ranking.scorers, model) {
        let mut row = cells(settings.transductive).to_vec();
        if ranking.protocol.is_none() {
            row.extend(cells(settings.inductive));
        }
        table.row(name, row);
    }
    table
}

/// The model, then the heuristics.
fn model_first<'a, M>(scorers: &'a BTreeMap<String, M>, model: &str) -> Vec<(&'a String, &'a M)> {
    let mut rows: Vec<_> = scorers.iter().collect();
    rows.sort_by_key(|(name, _)| name.as_str() != model);
    rows
}
