"""Prints the tables of docs/results.md on other models from the run summaries under models/, beside the paper's values."""

import json
import tomllib
from pathlib import Path

DATA = ["uci", "enron", "wikipedia", "canparl"]

MODELS = ["jodie", "dyrep", "tgat", "tgn", "cawn", "tcl", "graphmixer", "pint", "dygformer"]
WITH_MITE = ["tgat", "graphmixer", "tcl"]


def paper(table):
    """Average precision that the paper states, transductive and inductive: what the experiment of this name declares."""
    file = Path(__file__).parent.parent / "experiments" / f"{table}.toml"
    stated = tomllib.loads(file.read_text())["paper"]
    return {
        (value["model"], value["data"], value.get("mite", False)): (value["transductive"]["ap"][0], value["inductive"]["ap"][0])
        for value in stated
    }


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
    first, second = paper("table-1"), paper("table-2")
    for data in DATA:
        table(data, [(model, run(data, model), first[model, data, False]) for model in MODELS])
    for data in ("enron", "uci"):
        rows = []
        for model in WITH_MITE:
            rows.append((model, run(data, model), first[model, data, False]))
            rows.append((f"{model} with MITE", run(data, model, "--mite"), second.get((model, data, True))))
        table(data, rows)


main()
