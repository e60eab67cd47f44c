//! What to say where an untrained heuristic does better than the model.

use std::path::Path;

use hopedgn::config::ModelConfig;
use hopedgn::metrics::{BetterHeuristic, Summary};

/// A line for each such test, the last one with what to try next; nothing if there is none.
pub(crate) fn better(better: &[BetterHeuristic], summary: &Summary, model: &ModelConfig, run: &Path) -> String {
    let Some((last, others)) = better.split_last() else { return String::new() };
    let others: Vec<String> = others.iter().map(|one| format!("{one}\n")).collect();
    format!("{}{last}; {}\n", others.concat(), next_try(summary, model, run))
}

fn next_try(summary: &Summary, model: &ModelConfig, run: &Path) -> String {
    if summary.best_epoch == summary.epochs {
        let (run, epochs) = (run.display(), 2 * summary.epochs.max(1));
        return format!(
            "the last epoch was the best: train longer with `hopedgn train --resume {run} --epochs {epochs}`"
        );
    }
    let mite = if model.mite().is_some() && !model.has_mite() { ", MITE (--mite)" } else { "" };
    format!("try another model (--model){mite}, or larger sizes (--set)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopedgn::ModelName;

    fn summary(epochs: usize, best_epoch: usize) -> Summary {
        serde_json::from_value(serde_json::json!({
            "data": "d", "model": "tgat", "seed": 0, "epochs": epochs, "best_epoch": best_epoch,
            "val": { "transductive": null, "inductive": null }, "test": { "transductive": null, "inductive": null },
            "heuristics": {}, "seconds_per_epoch": 1.0, "device": "cpu", "parameters": 1, "peak_memory": null,
        }))
        .expect("a summary")
    }

    #[test]
    fn every_test_is_named_and_the_last_line_says_what_to_try() {
        let one = |test: &str| BetterHeuristic {
            name: "recency-popularity".to_owned(),
            metric: "AP",
            test: test.to_owned(),
            value: 0.9672,
            of_model: 0.9666,
        };
        let (tgat, hopedgn) = (ModelConfig::new(ModelName::Tgat), ModelConfig::new(ModelName::HopeDgn));
        let run = Path::new("runs/a");
        assert_eq!(better(&[], &summary(4, 4), &tgat, run), "");
        assert_eq!(
            better(&[one("random negatives"), one("ranking")], &summary(4, 4), &tgat, run),
            "recency-popularity, an untrained heuristic, has the higher AP: 96.72 against 96.66 (random negatives)\n\
             recency-popularity, an untrained heuristic, has the higher AP: 96.72 against 96.66 (ranking); the last epoch was the \
             best: train longer with `hopedgn train --resume runs/a --epochs 8`\n"
        );
        let stopped = |model| better(&[one("ranking")], &summary(4, 2), model, run);
        assert!(stopped(&tgat).ends_with("; try another model (--model), MITE (--mite), or larger sizes (--set)\n"));
        assert!(stopped(&hopedgn).ends_with("; try another model (--model), or larger sizes (--set)\n"));
    }
}
