"""Progress of a job: a bar in a terminal or notebook where tqdm is installed, otherwise a line now and then."""

from __future__ import annotations

import time
from typing import Any

from hopedgn._progress import _is_shown_at_once, _Stderr, _tqdm
from hopedgn.errors import HopedgnError

#: Seconds between two lines.
PAUSE = 10.0


class Shown:
    """Counts ``things`` that are done."""

    def __init__(self, show: str | bool, things: str) -> None:
        if show not in ("auto", "bar", "lines", True, False, None):
            raise HopedgnError(f'found progress={show!r}, expected "auto", "bar", "lines" or False', "invalid-argument")
        self._things = things
        self._tqdm: Any = _tqdm() if show in ("auto", "bar", True) else None
        if self._tqdm is not None and show == "auto" and not _is_shown_at_once(self._tqdm):
            self._tqdm = None
        self._lines = self._tqdm is None and show not in (False, None)
        self._bar: Any = None
        self._total = self._done = self._before = 0
        self._start = self._last = time.monotonic()

    def start(self, total: int, before: int) -> None:
        """Begins, with so many done ``before``."""
        self._total, self._done, self._before = total, before, before
        self._start = self._last = time.monotonic()
        if self._tqdm is not None:
            self._bar = self._tqdm(total=total, initial=before, unit=f" {self._things}", unit_scale=True, file=_Stderr())

    def advance(self, n: int) -> None:
        """So many more are done."""
        self._done += n
        if self._bar is not None:
            self._bar.update(n)
        now = time.monotonic()
        if self._lines and (now - self._last >= PAUSE or self._done == self._total):
            self._last = now
            seconds = now - self._start
            rate = (self._done - self._before) / max(seconds, 1e-9)
            left = f"; about {(self._total - self._done) / rate:.0f} s left" if self._done < self._total and rate > 0 else ""
            self.say(f"{self._done:,} of {self._total:,} {self._things}, {seconds:.0f} s{left}")

    def say(self, line: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._tqdm.write(line, file=_Stderr())
        elif self._lines:
            print(line, file=_Stderr())

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
