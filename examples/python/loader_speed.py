"""Time a batch of histories and pair encodings: hopedgn against the loader of DyGLib's DyGFormer.

    git clone https://github.com/yule-BUAA/DyGLib
    python loader_speed.py --dyglib DyGLib

DyGLib finds the neighbours of both nodes, pads them and counts how often each occurs on either side. hopedgn does the same work and adds the
MITE intervals. The counts of both are compared before anything is timed. DyGLib needs torch, pandas and scikit-learn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

import hopedgn


def dyglib_loader(path: str, events: hopedgn.Events, length: int) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """DyGLib's steps before its transformer. Its ids count nodes and events from 1."""
    sys.path.insert(0, path)
    from models.DyGFormer import DyGFormer
    from utils.utils import get_neighbor_sampler

    columns = {"src_node_ids": events.src_index.astype(np.int64) + 1, "dst_node_ids": events.dst_index.astype(np.int64) + 1}
    data = SimpleNamespace(**columns, node_interact_times=events.time, edge_ids=np.arange(1, len(events) + 1))
    sampler = get_neighbor_sampler(data, "recent")
    nodes, edges = (np.zeros((n + 1, 4), np.float32) for n in (events.n_nodes, len(events)))
    model = DyGFormer(nodes, edges, sampler, time_feat_dim=4, channel_embedding_dim=4, max_input_sequence_length=length)

    def load(src: np.ndarray, dst: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sides = []
        for names in (src, dst):
            ids = events.index_of(names) + 1
            lists = sampler.get_all_first_hop_neighbors(ids, at)
            sides.append(model.pad_sequences(ids, at, *lists, patch_size=1, max_input_sequence_length=length)[0])
        counts = model.neighbor_co_occurrence_encoder.count_nodes_appearances(*sides)
        return counts[0].numpy(), counts[1].numpy()

    return load


def check(ours: hopedgn.PairTokens, theirs: tuple[np.ndarray, np.ndarray]) -> None:
    """Refuses to time loaders that disagree: the counts are equal, token by token. DyGLib pads on the right."""
    for row, length in enumerate(ours.tokens.lengths):
        counts = ours.counts[ours.tokens.row(row)["row"]]
        assert np.array_equal(counts, theirs[row % 2][row // 2][:length]), f"pair {row // 2}: the loaders disagree"


def seconds_of(work: Callable[..., object], batches: list[tuple[np.ndarray, ...]]) -> float:
    """The median time of a batch."""
    times = []
    for batch in batches:
        start = time.perf_counter()
        work(*batch)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dyglib", help="a clone of DyGLib; without it only hopedgn is timed")
    parser.add_argument("--data", default="collegemsg")
    parser.add_argument("--length", type=int, default=32, help="tokens of each node, itself included")
    parser.add_argument("--k", type=int, default=32, help="MITE intervals of a node with either side")
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--threads", type=int, default=0, help="threads of hopedgn, 0 for all cores")
    args = parser.parse_args()

    hopedgn.set_num_threads(args.threads)
    events = hopedgn.Events.read(args.data)
    first = len(events) - args.batch * args.batches
    parts = [slice(start, start + args.batch) for start in range(first, len(events), args.batch)]
    src, dst, at = events.src, events.dst, events.time
    batches = [(src[part], dst[part], at[part]) for part in parts]
    encoder = hopedgn.PairEncoder(events, tokens=args.length, k=args.k)
    encoder.encode(*batches[0])

    print(f"{args.batches} batches of {args.batch} pairs, at most {args.length} tokens a side, the last events of {events.name}")
    ragged = seconds_of(encoder.encode, batches)
    padded = seconds_of(lambda *batch: encoder.encode(*batch).padded(args.length, args.k), batches)
    print(f"hopedgn, histories and MITE           {1e3 * ragged:9.2f} ms a batch, {hopedgn.get_num_threads()} threads")
    print(f"hopedgn, the same as padded arrays    {1e3 * padded:9.2f} ms a batch")
    if args.dyglib:
        load = dyglib_loader(args.dyglib, events, args.length)
        check(encoder.encode(*batches[0]), load(*batches[0]))
        theirs = seconds_of(load, batches)
        print(f"DyGLib, histories and co-occurrence   {1e3 * theirs:9.2f} ms a batch")
        print(f"hopedgn is {theirs / ragged:.0f} times faster, {theirs / padded:.0f} times with padding")


if __name__ == "__main__":
    main()
