"""How events are made of files, data frames and arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError, HopedgnTypeError

if TYPE_CHECKING:
    import pandas as pd

    from hopedgn.events import Events

#: A column by its name, or by its position from 1.
ColumnRef = str | int


class EventReaders:
    """The constructors of :class:`~hopedgn.Events`."""

    @classmethod
    def _of(cls, native: _native.Events) -> Events:
        raise NotImplementedError

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
        Events("collegemsg": 59,835 events of 1,899 nodes, times 1082040960 to 1098777120, named by integers, no features)
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
            if features.ndim != 2 or len(features) != len(src):
                raise HopedgnError(
                    f"edge_features: found an array of shape {features.shape}, expected one row for each of the {len(src)} events",
                    "feature-rows",
                )
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


def _options(**given: Any) -> str:
    """Options as JSON, in the words of the native module; those that are not given are left out."""
    features = given.get("features", "auto")
    if features is None:
        given["features"] = "none"
    elif not isinstance(features, str):
        given["features"] = {"chosen": list(features)}
    return json.dumps({name.replace("_", "-"): value for name, value in given.items() if value is not None})


def _numpy(tensor: Any) -> NDArray[Any]:
    return np.asarray(tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor)
