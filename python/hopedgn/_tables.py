"""Events and pairs in tables of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError
from hopedgn.events import Events


def as_events(table: Any) -> Events:
    """Events of anything that holds some."""
    if isinstance(table, Events):
        return table
    if hasattr(table, "iloc"):
        return Events.from_pandas(table)
    if hasattr(table, "__arrow_c_stream__"):
        return Events.from_arrow(table)
    src, dst, time = as_pairs(table)
    return Events.from_numpy(src, dst, time)


def as_pairs(table: Any) -> tuple[Any, Any, Any]:
    """Source, destination and time of the rows of a table; no time where it has no such column."""
    if isinstance(table, Events):
        return table.src, table.dst, table.time
    if hasattr(table, "fetchnumpy"):  # DuckDB
        table = table.fetchnumpy()
        return _picked(list(table), table)
    if hasattr(table, "column_names"):  # pyarrow
        return _picked(table.column_names, table)
    if hasattr(table, "columns") and not isinstance(table, np.ndarray):
        return _picked(list(table.columns), table)
    if isinstance(table, (list, tuple)):
        return _transposed(list(cast("Sequence[Any]", table)))
    array = np.asarray(table)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise HopedgnError(
            f"found an array of shape {array.shape}, expected rows of source, destination and time", "invalid-argument"
        )
    return _whole(array[:, 0]), _whole(array[:, 1]), (array[:, 2] if array.shape[1] == 3 else None)


def _transposed(rows: list[Any]) -> tuple[Any, Any, Any]:
    """The columns of rows, each of its own type."""
    widths = {len(row) if isinstance(row, (list, tuple, np.ndarray)) else 0 for row in rows}
    if len(widths) != 1 or not widths <= {2, 3}:
        raise HopedgnError(
            "found a list of other things than rows, expected rows of source, destination and time, all equally long", "invalid-argument"
        )
    columns = [list(column) for column in zip(*rows)]
    return columns[0], columns[1], (columns[2] if len(columns) == 3 else None)


def _picked(labels: list[Any], table: Any) -> tuple[Any, Any, Any]:
    """The columns of a table by the names they usually have."""
    src, dst, time = _native.pair_columns([str(label) for label in labels])
    return table[labels[src]], table[labels[dst]], None if time is None else table[labels[time]]


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    """Ids that an array of floats holds, as the integers that they are."""
    if column.dtype.kind == "f" and np.all(column == np.floor(column)):
        if (np.abs(column) >= 2**53).any():
            raise HopedgnError(
                "found ids of 2^53 or more in an array of floats, which cannot tell them apart, expected a data frame or lists",
                "invalid-argument",
            )
        return column.astype(np.int64)
    return column


def repeated(names: Any, n: int, what: str) -> Any:
    """One name for all pairs, or as many as there are pairs."""
    count = _columns.count(names)
    if count == n:
        return names
    if count != 1:
        raise HopedgnError(f"found {count} values of {what}, expected {n}, one for each pair, or a single one", "invalid-argument")
    return np.repeat(names, n) if isinstance(names, np.ndarray) else names * n
