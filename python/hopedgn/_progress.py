"""Progress of training: a bar in a terminal or notebook where tqdm is installed, otherwise a line for each epoch."""

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
            self._tqdm = _tqdm()
            if self._tqdm is None or (show == "auto" and not _is_shown_at_once(self._tqdm)):
                self._tqdm, self._lines = None, True
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
                self._tqdm.write(_line(record), file=_Stderr())
            for callback in self._callbacks:
                callback(record)

    def _move(self, stage: str, done: int, total: int) -> None:
        if self._tqdm is None:
            return
        if self._stage != (stage, total) or done == 0:
            self.close()
            words = {"train": f"epoch {self._epoch + 1} of {self._epochs}", "evaluate": "evaluating", "rank": "ranking"}
            self._bar = self._tqdm(total=total, desc=words.get(stage, stage), leave=False, file=_Stderr())
            self._stage = (stage, total)
        self._bar.update(done - self._bar.n)

    def _write(self, line: str) -> None:
        print(line, file=_Stderr())

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            self._stage = None


class _Stderr:
    """Standard error that takes no harm from being closed, as at the end of a pipe: training goes on without progress.

    An exception while tqdm writes would leave its lock held for good.
    """

    def write(self, text: str) -> int:
        try:
            return sys.stderr.write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):
            pass

    def isatty(self) -> bool:
        return sys.stderr.isatty()

    def fileno(self) -> int:
        return sys.stderr.fileno()

    @property
    def encoding(self) -> str:
        return sys.stderr.encoding


def _tqdm() -> Any:
    """The class of bars, of notebooks where this is one; ``None`` if tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _is_shown_at_once(tqdm: Any) -> bool:
    """Whether somebody looks on: a terminal or a notebook, not a file."""
    return any(base.__name__ == "tqdm_notebook" for base in tqdm.__mro__) or sys.stderr.isatty()


def _line(record: Mapping[str, Any]) -> str:
    validation = record["val"].get("transductive") or {}
    metrics = "".join(f", {name} {100 * validation[key]:.2f}" for name, key in (("AP", "ap"), ("AUC", "auc")) if key in validation)
    better = " (best so far)" if record["better"] else ""
    return f"epoch {record['epoch']}: loss {record['loss']:.4f}, validation{metrics[1:]}{better}"
