"""Histories, MITE, neighbours, negatives and candidates against plain implementations."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

import hopedgn
from hopedgn import HopedgnError
from hopedgn.sampling import get_neighbor_sampler


class PlainSampler:
    """What DyGLib documents of its sampler for recent neighbours, written plainly: lists of (neighbour, edge, time) in order of time."""

    def __init__(self, src, dst, edge, time):
        self.lists = {}
        for s, d, e, t in zip(src, dst, edge, time):
            self.lists.setdefault(s, []).append((d, e, t))
            self.lists.setdefault(d, []).append((s, e, t))
        for neighbors in self.lists.values():
            neighbors.sort(key=lambda entry: entry[2])

    def historical(self, nodes, times, k):
        ids, edges = np.zeros((2, len(nodes), k), np.int64)
        at = np.zeros((len(nodes), k), np.float32)
        for row, (node, time) in enumerate(zip(nodes, times)):
            past = [entry for entry in self.lists.get(node, []) if entry[2] < time][-k:]
            for slot, (neighbor, edge, when) in enumerate(past, k - len(past)):
                ids[row, slot], edges[row, slot], at[row, slot] = neighbor, edge, when
        return ids, edges, at


def _check(data, seed=0, n=300, k=7):
    random = np.random.RandomState(seed)
    plain = PlainSampler(data.src_node_ids, data.dst_node_ids, data.edge_ids, data.node_interact_times)
    ours = get_neighbor_sampler(data, "recent")
    nodes = random.choice(np.concatenate([data.src_node_ids, data.dst_node_ids, [0]]), n)
    times = random.choice(data.node_interact_times, n) + random.choice([0.0, 0.5], n)
    for found, expected in zip(ours.get_historical_neighbors(nodes, times, k), plain.historical(nodes, times, k)):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    hops = ours.get_multi_hop_neighbors(2, nodes, times, 3)
    first = plain.historical(nodes, times, 3)
    second = plain.historical(first[0].reshape(-1), first[2].reshape(-1), 3)
    for found, one, two in zip(hops, first, second):
        np.testing.assert_array_equal(found[0], one)
        np.testing.assert_array_equal(found[1], two.reshape(n, 9))
    everything = ours.get_all_first_hop_neighbors(nodes, times)
    for row, (node, time) in enumerate(zip(nodes, times)):
        past = [entry for entry in plain.lists.get(node, []) if entry[2] < time]
        assert everything[0][row].tolist() == [entry[0] for entry in past]


def test_neighbours_equal_a_plain_sampler_with_equal_times_and_self_loops():
    random = np.random.RandomState(3)
    n = 500
    src, dst = random.randint(1, 30, (2, n))
    time = np.sort(random.randint(0, 120, n)).astype(float)
    data = SimpleNamespace(src_node_ids=src, dst_node_ids=dst, node_interact_times=time, edge_ids=np.arange(1, n + 1))
    assert (src == dst).any()
    _check(data)


def test_neighbours_equal_a_plain_sampler_on_uci():
    folder = os.environ.get("HOPEDGN_TEST_DATA")
    path = os.path.join(folder or "", "uci", "uci.csv.gz")
    if folder is None or not os.path.exists(path):
        pytest.skip("the real datasets are not beside the repository")
    events = hopedgn.Events.read(path)
    # DyGLib counts nodes and edges from 1.
    columns = {"src_node_ids": events.src_index.astype(np.int64) + 1, "dst_node_ids": events.dst_index.astype(np.int64) + 1}
    data = SimpleNamespace(**columns, node_interact_times=events.time, edge_ids=np.arange(1, len(events) + 1))
    _check(data, n=2000, k=20)
    nodes, times = data.src_node_ids[-500:], data.node_interact_times[-500:]
    by_events = hopedgn.NeighborSampler(events).get_historical_neighbors(nodes, times, 10)
    by_data = get_neighbor_sampler(data).get_historical_neighbors(nodes, times, 10)
    for a, b in zip(by_events, by_data):
        np.testing.assert_array_equal(a, b)


def test_other_strategies_are_refused(events):
    with pytest.raises(HopedgnError, match='expected "recent"'):
        hopedgn.NeighborSampler(events, "uniform")


def test_histories_are_the_last_events_strictly_before(events):
    store = hopedgn.Store(events)
    nodes, times = events.src[200:260], events.time[200:260]
    past = store.history(nodes, times, k=5)
    for row, (node, time) in enumerate(zip(nodes, times)):
        before = [i for i in range(len(events)) if events.time[i] < time and node in (events.src[i], events.dst[i])][-5:]
        assert past.row(row)["event"].tolist() == before
        assert (past.row(row)["time"] == events.time[before]).all()
    padded = past.padded(5, fill=-1)
    assert (padded["mask"].sum(axis=1) == past.lengths).all() and (padded["event"][~padded["mask"]] == -1).all()
    for row in range(len(past)):
        np.testing.assert_array_equal(padded["event"][row][padded["mask"][row]], past.row(row)["event"])
    assert store.history(["no such node"], [1.0], k=3).lengths.tolist() == [0]


def test_tokens_hold_the_intervals_of_common_neighbours(events):
    encoder = hopedgn.PairEncoder(events, tokens=6, k=4)
    src, dst, time = events.src[300:340], events.dst[300:340], events.time[300:340]
    pairs = encoder.encode(src, dst, time)
    assert len(pairs) == 40
    # A pair does not depend on the others.
    alone = encoder.encode(src[7:8], dst[7:8], time[7:8])
    for column in ("node", "age", "event"):
        np.testing.assert_array_equal(alone.tokens.row(0)[column], pairs.tokens.row(14)[column])
    padded = pairs.padded(6, 4)
    assert padded["mite"].shape == (40, 2, 6, 2, 4) and padded["node"].shape == (40, 2, 6)
    # Token by token: its intervals with the source, then with the destination, the newest first and zeros behind them.
    for pair in range(40):
        for side in range(2):
            rows = pairs.tokens.row(2 * pair + side)["row"][-6:]
            slots = padded["mite"][pair, side, 6 - len(rows) :]
            for slot, row in zip(slots, rows):
                for other in range(2):
                    intervals = pairs.mite.row(2 * int(row) + other)["interval"][:4]
                    assert slot[other].tolist() == intervals.tolist() + [0.0] * (4 - len(intervals))
            assert not padded["mite_mask"][pair, side, : 6 - len(rows)].any()
    # Every interval of a token is the age of an event of its node among the tokens of that side.
    for pair in (0, 7, 39):
        sides = [pairs.tokens.row(2 * pair), pairs.tokens.row(2 * pair + 1)]
        for token, row in zip(sides[0]["node"], sides[0]["row"]):
            for side in (0, 1):
                expected = sides[side]["age"][1:][sides[side]["node"][1:] == token][::-1][:4]
                assert pairs.mite.row(2 * row + side)["interval"].tolist() == expected.tolist()
    without = hopedgn.PairEncoder(events, mite=False).encode(src, dst, time)
    assert without.mite["interval"].size == 0


def test_arrays_are_taken_by_dlpack(events):
    past = hopedgn.Store(events).history(events.src[:50], events.time[:50], k=5)
    for column in past.columns.values():
        assert np.shares_memory(np.from_dlpack(column), column)


def test_negatives_are_those_of_the_evaluation(events):
    split = events.split("dyglib")
    for kind in ("random", "historical", "inductive"):
        sampler = hopedgn.NegativeSampler(split, kind, batch=50)
        assert len(sampler.src) == len(split.test)
        again = hopedgn.NegativeSampler(split, kind, batch=50)
        np.testing.assert_array_equal(sampler.dst_index, again.dst_index)
        assert sum(len(batch[0]) for batch in sampler.batches()) == len(split.test)
    random = hopedgn.NegativeSampler(split, "random")
    np.testing.assert_array_equal(random.src, events.src[split.test])
    # DyGLib's generator: NumPy's, seeded with the number of the pass, sources drawn first.
    numpy = np.random.RandomState(2)
    n = len(split.test)
    destinations = np.unique(events.dst_index)
    expected = []
    for start in range(0, n, 200):
        size = min(200, n - start)
        numpy.randint(0, len(np.unique(events.src_index)), size)
        expected.extend(destinations[numpy.randint(0, len(destinations), size)])
    np.testing.assert_array_equal(random.dst_index, expected)


def test_metrics_of_negatives_equal_the_evaluation(events, fitted):
    split = events.split("dyglib")
    random = hopedgn.NegativeSampler(split, "random", batch=fitted.config_["train"]["batch"])
    test = events[split.test]
    scores = [fitted.decision_function(s, d, test.time) for s, d in ((test.src, test.dst), (random.src, random.dst))]
    labels = np.repeat([True, False], len(test))
    expected = fitted.evaluate()["negatives"]["random"]["stats"]["transductive"]
    assert hopedgn.metrics.average_precision(labels, np.concatenate(scores)) == expected["ap_global"]
    assert hopedgn.metrics.roc_auc(labels, np.concatenate(scores)) == expected["auc_global"]


def test_candidates_are_queried_as_in_tgb(events):
    lists = hopedgn.CandidateSampler(events, count=6)
    test = lists.split.test
    src, dst, time = events.src[test], events.dst[test], events.time[test]
    by_name = lists.query_batch(src, dst, time, "test")
    assert all(truth not in candidates and len(candidates) == 6 for truth, candidates in zip(dst, by_name))
    with pytest.raises(HopedgnError, match="row 0: found no such event"):
        lists.query_batch([1], [1], [123456.0])


def test_metrics_equal_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    random = np.random.RandomState(0)
    labels, scores = random.rand(500) < 0.3, np.round(random.rand(500), 2)
    assert hopedgn.metrics.average_precision(labels, scores) == pytest.approx(sklearn.average_precision_score(labels, scores), abs=1e-12)
    assert hopedgn.metrics.roc_auc(labels, scores) == pytest.approx(sklearn.roc_auc_score(labels, scores), abs=1e-12)
    ranks = hopedgn.metrics.ranks([0.5, 0.5], [[0.9, 0.5, 0.1], []])
    assert ranks.tolist() == [2.5, 1.0]
    assert hopedgn.metrics.recall_at(ranks, 1) == 0.5 and hopedgn.metrics.ndcg_at(ranks, 1) == 0.5
    with pytest.raises(HopedgnError, match="at least one of each"):
        hopedgn.metrics.roc_auc([1, 1], [0.1, 0.2])


def test_dwl_separates_tuples_by_name():
    ring = hopedgn.Events.from_numpy(list("abcdef"), list("bcdefa"), [1] * 6)
    assert hopedgn.dwl.separates(ring, ring, k=2, tuples=(["a", "b"], ["a", "c"]))
    assert not hopedgn.dwl.separates(ring, ring, k=2, tuples=(["a", "b"], ["b", "c"]))
    verdict = hopedgn.dwl.compare(ring, ring, k=1)
    assert not verdict.separated and verdict.stable and verdict.witness is None
    with pytest.raises(HopedgnError, match="found no node called z"):
        hopedgn.dwl.compare(ring, ring, tuples=(["a"], ["z"]))


def test_marked_dwl_separates_the_rook_s_graph_from_the_shrikhande_graph():
    cells = [(row, column) for row in range(4) for column in range(4)]
    names = {cell: f"{cell[0]}{cell[1]}" for cell in cells}
    steps = [(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)]
    rook = [(names[a], names[b], 1.0) for a in cells for b in cells if a < b and (a[0] == b[0] or a[1] == b[1])]
    shrikhande = [(names[a], names[b], 1.0) for a in cells for b in cells if a < b and ((b[0] - a[0]) % 4, (b[1] - a[1]) % 4) in steps]
    assert not hopedgn.dwl.separates(rook, shrikhande, k=2)
    verdict = hopedgn.dwl.compare(rook, shrikhande, marked=True)
    assert verdict.separated and verdict.round == 1 and verdict.k == 2
    with pytest.raises(HopedgnError, match="marked DWL colours pairs"):
        hopedgn.dwl.compare(rook, shrikhande, k=3, marked=True)


def test_what_an_object_is_can_be_read(events):
    encoder = hopedgn.PairEncoder(events, tokens=4, k=2)
    shown = [encoder, encoder.encode([1, 2], [3, 4], [9.0, 9.0]), hopedgn.NegativeSampler(events), hopedgn.CandidateSampler(events, 9)]
    texts = [repr(one) for one in [*shown, hopedgn.NeighborSampler(events)]]
    assert texts[0] == f"PairEncoder({events!r}, tokens=4, k=2, scope='truncated')"
    assert texts[1].startswith("PairTokens(2 pairs: ") and texts[1].endswith(" MITE intervals)")
    assert texts[2].startswith("NegativeSampler('random', 'test': ") and "'tgb', count=9, part='test'" in texts[3]
    assert texts[4] == f"NeighborSampler({events!r}, 'recent')"
