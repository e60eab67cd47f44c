"""NumPy baseline of `hopedgn bench sample` and `hopedgn bench encode`. Needs numpy.

    python3 scripts/numpy_equivalent.py DATA.csv.gz [--length 32] [--k 32] [--batch 2000] [--repeats 3]

`sample-loop` samples node by node, as research code does; `sample` and `encode` handle a whole batch with array operations.
`encode` computes the same as the program: tokens of both sides with their ages, and for every token its last K intervals with
source and destination, as padded arrays. Prints one JSON document.
"""
import argparse, gzip, json, time
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--length", type=int, default=32)
parser.add_argument("--k", type=int, default=32)
parser.add_argument("--batch", type=int, default=2000)
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--events", type=int, default=20_000, help="events measured, from the end of the stream")
args = parser.parse_args()

opened = gzip.open if args.data.endswith(".gz") else open
with opened(args.data, "rt") as file:
    rows = np.loadtxt(file, delimiter=",", skiprows=1, usecols=(0, 1, 2), dtype=np.float64)
src, dst, times = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64), rows[:, 2]
n_nodes = int(max(src.max(), dst.max())) + 1

# Adjacency lists of all nodes, concatenated, each in order of (time, event id); keys sort by (node, time index).
ids = np.arange(len(src))
node = np.concatenate([src, dst])
other = np.concatenate([dst, src])
event = np.concatenate([ids, ids])
order = np.lexsort((event, node))
node, other, event = node[order], other[order], event[order]
starts = np.searchsorted(node, np.arange(n_nodes + 1))
moments, moment_of = np.unique(times, return_inverse=True)
keys = node * (len(moments) + 1) + moment_of[event]
entry_times = times[event]
lists = [entry_times[starts[n]:starts[n + 1]] for n in range(n_nodes)]


def ends_of(nodes, moment):
    """End of each node's history, strictly before the moment."""
    return np.searchsorted(keys, nodes * (len(moments) + 1) + moment)


def recent(nodes, moment, k):
    """Positions of the last k entries, right-aligned, and which of them exist."""
    ends = ends_of(nodes, moment)
    places = ends[:, None] - np.arange(k, 0, -1)
    return places, places >= starts[nodes][:, None]


def sample(batch):
    nodes = np.concatenate([src[batch], dst[batch]])
    moment = np.concatenate([moment_of[batch]] * 2)
    places, present = recent(nodes, moment, args.k)
    places = np.where(present, places, 0)
    return other[places] * present, event[places] * present, entry_times[places] * present


def sample_loop(batch):
    out = np.zeros((2 * len(batch), args.k))
    for row, (n, t) in enumerate(zip(np.concatenate([src[batch], dst[batch]]), np.concatenate([times[batch]] * 2))):
        end = np.searchsorted(lists[n], t)
        part = lists[n][max(0, end - args.k):end]
        out[row, args.k - len(part):] = part
    return out


def encode(batch):
    sides = []
    for nodes in (src[batch], dst[batch]):
        places, present = recent(nodes, moment_of[batch], args.length - 1)
        places = np.where(present, places, 0)
        neighbours = np.where(present, other[places], -1)
        ages = np.where(present, times[batch][:, None] - entry_times[places], 0).astype(np.float32)
        sides.append((np.concatenate([nodes[:, None], neighbours], 1), ages))
    tokens = np.concatenate([side[0] for side in sides], 1)  # [B, 2L]
    rows = []
    for side, ages in sides:
        is_same = (tokens[:, :, None] == side[:, None, 1:]) & (tokens >= 0)[:, :, None]  # [B, 2L, L-1]
        rank = is_same[..., ::-1].cumsum(-1)[..., ::-1]
        slots = np.full((*tokens.shape, args.k), np.nan, np.float32)
        b, s, l = np.nonzero(is_same & (rank <= args.k))
        slots[b, s, rank[b, s, l] - 1] = ages[b, l]
        rows.append(slots)
    return tokens, rows


def rate(function, per_event, batch_size):
    first = max(0, len(src) - args.events)
    batches = [np.arange(at, min(at + batch_size, len(src))) for at in range(first, len(src), batch_size)]
    seconds = []
    for _ in range(args.repeats):
        start = time.perf_counter()
        for batch in batches:
            function(batch)
        seconds.append(time.perf_counter() - start)
    return per_event * (len(src) - first) / min(seconds)


print(json.dumps({
    "numpy": np.__version__,
    "sample-loop": {"histories_per_second": rate(sample_loop, 2, args.batch)},
    "sample": {"histories_per_second": rate(sample, 2, args.batch)},
    "encode": {"pairs_per_second": rate(encode, 1, min(args.batch, 200)), "length": args.length, "k": args.k},
}, indent=2))
