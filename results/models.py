"""Prints the tables of docs/results.md on other models from the run summaries under models/, beside the paper's values."""

import json
from pathlib import Path

DATA = ["uci", "enron", "wikipedia", "canparl"]

# Average precision in the paper's first table: transductive and inductive.
PAPER = {
    "jodie": {"uci": (88.70, 76.96), "enron": (80.31, 79.84), "wikipedia": (95.58, 93.61), "canparl": (69.30, 53.74)},
    "dyrep": {"uci": (60.31, 54.80), "enron": (78.82, 69.92), "wikipedia": (94.08, 91.82), "canparl": (70.17, 52.77)},
    "tgat": {"uci": (79.51, 79.30), "enron": (68.17, 62.70), "wikipedia": (96.74, 96.07), "canparl": (70.23, 53.99)},
    "tgn": {"uci": (90.25, 84.26), "enron": (85.73, 78.71), "wikipedia": (98.15, 97.51), "canparl": (68.82, 54.43)},
    "cawn": {"uci": (94.92, 92.29), "enron": (88.92, 85.26), "wikipedia": (98.77, 98.20), "canparl": (71.13, 55.64)},
    "tcl": {"uci": (84.72, 82.53), "enron": (76.99, 73.43), "wikipedia": (96.21, 96.11), "canparl": (68.87, 54.25)},
    "graphmixer": {"uci": (92.97, 90.82), "enron": (82.24, 75.42), "wikipedia": (96.67, 96.11), "canparl": (77.53, 56.19)},
    "pint": {"uci": (96.01, 93.97), "enron": (88.71, 81.05), "wikipedia": (98.78, 98.38), "canparl": (68.39, 49.57)},
    "dygformer": {"uci": (95.43, 93.66), "enron": (92.20, 89.57), "wikipedia": (98.96, 98.53), "canparl": (97.35, 86.79)},
}

# Average precision with MITE in the paper's second table, which has no UCI.
WITH_MITE = {"tgat": {"enron": (90.81, 87.30)}, "graphmixer": {"enron": (91.30, 88.71)}, "tcl": {"enron": (90.53, 88.17)}}


def run(data, model, mite=""):
    """The summary of a run; of one that was cut, its last epoch; nothing where there is none."""
    folder = Path(__file__).parent / "models" / f"{data}-{model}{mite}-0"
    if (folder / "summary.json").exists():
        return json.loads((folder / "summary.json").read_text())
    if (folder / "metrics.jsonl").exists():
        return {"cut": json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["epoch"]}
    return None


def cells(summary, paper, part, at):
    """Ours, and how far it is from the paper's."""
    known = f"{paper[at]:.2f}" if paper else "–"
    if not summary or "cut" in summary:
        return ["", known, ""]
    ours = 100 * summary["test"][part]["ap"]
    return [f"{ours:.2f}", known, f"{ours - paper[at]:+.2f}" if paper else ""]


def table(title, rows):
    print(f"\n| {title} | AP, all | paper | | AP, new nodes | paper | | best epoch |")
    print("|---|---|---|---|---|---|---|---|")
    for name, summary, paper in rows:
        if not summary:
            epochs = "not run"
        elif "cut" in summary:
            epochs = f"cut after {summary['cut']}"
        else:
            epochs = f"{summary['best_epoch']} of {summary['epochs']}"
        parts = cells(summary, paper, "transductive", 0) + cells(summary, paper, "inductive", 1)
        print("| " + " | ".join([name, *parts, epochs]) + " |")


def main():
    for data in DATA:
        table(data, [(model, run(data, model), paper[data]) for model, paper in PAPER.items()])
    for data in ("enron", "uci"):
        rows = []
        for model, paper in WITH_MITE.items():
            rows.append((model, run(data, model), PAPER[model][data]))
            rows.append((f"{model} with MITE", run(data, model, "--mite"), paper.get(data)))
        table(data, rows)


main()
