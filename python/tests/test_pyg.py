"""Exchange with PyTorch Geometric: ``TemporalData`` and its loader."""

from __future__ import annotations

import numpy as np
import pytest

import hopedgn

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch_geometric is not installed")

from torch_geometric.data import TemporalData  # noqa: E402
from torch_geometric.loader import TemporalDataLoader  # noqa: E402


@pytest.fixture
def columns():
    """Nodes from 0 without a gap, so that names and numbers are equal."""
    random = np.random.RandomState(2)
    n, n_nodes = 330, 25
    src, dst = random.randint(0, n_nodes, (2, n))
    src[:n_nodes] = np.arange(n_nodes)
    return {
        "src": torch.from_numpy(src),
        "dst": torch.from_numpy(dst),
        "t": torch.from_numpy(np.sort(random.randint(0, 900, n))),
        "msg": torch.from_numpy(random.rand(n, 3).astype(np.float32)),
        "y": torch.from_numpy((random.rand(n) < 0.1).astype(np.float32)),
    }


def _same(ours, theirs):
    assert set(ours.keys()) == set(theirs.keys())
    for key in theirs.keys():
        assert ours[key].dtype == theirs[key].dtype and torch.equal(ours[key], theirs[key]), key


def test_temporal_data_comes_back_as_it_was(columns):
    by_hand = TemporalData(**columns)
    events = hopedgn.Events.from_temporal_data(by_hand)
    _same(events.to_temporal_data(), by_hand)
    assert hopedgn.Events.from_temporal_data(events.to_temporal_data()) == events


@pytest.mark.parametrize("batch_size", [1, 50, 1000])
def test_batches_of_the_loader_equal_those_of_data_made_by_hand(columns, batch_size):
    arrays = {name: column.numpy() for name, column in columns.items()}
    events = hopedgn.Events.from_numpy(
        arrays["src"], arrays["dst"], arrays["t"], label=arrays["y"], edge_features=arrays["msg"]
    )
    ours = list(TemporalDataLoader(events.to_temporal_data(), batch_size=batch_size))
    theirs = list(TemporalDataLoader(TemporalData(**columns), batch_size=batch_size))
    assert len(ours) == len(theirs) == -(-len(events) // batch_size)
    for one, other in zip(ours, theirs):
        _same(one, other)


def test_data_without_messages_and_labels_is_read(columns):
    bare = TemporalData(**{name: columns[name] for name in ("src", "dst", "t")})
    events = hopedgn.Events.from_temporal_data(bare)
    assert events.edge_features is None and len(events) == len(bare.src)
    again = events.to_temporal_data()
    assert again.msg.shape == (len(events), 0) and torch.equal(again.t, bare.t)


def test_times_with_fractions_stay_floats_and_names_become_numbers():
    data = hopedgn.Events.from_numpy(["ann", "bob"], ["bob", "cem"], [0.5, 1.0]).to_temporal_data()
    assert data.t.dtype == torch.float64 and data.t.tolist() == [0.5, 1.0]
    assert data.src.tolist() == [0, 1] and data.dst.tolist() == [1, 2]


def test_data_that_is_not_in_order_is_refused_or_sorted(columns):
    backwards = TemporalData(**{name: column.flip(0) for name, column in columns.items()})
    with pytest.raises(hopedgn.HopedgnError, match="expected times that never go backwards"):
        hopedgn.Events.from_temporal_data(backwards)
    assert len(hopedgn.Events.from_temporal_data(backwards, sort=True)) == len(columns["src"])


def test_the_tensors_belong_to_the_caller(columns):
    events = hopedgn.Events.from_temporal_data(TemporalData(**columns))
    data = events.to_temporal_data()
    data.t += 1
    data.msg.zero_()
    _same(events.to_temporal_data(), TemporalData(**columns))


def test_encodings_are_taken_by_torch_without_a_copy(columns):
    events = hopedgn.Events.from_temporal_data(TemporalData(**columns))
    pairs = hopedgn.PairEncoder(events, tokens=8).encode(events.src[-20:], events.dst[-20:], events.time[-20:])
    for column in (*pairs.tokens.columns.values(), pairs.mite["interval"], pairs.counts):
        for tensor in (torch.from_numpy(column), torch.from_dlpack(column)):
            assert tensor.data_ptr() == column.ctypes.data
