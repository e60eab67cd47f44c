"""Recommendations for any number of sources, Parquet in and Parquet out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from hopedgn.errors import HopedgnError
from hopedgn.predictor import LinkPredictor
from hopedgn.ray._cluster import resources
from hopedgn.ray._files import Paths, parquet, parquet_files, read_rows, shared_path, write_whole
from hopedgn.ray._job import Job, Slice, Written, remote, rows_of_parts, run_job
from hopedgn.ray._model import History, Model, Run, arrow, device_of, history_of, name_type, node_names, query_times, time_column
from hopedgn.ray.score import write_part

__all__ = ["recommend"]

#: Usual names of the column of sources and of that of times.
SOURCES = ("src", "source", "u", "user", "user_id", "id", "node")
TIMES = ("time", "t", "ts", "timestamp")


class _RecommendWorker:
    """Ranks destinations for parts of a job."""

    def __init__(self, job: Job, model: Model, options: dict[str, Any]) -> None:
        self._job, self._model, self._options = job, model, options
        self._predictor: LinkPredictor | None = None

    def ready(self) -> dict[str, Any]:
        """Loads the model, and says what it looks back on."""
        self._predictor = self._model.load()
        return history_of(self._predictor)

    def run(self, part: Slice) -> int:
        """Ranks destinations for the sources of a part and writes its file."""
        assert self._predictor is not None
        names = [name for name in self._options["columns"] if name is not None]
        table = read_rows(part.file, part.start, part.rows, names)
        try:
            rows, found = _recommended(self._predictor, table, self._options)
        except HopedgnError as error:
            raise type(error)(f"{part.file}, counted from row {part.start}: {error}", error.code) from None
        return write_part(self._job, part, part.first + rows, found, ("src", "dst"))


def _recommended(predictor: LinkPredictor, table: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The row of the source of each recommendation, and the recommendations."""
    events = predictor._fitted().events
    src, time = options["columns"]
    names, times = node_names(table, src), query_times(table, time, options["at"], events)
    best = [
        predictor.recommend(_plain(name), options["k"], at=float(at), exclude_seen=options["exclude_seen"]) for name, at in zip(names, times)
    ]
    counts = [len(items) for items in best]
    rows = np.repeat(np.arange(len(best)), counts)
    items = [item for items in best for item in items]
    columns = {
        "src": table.column(src).take(arrow.array(rows)),
        "time": time_column(times, events).take(arrow.array(rows)) if time is None else table.column(time).take(arrow.array(rows)),
        "rank": arrow.array(np.concatenate([np.arange(1, n + 1) for n in counts]) if items else [], type=arrow.int64()),
        "dst": arrow.array([item.dst for item in items], type=name_type(events)),
        "score": arrow.array([item.score for item in items], type=arrow.float32()),
    }
    if predictor._fitted().is_probability:
        columns["probability"] = columns["score"]
    columns["known"] = arrow.array([item.known for item in items], type=arrow.bool_())
    if options["reasons"]:
        columns["reason"] = arrow.array([item.reason for item in items], type=arrow.string())
    return rows, arrow.table(columns)


def _plain(name: Any) -> Any:
    return int(name) if isinstance(name, np.integer) else name


def recommend(
    run: Run,
    sources: Paths | Iterable[int] | Any,
    k: int,
    out: str | os.PathLike[str],
    *,
    events: History = None,
    at: Any = None,
    columns: tuple[str, str | None] | None = None,
    exclude_seen: bool = False,
    reasons: bool = False,
    rows_per_part: int | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    workers: int | None = None,
    address: str | None = None,
    progress: str | bool = "auto",
) -> Written:
    """The ``k`` likeliest destinations of each source on a Ray cluster, as ``hopedgn recommend`` finds them; each source once, whatever dies.

    >>> import hopedgn.ray
    >>> hopedgn.ray.recommend("runs/mine", "sources.parquet", 10, "recommendations", address="auto")  # doctest: +SKIP
    Written(out='recommendations', rows=1899, parts=30, reused=0, lost=0, seconds=...)

    ``sources`` is a Parquet file, a folder, a pattern with ``*`` or several of them, with the sources and optionally a time for each, in
    ``columns`` if these are not called ``src`` and ``time``; or the sources themselves, in an array or a list of integers. ``out`` gets one
    Parquet file for each part with ``row`` (the index of the source in the input), ``src``, ``time``, ``rank`` from 1, ``dst``, ``score``,
    ``probability`` where the model has it, ``known`` and, with ``reasons``, ``reason``. A source has fewer rows where there are fewer
    destinations. All other arguments are those of :func:`~hopedgn.ray.score` and of :meth:`hopedgn.LinkPredictor.recommend`.
    """
    resources(num_cpus, num_gpus)
    if k < 1:
        raise HopedgnError(f"found k={k}, expected at least 1", "invalid-argument")
    folder = shared_path(out, "out")
    files = parquet_files(_as_files(sources, folder), "sources")
    names = _columns_of(columns, files[0].columns, files[0].path)
    model = Model(run, events, device_of(num_gpus), max(1, int(num_cpus)))
    options = {"k": int(k), "at": at, "columns": names, "exclude_seen": exclude_seen, "reasons": reasons}
    identity = {"run": model.identity} | {name: value if isinstance(value, (int, bool)) else str(value) for name, value in options.items()}
    rows = sum(file.rows for file in files)
    job = Job("recommend", folder, files, rows_of_parts(rows_per_part, rows, 16, 10_000), identity)

    def make() -> Any:
        return remote(_RecommendWorker, num_cpus, num_gpus).remote(job, model.shipped(), options)

    return run_job(job, make, num_cpus=num_cpus, num_gpus=num_gpus, workers=workers, address=address, progress=progress, things="sources")


def _as_files(sources: Any, folder: Any) -> Paths:
    """Files of sources; sources that are none are written to one beside the parts."""
    if isinstance(sources, (str, os.PathLike)):
        return cast("Paths", sources)
    values = list(sources)
    if values and all(isinstance(value, (str, os.PathLike)) for value in values):
        if not any(str(value).endswith(".parquet") or os.path.exists(value) for value in values):
            raise HopedgnError(
                f"sources: found {values[0]!r} and no such file, expected Parquet files; give names that are text as a table: "
                'pyarrow.parquet.write_table(pyarrow.table({"src": names}), "sources.parquet")',
                "invalid-argument",
            )
        return cast("Paths", values)
    table = arrow.table({"src": arrow.array([_plain(value) for value in values])})
    file = folder / "_sources.parquet"
    if not (file.exists() and parquet.read_table(file).equals(table)):
        folder.mkdir(parents=True, exist_ok=True)
        if any(not name.startswith((".", "_sources")) for name in os.listdir(folder)):
            raise HopedgnError(f"{folder}: found a folder with other files or the parts of another job, expected a new folder", "other-job")
        write_whole(file, lambda sink: parquet.write_table(table, sink))
    return cast("Paths", file)


def _columns_of(wanted: tuple[str, str | None] | None, found: tuple[str, ...], where: str) -> tuple[str, str | None]:
    if wanted is not None:
        if any(name is not None and name not in found for name in wanted):
            raise HopedgnError(f"{where}: found columns={wanted!r}, expected names among {', '.join(found)}", "invalid-argument")
        return wanted
    src = next((name for name in found if name.lower() in SOURCES), found[0] if len(found) == 1 else None)
    if src is None:
        raise HopedgnError(f"{where}: found the columns {', '.join(found)}, expected one called src; name it with columns=", "invalid-argument")
    return src, next((name for name in found if name.lower() in TIMES), None)
