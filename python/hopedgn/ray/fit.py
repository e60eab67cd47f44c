"""Training on several workers: one Ray actor each, gradients by TCP between them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError
from ray.util import get_node_ip_address

import hopedgn
from hopedgn import _native
from hopedgn._group import Group
from hopedgn._runs import EVENTS_FILE
from hopedgn._tables import as_events
from hopedgn.errors import HopedgnError
from hopedgn.events import Events
from hopedgn.predictor import LinkPredictor

__all__ = ["fit"]


def fit(
    events: Any,
    *,
    workers: int = 2,
    model: str = "stats",
    run: str | os.PathLike[str] | None = None,
    address: str | None = None,
    threads: int = 1,
    gpus: float = 0,
    resources: Mapping[str, float] | None = None,
    max_restarts: int = 3,
    silence: float = 30.0,
    patience: float = 600.0,
    progress: bool = True,
    **settings: Any,
) -> LinkPredictor:
    """Trains one model on several workers and returns it fitted, bit for bit as ``LinkPredictor(model, run=run, **settings).fit(events)``.

    Each worker is a Ray actor that maps the same events and computes its share of every batch. A worker that dies is started again, at most
    ``max_restarts`` times in all, and gets its state from the others: nothing is trained twice but the step in which it died.

    Parameters
    ----------
    events:
        The path of a file that every node sees, best a ``.ctdg``, which is mapped and not copied; or :class:`~hopedgn.Events` or a table,
        which are sent to every worker.
    workers:
        Processes that train together. Models with a node memory (``"jodie"``, ``"dyrep"``, ``"tgn"``, ``"pint"``) run on one.
    model, **settings:
        As in :class:`~hopedgn.LinkPredictor`: ``epochs=3``, ``seed=1``, ``train__lr=0.001``, ….
    run:
        A new run folder, on a file system that the workers and this process see. A run of the same settings that is there goes on. Without
        it the model is sent back when it is trained.
    address:
        The Ray cluster, such as ``"auto"`` or ``"ray://head:10001"``. By default the one that is connected, or a new local one.
    threads, gpus, resources:
        What each worker takes: threads (Ray's ``num_cpus``), GPUs (``num_gpus``; more than one GPU worker is untried) and custom resources.
    silence, patience:
        Seconds without a sign of life after which a worker counts as lost, and seconds to wait for all workers.
    progress:
        Whether the first worker prints a line for each epoch, which Ray passes on.

    >>> import hopedgn.ray
    >>> model = hopedgn.ray.fit("events.ctdg", workers=2, model="hopedgn", run="runs/mine")  # doctest: +SKIP
    """
    if workers < 1 or threads < 1:
        raise HopedgnError(f"found workers={workers} and threads={threads}, expected at least 1 of each", "invalid-argument")
    run = None if run is None else os.path.abspath(run)
    device = "cuda" if gpus else "cpu"
    settings = {"device": device, **settings}
    LinkPredictor(model, run=run, **settings)  # refuses what is wrong before anything starts
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=progress)
    rendezvous = None
    with _file_of(events) as (source, name):
        if workers > 1:
            rendezvous = _native.Rendezvous(f"{get_node_ip_address()}:0", workers)
        where = "" if rendezvous is None else f"{get_node_ip_address()}:{rendezvous.port}"

        def start(rank: int) -> Any:
            group = Group(rank=rank, workers=workers, address=where, hosts=False, folder=None, silence=silence, patience=patience)
            wanted = {"num_cpus": threads, "num_gpus": gpus, "resources": dict(resources or {})}
            worker: Any = ray.remote(_Worker).options(**wanted, max_restarts=0, scheduling_strategy="SPREAD").remote(threads)
            return worker, worker.fit.remote(source, name, model, run, settings, group if workers > 1 else None, progress)

        result: LinkPredictor | None = _supervise(start, workers, max_restarts)
        if result is None:
            assert run is not None
            known = None if isinstance(source, str) else as_events(events)
            if known is not None and not Path(run, EVENTS_FILE).exists():
                known.write(Path(run, EVENTS_FILE))
            result = LinkPredictor.load(run, known, device="auto" if gpus else "cpu")
    return result


def _supervise(start: Any, workers: int, max_restarts: int) -> LinkPredictor | None:
    """Starts the workers, starts those again that die, and returns what the first one returns."""
    held = {rank: start(rank) for rank in range(workers)}
    results: dict[int, LinkPredictor | None] = {}
    restarts = 0
    try:
        while len(results) < workers:
            waiting = {task: rank for rank, (_, task) in held.items() if rank not in results}
            done, _ = ray.wait(list(waiting), num_returns=1)
            rank = waiting[done[0]]
            try:
                results[rank] = ray.get(done[0])
            except RayActorError as error:
                restarts += 1
                if restarts > max_restarts:
                    message = f"found worker {rank} dead after {max_restarts} restarts, expected it to live; see Ray's log of it"
                    raise HopedgnError(message, "lost-rank") from error
                held[rank] = start(rank)
            except RayTaskError as error:
                # The others fail too, naming this one: the first error is the reason.
                raise (error.cause if isinstance(error.cause, HopedgnError) else error) from None
        return results[0]
    finally:
        for worker, _ in held.values():
            with contextlib.suppress(Exception):
                ray.kill(worker)


@contextlib.contextmanager
def _file_of(events: Any) -> Generator[tuple[Any, str], None, None]:
    """The path of a file of events, or their bytes in Ray's store; and their name."""
    if isinstance(events, (str, os.PathLike)):
        path = os.fspath(events)
        yield (os.path.abspath(path) if os.path.exists(path) else path), ""
        return
    known = as_events(events)
    with tempfile.TemporaryDirectory(prefix="hopedgn-") as folder:
        file = Path(folder, "events.ctdg")
        known.write(file)
        content = ray.put(file.read_bytes())
    yield [content], known.name


class _Worker:
    """One process of the group."""

    def __init__(self, threads: int) -> None:
        hopedgn.set_num_threads(threads)

    def fit(
        self,
        source: Any,
        name: str,
        model: str,
        run: str | None,
        settings: dict[str, Any],
        group: Group | None,
        progress: bool,
    ) -> LinkPredictor | None:
        """Trains. The first worker returns the model where no run folder has it."""
        with tempfile.TemporaryDirectory(prefix="hopedgn-") as folder:
            if isinstance(source, str):
                events = Events.read(source)
            else:
                file = Path(folder, "events.ctdg")
                file.write_bytes(ray.get(source[0]))
                events = Events._of(Events.read(file)._native.named(name))
            predictor = LinkPredictor(model, run=run, **settings)
            is_first = group is None or group["rank"] == 0
            predictor._fit(events, (), "lines" if progress and is_first else False, False, None, group)
            return predictor if is_first and run is None else None
