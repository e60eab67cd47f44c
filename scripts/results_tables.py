"""Prints the tables of docs/src/results.md from results/*.jsonl and experiments/base/paper.toml: python3 scripts/results_tables.py

Mean ± sample standard deviation over seeds, in percent, beside the paper's values.
"""

import json
import statistics
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = ["uci", "enron", "wikipedia", "canparl"]
MODELS = ["jodie", "dyrep", "tgat", "tgn", "cawn", "tcl", "graphmixer", "pint", "dygformer"]
WITH_MITE = ["tgat", "graphmixer", "tcl"]
SETTINGS = ["transductive", "inductive"]


def summaries(archive):
    """Summaries of an archive by the name of the run without its seed, in order of the seeds."""
    runs = {}
    for line in (ROOT / "results" / f"{archive}.jsonl").read_text().splitlines():
        run = json.loads(line)
        runs.setdefault(run["run"].rsplit("-", 1)[0], []).append(run["summary"])
    return runs


def paper():
    """Published values by (model, data, MITE added)."""
    values = tomllib.loads((ROOT / "experiments" / "base" / "paper.toml").read_text())["paper"]
    return {(value["model"], value["data"], value.get("mite", False)): value for value in values}


def row(cells):
    print("| " + " | ".join(cells) + " |")


def hopedgn(published):
    """HopeDGN by precision."""
    runs = summaries("hopedgn-bf16") | summaries("hopedgn-tf32")
    for metric in ("ap", "auc"):
        print()
        row(["data", "precision", f"{metric.upper()}, all", "paper", f"{metric.upper()}, new nodes", "paper",
             "recency-popularity", "seeds", "best epochs"])
        print("|---" * 9 + "|")
        for name, of_seeds in sorted(runs.items()):
            data, precision = name.split("-")
            cells = [data, precision]
            for setting in SETTINGS:
                values = [100 * summary["test"][setting][metric] for summary in of_seeds]
                mean, deviation = published["hopedgn", data, False][setting][metric]
                cells += [f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}", f"{mean:.2f} ± {deviation:.2f}"]
            heuristic = of_seeds[0]["heuristics"]["recency-popularity"]
            cells.append(" / ".join(f"{100 * heuristic[setting][metric]:.2f}" for setting in SETTINGS))
            cells.append(", ".join(str(summary["seed"]) for summary in of_seeds))
            cells.append(", ".join(str(summary["best_epoch"]) for summary in of_seeds))
            row(cells)


def compared(title, rows):
    """Rows of (name, summaries, published values): AP beside the paper's, and the difference."""
    print()
    row([title, "AP, all", "paper", "", "AP, new nodes", "paper", "", "best epochs, a seed each"])
    print("|---" * 8 + "|")
    for name, of_seeds, published in rows:
        cells = [name]
        for setting in SETTINGS:
            stated = published[setting]["ap"][0] if published else None
            values = [100 * summary["test"][setting]["ap"] for summary in of_seeds]
            spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.2f}{spread}" if values else "")
            cells.append(f"{stated:.2f}" if published else "–")
            cells.append(f"{statistics.mean(values) - stated:+.2f}" if published and values else "")
        epochs = [f"{summary['best_epoch']} of {summary['epochs']}" for summary in of_seeds]
        row([*cells, ", ".join(epochs) or "not run"])


def baselines(published):
    """The other models, and three of them with MITE."""
    runs = summaries("models")
    for data in DATA:
        compared(data, [(model, runs.get(f"{data}-{model}", []), published[model, data, False]) for model in MODELS])
    for data in ("enron", "uci"):
        rows = []
        for model in WITH_MITE:
            rows.append((model, runs.get(f"{data}-{model}", []), published[model, data, False]))
            rows.append((f"{model} with MITE", runs.get(f"{data}-{model}--mite", []), published.get((model, data, True))))
        compared(data, rows)


hopedgn(paper())
baselines(paper())
