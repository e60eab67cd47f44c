#!/usr/bin/env python3
"""Times training steps and evaluation of every model here and in DyGLib, TGM and PyG, in turns on one machine.

    python3 scripts/peers/compare.py --hopedgn target/release/hopedgn --data uci.csv.gz --dyglib DyGLib --tgm tgm --pyg pytorch_geometric \\
        --threads 2 --out peers.jsonl
    python3 scripts/peers/compare.py --show peers.jsonl --svg peers.svg

Each run is a process of its own and adds a line to --out. With --show nothing is run: the lines become a table, and a picture. A peer without a checkout is
left out. Our models run twice: on the data as it is, and *at equal work*, with 172 random features of nodes and edges and DyGLib's padding, since
they would leave out zeros and padding. The data needs 8,000 test events. Let nothing else run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys

from common import MODELS, WITH_MEMORY

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = {"dyglib": MODELS, "tgm": ["DyGFormer", "GraphMixer", "TGAT", "TGN"], "pyg": ["TGN"]}
# Our models that can pad as DyGLib does.
PADDED = {"DyGFormer", "TGAT", "DyRep", "TGN"}
# What keeps PyTorch's memory on a CPU from going back to the system after every step.
KEEP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "268435456"}


def run(command, out, **more):
    """Runs a program that prints a line of JSON last, and keeps the line."""
    environment = {**os.environ, **more.pop("environment", {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode == 0:
        line = json.loads(done.stdout if command[1] == "bench" else done.stdout.splitlines()[-1])
    else:
        tail = "\n".join(done.stderr.splitlines()[-3:])
        print(f"failed: {' '.join(command)}\n{tail}", file=sys.stderr)
        return
    if command[1] == "bench":
        evaluation = line["evaluation"] and line["evaluation"]["seconds_per_batch"]
        shared = {name: line[name] for name in ("device", "threads", "best", "peak_memory")}
        line = dict(step=line["median"], epoch=line["seconds_per_epoch"], steps=line["repeats"], evaluation=evaluation, **shared)
    line.update(more)
    print(json.dumps(line), flush=True)
    with open(out, "a") as lines:
        lines.write(json.dumps(line) + "\n")


def measure(ask):
    python, work = sys.executable, os.path.abspath(ask.work)
    threads = {"OMP_NUM_THREADS": str(ask.threads)} if ask.threads else {}
    equal = os.path.join(work, "random", "processed_data", "uci", "ml_uci.csv")
    if ask.dyglib:
        script = [python, os.path.join(HERE, "time_dyglib.py"), "--checkout", ask.dyglib, "--data", ask.data, "--model", "TGN"]
        options = ["--features", "random", "--only-convert", "--work", os.path.join(work, "random")]
        subprocess.run([*script, *options], check=True)
    for _ in range(ask.rounds):
        for model in ask.models.split(","):
            steps = {"TGAT": 4, "CAWN": 3}.get(model, 20 if model in WITH_MEMORY else 8)
            # A GPU is so fast that more of them cost nothing.
            steps = steps if ask.device == "cpu" else 5 * steps
            # An evaluation of a memory is so fast that what it does once would count.
            evaluated = 40 if model in WITH_MEMORY else 5
            timed = ["--steps", str(steps), "--evaluate", str(evaluated)]
            for peer, models in SCRIPTS.items():
                checkout = getattr(ask, peer)
                if not checkout or model not in models:
                    continue
                command = [python, os.path.join(HERE, f"time_{peer}.py"), "--checkout", checkout, "--data", ask.data, "--model", model]
                command += [*timed, "--device", ask.device, "--work", os.path.join(work, "zeros")]
                for allocator, environment in (("default", threads), ("tuned", {**threads, **KEEP})):
                    if ask.device == "cpu" or allocator == "default":
                        run(command, ask.out, environment=environment, allocator=allocator)
            ours = [ask.hopedgn, "bench", "epoch", "--model", model.lower(), "--device", ask.device, *timed, "--json", "--quiet"]
            ours += ["--threads", str(ask.threads)] if ask.threads else []
            run([*ours, "--data", ask.data], ask.out, peer="hopedgn", model=model)
            if os.path.exists(equal):
                padding = ["--set", "model.padding=dyglib"] if model in PADDED else []
                run([*ours, "--data", equal, *padding], ask.out, peer="hopedgn, equal work", model=model)


def best_of(lines, key):
    """The best of the rounds of each peer and model, over both allocators."""
    best = {}
    for line in lines:
        if line.get(key) is not None:
            at = (line["peer"], line["model"])
            best[at] = min(best.get(at, float("inf")), line[key])
    return best


def table(lines):
    peers = ["DyGLib", "TGM", "PyG"]
    rows = ["| | | hopedgn | at equal work | " + " | ".join(peers) + " |", "|---|---|---|---|" + "---|" * len(peers)]
    of_keys = {"step": (1e3, "ms a step"), "epoch": (1.0, "s an epoch"), "evaluation": (1e3, "ms to evaluate a batch"), "peak_memory": (1e-6, "peak memory, MB")}
    for key, (unit, title) in of_keys.items():
        best = best_of(lines, key)
        for model in MODELS:
            if ("hopedgn", model) not in best:
                continue
            base = best.get(("hopedgn, equal work", model))
            cells = [best.get((peer, model)) for peer in ("hopedgn", "hopedgn, equal work", *peers)]
            texts = ["" if value is None else f"{unit * value:,.3g}" if unit * value < 100 else f"{unit * value:,.0f}" for value in cells]
            for at, value in enumerate(cells[2:], 2):
                if value is not None and base:
                    texts[at] += f" ({value / base:.1f} ×)"
            rows.append(f"| {model} | {title} | " + " | ".join(texts) + " |")
    return "\n".join(rows)


def picture(lines):
    """Times of a step against ours at equal work, as bars of an SVG."""
    best, ours = best_of(lines, "step"), "hopedgn, equal work"
    colours = {ours: "#2166ac", "DyGLib": "#b2182b", "TGM": "#ef8a62", "PyG": "#998ec3"}
    ratios = {at: value / best[ours, at[1]] for at, value in best.items() if at[0] in colours and (ours, at[1]) in best}
    bars, y, unit = [], 34, 400 / max(ratios.values())
    for model in MODELS:
        first = y
        for peer, colour in colours.items():
            if (peer, model) in ratios:
                ratio, width = ratios[peer, model], unit * ratios[peer, model]
                label = f"{1e3 * best[peer, model]:,.3g} ms" if best[peer, model] < 0.1 else f"{1e3 * best[peer, model]:,.0f} ms"
                label += "" if peer == ours else f", {ratio:.1f} ×"
                bars.append(f'<rect x="90" y="{y}" width="{width:.1f}" height="11" fill="{colour}"/><text x="{94 + width:.1f}" y="{y + 10}">{label}</text>')
                y += 13
        if y > first:
            bars.append(f'<text x="84" y="{(first + y) / 2 + 3}" text-anchor="end" font-weight="bold">{model}</text>')
            y += 8
    legend = "".join(
        f'<rect x="{90 + 140 * at}" y="10" width="11" height="11" fill="{colour}"/><text x="{105 + 140 * at}" y="20">{peer}</text>'
        for at, (peer, colour) in enumerate(colours.items())
    )
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 {y}" {style}><rect width="600" height="{y}" fill="white"/>{legend}{"".join(bars)}</svg>\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hopedgn", default="hopedgn", help="our program")
    parser.add_argument("--data", help="CSV with the columns src, dst, timestamp, label")
    parser.add_argument("--dyglib", help="checkout of github.com/yule-BUAA/DyGLib")
    parser.add_argument("--tgm", help="checkout of github.com/tgm-team/tgm; needs tgm-lib")
    parser.add_argument("--pyg", help="checkout of github.com/pyg-team/pytorch_geometric; needs torch-geometric")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, help="of PyTorch and of our program on a CPU")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--work", default="peer-data", help="folder for converted data")
    parser.add_argument("--out", default="peers.jsonl")
    parser.add_argument("--show", metavar="JSONL", help="run nothing: print the table of these lines")
    parser.add_argument("--svg", metavar="FILE", help="with --show: draw the steps")
    ask = parser.parse_args()
    if not ask.show:
        if not ask.data:
            parser.error("--data is needed, or --show")
        measure(ask)
    with open(ask.show or ask.out) as file:
        lines = [json.loads(line) for line in file]
    print(table(lines))
    if ask.svg:
        with open(ask.svg, "w") as file:
            file.write(picture(lines))


if __name__ == "__main__":
    main()
