"""Progress of training: a bar where tqdm is installed, otherwise a line for each epoch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hopedgn.errors import HopedgnError

__all__ = ["Callback", "Progress"]

#: Called with the metrics of each epoch.
Callback = Callable[[Mapping[str, Any]], object]


class Progress:
    """Takes what the native module reports, shows it, and calls the callbacks of the user."""

    def __init__(self, show: str | bool, callbacks: Iterable[Callback] = ()) -> None:
        if show not in ("auto", "bar", "lines", True, False, None):
            raise HopedgnError(f'found progress={show!r}, expected "auto", "bar", "lines" or False', "invalid-argument")
        self._callbacks = list(callbacks)
        self._lines = show == "lines"
        self._bar: Any = None
        self._tqdm: Any = None
        if show in ("auto", "bar", True):
            try:
                from tqdm.auto import tqdm

                self._tqdm = tqdm
            except ImportError:
                self._lines = True
        self._stage: tuple[str, int] | None = None
        self._epoch = 0
        self._epochs = 0

    def __call__(self, what: str, details: str) -> None:
        """What the native module calls."""
        record = json.loads(details)
        if what == "start":
            self._epochs, self._epoch = record["epochs"], record["done"]
        elif what == "progress":
            self._move(record["stage"], record["done"], record["total"])
        elif what == "epoch":
            self._epoch = record["epoch"]
            if self._lines:
                self._write(_line(record))
            elif self._tqdm is not None:
                self._tqdm.write(_line(record), file=sys.stderr)
            for callback in self._callbacks:
                callback(record)

    def _move(self, stage: str, done: int, total: int) -> None:
        if self._tqdm is None:
            return
        if self._stage != (stage, total) or done == 0:
            self.close()
            words = {"train": f"epoch {self._epoch + 1} of {self._epochs}", "evaluate": "evaluating", "rank": "ranking"}
            self._bar = self._tqdm(total=total, desc=words.get(stage, stage), leave=False)
            self._stage = (stage, total)
        self._bar.update(done - self._bar.n)

    def _write(self, line: str) -> None:
        print(line, file=sys.stderr)

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            self._stage = None


def _line(record: Mapping[str, Any]) -> str:
    validation = record["val"].get("transductive") or {}
    metrics = "".join(f", {name} {100 * validation[key]:.2f}" for name, key in (("AP", "ap"), ("AUC", "auc")) if key in validation)
    better = " (best so far)" if record["better"] else ""
    return f"epoch {record['epoch']}: loss {record['loss']:.4f}, validation{metrics[1:]}{better}"
