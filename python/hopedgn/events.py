"""Events: streams of interactions (source, destination, time) from files, data frames and arrays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn._native import Events as NativeEvents
from hopedgn._reading import EventReaders
from hopedgn.errors import HopedgnError, HopedgnTypeError
from hopedgn.split import Split

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Events"]


class Events(EventReaders):
    """A stream of interactions in order of time.

    Make one with :meth:`from_numpy`, :meth:`from_pandas`, :meth:`from_arrow`, :meth:`read` or :meth:`from_temporal_data`. Nodes keep the
    names you give them, integers or text, and every function takes and returns these names. Beside its name each node has a number
    from 0 in the sorted order of names (:attr:`src_index`), for tables of features and embeddings.

    >>> import hopedgn
    >>> events = hopedgn.Events.from_numpy(src=["ann", "bob", "ann"], dst=["bob", "cem", "cem"], time=[1.0, 2.0, 2.5])
    >>> events
    Events(3 events of 3 nodes, times 1 to 2.5, named by text, no features)
    >>> events.dst
    array(['bob', 'cem', 'cem'], dtype=object)
    >>> len(events.between(2, None))
    2
    """

    _native: NativeEvents
    _names: NDArray[Any] | None

    def __init__(self) -> None:
        raise TypeError("make events with Events.from_numpy, from_pandas, from_arrow, read or from_temporal_data")

    @classmethod
    def _of(cls, native: NativeEvents) -> Events:
        events = object.__new__(cls)
        events._native = native
        events._names = None
        return events

    # ------------------------------------------------------------------ other forms

    def to_temporal_data(self) -> Any:
        """A ``torch_geometric.data.TemporalData`` with ``src``, ``dst`` (numbers of nodes), ``t``, ``msg`` and ``y``.

        Times that are whole numbers become ``int64``, as PyG's datasets have them; others stay ``float64``.
        """
        import torch
        from torch_geometric.data import TemporalData

        time = self.time
        whole = bool(np.all(time == np.floor(time)))
        features = self.edge_features
        return TemporalData(
            src=torch.from_numpy(self.src_index.astype(np.int64)),
            dst=torch.from_numpy(self.dst_index.astype(np.int64)),
            t=torch.from_numpy(time.astype(np.int64) if whole else time.copy()),
            msg=torch.from_numpy(np.zeros((len(self), 0), np.float32) if features is None else features.copy()),
            y=torch.from_numpy(self.label.copy()),
        )

    def to_pandas(self) -> pd.DataFrame:
        """A ``pandas.DataFrame`` with the columns ``src``, ``dst``, ``time``, ``label`` and ``feat0``, ``feat1``, … .

        >>> import hopedgn
        >>> hopedgn.Events.from_numpy([1], [2], [3.0]).to_pandas()
           src  dst  time  label
        0    1    2   3.0    0.0
        """
        import pandas

        columns: dict[str, Any] = {"src": self.src, "dst": self.dst, "time": self.times_as_dates(), "label": self.label}
        if self.edge_features is not None:
            columns |= {f"feat{at}": self.edge_features[:, at] for at in range(self.edge_features.shape[1])}
        return pandas.DataFrame(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that :meth:`read` and the command line read: ``.csv``, ``.tsv`` (also with ``.gz`` or ``.zst``), ``.parquet`` or
        ``.ctdg``, by its ending."""
        self._native.write(path)

    # ------------------------------------------------------------------ columns

    def __len__(self) -> int:
        return len(self._native)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self._native.n_nodes

    @property
    def name(self) -> str:
        """The name of the dataset, or its file as it was given."""
        return self._native.name

    @property
    def names(self) -> NDArray[Any]:
        """The name of each node, by its number: ``int64`` (``uint64`` beyond it), or text as objects."""
        if self._names is None:
            integers = self._native.integer_names()
            if integers is None:
                self._names = np.asarray(self._native.text_names(), dtype=object)
            elif integers.size and integers.max() > np.uint64(2**63 - 1):
                self._names = integers
            else:
                self._names = integers.view(np.int64)
            self._names.flags.writeable = False
        return self._names

    @property
    def src(self) -> NDArray[Any]:
        """Names of the sources."""
        return self.names[self._native.src_index]

    @property
    def dst(self) -> NDArray[Any]:
        """Names of the destinations."""
        return self.names[self._native.dst_index]

    @property
    def src_index(self) -> NDArray[np.uint32]:
        """Numbers of the sources from 0, a read-only view."""
        return self._native.src_index

    @property
    def dst_index(self) -> NDArray[np.uint32]:
        """Numbers of the destinations, a read-only view."""
        return self._native.dst_index

    @property
    def time(self) -> NDArray[np.float64]:
        """Times, a read-only view; of dates, seconds since 1970 in UTC. :meth:`times_as_dates` shows them as dates."""
        return self._native.time

    @property
    def label(self) -> NDArray[np.float32]:
        """Labels, 0 where there are none; a read-only view."""
        return self._native.label

    @property
    def edge_features(self) -> NDArray[np.float32] | None:
        """One row for each event, a read-only view; ``None`` if there are none."""
        return self._native.edge_features

    @property
    def node_features(self) -> NDArray[np.float32] | None:
        """One row for each node by its number, a read-only view; ``None`` if there are none."""
        return self._native.node_features

    @property
    def is_bipartite(self) -> bool:
        """Whether no node is both a source and a destination."""
        return self._native.are_sides_disjoint

    @property
    def has_dates(self) -> bool:
        """Whether times are dates."""
        return self._native.is_date

    @property
    def end(self) -> float:
        """The time just after the last event, by which everything has happened."""
        return self._native.end

    def times_as_dates(self) -> NDArray[Any]:
        """Times as ``datetime64[us]`` where they are dates, otherwise as they are."""
        if not self.has_dates:
            return self.time
        return np.round(self.time * 1e6).astype(np.int64).view("datetime64[us]")

    def index_of(self, nodes: Any, *, side: Literal["src", "dst"] = "src") -> NDArray[np.int64]:
        """Numbers of nodes by name; -1 for a name without events. In data where both sides have names of their own, of that side.

        >>> import hopedgn
        >>> hopedgn.Events.from_numpy(["ann"], ["bob"], [1]).index_of(["bob", "eve"])
        array([ 1, -1])
        """
        return self._native.index_of(_columns.names(nodes, "nodes"), _columns.is_source(side))

    # ------------------------------------------------------------------ parts

    def between(self, start: Any = None, end: Any = None) -> Events:
        """The events from ``start`` on and strictly before ``end``: numbers, or dates where the events have dates.

        >>> import hopedgn
        >>> events = hopedgn.Events.from_numpy([0, 1, 2], [1, 2, 0], ["2024-01-31", "2024-02-01", "2024-02-03"])
        >>> len(events.between("2024-02-01", "2024-02-03"))
        1
        """
        first = 0 if start is None else int(np.searchsorted(self.time, _columns.one_time(start, self._native, "start")))
        last = len(self) if end is None else int(np.searchsorted(self.time, _columns.one_time(end, self._native, "end")))
        return self[first : max(first, last)]

    @overload
    def __getitem__(self, key: slice) -> Events: ...
    @overload
    def __getitem__(self, key: NDArray[Any] | Sequence[int]) -> Events: ...
    def __getitem__(self, key: slice | NDArray[Any] | Sequence[int]) -> Events:
        """Some events alone, as a file of these rows: a slice, a boolean mask, or ascending numbers of events.

        Nodes without an event there are left out, so numbers of nodes differ from those of the whole; names do not.
        """
        if isinstance(key, (int, np.integer)):
            raise HopedgnTypeError("found a single event, expected a slice, a mask or a list of events", "wrong-type")
        if not isinstance(key, slice):
            key = np.asarray(key)
            if key.ndim != 1:
                raise HopedgnTypeError(f"found an index of shape {key.shape}, expected a mask or a list of events", "wrong-type")
            key = key if key.size else key.astype(np.int64)
        rows = np.ascontiguousarray(np.arange(len(self), dtype=np.int64)[key])
        if rows.size == 0:
            raise HopedgnError("found no events in this part, expected at least one", "no-events")
        if (np.diff(rows) <= 0).any():
            raise HopedgnError("found events in another order, expected them to ascend, each once", "invalid-argument")
        return Events._of(self._native.select(rows))

    def append(self, other: Events, *, sort: bool = False) -> Events:
        """These events and those of ``other``, which are not earlier, as one stream.

        >>> import hopedgn
        >>> first = hopedgn.Events.from_numpy(["ann"], ["bob"], [1.0])
        >>> len(first.append(hopedgn.Events.from_numpy(["eve"], ["bob"], [2.0])))
        2
        """
        if not isinstance(cast("object", other), Events):
            raise HopedgnTypeError(f"found a {type(other).__name__}, expected Events; make them with Events.from_pandas and the like", "wrong-type")
        parts = [self, other]
        features = [part.edge_features for part in parts]
        if len({None if table is None else table.shape[1] for table in features}) > 1:
            raise HopedgnError("found edge features of different widths, expected the same in both or none", "feature-width")
        if any(part.node_features is not None for part in parts):
            raise HopedgnError("found node features, expected none: read all events from one file to keep them", "feature-width")
        if self.has_dates != other.has_dates:
            raise HopedgnError("found dates in one part only, expected them in both or in none", "invalid-time")
        if (self._native.n_sources is None) != (other._native.n_sources is None):
            raise HopedgnError(
                "found names of each side apart (bipartite=True) in one part only, expected it of both or of none", "invalid-argument"
            )
        text = any(part._native.is_text for part in parts)

        def joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
            if text:
                columns = [np.asarray([str(name) for name in column], dtype=object) for column in columns]
            elif len({column.dtype for column in columns}) > 1:
                # As one type, int64 and uint64 would be floats.
                columns = [column.astype(object) for column in columns]
            return np.concatenate(columns)

        return Events.from_numpy(
            joined([part.src for part in parts]),
            joined([part.dst for part in parts]),
            np.concatenate([part.times_as_dates() for part in parts]),
            label=np.concatenate([part.label for part in parts]),
            edge_features=None if features[0] is None else np.concatenate([f for f in features if f is not None]),
            bipartite=self._native.n_sources is not None,
            sort=sort,
            name=self.name,
        )

    def split(self, rule: str | Sequence[float] = "dyglib") -> Split:
        """Training, validation and test in order of time.

        ``"dyglib"`` (70, 15, 15 percent of the time column, a tenth of the nodes kept out of training), ``"tgb"`` (the same times, no
        node kept out), or three fractions of the events, without nodes kept out.

        >>> import hopedgn
        >>> events = hopedgn.Events.read("collegemsg")
        >>> train, val, test = events.split((0.8, 0.1, 0.1))
        >>> (len(train), len(val), len(test))
        (47868, 5983, 5984)
        >>> len(events.split("dyglib").new_node_test)
        5932
        """
        if isinstance(rule, str):
            return Split(self, self._native.split(rule))
        fractions = [float(part) for part in rule]
        if len(fractions) != 3 or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-9:
            raise HopedgnError(
                f"found the fractions {tuple(fractions)}, expected three above 0 that sum to 1, such as (0.7, 0.15, 0.15)",
                "invalid-argument",
            )
        bounds = np.quantile(self.time, [fractions[0], fractions[0] + fractions[1]])
        return Split(self, self._native.split("tgb", (float(bounds[0]), float(bounds[1]))))

    # ------------------------------------------------------------------ shown

    def __repr__(self) -> str:
        native = self._native
        given = "" if native.name == "events" else f'"{native.name}": '
        first, last = (native.show_time(float(t)) for t in (self.time[0], self.time[-1]))
        span = f"{first} to {last}" if native.is_date else f"times {first} to {last}"
        named = "named by text" if native.is_text else "named by integers"
        sides = ", bipartite" if self.is_bipartite else ""
        widths = [
            f"{table.shape[1]} {what} feature{'s' if table.shape[1] != 1 else ''}"
            for what, table in (("edge", self.edge_features), ("node", self.node_features))
            if table is not None
        ]
        features = ", ".join(widths) or "no features"
        events = f"{len(self):,} event{'' if len(self) == 1 else 's'}"
        nodes = f"{self.n_nodes:,} node{'' if self.n_nodes == 1 else 's'}"
        return f"Events({given}{events} of {nodes}{sides}, {span}, {named}, {features})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Events):
            return NotImplemented
        tables = [(self.edge_features, other.edge_features), (self.node_features, other.node_features)]
        return (
            len(self) == len(other)
            and self.has_dates == other.has_dates
            and self._native.n_sources == other._native.n_sources
            and np.array_equal(self.names, other.names)
            and np.array_equal(self.src_index, other.src_index)
            and np.array_equal(self.dst_index, other.dst_index)
            and np.array_equal(self.time, other.time)
            and np.array_equal(self.label, other.label)
            and all((a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b)) for a, b in tables)
        )

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[tuple[Any, Any, float]]:
        """Sources, destinations and times, event by event."""
        return zip(self.src.tolist(), self.dst.tolist(), self.time.tolist())

    def __reduce__(self) -> tuple[Any, tuple[bytes, str]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "events.ctdg")
            self.write(file)
            return _events_of_bytes, (file.read_bytes(), self.name)


def _events_of_bytes(data: bytes, name: str) -> Events:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "events.ctdg")
        file.write_bytes(data)
        # Sorting copies nothing here, but the file goes away: columns must not stay mapped to it on systems that forbid that.
        native = _native.Events.read(file, "{}")
        return Events._of(native.select(np.arange(len(native), dtype=np.int64)).named(name))
