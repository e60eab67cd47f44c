//! `hopedgn classify`: the labels of events, from what a trained model makes of their sources.

use std::path::Path;

use clap::Args;
use hopedgn::Error;
use hopedgn::classify::{LabelConfig, Sources};
use hopedgn::config::data_stem;
use hopedgn::fmt::{duration, grouped, percent};
use hopedgn::metrics::{Classification, LabelMetrics};
use hopedgn::run::{CLASSIFICATION, Session};
use hopedgn::task::Task;
use serde_json::json;

use crate::commands::progress::ProgressCallback;
use crate::commands::run_args::{Opened, RunArgs};
use crate::commands::table::Table;
use crate::output::{Outcome, Output};

/// Learn the labels of events from what a trained model makes of their sources, and test that
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn train --data wikipedia --out runs/wikipedia
  hopedgn classify runs/wikipedia
  hopedgn classify runs/wikipedia --seed 1 --epochs 50 --patience 10 --json

The model is frozen. Labels are 0 and 1, in the column that --label names. The answer is also kept
as classification.json in the folder of the run.")]
pub(crate) struct Classify {
    /// Passes over the training events at most
    #[arg(long, value_name = "N", default_value_t = LabelConfig::default().epochs)]
    epochs: usize,
    /// Epochs without a better AUC on validation before learning ends
    #[arg(long, value_name = "N", default_value_t = LabelConfig::default().patience)]
    patience: usize,
    /// Decides initial weights and dropout of the classifier [default: the run's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    of: RunArgs,
}

pub(crate) fn run(args: &Classify, output: &Output) -> anyhow::Result<Outcome> {
    let Opened { folder, config, manifest, loaded } = args.of.open(output)?;
    let device = args.of.device.open_for(&config.model, output)?;
    manifest.data.check(&loaded.stream)?;
    let task = Task::with_rule(&loaded.stream, &manifest.split)?;
    let session = Session { folder: &folder, config: &config, task: &task, device: &device };
    let settings = LabelConfig {
        epochs: args.epochs,
        patience: args.patience,
        seed: args.seed.unwrap_or(config.seed),
        dropout: config.model.common.dropout,
        ..LabelConfig::default()
    };
    let n_events = manifest.split.n_events;
    output.remark(format_args!(
        "the sources of {} events as {} sees them: {} MB",
        grouped(n_events),
        config.model.name().title(),
        grouped(Sources::n_bytes(n_events, config.model.common.d_out) / 1_000_000)
    ));
    let mut watch = ProgressCallback::new(output)?;
    match session.classify(&settings, &mut watch) {
        Ok(classification) => {
            let Classification { epochs, val, .. } = classification;
            if val.auc.is_none() {
                output.remark("validation has events of one label only: the last weights were tested");
            } else if epochs < settings.epochs {
                let (most, patience) = (settings.epochs, settings.patience);
                output.remark(format_args!(
                    "ended after {epochs} of {most} epochs: {patience} without a better AUC on validation (--patience)"
                ));
            }
            output.answer(text(&classification, folder.path()), &classification)?;
            Ok(Outcome::Done)
        }
        Err(Error::Interrupted) => {
            output.remark("stopped; nothing was written");
            output.answer("", &json!({ "interrupted": true, "run": folder.path() }))?;
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
        "{table}\n{} epochs, the best was {}; {} to embed, {:.2} s an epoch, {} weights, {} MB of memory at most\n{}\n",
        found.epochs,
        found.best_epoch,
        duration(found.embed_seconds),
        found.seconds_per_epoch,
        grouped(found.parameters),
        found.peak_memory.map_or("?".to_owned(), |bytes| grouped(bytes / 1_000_000)),
        folder.join(CLASSIFICATION).display()
    )
}
