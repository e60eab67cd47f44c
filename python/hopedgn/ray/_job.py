"""A job whose output is a folder of Parquet parts: planned, written once, continued, counted."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hopedgn import _native
from hopedgn.errors import HopedgnError
from hopedgn.ray._cluster import connect, most_workers, ray
from hopedgn.ray._files import ParquetFile, parquet, remove_temporary, write_whole
from hopedgn.ray._pool import Pool
from hopedgn.ray._shown import Shown

FORMAT = 1
#: Names that begin with ``_`` are no data to readers of Parquet folders.
MANIFEST = "_manifest.json"
SUCCESS = "_SUCCESS"
#: Key of the job in the metadata of each part.
JOB_KEY = b"hopedgn.job"


class Written(NamedTuple):
    """What a job wrote. ``pandas.read_parquet(out)`` and ``ray.data.read_parquet(out)`` read it, in the order of ``row``."""

    #: The folder.
    out: str
    #: Rows of the input that are done: all of them.
    rows: int
    #: Parts, one file each.
    parts: int
    #: Parts that were there before.
    reused: int
    #: Parts that were begun by a process that died, and done by another one.
    lost: int
    #: Seconds of this call.
    seconds: float


@dataclass(frozen=True)
class Slice:
    """A part: some rows of one input file."""

    number: int
    #: Index of its first row in the whole input.
    first: int
    file: str
    start: int
    rows: int


@dataclass
class Job:
    """A job and its folder. ``identity`` is all that its results depend on; parts of a job with another one are never mixed with its own."""

    kind: str
    out: Path
    files: Sequence[ParquetFile]
    rows_per_part: int
    identity: dict[str, Any]

    def __post_init__(self) -> None:
        inputs = [[os.path.basename(file.path), file.rows, file.footer] for file in self.files]
        self.identity = {"kind": self.kind, "rows_per_part": self.rows_per_part, "input": digest(inputs)} | self.identity
        self.id = digest(self.identity)
        self.slices = list(_slices(self.files, self.rows_per_part))
        self.rows = sum(file.rows for file in self.files)
        self._manifest: dict[str, Any] = {}

    def open(self) -> None:
        """Makes the folder, or continues in it. A folder with anything else is refused."""
        file = self.out / MANIFEST
        if not file.exists():
            if self.out.exists() and any(not name.startswith((".", "_sources")) for name in os.listdir(self.out)):
                raise HopedgnError(f"{self.out}: found a folder with other files, expected a new folder; choose another one", "invalid-argument")
            self.out.mkdir(parents=True, exist_ok=True)
            return
        try:
            self._manifest = json.loads(file.read_text(encoding="utf-8"))
            before = dict(self._manifest["identity"])
        except (ValueError, KeyError, TypeError) as error:
            raise HopedgnError(f"{file}: found no manifest of a job ({error}), expected one; choose another folder", "invalid-input") from error
        other = sorted(name for name in before.keys() | self.identity.keys() if before.get(name) != self.identity.get(name))
        if other:
            raise HopedgnError(
                f"{self.out}: found the parts of another job, which differs in {', '.join(other)}, expected a new folder or the same job; "
                "choose another folder, or remove this one",
                "other-job",
            )

    def path(self, number: int) -> Path:
        """The file of a part."""
        return self.out / f"part-{number:06}.parquet"

    def missing(self) -> list[Slice]:
        """The parts that are not there yet."""
        present = {name for name in os.listdir(self.out) if name.startswith("part-")}
        return [one for one in self.slices if self.path(one.number).name not in present or not self._is_own(one)]

    def _is_own(self, one: Slice) -> bool:
        try:
            metadata = parquet.read_metadata(self.path(one.number))
        except (OSError, ValueError):
            return False
        return bool((metadata.metadata or {}).get(JOB_KEY) == self.id.encode())

    def begin(self, history: Mapping[str, Any]) -> None:
        """Records what the model looks back on, before any part is written; every actor, and every call, must look back on the same."""
        before = self._manifest.get("history")
        if before is not None:
            if before != history:
                raise HopedgnError(
                    f"{self.out}: found a model that looks back on {_counted(history)}, expected {_counted(before)}, as in the parts that are "
                    "there; the data has changed, or is another file on some node: pass the same events, or choose another folder",
                    "other-job",
                )
            return
        self._write({"complete": False, "history": dict(history)})

    def finish(self) -> None:
        """Records that all parts are there."""
        remove_temporary(self.out)
        if not self._manifest.get("complete"):
            self._write({"complete": True})
        write_whole(self.out / SUCCESS, lambda file: file.write(b""))

    def _write(self, change: Mapping[str, Any]) -> None:
        about = {"format": FORMAT, "hopedgn": _native.__version__, "job": self.id, "identity": self.identity}
        counts = {"rows": self.rows, "parts": len(self.slices), "input": [[file.path, file.rows] for file in self.files]}
        self._manifest = self._manifest | about | counts | dict(change)
        text = json.dumps(self._manifest, indent=1) + "\n"
        write_whole(self.out / MANIFEST, lambda file: file.write(text.encode()))


def run_job(
    job: Job,
    make: Callable[[], Any],
    *,
    num_cpus: float,
    num_gpus: float,
    workers: int | None,
    address: str | None,
    progress: str | bool,
    things: str,
) -> Written:
    """Does what is missing of a job on actors of ``make()``."""
    start = time.monotonic()
    shown = Shown(progress, things)
    job.open()
    todo = job.missing()
    lost = 0
    if todo:
        connect(address)
        pool = Pool(make, most_workers(num_cpus, num_gpus) if workers is None else workers)
        shown.start(job.rows, job.rows - sum(one.rows for one in todo))
        try:
            pool.run(todo, job.begin, lambda part, _: shown.advance(part.rows))
        finally:
            shown.close()
        lost = pool.n_lost
    elif not job.slices:
        job.begin({})
    job.finish()
    return Written(str(job.out), job.rows, len(job.slices), len(job.slices) - len(todo), lost, time.monotonic() - start)


def remote(worker: type, num_cpus: float, num_gpus: float) -> Any:
    """The class as an actor that is never restarted by Ray: :class:`Pool` starts another one."""
    options: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus, "max_restarts": 0, "max_task_retries": 0}
    return ray.remote(worker).options(**options, scheduling_strategy="SPREAD")


def digest(value: object) -> str:
    """SHA-256 of a JSON document."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def rows_of_parts(wanted: int | None, rows: int, least: int, most: int) -> int:
    """Rows of each part: as asked, or a number that depends on nothing but the number of rows, so that a job can be continued."""
    if wanted is None:
        return min(max(-(-rows // 64), least), most)
    if wanted < 1:
        raise HopedgnError(f"found rows_per_part={wanted}, expected at least 1", "invalid-argument")
    return int(wanted)


def _slices(files: Sequence[ParquetFile], rows_per_part: int) -> list[Slice]:
    slices: list[Slice] = []
    first = 0
    for file in files:
        for start in range(0, file.rows, rows_per_part):
            rows = min(rows_per_part, file.rows - start)
            slices.append(Slice(len(slices), first + start, file.path, start, rows))
        first += file.rows
    return slices


def _counted(history: Mapping[str, Any]) -> str:
    return f"{history.get('events', 0):,} events until {history.get('end')}"
