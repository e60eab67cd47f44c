"""Times `hopedgn.ray.fit` on two raylets of one CPU each, in turns with one process of two threads.

    python examples/python/ray_training.py --epochs 4 --rounds 3

Both train a small HopeDGN on the bundled data and must give the same scores to the last bit. The cluster runs already when the time begins;
the start of its workers is part of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import hopedgn
import hopedgn.ray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length", type=int, default=16, help="tokens of each side")
    parser.add_argument("--width", type=int, default=24, help="of each channel; the transformer is four times as wide")
    options = parser.parse_args()
    settings = {"epochs": options.epochs, "device": "cpu", "model__length": options.length, "model__d_channel": options.width}

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    hopedgn.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.ctdg")
        hopedgn.Events.read("collegemsg").write(events)
        for round_ in range(1, options.rounds + 1):
            start = time.perf_counter()
            alone = hopedgn.LinkPredictor("hopedgn", **settings).fit(hopedgn.Events.read(events), progress=False)
            one = time.perf_counter() - start
            start = time.perf_counter()
            together = hopedgn.ray.fit(events, workers=2, model="hopedgn", progress=False, **settings)
            two = time.perf_counter() - start
            pairs = (alone.events_.src[:1000], alone.events_.dst[:1000])
            is_same = alone.predict_proba(*pairs).tobytes() == together.predict_proba(*pairs).tobytes()
            print(f"round {round_}: one process {one:.1f} s, two workers {two:.1f} s, ratio {two / one:.2f}, same bits: {is_same}")


if __name__ == "__main__":
    main()
