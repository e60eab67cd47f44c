"""Inputs at the edge: several types in a list, masked arrays, units of time, rows as lists, copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import hopedgn
from hopedgn import Events, HopedgnError, LinkPredictor
from hopedgn._tables import as_events, as_pairs


def test_lists_of_several_types_are_not_turned_into_text():
    with pytest.raises(HopedgnError, match="row 1, column 1 .*no value"):
        Events.from_numpy(["a", float("nan")], ["b", "c"], [1, 2])
    with pytest.raises(HopedgnError, match="expected values of one kind"):
        Events.from_numpy(["a", True], ["b", "c"], [1, 2])
    assert Events.from_numpy([2**63 + 5, 1], [1, 2], [1, 2]).src.tolist() == [2**63 + 5, 1]
    assert Events.from_numpy([1, np.int64(2)], [3, 4], [1, 2.5]).time.tolist() == [1.0, 2.5]


def test_masked_values_are_missing():
    with pytest.raises(HopedgnError, match="row 1, column 1 .*masked"):
        Events.from_numpy(np.ma.array([1, 2], mask=[0, 1]), [1, 2], [1, 2])
    with pytest.raises(HopedgnError, match="row 0, times: found no value .masked"):
        hopedgn.Store(Events.from_numpy([1], [2], [3])).history([1], np.ma.array([4.0], mask=[1]), 2)


@pytest.mark.parametrize(
    ("unit", "values", "seconds"),
    [("10s", [1, 2], [10, 20]), ("10ms", [100, 250], [1, 2.5]), ("ps", [1_500_000_000_000, 2_700_000_000_000], [1.5, 2.7]), ("D", [1, 2], [86400, 172800])],
)
def test_units_of_times(unit, values, seconds):
    times = np.array(values, f"datetime64[{unit}]")
    events = Events.from_numpy([1, 2], [3, 4], times)
    assert events.time.tolist() == seconds
    assert len(events.between(times[1], None)) == 1 and len(events.between(None, times[1])) == 1


def test_nanoseconds_are_rounded_alike_in_columns_and_queries():
    events = Events.from_numpy([1, 2], [3, 4], np.array([1900, 2900], "datetime64[ns]"))
    objects = Events.from_numpy([1, 2], [3, 4], np.array([pd.Timestamp(1900), pd.Timestamp(2900)], dtype=object))
    assert events == objects
    for time in (pd.Timestamp(2900), np.datetime64(2900, "ns")):
        assert len(events.between(time, None)) == 1 and len(events.between(None, time)) == 1


def test_rows_as_lists_keep_their_types():
    assert as_events([(2**53 + 1, 2**53, 1.5)]).n_nodes == 2
    assert as_events([("a", "b", 1.0), ("b", "c", 2.0)]).src.tolist() == ["a", "b"]
    with pytest.raises(HopedgnError, match="2\\^53"):
        as_events(np.array([[2.0**53, 1, 2]]))
    with pytest.raises(HopedgnError, match="expected rows of source, destination and time"):
        as_events([1, 2, 3])


def test_tables_of_pyarrow_are_pairs():
    pyarrow = pytest.importorskip("pyarrow")
    src, dst, time = as_pairs(pyarrow.table({"src": [3], "dst": [4], "time": [400]}))
    assert [np.asarray(column).tolist() for column in (src, dst, time)] == [[3], [4], [400]]


def test_parts_by_steps_lists_and_nothing():
    events = Events.from_numpy(range(9), range(1, 10), range(9))
    assert events[::3].time.tolist() == [0, 3, 6]
    for nothing in ([], slice(5, 5)):
        with pytest.raises(HopedgnError, match="found no events"):
            events[nothing]


def test_joined_streams_agree_in_what_they_are():
    plain = Events.from_numpy([5, 1], [6, 2], [0, 0])
    with pytest.raises(HopedgnError, match="bipartite"):
        plain.append(Events.from_numpy([1], [1], [1], bipartite=True))
    with pytest.raises(HopedgnError, match="dates in one part"):
        plain.append(Events.from_numpy([1], [2], ["2024-01-01"]))
    with pytest.raises(TypeError, match="expected Events"):
        plain.append(pd.DataFrame())
    large = Events.from_numpy(np.array([2**63 + 5, 1], np.uint64), [1, 2], [1, 2])
    assert large.append(Events.from_numpy([1], [2], [3])).src.tolist() == [2**63 + 5, 1, 1]
    dates = Events.from_numpy([1], [2], np.array([10], "datetime64[s]"))
    assert dates != Events.from_numpy([1], [2], [10.0])


def test_rows_are_copied_pickled_and_counted_from_the_end(events):
    store = hopedgn.Store(events)
    past = store.history(events.src[:5], events.time[-1], 3)
    for same in (copy.copy(past), copy.deepcopy(past), pickle.loads(pickle.dumps(past))):
        np.testing.assert_array_equal(same["event"], past["event"])
    again = pickle.loads(pickle.dumps(hopedgn.PairEncoder(store, tokens=4)))
    assert len(again.encode(events.src[:2], events.dst[:2], events.time[-1])) == 2
    np.testing.assert_array_equal(past.row(-1)["event"], past.row(4)["event"])
    with pytest.raises(IndexError):
        past.row(5)


def test_parameters_are_all_or_nothing(events, tmp_path):
    model = LinkPredictor(epochs=1, device="cpu")
    with pytest.raises(HopedgnError):
        model.set_params(model="nope")
    assert model.model == "stats"
    with pytest.raises(HopedgnError, match="found epochs and train__epochs"):
        LinkPredictor(epochs=3, train__epochs=5)
    LinkPredictor(epochs=1, device="cpu", protocol="tgb").fit(events, progress=False).save(tmp_path / "run")
    assert LinkPredictor.load(tmp_path / "run").get_params()["protocol"] == "tgb"


def test_labels_and_ranks_are_checked():
    with pytest.raises(HopedgnError, match="labels other than 0 and 1"):
        hopedgn.metrics.average_precision([1, 0, float("nan")], [0.1, 0.2, 0.3])
    with pytest.raises(HopedgnError, match="rank below 1"):
        hopedgn.metrics.mrr([0])
