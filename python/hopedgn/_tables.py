"""Events and pairs in tables of any kind."""

from __future__ import annotations

from typing import Any

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
    if hasattr(table, "columns") and not isinstance(table, np.ndarray):
        names = [str(name) for name in table.columns]
        src, dst, time = _native.pair_columns(names)
        columns = [table[table.columns[at]] for at in (src, dst, *(() if time is None else (time,)))]
        return columns[0], columns[1], (None if time is None else columns[2])
    array = np.asarray(table)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise HopedgnError(
            f"found an array of shape {array.shape}, expected rows of source, destination and time", "invalid-argument"
        )
    return _whole(array[:, 0]), _whole(array[:, 1]), (array[:, 2] if array.shape[1] == 3 else None)


def _whole(column: NDArray[Any]) -> NDArray[Any]:
    """Ids that an array of floats holds, as the integers that they are."""
    if column.dtype.kind == "f" and np.all(column == np.floor(column)):
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
