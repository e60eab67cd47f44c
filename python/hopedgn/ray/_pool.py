"""Parts of a job on actors, each with a model that it has loaded once: parts of an actor that dies go to others."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hopedgn.errors import HopedgnError
from hopedgn.ray._cluster import cause, ray

#: Deaths of processes while they worked on one part, or before any of them was ready, after which the part is to blame.
MAX_DEATHS = 4
#: A part that takes so many times as long as others is given to an idle actor, too: its node may be dead, which Ray notices late.
SLOW = 4.0
#: Seconds below which no part is slow.
MIN_SLOW = 2.0


class Part(Protocol):
    """A part of a job. Doing it twice, also at once, leaves what doing it once leaves."""

    @property
    def number(self) -> int: ...


@dataclass
class Worker:
    """An actor and what it does."""

    handle: Any
    #: What it was asked last: a part, or to load the model.
    request: Any
    part: Any = None
    since: float = 0.0
    is_idle: bool = False


class Pool:
    """Runs parts on ``n_workers`` actors of ``make()``, which have the methods ``ready()`` and ``run(part)``.

    A part is given to actors that are ready only, one at a time, so none waits for a node that may never come. ``n_lost`` counts parts
    that were begun by an actor that died.
    """

    def __init__(self, make: Callable[[], Any], n_workers: int) -> None:
        self._make = make
        self._n_workers = n_workers
        self._workers: list[Worker] = []
        self._waiting: deque[Any] = deque()
        self._deaths: dict[int, int] = {}
        self._deaths_unready = 0
        self._seconds: list[float] = []
        self.n_lost = 0

    def run(self, parts: Sequence[Any], on_ready: Callable[[Any], None], on_done: Callable[[Any, Any], None]) -> None:
        """Runs all parts. ``on_ready`` gets what ``ready`` returned, before its actor gets a part; ``on_done`` each part once, with what
        ``run`` returned."""
        self._waiting.extend(parts)
        left = {part.number for part in parts}
        try:
            for _ in range(min(self._n_workers, len(parts))):
                self._start()
            while left:
                for worker in self._answered():
                    part, answer = self._answer(worker)
                    if worker.handle is None:
                        continue
                    if part is None:
                        on_ready(answer)
                        self._deaths_unready = 0
                    elif part.number in left:
                        left.discard(part.number)
                        self._seconds.append(time.monotonic() - worker.since)
                        on_done(part, answer)
                    worker.part, worker.is_idle = None, True
                self._assign(left)
        finally:
            for worker in self._workers:
                _kill(worker.handle)

    def _start(self) -> None:
        handle = self._make()
        self._workers.append(Worker(handle, handle.ready.remote()))

    def _answered(self) -> list[Worker]:
        busy = {worker.request: worker for worker in self._workers if not worker.is_idle}
        ready, _ = ray.wait(list(busy), num_returns=1, timeout=1.0)
        return [busy[request] for request in ready]

    def _answer(self, worker: Worker) -> tuple[Any, Any]:
        """The part and what came of it; an actor that died is replaced and has no handle any more."""
        part = worker.part
        try:
            return part, ray.get(worker.request)
        except ray.exceptions.RayTaskError as error:
            raise cause(error) from None
        except ray.exceptions.RayError as error:
            self._replace(worker, error)
            return part, None

    def _replace(self, worker: Worker, error: Exception) -> None:
        self._workers.remove(worker)
        _kill(worker.handle)
        worker.handle = None
        part = worker.part
        if part is None:
            self._deaths_unready += 1
            n = self._deaths_unready
        else:
            self.n_lost += 1
            self._waiting.appendleft(part)
            n = self._deaths[part.number] = self._deaths.get(part.number, 0) + 1
        if n >= MAX_DEATHS * (1 if part is not None else self._n_workers):
            what = f"part {part.number}" if part is not None else "loading the model"
            reason = str(error).strip().splitlines()[0]
            raise HopedgnError(
                f"{what}: found {n} processes that died one after the other ({reason}), expected one that lives; they may need more memory "
                "than their nodes have: ask for more CPUs for each, so that fewer run at once, or for smaller parts",
                "worker-died",
            ) from error
        self._start()

    def _assign(self, left: set[int]) -> None:
        for worker in self._workers:
            if worker.is_idle and (part := self._next(left)) is not None:
                worker.part, worker.since, worker.is_idle = part, time.monotonic(), False
                worker.request = worker.handle.run.remote(part)

    def _next(self, left: set[int]) -> Any:
        while self._waiting:
            part = self._waiting.popleft()
            if part.number in left:
                return part
        running = [worker for worker in self._workers if worker.part is not None and worker.part.number in left]
        if not running or not self._seconds:
            return None
        limit = max(MIN_SLOW, SLOW * sum(self._seconds) / len(self._seconds))
        oldest = min(running, key=lambda worker: worker.since)
        n_copies = sum(worker.part.number == oldest.part.number for worker in running)
        return oldest.part if n_copies == 1 and time.monotonic() - oldest.since > limit else None


def _kill(handle: Any) -> None:
    try:
        ray.kill(handle, no_restart=True)
    except ray.exceptions.RayError:
        pass
