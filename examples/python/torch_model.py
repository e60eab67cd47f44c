"""A PyTorch model of your own on the encodings of hopedgn: its histories, MITE, split, negatives and metrics.

    pip install hopedgn torch
    python torch_model.py --epochs 3

The model is a small DeepSets: it embeds every token of a pair, averages each side, and compares the two. A token is a past event of either
node; it carries its age, how often its node occurs on both sides, and the MITE intervals, the times since that node met the source and the
destination.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import Tensor, nn

import hopedgn


class TimeEncoding(nn.Module):
    """Cosines of the logarithm of a time difference at several frequencies."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.frequency = nn.Parameter(torch.logspace(-1.5, 1.0, width))
        self.phase = nn.Parameter(torch.zeros(width))

    def forward(self, seconds: Tensor) -> Tensor:
        return torch.cos(torch.log1p(seconds).unsqueeze(-1) * self.frequency + self.phase)


def mean_by(values: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """The mean of the rows of each group; zeros for a group without rows. Ragged rows need no padding."""
    sums = torch.zeros(n_groups, values.shape[1]).index_add_(0, group, values)
    return sums / torch.bincount(group, minlength=n_groups).clamp(min=1).unsqueeze(-1)


class PairDeepSets(nn.Module):
    """Logits of pairs from their tokens."""

    def __init__(self, width: int = 64, time_width: int = 16) -> None:
        super().__init__()
        self.time = TimeEncoding(time_width)
        # Age, intervals with either side, counts with either side.
        self.token = nn.Sequential(nn.Linear(3 * time_width + 2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.pair = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        counts, row, side = tokens["counts"], tokens["row"], tokens["side"]
        # Two lists of intervals for each MITE row: with the source and with the destination.
        mite = mean_by(self.time(tokens["interval"]), tokens["interval_list"], 2 * len(counts)).reshape(len(counts), -1)
        features = [self.time(tokens["age"]), mite[row], torch.log1p(counts[row].float())]
        embedded = self.token(torch.cat(features, dim=-1))
        src, dst = mean_by(embedded, side, int(tokens["n_sides"])).reshape(-1, 2, embedded.shape[1]).unbind(1)
        return self.pair(torch.cat([src, dst, src * dst], dim=-1)).squeeze(-1)


class Encoder:
    """Tokens of pairs as tensors; the arrays of hopedgn are taken without a copy."""

    def __init__(self, events: hopedgn.Events, length: int = 16, k: int = 8) -> None:
        self.encoder = hopedgn.PairEncoder(events, tokens=length, k=k)
        self.seconds = 0.0

    def __call__(self, src: np.ndarray, dst: np.ndarray, at: np.ndarray) -> dict[str, Tensor]:
        start = time.perf_counter()
        pairs = self.encoder.encode(src, dst, at)
        self.seconds += time.perf_counter() - start
        arrays = {"age": pairs.tokens.age, "row": pairs.tokens["row"], "counts": pairs.counts, "interval": pairs.mite.interval}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        groups = {"side": pairs.tokens.lengths, "interval_list": pairs.mite.lengths}
        tensors |= {name: torch.arange(len(n)).repeat_interleave(torch.from_numpy(n)) for name, n in groups.items()}
        return tensors | {"n_sides": torch.tensor(len(pairs.tokens))}


def train_epoch(model: PairDeepSets, train: hopedgn.Events, encoder: Encoder, optimizer: torch.optim.Optimizer, batch: int, seed: int) -> float:
    """One pass over the training events in order of time, one random destination against each true one; the mean loss."""
    model.train()
    random = np.random.RandomState(seed)
    src, dst, at, others = train.src, train.dst, train.time, np.unique(train.dst)
    losses = []
    for start in range(0, len(train), batch):
        part = slice(start, start + batch)
        n = len(src[part])
        both = np.concatenate([dst[part], random.choice(others, n)])
        logits = model(encoder(np.tile(src[part], 2), both, np.tile(at[part], 2)))
        labels = torch.arange(2 * n) < n
        loss = nn.functional.binary_cross_entropy_with_logits(logits, labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses))


@torch.no_grad()
def evaluate(model: PairDeepSets, split: hopedgn.Split, encoder: Encoder, part: str) -> tuple[float, float]:
    """AP and AUC as ``hopedgn evaluate`` computes them over a whole part: the same events, the same random negatives."""
    model.eval()
    events, names = split.events, split.events.names
    negatives = hopedgn.NegativeSampler(split, "random", part)
    scores = []
    for numbers, src, dst in negatives.batches():
        at = np.tile(events.time[numbers], 2)
        sources = np.concatenate([names[events.src_index[numbers]], src])
        destinations = np.concatenate([names[events.dst_index[numbers]], dst])
        scores.append(model(encoder(sources, destinations, at)).reshape(2, -1).numpy())
    logits = np.concatenate(scores, axis=1).reshape(-1)
    labels = np.arange(len(logits)) < len(negatives)
    return hopedgn.metrics.average_precision(labels, logits), hopedgn.metrics.roc_auc(labels, logits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="collegemsg", help="a file of events, or collegemsg, which is bundled")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--events", type=int, help="use only the first so many events")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # The model is too small for more; hopedgn encodes with all cores.
    events = hopedgn.Events.read(args.data)[: args.events]
    split = events.split("dyglib")
    train = events[split.train]
    print(events, split, sep="\n")
    # Training looks back on training events alone: a tenth of the nodes is kept out of it, to test on new nodes.
    train_encoder, test_encoder = Encoder(train), Encoder(events)
    model = PairDeepSets()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, args.epochs + 1):
        start = time.perf_counter()
        loss = train_epoch(model, train, train_encoder, optimizer, args.batch, args.seed + epoch)
        ap, auc = evaluate(model, split, test_encoder, "val")
        encoding, train_encoder.seconds, test_encoder.seconds = train_encoder.seconds + test_encoder.seconds, 0.0, 0.0
        took = time.perf_counter() - start
        print(f"epoch {epoch}: loss {loss:.4f}, validation AP {100 * ap:.2f}, AUC {100 * auc:.2f} ({took:.1f} s, encoding {encoding:.1f} s)")
    for part, words in (("test", "test"), ("new_node_test", "test, new nodes")):
        ap, auc = evaluate(model, split, test_encoder, part)
        print(f"{words}: AP {100 * ap:.2f}, AUC {100 * auc:.2f}")


if __name__ == "__main__":
    main()
