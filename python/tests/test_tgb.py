"""Exchange with py-tgb: its evaluator gives our metrics, and the lists of its generator are used for evaluation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hopedgn
from hopedgn import HopedgnError

evaluate = pytest.importorskip("tgb.linkproppred.evaluate", reason="py-tgb is not installed", exc_type=ImportError)

METRICS = ["mrr", "hits@"]


@pytest.fixture(scope="module")
def stream():
    """Events whose nodes are numbered from 0 without a gap, sources before destinations, as TGB has them."""
    random = np.random.RandomState(5)
    n, n_src, n_dst = 800, 20, 40
    src = random.randint(0, n_src, n)
    src[:n_src] = np.arange(n_src)
    # The last source is new in the test: its lists of py-tgb are floats.
    src[src == n_src - 1] = 0
    src[-30::3] = n_src - 1
    dst = n_src + np.where(random.rand(n) < 0.6, (src * 3) % n_dst, random.randint(0, n_dst, n))
    dst[:n_dst] = n_src + np.arange(n_dst)
    return hopedgn.Events.from_numpy(src, dst, np.sort(random.randint(0, 500, n)))


@pytest.fixture(scope="module")
def fitted(stream):
    return hopedgn.LinkPredictor(protocol="tgb", epochs=1, device="cpu").fit(stream, progress=False)


@pytest.fixture
def generate(stream, tmp_path):
    """Lists of py-tgb's own generator for the test events: a dict by (source, destination, time)."""
    pytest.importorskip("torch", reason="torch, which py-tgb's generator needs, is not installed")
    pytest.importorskip("torch_geometric", reason="torch_geometric, which py-tgb's generator needs, is not installed")
    generator = pytest.importorskip("tgb.linkproppred.negative_generator")
    from tgb.utils.utils import load_pkl

    def run(strategy, count):
        whole, split = stream.to_temporal_data(), stream.split("tgb")
        first, last = int(whole.dst.min()), int(whole.dst.max())
        training = whole[split.train.tolist()]
        drawn = generator.NegativeEdgeGenerator("own", first, last, count, strategy, 42, historical_data=training)
        for part, events in (("val", split.val), ("test", split.test)):
            drawn.generate_negative_samples(whole[events.tolist()], part, str(tmp_path))
        return [load_pkl(str(tmp_path / f"own_{part}_ns.pkl")) for part in ("val", "test")]

    return run


def _evaluator():
    return evaluate.Evaluator(name="tgbl-wiki", k_value=10)


@pytest.mark.parametrize("levels", [4, 10_000])
def test_the_evaluator_gives_our_metrics_also_where_scores_are_equal(levels):
    random = np.random.RandomState(levels)
    positive, negative = (np.round(random.rand(*shape) * levels) / levels for shape in ((300,), (300, 50)))
    theirs = _evaluator().eval({"y_pred_pos": positive, "y_pred_neg": negative, "eval_metric": METRICS})
    ranks = hopedgn.metrics.ranks(positive, negative)
    assert hopedgn.metrics.mrr(ranks) == pytest.approx(float(theirs["mrr"]), abs=1e-6)
    assert hopedgn.metrics.hits_at(ranks, 10) == pytest.approx(float(theirs["hits@10"]), abs=1e-6)


@pytest.mark.parametrize(("strategy", "count"), [("hist_rnd", 8), ("hist_rnd", 100), ("rnd", 12)])
def test_lists_of_their_generator_evaluate_a_model_as_their_evaluator_does(strategy, count, generate, stream, fitted):
    lists = generate(strategy, count)[1]
    ours = fitted.evaluate(protocol="tgb", candidates=lists)["ranking"]["scorers"]["stats"]["transductive"]

    test = stream[stream.split("tgb").test]
    mrr, hits = [], []
    # One at a time: the lists differ in length, which their evaluator does not allow in one call.
    for src, dst, time in test:
        candidates = np.asarray(lists[(src, dst, time)], dtype=np.int64)
        scores = fitted.decision_function([src], np.append(candidates, dst), time)
        theirs = _evaluator().eval({"y_pred_pos": scores[-1:], "y_pred_neg": scores[None, :-1], "eval_metric": METRICS})
        mrr.append(theirs["mrr"])
        hits.append(theirs["hits@10"])
    assert ours["mrr"] == pytest.approx(np.mean(mrr, dtype=np.float64), abs=1e-6)
    assert ours["hits_at_10"] == pytest.approx(np.mean(hits, dtype=np.float64), abs=1e-6)


@pytest.mark.parametrize("count", [1, 9, 100])
def test_our_lists_are_those_of_their_generator(count, generate, stream):
    sampler = hopedgn.CandidateSampler(stream, count)
    for part, theirs in zip(("val", "test"), generate("hist_rnd", count)):
        events = stream[getattr(sampler.split, part)]
        ours = sampler.query_batch(events.src, events.dst, events.time, part)
        for event, candidates in zip(events, ours):
            assert candidates.tolist() == np.asarray(theirs[event]).tolist()


def test_lists_from_memory_equal_lists_from_a_file(stream, fitted, tmp_path):
    sampler = hopedgn.CandidateSampler(stream, 5)
    test = stream[sampler.split.test]
    lists = dict(zip(test, sampler.query_batch(test.src, test.dst, test.time)))
    file = tmp_path / "lists.jsonl"
    rows = [{"src": s, "dst": d, "time": t, "candidates": nodes.tolist()} for (s, d, t), nodes in lists.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ways = [dict(candidates=lists), dict(candidates=file), dict(ranking=5)]
    from_memory, from_file, drawn = (fitted.evaluate(protocol="tgb", **way)["ranking"]["scorers"] for way in ways)
    assert from_memory == from_file == drawn


def test_lists_of_text_names_and_dates_are_found():
    random = np.random.RandomState(0)
    src = [f"user {i}" for i in random.randint(0, 6, 200)]
    dst = [f"page {i}" for i in random.randint(0, 9, 200)]
    days = np.datetime64("2024-01-01", "s") + np.arange(200)
    events = hopedgn.Events.from_numpy(src, dst, days)
    fitted = hopedgn.LinkPredictor(protocol="tgb", epochs=1, device="cpu").fit(events, progress=False)
    test = events.split("tgb").test
    lists = {(src[i], dst[i], days[i]): [f"page {(int(dst[i][5:]) + 1) % 9}"] for i in test}
    assert fitted.evaluate(protocol="tgb", candidates=lists)["ranking"]["scorers"]["stats"]["transductive"]["mrr"] >= 0.5


def test_lists_that_are_wrong_are_refused(stream, fitted):
    test = stream[stream.split("tgb").test]
    event = next(iter(test))
    for candidates, message in [
        ({event: [20]}, "^candidates: found no candidates for the event"),
        ({event: [999]}, '^candidates, entry 1: found no node called "999"'),
        ({event[:2]: [20]}, r"expected \(source, destination, time\)"),
        ([[20]], "found a list, expected the name of a file, or a dict"),
    ]:
        with pytest.raises(HopedgnError, match=message):
            fitted.evaluate(protocol="tgb", candidates=candidates)
