"""Neighbours and negatives under the names that DyGLib and TGB have for them.

``get_neighbor_sampler`` and :class:`NeighborSampler` answer as DyGLib's of the same names do for the strategy ``"recent"``, so that a model
written for DyGLib changes one import::

    from hopedgn.sampling import get_neighbor_sampler  # instead of utils.utils
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError
from hopedgn.events import Events
from hopedgn.split import Split
from hopedgn.store import Ragged, Store

__all__ = ["CandidateSampler", "NegativeSampler", "NeighborSampler", "get_neighbor_sampler"]

Part = Literal["val", "test", "new_node_val", "new_node_test"]


#: More than any history has, and less than would not fit in memory for one node.
_MOST_NEIGHBORS = 2**26


class NeighborSampler:
    """The most recent neighbours of nodes before times, as DyGLib's ``NeighborSampler`` returns them.

    Nodes and events are counted from 1, since 0 is padding: node ``i`` is the one whose number in :class:`~hopedgn.Events` is ``i - 1``.
    These are the ids that DyGLib's preprocessing gives. Rows are filled from the right, the newest neighbour last.

    >>> import hopedgn
    >>> events = hopedgn.Events.from_numpy([1, 1, 2], [2, 3, 3], [1.0, 2.0, 3.0])
    >>> ids, edges, times = hopedgn.NeighborSampler(events).get_historical_neighbors([1, 3], [2.0, 9.0], num_neighbors=3)
    >>> ids
    array([[0, 0, 2],
           [0, 1, 2]])
    >>> edges
    array([[0, 0, 1],
           [0, 2, 3]])
    """

    def __init__(self, events: Events | Store, sample_neighbor_strategy: str = "recent", seed: int | None = None) -> None:
        _only_recent(sample_neighbor_strategy)
        store = events if isinstance(events, Store) else Store(events)
        self.events = store.events
        self.sample_neighbor_strategy = sample_neighbor_strategy
        self.seed = seed
        self._set(store, None, np.arange(1, len(self.events) + 1))

    def _set(self, store: Store, known: NDArray[np.int64] | None, edge_ids: NDArray[np.int64]) -> None:
        #: Ids by number of node where they are not the numbers from 1.
        self._known = known
        node_ids = np.arange(1, store.events.n_nodes + 1) if known is None else known
        self._native = _native.RecentSampler(store._native, node_ids, np.ascontiguousarray(edge_ids, dtype=np.int64))

    def _numbers(self, node_ids: Any) -> NDArray[np.int64]:
        ids = np.asarray(node_ids).reshape(-1).astype(np.int64)
        if self._known is None:
            return ids - 1
        at = np.minimum(np.searchsorted(self._known, ids), len(self._known) - 1)
        return np.where(self._known[at] == ids, at, -1)

    def get_historical_neighbors(
        self, node_ids: Any, node_interact_times: Any, num_neighbors: int = 20
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Ids of neighbours and of edges, and times, each ``[n, num_neighbors]``, from events strictly before the times."""
        if not 1 <= num_neighbors <= _MOST_NEIGHBORS:
            raise HopedgnError(f"found num_neighbors={num_neighbors}, expected 1 to {_MOST_NEIGHBORS}", "invalid-argument")
        numbers = self._numbers(node_ids)
        times = _query_times(node_interact_times, len(numbers))
        return self._native.recent(numbers, times, num_neighbors)

    def get_multi_hop_neighbors(
        self, num_hops: int, node_ids: Any, node_interact_times: Any, num_neighbors: int = 20
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """The same for neighbours of neighbours: one array ``[n, num_neighbors ** hop]`` for each hop, in lists."""
        if num_hops < 1:
            raise HopedgnError(f"found num_hops={num_hops}, expected at least 1", "invalid-argument")
        n = len(np.asarray(node_ids).reshape(-1))
        first = self.get_historical_neighbors(node_ids, node_interact_times, num_neighbors)
        hops = [first]
        for _ in range(1, num_hops):
            ids, _, times = hops[-1]
            further = self.get_historical_neighbors(ids.reshape(-1), times.reshape(-1), num_neighbors)
            hops.append(tuple(table.reshape(n, -1) for table in further))  # type: ignore[arg-type]
        return [hop[0] for hop in hops], [hop[1] for hop in hops], [hop[2] for hop in hops]

    def get_all_first_hop_neighbors(
        self, node_ids: Any, node_interact_times: Any
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """All neighbours of each node before its time, oldest first: lists of arrays, one for each node."""
        numbers = self._numbers(node_ids)
        times = _query_times(node_interact_times, len(numbers))
        counts = self._native.n_before(numbers, times)
        tables = self._native.recent(numbers, times, max(1, int(counts.max(initial=0))))
        rows = [[table[row, table.shape[1] - count :] for row, count in enumerate(counts)] for table in tables]
        return rows[0], rows[1], rows[2]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"NeighborSampler({self.events!r}, {self.sample_neighbor_strategy!r})"

    def reset_random_state(self) -> None:
        """Nothing is drawn at random here; DyGLib's sampler has this method."""


def get_neighbor_sampler(
    data: Any, sample_neighbor_strategy: str = "recent", time_scaling_factor: float = 0.0, seed: int | None = None
) -> NeighborSampler:
    """A sampler over DyGLib's ``Data``, or anything with ``src_node_ids``, ``dst_node_ids``, ``node_interact_times`` and ``edge_ids``.

    Ids of nodes and edges are those of ``data``.
    """
    _only_recent(sample_neighbor_strategy)
    times = np.asarray(data.node_interact_times, dtype=np.float64)
    order = np.argsort(times, kind="stable")
    src, dst = (np.asarray(ids)[order] for ids in (data.src_node_ids, data.dst_node_ids))
    store = Store(Events.from_numpy(src, dst, times[order]))
    sampler = NeighborSampler(store, sample_neighbor_strategy, seed)
    sampler._set(store, store.events.names.astype(np.int64), np.asarray(data.edge_ids)[order])
    return sampler


class NegativeSampler:
    """Negatives of an evaluation: for each event of a part one pair that did not happen, the same that ``hopedgn evaluate`` draws.

    ``kind`` is ``"random"`` (the true source with a random destination), ``"historical"`` (pairs that interacted before, but not in the
    batch) or ``"inductive"`` (of those, pairs that training did not see). Draws depend on the part and the batch size alone.

    >>> import hopedgn
    >>> split = hopedgn.Events.read("collegemsg").split("dyglib")
    >>> negatives = hopedgn.NegativeSampler(split, "historical")
    >>> events, src, dst = next(negatives.batches())
    >>> len(events), len(src), len(dst)
    (200, 200, 200)
    """

    def __init__(
        self,
        split: Split | Events,
        kind: Literal["random", "historical", "inductive"] = "random",
        part: Part = "test",
        batch: int = 200,
    ) -> None:
        self.split = split if isinstance(split, Split) else split.split("dyglib")
        self.kind = kind
        self.part = part
        self.batch = batch
        if batch < 1:
            raise HopedgnError(f"found batch={batch}, expected at least 1", "invalid-argument")
        #: Numbers of the events of the part.
        self.events = self.split._native.part(part)
        #: Numbers of the nodes of the negatives, one pair for each event.
        self.src_index, self.dst_index = self.split._native.negatives(part, kind, batch)

    @property
    def src(self) -> NDArray[Any]:
        """Names of the sources of the negatives."""
        return self.split.events.names[self.src_index]

    @property
    def dst(self) -> NDArray[Any]:
        """Names of the destinations of the negatives."""
        return self.split.events.names[self.dst_index]

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return f"NegativeSampler({self.kind!r}, {self.part!r}: {len(self):,} pairs in batches of {self.batch:,})"

    def batches(self) -> Iterator[tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]]:
        """Events, sources and destinations of negatives, batch by batch."""
        src, dst = self.src, self.dst
        for start in range(0, len(self), self.batch):
            part = slice(start, start + self.batch)
            yield self.events[part], src[part], dst[part]


class CandidateSampler:
    """Candidates that true destinations are ranked among, with TGB's method :meth:`query_batch`.

    ``source="tgb"`` draws the lists that py-tgb's generator draws for the same events, ``"drawn"`` those of ``hopedgn evaluate --ranking``;
    ``file`` reads lists from a file of JSON Lines. ``count`` is the most candidates of each event, ``None`` all destinations.

    >>> import hopedgn
    >>> events = hopedgn.Events.read("collegemsg")
    >>> lists = hopedgn.CandidateSampler(events, count=20)
    >>> first = events[lists.split.test[:3]]
    >>> [len(candidates) for candidates in lists.query_batch(first.src, first.dst, first.time)]
    [20, 20, 20]
    """

    def __init__(
        self,
        split: Split | Events,
        count: int | None = 999,
        *,
        source: Literal["tgb", "drawn"] = "tgb",
        part: Literal["val", "test"] = "test",
        file: str | os.PathLike[str] | None = None,
        seed: int | None = None,
    ) -> None:
        if source not in ("tgb", "drawn"):
            raise HopedgnError(f'found source={source!r}, expected "tgb" or "drawn"', "invalid-argument")
        if seed is not None and source != "tgb":
            raise HopedgnError(f"found seed={seed} with source={source!r}, expected none: these lists are always the same", "invalid-argument")
        self.split = split if isinstance(split, Split) else split.split("tgb")
        self.count = count
        self.source = source
        self.part = part
        self.file = file
        self.seed = seed

    def __repr__(self) -> str:
        lists = f"file={os.fspath(self.file)!r}" if self.file is not None else f"{self.source!r}, count={self.count}"
        return f"CandidateSampler({self.split!r}, {lists}, part={self.part!r})"

    def of(self, events: Any, *, part: Literal["val", "test"] | None = None) -> Ragged:
        """Candidates of events by their numbers: rows of ``dst``, numbers of nodes. Ascending events are fastest."""
        numbers = np.asarray(events)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise HopedgnError(f"found events of type {numbers.dtype}, expected numbers of events", "invalid-argument")
        numbers = np.ascontiguousarray(numbers, dtype=np.int64)
        native = self.split._native
        offsets, dst = native.candidates(part or self.part, numbers, self.source, self.count, self.seed, self.file)
        return Ragged(offsets, {"dst": dst})

    def query_batch(
        self, pos_src: Any, pos_dst: Any, pos_timestamp: Any, split_mode: Literal["val", "test"] | None = None
    ) -> list[NDArray[Any]]:
        """Names of the candidates of each positive event, as TGB's ``NegativeEdgeSampler`` returns them."""
        events = self.split.events
        src, dst = _columns.names(pos_src, "pos_src"), _columns.names(pos_dst, "pos_dst")
        times = _columns.times(pos_timestamp, _columns.count(src), events._native, "pos_timestamp")
        found = events._native.find(src, dst, times)
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise HopedgnError(f"row {row}: found no such event, expected an event of the data", "no-candidates")
        lists = self.of(found, part=split_mode)
        return [events.names[lists.row(row)["dst"]] for row in range(len(lists))]


def _only_recent(strategy: str) -> None:
    if strategy != "recent":
        raise HopedgnError(
            f'found sample_neighbor_strategy={strategy!r}, expected "recent"; Store.history(…, sampling="uniform") draws at random',
            "invalid-argument",
        )


def _query_times(times: Any, n: int) -> NDArray[np.float64]:
    array = np.ascontiguousarray(times, dtype=np.float64).reshape(-1)
    if len(array) != n:
        raise HopedgnError(f"found {len(array)} times, expected {n}, one for each node", "invalid-argument")
    return array
