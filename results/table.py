"""Prints the tables of docs/results.md from the run summaries beside this file: mean and standard deviation over seeds."""

import json
import statistics
from collections import defaultdict
from pathlib import Path

# HopeDGN in the paper: transductive and inductive, mean and deviation over its runs.
PAPER = {
    "ap": {
        "uci": ("97.18 ± 0.06", "95.56 ± 0.05"),
        "enron": ("92.67 ± 0.08", "89.84 ± 0.02"),
        "wikipedia": ("99.17 ± 0.03", "98.87 ± 0.00"),
        "canparl": ("98.33 ± 0.60", "88.84 ± 0.74"),
    },
    "auc": {
        "uci": ("96.51 ± 0.08", "94.12 ± 0.03"),
        "enron": ("93.59 ± 0.04", "90.51 ± 0.15"),
        "wikipedia": ("99.17 ± 0.02", "98.82 ± 0.00"),
        "canparl": ("98.52 ± 0.59", "89.16 ± 0.73"),
    },
}


def spread(values):
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.2f} ± {100 * deviation:.2f}"


def main():
    runs = defaultdict(list)
    for file in sorted(Path(__file__).parent.glob("hopedgn/*/summary.json")):
        data, precision, _ = file.parent.name.rsplit("-", 2)
        runs[data, precision].append(json.loads(file.read_text()))
    for metric in ("ap", "auc"):
        print(f"\n| data | precision | {metric.upper()}, all | paper | {metric.upper()}, new nodes | paper "
              "| recency-popularity | seeds | best epochs |")
        print("|---|---|---|---|---|---|---|---|---|")
        for (data, precision), summaries in runs.items():
            test = [summary["test"] for summary in summaries]
            heuristic = summaries[0]["heuristics"]["recency-popularity"]
            paper = PAPER[metric][data]
            cells = [
                data,
                precision,
                spread([part["transductive"][metric] for part in test]),
                paper[0],
                spread([part["inductive"][metric] for part in test]),
                paper[1],
                " / ".join(f"{100 * heuristic[part][metric]:.2f}" for part in ("transductive", "inductive")),
                ", ".join(str(summary["seed"]) for summary in summaries),
                ", ".join(str(summary["best_epoch"]) for summary in summaries),
            ]
            print("| " + " | ".join(cells) + " |")


main()
