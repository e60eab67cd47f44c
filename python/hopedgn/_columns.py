"""Arrays, series and lists of any kind as the columns and names that the native module reads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hopedgn import _native
from hopedgn.errors import HopedgnError, HopedgnTypeError

#: Types that are read without a conversion.
_DIRECT = ("int32", "int64", "uint32", "uint64", "float32", "float64")
#: The type that holds all values of another one.
_WIDER = {
    "int8": "int32",
    "int16": "int32",
    "uint8": "uint32",
    "uint16": "uint32",
    "bool": "int32",
    "float16": "float32",
    "float128": "float64",
}


def column(values: object, name: str) -> Any:
    """A column for ``Events.from_columns``: the same memory where the type allows it."""
    _refuse_missing(values, name)
    values = _without_time_zone(values)
    array = _array(values, name)
    if array.ndim != 1:
        raise HopedgnTypeError(
            f"{name}: found an array of shape {array.shape}, expected one value in every row", "wrong-type"
        )
    kind = array.dtype.kind
    if kind == "M":
        return _timestamps(array)
    if kind in "UST":
        return [str(value) for value in array.tolist()] if kind != "S" else _decoded(array.tolist(), name)
    if kind == "O":
        return _objects(array, name)
    dtype = array.dtype.newbyteorder("=")
    if dtype.name not in _DIRECT:
        wider = _WIDER.get(dtype.name)
        if wider is None:
            return str(array.dtype)
        dtype = np.dtype(wider)
    return np.ascontiguousarray(array, dtype=dtype)


def _array(values: object, name: str) -> NDArray[Any]:
    """An array of ``values``; of objects where a list has several types, which NumPy would turn into text or floats."""
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values)
        if masked.any():
            raise _no_value(int(np.argmax(masked.reshape(-1))), name, "masked")
        return np.asarray(values)
    if isinstance(values, (list, tuple)):
        items = cast("Sequence[object]", values)
        types = {type(value) for value in items}
        array: NDArray[Any] | None = np.asarray(items) if len(types) == 1 else None
        # Integers beyond 64 bits with a sign come as floats.
        if array is None or (types == {int} and array.dtype.kind not in "iu"):
            array = np.empty(len(items), dtype=object)
            array[:] = items
        return array if items else np.asarray(items)
    return np.asarray(values)


def _decoded(values: list[bytes], name: str) -> list[str]:
    texts: list[str] = []
    for row, value in enumerate(values):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError:
            raise HopedgnTypeError(f"row {row}, {name}: found bytes that are not UTF-8, expected text; decode them", "wrong-type") from None
    return texts


def _refuse_missing(values: object, name: str) -> None:
    """Refuses missing values of pandas' own types, which NumPy would turn into floats or objects."""
    dtype = getattr(values, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not hasattr(values, "isna"):
        return
    missing = np.asarray(cast("Any", values).isna())
    if missing.any():
        raise _no_value(int(np.argmax(missing)), name, "NA")


def _no_value(row: int, name: str, found: str) -> HopedgnError:
    return HopedgnError(
        f"row {row}, {name}: found no value ({found}), expected one in every row; drop the rows without a value, or fill them in",
        "missing-value",
    )


def _without_time_zone(values: object) -> object:
    """Times with a time zone as the same points in time in UTC."""
    zone = getattr(getattr(values, "dtype", None), "tz", None)
    if zone is None:
        return values
    accessor: Any = getattr(values, "dt", values)
    utc = accessor.tz_convert("UTC")
    return getattr(utc, "dt", utc).tz_localize(None)


def _timestamps(array: NDArray[Any]) -> tuple[NDArray[np.int64], str]:
    array = _in_plain_unit(array)
    return np.ascontiguousarray(array).view(np.int64), np.datetime_data(array.dtype)[0]


def _in_plain_unit(array: NDArray[Any]) -> NDArray[Any]:
    """Times in seconds, milliseconds, microseconds or nanoseconds: not in multiples of them, days or picoseconds."""
    unit, multiple = np.datetime_data(array.dtype)
    if unit in ("ps", "fs", "as"):
        return array.astype("datetime64[ns]")
    if unit not in ("s", "ms", "us", "ns"):
        # Days, hours and the like are whole seconds.
        return array.astype("datetime64[s]")
    return array if multiple == 1 else array.astype(f"datetime64[{unit}]")


def _objects(array: NDArray[Any], name: str) -> Any:
    """A column of Python objects: all text, all integers, all floats or all times."""
    values: list[Any] = array.tolist()
    if set(map(type, values)) == {str}:
        return values
    missing = next((row for row, value in enumerate(values) if _is_missing(value)), None)
    if missing is not None:
        raise _no_value(missing, name, repr(values[missing]))
    if all(isinstance(value, str) for value in values):
        return [str(value) for value in values]
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        try:
            return np.asarray(values, dtype=np.int64 if max(values) < 2**63 else np.uint64)
        except OverflowError:
            return [str(value) for value in values]
    if all(isinstance(value, (int, float, np.integer, np.floating)) for value in values):
        return np.asarray(values, dtype=np.float64)
    if all(isinstance(value, dt.datetime) for value in values):
        return _timestamps(np.asarray([_moment(value) for value in values]))
    if all(isinstance(value, dt.date) for value in values):
        return _timestamps(np.asarray(values, dtype="datetime64[D]"))
    first = type(values[0])
    row = next((row for row, value in enumerate(values) if type(value) is not first), 0)
    raise HopedgnTypeError(
        f"row {row}, {name}: found a {type(values[row]).__name__} ({values[row]!r}) in a column of objects that begins with a "
        f"{first.__name__}, expected values of one kind: integers, floats, text or times; convert the column, e.g. with astype(str)",
        "wrong-type",
    )


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _naive_utc(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is None else value.astimezone(dt.timezone.utc).replace(tzinfo=None)


def _moment(value: dt.datetime) -> np.datetime64:
    """A point in time in UTC; pandas' have nanoseconds."""
    naive = _naive_utc(value)
    exact = getattr(naive, "to_datetime64", None)
    return np.datetime64(naive, "us") if exact is None else cast("np.datetime64", exact())


def names(values: object, what: str) -> Any:
    """Names of nodes: one, or many of them."""
    if isinstance(values, (str, int, np.integer)):
        values = [values]
    array = _array(values, what)
    if array.ndim != 1:
        raise HopedgnTypeError(f"{what}: found an array of shape {array.shape}, expected a list of nodes", "wrong-type")
    if array.dtype.kind in "iu":
        if array.dtype.kind == "i" and array.size and array.min() < 0:
            return [str(value) for value in array.tolist()]
        return np.ascontiguousarray(array, dtype=np.uint64)
    if array.size == 0:
        return np.zeros(0, dtype=np.uint64)
    if array.dtype.kind in "UTO":
        return [_name(value, what) for value in array.tolist()]
    raise HopedgnTypeError(f"{what}: found values of type {array.dtype}, expected integers or text", "wrong-type")


def _name(value: object, what: str) -> str:
    if isinstance(value, (str, int, np.integer)) and not isinstance(value, bool):
        return str(value)
    raise HopedgnTypeError(f"{what}: found {value!r}, expected an integer or text", "wrong-type")


def count(names_: Any) -> int:
    """How many names there are."""
    return len(cast("Sequence[object]", names_))


def one_name(value: object, what: str) -> str:
    """The name of one node as text."""
    if isinstance(value, np.integer):
        return str(int(value))
    return _name(value, what)


def times(values: object, n: int, events: _native.Events, what: str = "time") -> NDArray[np.float64]:
    """``n`` times: numbers, or dates where the events have dates; one time for all, or one for each."""
    array = _time_array(values, events, what)
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.shape != (n,):
        raise HopedgnError(
            f"{what}: found {array.size} times, expected {n}, one for each pair, or a single one", "invalid-argument"
        )
    finite = np.isfinite(array)
    if not finite.all():
        row = int(np.argmin(finite))
        raise HopedgnError(f"row {row}, {what}: found the time {array[row]}, expected a finite number", "non-finite-time")
    return np.ascontiguousarray(array)


def one_time(value: object, events: _native.Events, what: str = "time") -> float:
    """A single time."""
    return float(times(value, 1, events, what)[0])


def _time_array(values: object, events: _native.Events, what: str) -> NDArray[np.float64]:
    if isinstance(values, str):
        found = events.parse_time(values)
        if found is None:
            expected = "a date such as 2024-01-31 12:00" if events.is_date else "a number"
            raise HopedgnError(f"{what}: found {values!r}, expected {expected}, as in the events", "invalid-time")
        return np.asarray(found, dtype=np.float64)
    values = _without_time_zone(values)
    if isinstance(values, dt.datetime):
        values = _moment(values)
    elif isinstance(values, dt.date):
        values = np.datetime64(values, "s")
    array = _array(values, what)
    if array.dtype.kind == "O":
        array = np.asarray([_time_array(value, events, what) for value in array.tolist()])
    if array.dtype.kind in "UT":
        return np.asarray([_time_array(str(text), events, what) for text in array.tolist()], dtype=np.float64)
    if array.dtype.kind == "M":
        if not events.is_date:
            raise HopedgnTypeError(
                f"{what}: found dates, expected numbers, because the times of the events are numbers", "wrong-type"
            )
        if np.isnat(array).any():
            raise HopedgnError(f"{what}: found no time (NaT), expected one in every row", "missing-value")
        # Nanoseconds are rounded, as in columns of events.
        array = _in_plain_unit(array)
        nanoseconds = np.datetime_data(array.dtype)[0] == "ns"
        micros = (array.astype(np.int64) + 500) // 1000 if nanoseconds else array.astype("datetime64[us]").astype(np.int64)
        return micros / 1e6
    if array.dtype.kind not in "iufb":
        raise HopedgnTypeError(f"{what}: found values of type {array.dtype}, expected numbers or dates", "wrong-type")
    return array.astype(np.float64, copy=False)


def is_source(side: str) -> bool:
    """Whether a side is that of sources."""
    if side not in ("src", "dst"):
        raise HopedgnError(f'found side={side!r}, expected "src" or "dst"', "invalid-argument")
    return side == "src"
