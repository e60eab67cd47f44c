"""A trained model on a worker: loaded once, asked in Arrow columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as _arrow
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError, HopedgnFileNotFoundError
from hopedgn.events import Events
from hopedgn.predictor import LinkPredictor
from hopedgn.ray._cluster import ray
from hopedgn.ray._files import shared_path

#: pyarrow, without types: it has none.
arrow: Any = _arrow

#: A run folder or a fitted model; events, their file, or nothing.
Run = str | os.PathLike[str] | LinkPredictor
History = str | os.PathLike[str] | Events | None


class Model:
    """How a worker gets its model: by the path of the run folder, or from Ray's object store."""

    def __init__(self, run: Run, events: History, device: str, num_threads: int) -> None:
        self._run: Any = None if isinstance(run, LinkPredictor) else str(shared_path(run, "run"))
        self._shipped: Any = None
        self._events: Any = events if isinstance(events, Events) or events is None or _is_name(events) else str(shared_path(events, "events"))
        self._device = device
        self._num_threads = num_threads
        self._predictor = run if isinstance(run, LinkPredictor) else None
        self.identity = _weights_of(run)

    def shipped(self) -> Model:
        """The same with what is no file in the object store, from where every worker takes it."""
        if self._shipped is None and (self._predictor is not None or isinstance(self._events, Events)):
            self._shipped = ray.put((self._predictor, self._events if isinstance(self._events, Events) else None))
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What was put into the object store is not sent again.
        return self.__dict__ | ({"_predictor": None, "_events": None} if self._shipped is not None else {})

    def load(self) -> LinkPredictor:
        """The model, with threads as the worker has CPUs."""
        _native.set_num_threads(self._num_threads)
        predictor, events = (self._predictor, self._events) if self._shipped is None else ray.get(self._shipped)
        if isinstance(events, str):
            events = Events.read(events)
        if predictor is not None:
            return predictor.update(events) if events is not None else predictor
        return LinkPredictor.load(self._run, events, device=self._device)  # type: ignore[arg-type]


def history_of(predictor: LinkPredictor) -> dict[str, Any]:
    """What a model looks back on, in a few numbers."""
    native = predictor._fitted().events
    return {"events": len(native), "nodes": native.n_nodes, "end": native.end}


def device_of(num_gpus: float) -> str:
    """Where a worker with so many GPUs computes."""
    return "cuda" if num_gpus > 0 else "cpu"


def _is_name(events: object) -> bool:
    return isinstance(events, str) and events == "collegemsg"


def _weights_of(run: Run) -> str:
    """SHA-256 of weights and settings of a run."""
    folder = run._fitted().folder if isinstance(run, LinkPredictor) else str(shared_path(run, "run"))
    digest = hashlib.sha256()
    for name in ("config.toml", "model.safetensors"):
        file = Path(str(folder), name)
        if not file.is_file():
            raise HopedgnFileNotFoundError(
                f"{folder}: found no file {name}, expected a run folder with weights, as `hopedgn train` and LinkPredictor.save write them", "not-a-run-folder"
            )
        digest.update(file.read_bytes())
    return digest.hexdigest()


def column_names(wanted: Sequence[str] | None, found: Sequence[str], where: str) -> tuple[str, str, str | None]:
    """Source, destination and optionally time: as named, or by their usual names."""
    if wanted is None:
        src, dst, time = _native.pair_columns(list(found))
        return found[src], found[dst], None if time is None else found[time]
    if len(wanted) not in (2, 3) or any(name not in found for name in wanted):
        raise HopedgnError(
            f"{where}: found columns={tuple(wanted)!r}, expected the names of source, destination and optionally time among {', '.join(found)}",
            "invalid-argument",
        )
    return wanted[0], wanted[1], wanted[2] if len(wanted) == 3 else None


def node_names(table: Any, column: str) -> Any:
    """The names of nodes in a column, as the native module reads them."""
    values = _complete(table, column)
    if arrow.types.is_integer(values.type):
        return _columns.names(values.to_numpy(), column)
    if arrow.types.is_string(values.type) or arrow.types.is_large_string(values.type):
        return values.to_pylist()
    raise HopedgnError(f"{column}: found values of type {values.type}, expected integers or text; cast the column", "wrong-type")


def query_times(table: Any, column: str | None, at: Any, events: _native.Events) -> NDArray[np.float64]:
    """The time of each row: its own, ``at``, or just after the last event."""
    if column is None:
        return _columns.times(events.end if at is None else at, table.num_rows, events, "at")
    values = _complete(table, column)
    return _columns.times(values.to_numpy() if _has_numpy_type(values.type) else values.to_pylist(), table.num_rows, events, column)


def time_column(times: NDArray[np.float64], events: _native.Events) -> Any:
    """Times as a file has them: dates where the events have dates."""
    if events.is_date:
        return arrow.array(np.round(times * 1e6).astype(np.int64)).cast(arrow.timestamp("us"))
    return arrow.array(times)


def name_type(events: _native.Events) -> Any:
    """The type of a column of names: integers where all names of the events are."""
    names = None if events.is_text else events.integer_names()
    if names is None:
        return arrow.string()
    return arrow.int64() if names.size == 0 or names.max() < 2**63 else arrow.uint64()


def _complete(table: Any, column: str) -> Any:
    """A column with a value in every row."""
    values = table.column(column)
    if arrow.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise HopedgnError(f"row {row}, {column}: found no value, expected one in every row; drop such rows, or fill them in", "missing-value")
    return values


def _has_numpy_type(kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_timestamp(kind) or types.is_date(kind))

