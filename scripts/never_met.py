"""Whether a run prefers pairs that never met: python3 scripts/never_met.py EVENTS.csv.gz RUN...

Historical negatives are pairs that met before. A model gains against them where it knows which pairs meet again, and where it
takes "never met" for a reason. For validation events in batches of 200 this draws past pairs (uniform among distinct earlier
pairs) and pairs that never met (source and destination as frequent as in training), and prints for each run

- AP of repeated meetings, and of first meetings, against past pairs;
- AP of first meetings against pairs that never met;
- how often a pair that never met has a higher intensity than a past pair.

Above them stands how often such a pair has the next event, as a fraction of how often a past pair has it.

Runs need `train.objective = "intensity"`. The program is $HOPEDGN, or hopedgn.
"""

import bisect
import collections
import csv
import gzip
import os
import random
import subprocess
import sys
import tempfile


def average_precision(positives, negatives):
    ranked = sorted([(-score, 1) for score in positives] + [(-score, 0) for score in negatives])
    total, hits, first = 0.0, 0, 0
    while first < len(ranked):
        last, tied = first, 0
        while last < len(ranked) and ranked[last][0] == ranked[first][0]:
            tied += ranked[last][1]
            last += 1
        hits += tied
        total += tied * hits / last
        first = last
    return total / len(positives)


def share_above(upper, lower):
    lower = sorted(lower)
    wins = sum(bisect.bisect_left(lower, score) + bisect.bisect_right(lower, score) for score in upper)
    return wins / 2 / len(upper) / len(lower)


def draw_pairs(path, out):
    """Writes the pairs to score; returns the observed ratio of rates, never met over past."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as file:
        events = [(row[0], row[1], row[2]) for row in list(csv.reader(file))[1:]]
    times = sorted(float(event[2]) for event in events)
    val, test = (times[int(share * (len(times) - 1))] for share in (0.70, 0.85))
    train = [event for event in events if float(event[2]) <= val]
    part = [event for event in events if val < float(event[2]) <= test]
    past = list(dict.fromkeys(event[:2] for event in train))
    seen = set(past)
    of_src = collections.Counter(event[0] for event in train)
    of_dst = collections.Counter(event[1] for event in train)
    rng = random.Random(0)
    n_tries, rates = 0, {"past": 0.0, "never": 0.0}
    writer = csv.writer(out)
    writer.writerow(["src", "dst", "time", "kind", "batch"])
    for index, (src, dst, time) in enumerate(part):
        met, batch = (src, dst) in seen, index // 200
        writer.writerow([src, dst, time, "repeated" if met else "first", batch])
        writer.writerow([*rng.choice(past), time, "past", batch])
        pair = None
        while pair is None or pair in seen:
            n_tries += 1
            pair = (rng.choice(train)[0], rng.choice(train)[1])
        writer.writerow([*pair, time, "never", batch])
        if met:
            rates["past"] += 1 / len(past)
        else:
            rates["never"] += of_src[src] * of_dst[dst] / len(train) ** 2
            seen.add((src, dst))
            past.append((src, dst))
    # A draw that never met is accepted once in n_tries / len(part) tries.
    return rates["never"] * n_tries / len(part) / rates["past"]


def main():
    program = os.environ.get("HOPEDGN", "hopedgn")
    with tempfile.TemporaryDirectory() as folder:
        pairs, scores = os.path.join(folder, "pairs.csv"), os.path.join(folder, "scores.csv")
        with open(pairs, "w") as out:
            observed = draw_pairs(sys.argv[1], out)
        print(f"events of a pair that never met, over those of a past pair: {observed:.3f}")
        for run in sys.argv[2:]:
            subprocess.run([program, "score", run, "--pairs", pairs, "--out", scores, "--force", "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)
            batches = collections.defaultdict(lambda: collections.defaultdict(list))
            with open(scores) as file:
                for row in csv.DictReader(file):
                    batches[row["batch"]][row["kind"]].append(float(row["intensity"]))
            whole = [batch for batch in batches.values() if len(batch) == 4]

            def mean(measure, upper, lower):
                return 100 * sum(measure(batch[upper], batch[lower]) for batch in whole) / len(whole)

            print(f"{run}: AP repeated : past {mean(average_precision, 'repeated', 'past'):.2f}, "
                  f"first : past {mean(average_precision, 'first', 'past'):.2f}, "
                  f"first : never met {mean(average_precision, 'first', 'never'):.2f}; "
                  f"never met above past {mean(share_above, 'never', 'past'):.1f}%", flush=True)


if __name__ == "__main__":
    main()
