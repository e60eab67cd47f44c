"""Scores of any number of pairs, Parquet in and Parquet out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopedgn.errors import HopedgnError
from hopedgn.ray._cluster import resources
from hopedgn.ray._files import Paths, parquet, parquet_files, read_rows, shared_path, write_whole
from hopedgn.ray._job import JOB_KEY, Job, Slice, Written, remote, rows_of_parts, run_job
from hopedgn.ray._model import History, Model, Run, arrow, column_names, device_of, history_of, node_names, query_times, time_column

__all__ = ["Scorer", "score"]

#: Columns of the output.
RESULTS = ("row", "src", "dst", "time", "score", "probability", "intensity", "lift")


class Scorer:
    """A model that scores tables of pairs: a class for ``map_batches`` of Ray Data, with one loaded model for each actor.

    >>> import hopedgn, hopedgn.ray, pyarrow
    >>> events = hopedgn.Events.from_numpy(src=["ann", "bob"] * 50, dst=["bob", "cem"] * 50, time=range(100))
    >>> model = hopedgn.LinkPredictor(epochs=1, device="cpu").fit(events, progress=False)
    >>> scorer = hopedgn.ray.Scorer(model)
    >>> scorer(pyarrow.table({"src": ["ann"], "dst": ["bob"], "time": [100.0]})).column_names
    ['src', 'dst', 'time', 'score', 'probability', 'intensity', 'lift']

    In a pipeline, whose rows may come from anywhere and go anywhere:

    >>> import ray.data
    >>> scored = ray.data.read_parquet("s3://bucket/pairs").map_batches(  # doctest: +SKIP
    ...     hopedgn.ray.Scorer, fn_constructor_args=("runs/mine",), batch_format="pyarrow", batch_size=65_536, num_cpus=1)

    ``run`` is a run folder that every node sees, or a fitted model; ``events``, ``at``, ``columns`` and ``keep`` are those of :func:`score`.
    """

    def __init__(
        self,
        run: Run | Model,
        *,
        events: History = None,
        at: Any = None,
        columns: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        num_threads: int = 1,
        device: str = "cpu",
    ) -> None:
        model = run if isinstance(run, Model) else Model(run, events, device, num_threads)
        self._predictor = model.load()
        self._at, self._columns, self._keep = at, columns, tuple(keep)
        #: What the model looks back on.
        self.history = history_of(self._predictor)

    def __call__(self, table: Any) -> Any:
        """The pairs of an Arrow table with their scores, in its order."""
        native = self._predictor._fitted()
        src, dst, time = column_names(self._columns, table.column_names, "the pairs")
        times = query_times(table, time, self._at, native.events)
        scores, likelihood = native.predictions(node_names(table, src), node_names(table, dst), times)
        columns = {"src": table.column(src), "dst": table.column(dst)}
        columns["time"] = time_column(times, native.events) if time is None else table.column(time)
        columns["score"] = arrow.array(scores)
        if likelihood is not None:
            columns |= {"probability": columns["score"], "intensity": arrow.array(likelihood[0]), "lift": arrow.array(likelihood[1])}
        return arrow.table(columns | {name: table.column(name) for name in self._keep})


class _ScoreWorker:
    """Scores parts of a job."""

    def __init__(self, job: Job, model: Model, options: dict[str, Any]) -> None:
        self._job, self._model, self._options = job, model, options
        self._scorer: Scorer | None = None

    def ready(self) -> dict[str, Any]:
        """Loads the model, and says what it looks back on."""
        self._scorer = Scorer(self._model, **self._options)
        return self._scorer.history

    def run(self, part: Slice) -> int:
        """Scores the pairs of a part and writes its file."""
        assert self._scorer is not None
        names = column_names(self._options["columns"], self._job.files[0].columns, part.file)
        wanted = [name for name in (*names, *self._options["keep"]) if name is not None]
        try:
            scored = self._scorer(read_rows(part.file, part.start, part.rows, wanted))
        except HopedgnError as error:
            raise type(error)(f"{part.file}, counted from row {part.start}: {error}", error.code) from None
        return write_part(self._job, part, np.arange(part.first, part.first + part.rows), scored, ("src", "dst"))


def write_part(job: Job, part: Slice, rows: Any, table: Any, repeated: Sequence[str]) -> int:
    """Writes the file of a part with the column ``row`` first; the columns of ``repeated`` have few values each."""
    table = table.add_column(0, "row", arrow.array(rows, type=arrow.int64()))
    table = table.replace_schema_metadata({JOB_KEY: job.id.encode()})
    options: dict[str, Any] = {"compression": "zstd", "use_dictionary": list(repeated), "column_encoding": {"row": "DELTA_BINARY_PACKED"}}
    write_whole(job.path(part.number), lambda file: parquet.write_table(table, file, **options))
    return int(table.num_rows)


def score(
    run: Run,
    pairs: Paths,
    out: str | os.PathLike[str],
    *,
    events: History = None,
    at: Any = None,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    rows_per_part: int | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    workers: int | None = None,
    address: str | None = None,
    progress: str | bool = "auto",
) -> Written:
    """Scores pairs on a Ray cluster: each of them once, whatever dies, with the bits of ``hopedgn score`` in one process.

    >>> import hopedgn.ray
    >>> hopedgn.ray.score("runs/mine", "pairs", "scores", address="auto")  # doctest: +SKIP
    Written(out='scores', rows=1000000, parts=20, reused=0, lost=0, seconds=...)

    Parameters
    ----------
    run:
        A run folder that every node sees, or a fitted :class:`~hopedgn.LinkPredictor`, which is sent to them.
    pairs:
        Parquet files with source, destination and optionally time: a file, a folder, a pattern with ``*``, or several of them.
    out:
        A folder that every node can write. It gets one Parquet file for each part, with ``row`` (the index in the input), ``src``, ``dst``,
        ``time``, ``score``, and ``probability``, ``intensity`` and ``lift`` where the model has them. Calling again with the same
        arguments does what is missing; a folder of another job is refused.
    events:
        Events that the model looks back on instead of those it was trained on, which they begin with: a file that every node sees, or events.
    at:
        The time of all pairs where the files have none, by default just after the last event.
    columns:
        Names of source, destination and optionally time, by default recognised.
    keep:
        Further columns of the input to copy.
    rows_per_part:
        Pairs of each part, which are scored at once and lost with a process that dies; by default 50,000 to 1,000,000, a 64th of all. Models
        with a memory replay the events for each part, so give them few and large ones.
    num_cpus, num_gpus:
        Of each worker, which computes with as many threads, or on the GPU.
    workers:
        How many workers, each with a loaded model; by default as many as the cluster has room for.
    address:
        The cluster, unless this process is connected to one: ``ray://HOST:PORT``, ``"auto"``, ``"local"``.
    progress:
        ``"auto"``, ``"bar"``, ``"lines"`` or ``False``.

    A part is a fixed range of rows of the input and has a fixed file, which is written under another name and renamed. So it does not matter
    how often a part is computed, when a process dies in between, or whether a node that was thought dead comes back: its file holds its rows
    once.
    """
    resources(num_cpus, num_gpus)
    files = parquet_files(pairs, "pairs")
    names = column_names(columns, files[0].columns, files[0].path)
    _check_keep(keep, files[0].columns, names)
    model = Model(run, events, device_of(num_gpus), max(1, int(num_cpus)))
    options = {"at": at, "columns": columns, "keep": tuple(keep)}
    identity = {"run": model.identity, "at": str(at), "columns": list(names), "keep": list(keep)}
    rows = sum(file.rows for file in files)
    job = Job("score", shared_path(out, "out"), files, rows_of_parts(rows_per_part, rows, 50_000, 1_000_000), identity)

    def make() -> Any:
        return remote(_ScoreWorker, num_cpus, num_gpus).remote(job, model.shipped(), options)

    return run_job(job, make, num_cpus=num_cpus, num_gpus=num_gpus, workers=workers, address=address, progress=progress, things="pairs")


def _check_keep(keep: Sequence[str], found: Sequence[str], names: Sequence[str | None]) -> None:
    for name in keep:
        if name not in found:
            raise HopedgnError(f"found keep={name!r}, expected a column among {', '.join(found)}", "invalid-argument")
        if name in RESULTS or name in names:
            raise HopedgnError(f"found keep={name!r}, which is a column of the output, expected another one; rename it", "invalid-argument")
