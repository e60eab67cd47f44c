"""Times `hopedgn.ray.score` on two raylets of one CPU each, in turns with one process of two threads, and kills a raylet on request.

    python examples/python/ray_scoring.py --pairs 1000000 --rounds 3
    python examples/python/ray_scoring.py --pairs 1000000 --kill

Both read the same Parquet file and write Parquet; every score must have the same bits, and every row must be there once. The cluster runs
already when the time begins; the start of its workers and the loading of the model are part of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from ray.cluster_utils import Cluster

import hopedgn
import hopedgn.ray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--model", default="stats")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows-per-part", type=int)
    parser.add_argument("--kill", action="store_true", help="kill one raylet and its workers after a quarter of the parts")
    parser.add_argument("--program", nargs="+", default=[sys.executable, "-m", "hopedgn"], help="the single process: `hopedgn`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> None:
    run, pairs = folder / "run", folder / "pairs.parquet"
    model = hopedgn.LinkPredictor(options.model, epochs=options.epochs, device="cpu", run=run).fit(hopedgn.Events.read("collegemsg"))
    random, events = np.random.RandomState(0), model.events_
    columns = {
        "src": events.src[random.randint(0, len(events), options.pairs)],
        "dst": events.dst[random.randint(0, len(events), options.pairs)],
        "time": events.time[random.randint(0, len(events), options.pairs)] + 1,
    }
    pq.write_table(pa.table(columns), pairs)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    seconds: dict[str, list[float]] = {"one process": [], "two raylets": []}
    for number in range(options.rounds):
        one = folder / "one.parquet"
        start = time.perf_counter()
        words = ["score", run, "--pairs", pairs, "--out", one, "--force", "--threads", "2", "--device", "cpu", "--quiet"]
        subprocess.run([*options.program, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        seconds["one process"].append(time.perf_counter() - start)
        out = folder / f"scores-{number}"
        killer = threading.Thread(target=kill, args=(nodes[1], out)) if options.kill and number == 0 else None
        if killer is not None:
            killer.start()
        start = time.perf_counter()
        written = hopedgn.ray.score(run, pairs, out, rows_per_part=options.rows_per_part, progress=False)
        seconds["two raylets"].append(time.perf_counter() - start)
        if killer is not None:
            killer.join()
        print(f"round {number + 1}: " + ", ".join(f"{name} {times[-1]:.2f} s" for name, times in seconds.items()), written, flush=True)
        compare(one, out, options.pairs)
        if options.kill:
            break
        shutil.rmtree(out)
    best = {name: min(times) for name, times in seconds.items()}
    print(f"best: one process {best['one process']:.2f} s, two raylets {best['two raylets']:.2f} s, ratio {best['two raylets'] / best['one process']:.2f}")
    ray.shutdown()
    cluster.shutdown()


def kill(node: object, out: Path) -> None:
    """Kills a raylet and its workers with SIGKILL once some parts are written."""
    while len(list(out.glob("part-*"))) < 5:
        time.sleep(0.002)
    raylet = node.all_processes["raylet"][0].process.pid  # type: ignore[attr-defined]
    children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
    for process in [raylet, *map(int, children)]:
        os.kill(process, signal.SIGKILL)
    print(f"killed a raylet and its {len(children)} processes after {len(list(out.glob('part-*')))} parts", flush=True)


def compare(one: Path, out: Path, n: int) -> None:
    """Every row once, and every score with the same bits."""
    expected, found = pq.read_table(one), pq.read_table(out).sort_by("row")
    assert np.array_equal(found["row"].to_numpy(), np.arange(n)), "every row once"
    for name in ("src", "dst", "time", "score", "intensity", "lift"):
        if name in expected.column_names:
            a, b = expected[name].to_numpy(), found[name].to_numpy()
            assert np.array_equal(a.view(np.uint8), b.astype(a.dtype).view(np.uint8)), name
    print(f"{n:,} rows, each once, bit-equal")


if __name__ == "__main__":
    main()
