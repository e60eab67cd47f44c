"""Events: streams of interactions (source, destination, time) from files, data frames and arrays."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError, HopedgnTypeError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Events", "Split"]

#: A column by its name, or by its position from 1.
ColumnRef = str | int


class Events:
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

    _native: _native.Events
    _names: NDArray[Any] | None

    def __init__(self) -> None:
        raise TypeError("make events with Events.from_numpy, from_pandas, from_arrow, read or from_temporal_data")

    @classmethod
    def _of(cls, native: _native.Events) -> Events:
        events = object.__new__(cls)
        events._native = native
        events._names = None
        return events

    # ------------------------------------------------------------------ reading

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str = "auto",
        src: ColumnRef | None = None,
        dst: ColumnRef | None = None,
        time: ColumnRef | None = None,
        label: ColumnRef | None = None,
        features: str | Sequence[ColumnRef] = "auto",
        header: bool | None = None,
        delimiter: str | None = None,
        ids: Literal["auto", "integer", "text"] = "auto",
        bipartite: bool | None = None,
        sort: bool = False,
        time_unit: Literal["s", "ms", "us", "ns"] | None = None,
        dedup: bool = False,
    ) -> Events:
        """Reads a file: CSV, TSV, Parquet, JODIE, TGB, KONECT, DyGLib or ``.ctdg``, plain or compressed.

        ``"collegemsg"`` is the bundled dataset, unless there is a file of that name. Columns are found by usual names; name others with
        ``src``, ``dst``, ``time``, ``label`` and ``features`` (``"none"``, ``"rest"``, ``"numeric"`` or a list of columns). Times that go
        backwards are refused unless ``sort`` is true.

        >>> import hopedgn
        >>> hopedgn.Events.read("collegemsg")
        Events("collegemsg": 59,835 events of 1,899 nodes, 2004-04-15 14:56:01 to 2004-10-26 07:52:22, named by integers, no features)
        """
        if os.fspath(path) == "collegemsg" and not os.path.exists(path):
            return cls._of(_native.Events.collegemsg())
        options = _options(
            format=format,
            src=src,
            dst=dst,
            time=time,
            label=label,
            features=features,
            header=header,
            delimiter={"tab": "\t"}.get(delimiter, delimiter) if delimiter else None,
            ids=ids,
            bipartite=bipartite,
            sort=sort,
            time_unit=time_unit,
            dedup=dedup,
        )
        return cls._of(_native.Events.read(path, options))

    @classmethod
    def from_arrow(
        cls,
        table: Any,
        *,
        src: ColumnRef | None = None,
        dst: ColumnRef | None = None,
        time: ColumnRef | None = None,
        label: ColumnRef | None = None,
        features: str | Sequence[ColumnRef] = "auto",
        bipartite: bool | None = None,
        sort: bool = False,
        time_unit: Literal["s", "ms", "us", "ns"] | None = None,
        dedup: bool = False,
        name: str = "events",
    ) -> Events:
        """Events of anything that exports Arrow (``__arrow_c_stream__``): polars, pyarrow, DuckDB, pandas and others.

        Roles follow from the names of the columns as in :meth:`read`. Chunks are read one after the other, text may be a dictionary,
        and timestamps with a time zone are points in time like all others. Of the events, times and numbers of nodes are stored; the
        table itself is not kept.

        >>> import hopedgn, polars
        >>> frame = polars.DataFrame({"user": ["ann", "bob"], "item": [7, 8], "ts": [1, 2]})
        >>> hopedgn.Events.from_arrow(frame, bipartite=True).n_nodes
        4
        """
        if not hasattr(table, "__arrow_c_stream__"):
            raise HopedgnTypeError(
                f"found a {type(table).__name__}, expected a table that exports Arrow (__arrow_c_stream__); "
                "use from_pandas for a pandas.DataFrame, from_numpy for arrays",
                "wrong-type",
            )
        options = _options(
            src=src,
            dst=dst,
            time=time,
            label=label,
            features=features,
            bipartite=bipartite,
            sort=sort,
            time_unit=time_unit,
            dedup=dedup,
        )
        n_rows = len(table) if hasattr(table, "__len__") else 0
        return cls._of(_native.Events.from_arrow(table, options, n_rows, name))

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        src: ColumnRef | None = None,
        dst: ColumnRef | None = None,
        time: ColumnRef | None = None,
        label: ColumnRef | None = None,
        features: str | Sequence[ColumnRef] = "auto",
        bipartite: bool | None = None,
        sort: bool = False,
        time_unit: Literal["s", "ms", "us", "ns"] | None = None,
        dedup: bool = False,
        name: str = "events",
    ) -> Events:
        """Events of a ``pandas.DataFrame``; pyarrow is not needed.

        Rows are taken in the order in which they stand; the index does not matter. Times may have a time zone: they become points in time
        in UTC.

        >>> import hopedgn, pandas
        >>> frame = pandas.DataFrame({"src": [1, 2], "dst": [2, 3], "when": pandas.to_datetime(["2024-01-31", "2024-02-01"])})
        >>> hopedgn.Events.from_pandas(frame.set_index([[9, 4]]), time="when")
        Events(2 events of 3 nodes, 2024-01-31 00:00:00 to 2024-02-01 00:00:00, named by integers, no features)
        """
        if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
            raise HopedgnTypeError(
                f"found a {type(frame).__name__}, expected a pandas.DataFrame; use from_arrow for other tables", "wrong-type"
            )
        columns = {str(label_): frame.iloc[:, at] for at, label_ in enumerate(frame.columns)}
        if len(columns) < frame.shape[1]:
            raise HopedgnError("found two columns of one name, expected different names; rename one", "duplicate-column")
        options = dict(
            src=src,
            dst=dst,
            time=time,
            label=label,
            features=features,
            bipartite=bipartite,
            sort=sort,
            time_unit=time_unit,
            dedup=dedup,
        )
        return cls._from_columns(columns, options, name, None)

    @classmethod
    def from_numpy(
        cls,
        src: Any,
        dst: Any,
        time: Any,
        *,
        label: Any = None,
        edge_features: Any = None,
        bipartite: bool | None = None,
        sort: bool = False,
        time_unit: Literal["s", "ms", "us", "ns"] | None = None,
        dedup: bool = False,
        name: str = "events",
    ) -> Events:
        """Events of equally long arrays, or of anything that NumPy makes an array of.

        ``src`` and ``dst`` are integers from 0 or text; ``time`` is numbers or ``datetime64``; ``edge_features`` has one row for each
        event.

        >>> import hopedgn
        >>> events = hopedgn.Events.from_numpy([0, 1], [1, 2], [0.5, 1.5], edge_features=[[1.0], [2.0]])
        >>> events.edge_features
        array([[1.],
               [2.]], dtype=float32)
        """
        columns = {"src": src, "dst": dst, "time": time}
        if label is not None:
            columns["label"] = label
        options = dict(bipartite=bipartite, sort=sort, time_unit=time_unit, dedup=dedup)
        features = None
        if edge_features is not None:
            features = np.ascontiguousarray(edge_features, dtype=np.float32)
            features = features[:, None] if features.ndim == 1 else features
            if not np.isfinite(features).all():
                row, at = (int(i[0]) for i in np.nonzero(~np.isfinite(features)))
                raise HopedgnError(
                    f"row {row}, column {at + 1} of edge_features: found {features[row, at]}, expected a finite number",
                    "non-finite-value",
                )
        return cls._from_columns(columns, options, name, features)

    @classmethod
    def _from_columns(
        cls,
        columns: Mapping[str, Any],
        options: Mapping[str, Any],
        name: str,
        features: NDArray[np.float32] | None,
    ) -> Events:
        read = [(label, _columns.column(values, f"column {at} ({label})")) for at, (label, values) in enumerate(columns.items(), 1)]
        lengths = {label: len(values) for label, values in columns.items()}
        n = next(iter(lengths.values()), 0)
        other = next((label for label, length in lengths.items() if length != n), None)
        if other is not None:
            raise HopedgnError(
                f"found {lengths[other]} values of {other}, expected {n}, as many as of {next(iter(lengths))}", "invalid-argument"
            )
        return cls._of(_native.Events.from_columns(read, n, _options(**options), name, features))

    @classmethod
    def from_temporal_data(cls, data: Any, *, sort: bool = False, name: str = "events") -> Events:
        """Events of a ``torch_geometric.data.TemporalData``: ``src``, ``dst``, ``t``, with ``msg`` as features and ``y`` as labels if it
        has them. See :meth:`to_temporal_data` for the way there."""
        label = getattr(data, "y", None)
        features = getattr(data, "msg", None)
        return cls.from_numpy(
            _numpy(data.src),
            _numpy(data.dst),
            _numpy(data.t),
            label=None if label is None else _numpy(label).reshape(-1),
            edge_features=None if features is None or features.numel() == 0 else _numpy(features),
            sort=sort,
            name=name,
        )

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
        return self._native.index_of(_columns.names(nodes, "nodes"), _is_source(side))

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
        rows = np.arange(len(self), dtype=np.int64)[key if isinstance(key, slice) else np.asarray(key)]
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
        parts = [self, other]
        features = [part.edge_features for part in parts]
        if (features[0] is None) != (features[1] is None):
            raise HopedgnError("found edge features in one part only, expected them in both or in none", "feature-width")
        text = any(part._native.is_text for part in parts)

        def joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
            if text:
                columns = [np.asarray([str(name) for name in column], dtype=object) for column in columns]
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
        3094
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
            f"{table.shape[1]} {what} features"
            for what, table in (("edge", self.edge_features), ("node", self.node_features))
            if table is not None
        ]
        features = ", ".join(widths) or "no features"
        return f"Events({given}{len(self):,} events of {self.n_nodes:,} nodes{sides}, {span}, {named}, {features})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Events):
            return NotImplemented
        tables = [(self.edge_features, other.edge_features), (self.node_features, other.node_features)]
        return (
            len(self) == len(other)
            and np.array_equal(self.names, other.names)
            and np.array_equal(self.src_index, other.src_index)
            and np.array_equal(self.dst_index, other.dst_index)
            and np.array_equal(self.time, other.time)
            and np.array_equal(self.label, other.label)
            and all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in tables)
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


class Split:
    """Training, validation and test events; made by :meth:`Events.split`.

    Unpacks into three :class:`Events`. The attributes ``train``, ``val``, ``test``, ``new_node_val`` and ``new_node_test`` are the numbers
    of the events in the whole stream, for models that look back on all of it; ``new_nodes`` and ``masked`` are names of nodes.

    >>> import hopedgn
    >>> split = hopedgn.Events.read("collegemsg").split("tgb")
    >>> split
    Split(41,887 train, 8,972 val, 8,976 test events; 390 new nodes)
    >>> split.events.time[split.val[0]] > split.events.time[split.train[-1]]
    True
    """

    def __init__(self, events: Events, native: _native.Split) -> None:
        self.events = events
        self._native = native
        self.train = native.part("train")
        self.val = native.part("val")
        self.test = native.part("test")
        self.new_node_val = native.part("new_node_val")
        self.new_node_test = native.part("new_node_test")

    @property
    def masked(self) -> NDArray[Any]:
        """Names of the nodes that are kept out of training."""
        return self.events.names[self._native.masked_and_new()[0]]

    @property
    def new_nodes(self) -> NDArray[Any]:
        """Names of the nodes that do not occur in training."""
        return self.events.names[self._native.masked_and_new()[1]]

    @property
    def times(self) -> tuple[float, float]:
        """The last times of training and of validation."""
        return self._native.times

    def __iter__(self) -> Iterator[Events]:
        return iter([self.events[self.train], self.events[self.val], self.events[self.test]])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(part):,} {what}" for what, part in zip(("train", "val", "test"), (self.train, self.val, self.test)))
        return f"Split({sizes} events; {len(self.new_nodes):,} new nodes)"


def _options(**given: Any) -> str:
    """Options as JSON, in the words of the native module; those that are not given are left out."""
    features = given.get("features", "auto")
    if features is None:
        given["features"] = "none"
    elif not isinstance(features, str):
        given["features"] = {"chosen": list(features)}
    return json.dumps({name.replace("_", "-"): value for name, value in given.items() if value is not None})


def _events_of_bytes(data: bytes, name: str) -> Events:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "events.ctdg")
        file.write_bytes(data)
        # Sorting copies nothing here, but the file goes away: columns must not stay mapped to it on systems that forbid that.
        native = _native.Events.read(file, "{}")
        return Events._of(native.select(np.arange(len(native), dtype=np.int64)).named(name))


def _numpy(tensor: Any) -> NDArray[Any]:
    return np.asarray(tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor)


def _is_source(side: str) -> bool:
    if side not in ("src", "dst"):
        raise HopedgnError(f'found side={side!r}, expected "src" or "dst"', "invalid-argument")
    return side == "src"
