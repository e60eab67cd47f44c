//! `hopedgn classify`: node classification on frozen embeddings of a trained model.

use std::path::Path;

use clap::Args;
use hopedgn::classify::{LabelConfig, Sources};
use hopedgn::config::data_stem;
use hopedgn::fmt::{duration, grouped, percent};
use hopedgn::metrics::{Classification, LabelMetrics};
use hopedgn::run::CLASSIFICATION;
use hopedgn::{Error, ModelRegistry};
use serde_json::json;

use crate::commands::progress::ProgressCallback;
use crate::commands::run_args::{OtherEvents, RunArgs};
use crate::commands::table::Table;
use crate::output::{Outcome, Output};
use crate::plural::count;

/// Node classification: train and test a classifier of event labels on frozen embeddings of the source nodes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn train --data wikipedia --out runs/wikipedia
  hopedgn classify runs/wikipedia
  hopedgn classify runs/wikipedia --seed 1 --epochs 50 --patience 10 --json

Labels are 0 and 1, in the column that --label names. The result is also written to
classification.json in the run folder.")]
pub(crate) struct Classify {
    /// Training epochs at most
    #[arg(long, value_name = "N", default_value_t = LabelConfig::default().epochs)]
    epochs: usize,
    /// Epochs without a better validation AUC before training stops
    #[arg(long, value_name = "N", default_value_t = LabelConfig::default().patience)]
    patience: usize,
    /// Decides initial weights and dropout of the classifier [default: the run's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    run: RunArgs,
}

pub(crate) fn run(args: &Classify, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let predictor = args.run.load(OtherEvents::Refused, registry, output)?;
    let config = predictor.config();
    let labels = LabelConfig {
        epochs: args.epochs,
        patience: args.patience,
        seed: args.seed.unwrap_or(config.seed),
        dropout: config.model.common.dropout,
        max_memory: output.max_memory(),
        ..LabelConfig::default()
    };
    let n_events = predictor.events().len();
    output.remark(format_args!(
        "embedding the source nodes of {} with {}: {} MB",
        count(n_events, "event"),
        config.model.name().title(),
        grouped(Sources::n_bytes(n_events, config.model.common.d_out) / 1_000_000)
    ));
    if predictor.n_newer_events() > 0 {
        let newer = count(predictor.n_newer_events(), "newer event");
        output.remark(format_args!("labels of the run's own events; {newer} in the file left out"));
    }
    let mut progress = ProgressCallback::new(output)?;
    match predictor.classify(&labels, &mut progress) {
        Ok(classification) => {
            let Classification { epochs, val, .. } = classification;
            if val.auc.is_none() {
                output.remark("validation events all have the same label: the weights of the last epoch were tested");
            } else if epochs < labels.epochs {
                output.remark(format_args!(
                    "stopped early after {epochs} of {}: no better validation AUC for {} (--patience)",
                    count(labels.epochs, "epoch"),
                    count(labels.patience, "epoch")
                ));
            }
            output.answer(text(&classification, &args.run.run), &classification)?;
            Ok(Outcome::Done)
        }
        Err(Error::Interrupted) => {
            output.remark("interrupted; nothing was written");
            output.answer("", &json!({ "interrupted": true, "run": args.run.run }))?;
            Ok(Outcome::FellShort)
        }
        Err(error) => Err(error.into()),
    }
}

fn text(found: &Classification, folder: &Path) -> String {
    let title = format!("labels on {}, {} frozen", data_stem(&found.data), found.model);
    let mut table = Table::new([&title, "events", "of label 1", "AUC", "AP"]);
    let cell = |metric: Option<f64>| metric.map_or(String::new(), percent);
    let mut row = |name: &str, events: usize, positives: usize, LabelMetrics { auc, ap }| {
        table.row(name, [grouped(events), grouped(positives), cell(auc), cell(ap)]);
    };
    let Classification { events, positives, .. } = found;
    row("training", events.train, positives.train, found.train);
    row("validation", events.val, positives.val, found.val);
    row("test", events.test, positives.test, found.test);
    format!(
        "{table}\n{}, the best was {}; {} to embed, {:.2} s an epoch, {}, {} MB of memory at most\n{}\n",
        count(found.epochs, "epoch"),
        found.best_epoch,
        duration(found.embed_seconds),
        found.seconds_per_epoch,
        count(found.parameters, "weight"),
        found.peak_memory.map_or("?".to_owned(), |bytes| grouped(bytes / 1_000_000)),
        folder.join(CLASSIFICATION).display()
    )
}
