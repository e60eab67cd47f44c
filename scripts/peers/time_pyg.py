#!/usr/bin/env python3
"""Times TGN of PyTorch Geometric with its own example.

    python3 scripts/peers/time_pyg.py --checkout pytorch_geometric --data uci.csv.gz --model TGN

`examples/tgn.py` is run up to its loop over epochs, with the CSV and 172 zero features in place of JODIE's data, with the widths of DyGLib's TGN
(172, and 100 for time; the example has 100) and on --device. Then its own `train` and `test` run on loaders that end after the timed batches. Training goes
from the start of the epoch, which fills the memory, to the steps in its middle.
"""

import os
import time

from common import BATCH, Clock, arguments, report

WIDTHS = "memory_dim = time_dim = embedding_dim = 100"


def main():
    ask = arguments(__doc__, "github.com/pyg-team/pytorch_geometric").parse_args()
    if ask.model != "TGN":
        raise SystemExit(f"found --model {ask.model}, expected TGN: it is the one model of the example")

    import pandas as pd
    import torch
    import torch_geometric.datasets
    from torch_geometric.data import TemporalData

    frame = pd.read_csv(ask.data)
    columns = {name: torch.from_numpy(frame[of].to_numpy()).long() for name, of in (("src", "src"), ("dst", "dst"), ("t", "timestamp"))}
    events = TemporalData(msg=torch.zeros(len(frame), 172), **columns)
    torch_geometric.datasets.JODIEDataset = lambda path, name: [events]

    path = os.path.join(ask.checkout, "examples", "tgn.py")
    with open(path) as script:
        source = script.read().split("\nfor epoch in ")[0]
    if WIDTHS not in source:
        raise SystemExit(f"{path} is not the script that this was written for (release 2.8)")
    source = source.replace(WIDTHS, "memory_dim, time_dim, embedding_dim = 172, 100, 172")
    source = source.replace("'cuda' if torch.cuda.is_available() else 'cpu'", repr(ask.device))
    example = {"__file__": path, "__name__": "tgn"}
    exec(compile(source, path, "exec"), example)

    clock, loader = Clock(ask.device), example["train_loader"]
    first = (len(loader) - ask.steps) // 2

    def timed(batches):
        for at, batch in zip(range(first + ask.steps), batches):
            clock.wait()
            start = time.perf_counter()
            yield batch
            clock.wait()
            if at >= first:
                clock.seconds.append(time.perf_counter() - start)

    example["train_loader"] = timed(loader)
    example["train"]()
    seconds = 0.0
    if ask.evaluate:
        start = time.perf_counter()
        example["test"](batch for _, batch in zip(range(ask.evaluate), example["test_loader"]))
        clock.wait()
        seconds = time.perf_counter() - start
    assert loader.events_per_batch == BATCH
    report("PyG", ask, clock.seconds, len(loader), ask.evaluate, seconds)


if __name__ == "__main__":
    main()
