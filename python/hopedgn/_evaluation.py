"""Arguments of an evaluation, and candidates from memory in the form that TGB keeps its lists in."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError, HopedgnTypeError

#: Candidates by event (source, destination, time), or a file of JSON Lines.
Candidates = Mapping[tuple[Any, Any, Any], Any] | str | os.PathLike[str]


def evaluate_options(negatives: str | Sequence[str], ranking: object, protocol: str, has_candidates: bool) -> dict[str, Any]:
    """What is measured, as the native module reads it."""
    every = ("random", "historical", "inductive")
    if protocol not in ("dyglib", "tgb"):
        raise HopedgnError(f'found protocol={protocol!r}, expected "dyglib" or "tgb"', "invalid-argument")
    tgb = protocol == "tgb"
    kinds: Sequence[str] = (every if negatives == "all" else (negatives,)) if isinstance(negatives, str) else negatives
    unknown = [kind for kind in kinds if kind not in every]
    if unknown:
        raise HopedgnError(
            f'found negatives={unknown[0]!r}, expected "random", "historical", "inductive", "all" or a list of them', "invalid-argument"
        )
    count = None if ranking is None or ranking == "all" else int(cast("int", ranking))
    return {
        # TGB ranks, and does nothing else unless it is asked for.
        "negatives": [] if tgb and negatives == "random" else list(kinds),
        "ranking": 999 if tgb and ranking is None and not has_candidates else count,
        "rank_all": ranking == "all",
        "tgb": tgb,
    }


@contextmanager
def candidate_file(candidates: object, events: _native.Events) -> Generator[str | None, None, None]:
    """The file of these candidates: the one that was given, or one that is there as long as it is read."""
    if candidates is None or isinstance(candidates, (str, os.PathLike)):
        yield None if candidates is None else os.fspath(candidates)
        return
    if not isinstance(candidates, Mapping):
        raise HopedgnTypeError(
            f"candidates: found a {type(candidates).__name__}, expected the name of a file, or a dict with the candidates of each "
            "(source, destination, time)",
            "wrong-type",
        )
    with tempfile.TemporaryDirectory(prefix="hopedgn-") as folder:
        file = Path(folder, "candidates.jsonl")
        with file.open("w", encoding="utf-8") as out:
            _write(cast("Mapping[object, Any]", candidates), events, out)
        try:
            yield os.fspath(file)
        except HopedgnError as error:
            # The file is of no concern to who gave a dict.
            message = str(error).replace(f"{file}, line ", "candidates, entry ").replace(str(file), "candidates")
            raise type(error)(message, error.code) from None


def _write(candidates: Mapping[object, Any], events: _native.Events, out: TextIO) -> None:
    for event, nodes in candidates.items():
        if not (isinstance(event, tuple) and len(event) == 3):
            raise HopedgnError(f"candidates: found the key {event!r}, expected (source, destination, time)", "invalid-argument")
        src, dst, time = event
        line = {
            "src": _node(src),
            "dst": _node(dst),
            "time": events.show_time(_columns.one_time(time, events)) if events.is_date else _columns.one_time(time, events),
            "candidates": [_node(node) for node in np.asarray(nodes).reshape(-1).tolist()],
        }
        out.write(json.dumps(line) + "\n")


def _node(name: Any) -> str | int:
    """The name of a node. TGB's lists of sources that are new hold integers as floats."""
    if isinstance(name, (float, np.floating)) and float(name).is_integer():
        return int(name)
    if isinstance(name, str):
        return name
    return int(_columns.one_name(name, "candidates"))
