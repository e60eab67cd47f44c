"""Parquet files in, and files that appear complete or not at all."""

from __future__ import annotations

import glob
import hashlib
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as _parquet

from hopedgn.errors import HopedgnError, HopedgnFileNotFoundError

#: pyarrow's Parquet, without types: it has none.
parquet: Any = _parquet

#: One path, or several.
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class ParquetFile:
    """A file of the input."""

    path: str
    rows: int
    #: SHA-256 of its footer, which has the offsets, sizes and statistics of all columns.
    footer: str
    columns: tuple[str, ...]


def shared_path(path: str | os.PathLike[str], what: str) -> Path:
    """A path that means the same on every node, if they share the file system."""
    text = os.fspath(path)
    if "://" in text:
        raise HopedgnError(
            f"{what}: found {text}, expected a path on a file system that every node sees; mount the bucket, or read it with "
            "ray.data.read_parquet and score it with hopedgn.ray.Scorer",
            "invalid-argument",
        )
    return Path(os.path.abspath(os.path.expanduser(text)))


def parquet_files(paths: Paths, what: str) -> list[ParquetFile]:
    """The Parquet files of a path, a folder, a pattern with ``*``, or several of them; those of a folder in order of name."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = [file for path in several for file in _expanded(shared_path(path, what), what)]
    if not found:
        raise HopedgnError(f"{what}: found no file, expected at least one Parquet file", "invalid-argument")
    return [_opened(file) for file in found]


def _expanded(path: Path, what: str) -> list[Path]:
    if path.is_dir():
        inside = (file for file in path.rglob("*.parquet") if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts))
        found = sorted(inside)
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
    if not found:
        raise HopedgnFileNotFoundError(f"{what}: found no Parquet file at {path}, expected a file, a folder or a pattern", "io")
    return found


def _opened(path: Path) -> ParquetFile:
    try:
        footer = parquet.ParquetFile(path)
        columns, rows = tuple(footer.schema_arrow.names), int(footer.metadata.num_rows)
        with path.open("rb") as file:
            file.seek(-8, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-8 - length, os.SEEK_END)
            digest = hashlib.sha256(file.read(length)).hexdigest()
    except (OSError, ValueError) as error:
        raise HopedgnError(f"{path}: found no readable Parquet file ({error}), expected one", "invalid-input") from error
    return ParquetFile(str(path), rows, digest, columns)


def read_rows(path: str, start: int, rows: int, columns: Sequence[str]) -> Any:
    """Some rows of a file as a table; row groups that hold none of them are not read."""
    with parquet.ParquetFile(path, memory_map=True) as file:
        groups: list[int] = []
        first, at = start, 0
        for group in range(file.metadata.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if at < start + rows and at + size > start:
                if not groups:
                    first = at
                groups.append(group)
            at += size
        table = file.read_row_groups(groups, columns=list(columns), use_threads=False)
        return table.slice(start - first, rows).select(list(columns))


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file under another name and renames it: whoever dies when, it is there complete or not at all."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_temporary(folder: Path) -> None:
    """Removes what processes that were killed left half-written."""
    for file in folder.glob(".*.tmp"):
        file.unlink(missing_ok=True)
