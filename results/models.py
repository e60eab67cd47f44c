"""Prints the tables of docs/results.md on other models from the run summaries under models/, beside the paper's values."""

import json
import statistics
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


def runs(data, model, mite=""):
    """The summaries of the runs there are, one for each seed."""
    files = Path(__file__).parent.glob(f"models/{data}-{model}{mite}-[0-9]/summary.json")
    return [json.loads(file.read_text()) for file in sorted(files)]


def cells(summaries, paper, part, at):
    """Ours, and how far it is from the paper's."""
    known = f"{paper[at]:.2f}" if paper else "–"
    if not summaries:
        return ["", known, ""]
    values = [100 * summary["test"][part]["ap"] for summary in summaries]
    ours = statistics.mean(values)
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return [f"{ours:.2f}{spread}", known, f"{ours - paper[at]:+.2f}" if paper else ""]


def table(title, rows):
    print(f"\n| {title} | AP, all | paper | | AP, new nodes | paper | | best epochs, a seed each |")
    print("|---|---|---|---|---|---|---|---|")
    for name, summaries, paper in rows:
        epochs = ", ".join(f"{summary['best_epoch']} of {summary['epochs']}" for summary in summaries) or "not run"
        parts = cells(summaries, paper, "transductive", 0) + cells(summaries, paper, "inductive", 1)
        print("| " + " | ".join([name, *parts, epochs]) + " |")


def main():
    first, second = paper("table-1"), paper("table-2")
    for data in DATA:
        table(data, [(model, runs(data, model), first[model, data, False]) for model in MODELS])
    for data in ("enron", "uci"):
        rows = []
        for model in WITH_MITE:
            rows.append((model, runs(data, model), first[model, data, False]))
            rows.append((f"{model} with MITE", runs(data, model, "--mite"), second.get((model, data, True))))
        table(data, rows)


main()
