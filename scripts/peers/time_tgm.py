#!/usr/bin/env python3
"""Times one model of TGM with TGM's own example, unchanged.

    python3 scripts/peers/time_tgm.py --checkout tgm --data uci.csv.gz --model TGN

Needs `tgm-lib` and a checkout of its tag. The example `examples/linkproppred/MODEL.py` runs as it is; what it takes from outside is replaced: TGB's
data and split by the first 70% of the CSV with 172 zero features of nodes and edges, TGB's evaluator and lists by nothing, and tqdm by a loop that times its rounds
and ends the run. A step is a round: the next batch from the loader, forward, backward, Adam. Widths, neighbours and dropout are DyGLib's
best for UCI. Evaluation is not timed: the examples rank TGB's lists.
"""

import os
import runpy
import sys
import types

from common import BATCH, Clock, arguments, report

OPTIONS = {
    "TGN": "--time-dim 100 --embed-dim 172 --memory-dim 172 --n-nbrs 10",
    "DyGFormer": "--time_dim 100 --embed_dim 172 --node_dim 172 --max_sequence_length 32 --patch-size 1",
    "GraphMixer": "--time-dim 100 --embed-dim 172 --node-dim 172 --n-nbrs 20 --time-gap 2000 --dropout 0.4",
    "TGAT": "--time-dim 100 --embed-dim 172 --n-nbrs 20 20 --dropout 0.1",
}


class Enough(Exception):
    """All steps are timed."""


def main():
    ask = arguments(__doc__, "github.com/tgm-team/tgm").parse_args()

    import pandas as pd
    import tgm.nn  # noqa: F401, while tqdm is still itself
    import torch
    from tgm.constants import RECIPE_TGB_LINK_PRED
    from tgm.data import DGData
    from tgm.hooks import HookManager, NegativeEdgeSamplerHook, RecipeRegistry

    frame = pd.read_csv(ask.data)
    frame = frame[frame.timestamp <= frame.timestamp.quantile(0.7)]  # what training sees
    ends = torch.from_numpy(frame[["src", "dst"]].to_numpy()).to(torch.int32)
    times = torch.from_numpy(frame["timestamp"].to_numpy()).to(torch.int64)

    def from_csv(_name, **_):
        features = {"edge_x": torch.zeros(len(frame), 172), "static_node_x": torch.zeros(int(ends.max()) + 1, 172)}
        return DGData.from_raw(edge_time=times, edge_index=ends, time_delta="s", **features)

    def negatives(dataset_name, train_dg):
        manager = HookManager(keys=["train", "val", "test"])
        destinations = train_dg.edge_dst
        manager.register("train", NegativeEdgeSamplerHook(low=int(destinations.min()), high=int(destinations.max())))
        return manager

    DGData.from_tgb = staticmethod(from_csv)
    DGData.split = lambda data, strategy=None: (data, data, data)
    RecipeRegistry._recipes[RECIPE_TGB_LINK_PRED] = negatives
    for name in ("tgb", "tgb.linkproppred", "tgb.linkproppred.evaluate"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["tgb.linkproppred.evaluate"].Evaluator = lambda name: None
    clock, n_batches = Clock(ask.device), 0

    def rounds(batches, **_):
        """Batches, of which those in the middle of the epoch are timed: until the next one is asked for."""
        nonlocal n_batches
        n_batches = len(batches)
        first = (n_batches - ask.steps) // 2
        # A memory is filled by training; the loader alone fills the buffers of recent neighbours.
        trained_from = 0 if ask.model == "TGN" else first - 1
        batches = iter(batches)
        for at in range(first + ask.steps):
            if at < first:
                batch = next(batches)
                if at >= trained_from:
                    yield batch
            else:
                yield from timed(batches)
        raise Enough

    def timed(batches):
        import time

        clock.wait()
        start = time.perf_counter()
        yield next(batches)
        clock.wait()
        clock.seconds.append(time.perf_counter() - start)

    sys.modules["tqdm"] = types.SimpleNamespace(tqdm=rounds)
    script = ask.model.lower() + ".py"
    sys.argv = [script, "--bsize", str(BATCH), *OPTIONS[ask.model].split(), "--device", ask.device, "--epochs", "1"]
    try:
        runpy.run_path(os.path.join(ask.checkout, "examples", "linkproppred", script), run_name="__main__")
    except Enough:
        pass
    report("TGM", ask, clock.seconds, n_batches)


if __name__ == "__main__":
    main()
