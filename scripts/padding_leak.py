"""How much the padding of a batch reveals about its labels: python3 scripts/padding_leak.py EVENTS.csv.gz [LENGTH] [PATCH]

DyGLib pads all destinations of a batch to the longest of them, positives and negatives separately, and lets the model attend
to the padding. Prints, for each part of the split, how often the padded length (in patches) is smaller, equal and larger for
the positives than for the negatives of the same batch, and the average precision of that length as a score. Needs numpy.
"""

import csv
import gzip
import sys
from collections import defaultdict

import numpy as np


def main():
    path, length, patch = sys.argv[1], *(int(x) for x in [*sys.argv[2:], 2048, 64][:2])
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as file:
        rows = [(int(float(r[0])), int(float(r[1])), float(r[2])) for r in list(csv.reader(file))[1:]]
    src, dst, time = (np.array(column) for column in zip(*rows))
    past = defaultdict(list)
    for u, v, t in rows:
        past[u].append(t)
        past[v].append(t)
    past = {node: np.sort(times) for node, times in past.items()}

    def patches(nodes, times):
        lengths = [min(np.searchsorted(past[node], t), length - 1) + 1 for node, t in zip(nodes, times)]
        return -(-max(lengths) // patch)

    val, test = np.quantile(time, [0.70, 0.85])
    random = np.random.RandomState(0)
    for name, part in [("train", time <= val), ("val", (time > val) & (time <= test)), ("test", time > test)]:
        events = np.where(part)[0]
        pool = np.unique(dst[events] if name == "train" else dst)
        signs = []
        for first in range(0, len(events), 200):
            batch = events[first : first + 200]
            negatives = pool[random.randint(0, len(pool), len(batch))]
            signs.append(np.sign(patches(dst[batch], time[batch]) - patches(negatives, time[batch])))
        signs = np.array(signs)
        shares = [f"{100 * np.mean(signs == sign):.0f}%" for sign in (-1, 0, 1)]
        # All positives of a batch have one score and all negatives another: the precision is 1, or a half.
        precision = 100 * np.mean(np.where(signs < 0, 1.0, 0.5))
        print(f"{name}: {len(signs)} batches, positives padded less {shares[0]}, the same {shares[1]}, more {shares[2]}; "
              f"AP of the length alone {precision:.1f}")


main()
