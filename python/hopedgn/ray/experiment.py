"""The cells of an experiment file as tasks of a Ray cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Literal

from hopedgn._processes import PARENT
from hopedgn.errors import HopedgnError, HopedgnFileNotFoundError
from hopedgn.ray._cluster import cause, connect, most_workers, n_gpus, ray, resources
from hopedgn.ray._files import shared_path
from hopedgn.ray._shown import Shown

__all__ = ["experiment"]

#: States of cells that are not run: they are done, cannot be, or are being run by another process.
CLOSED = ("done", "missing data", "running")
#: How often a cell is begun again when its node or its process dies.
RETRIES = 3
#: Seconds between looks at a cell that another process trains.
PAUSE = 2.0


def experiment(
    file: str | os.PathLike[str],
    *,
    address: str | None = None,
    runs: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    smoke: bool = False,
    data_dir: str | os.PathLike[str] | None = None,
    results: Sequence[str | os.PathLike[str]] = (),
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Literal["f32", "tf32", "bf16"] | None = None,
    num_cpus: float = 1,
    num_gpus: float | None = None,
    progress: str | bool = "auto",
) -> dict[str, Any]:
    """Runs every cell of an experiment file that is not done, each as a task with its own resources.

    >>> import hopedgn.ray
    >>> state = hopedgn.ray.experiment("experiments/table-1.toml", address="auto", num_cpus=4)  # doctest: +SKIP
    >>> {cell["cell"]: cell["state"] for cell in state["cells"]}  # doctest: +SKIP
    {'uci-hopedgn-0': 'done', ...}

    The same as ``hopedgn experiment run FILE --on ADDRESS``, and the same run folders as without a cluster: ``hopedgn experiment status`` and
    ``report`` work as ever, calling again continues, finished cells are skipped by the hash of their settings, failed ones are named. A cell
    whose node dies is begun again on another one and resumes from its last epoch.

    ``file``, ``runs`` (or ``out``), ``data_dir`` and ``results`` are those of ``hopedgn experiment run``, at the same path on every node.
    ``num_cpus`` and ``num_gpus`` are those of each cell, which computes with as many threads. Without ``num_gpus`` it is one for
    ``device="cuda"``, and for ``"auto"`` where the cluster has GPUs. Returns the document of ``hopedgn experiment status --json``.

    Ctrl-C lets every cell finish its step and save, and raises ``KeyboardInterrupt``.
    """
    arguments = _arguments(file, runs, out, smoke, data_dir, results)
    before = _command(["status", *arguments])
    connect(address)
    resources(num_cpus, num_gpus or 0)
    gpus = float(n_gpus() > 0 if device == "auto" else device == "cuda") if num_gpus is None else num_gpus
    most_workers(num_cpus, gpus)
    todo = _todo(before)
    shown = Shown(progress, "cells")
    n_done = sum(cell["state"] == "done" for cell in before["cells"])
    shown.say(f"{len(before['cells'])} cells, {n_done} already done, {len(todo)} to run, each with {num_cpus} CPUs and {gpus:g} GPUs")
    for cell in before["cells"]:
        if cell["state"] in ("missing data", "running"):
            shown.say(f"{cell['cell']}: {cell['state']}{': ' + cell['note'] if cell['note'] else ''}")
    words = [*arguments, "--device", "cuda" if gpus > 0 else "cpu", "--threads", str(max(1, int(num_cpus)))]
    words += [] if precision is None else ["--precision", precision]
    task = ray.remote(_run_cell).options(num_cpus=num_cpus, num_gpus=gpus, max_retries=RETRIES, scheduling_strategy="SPREAD")
    shown.start(len(todo), 0)
    try:
        _run(task, todo, words, shown)
    finally:
        shown.close()
    return _command(["status", *arguments])


def _run(task: Any, todo: Sequence[str], words: Sequence[str], shown: Shown) -> None:
    """Runs the cells, and says how each of them ended."""
    running = {task.remote(name, list(words)): name for name in todo}
    n_ended = 0
    try:
        while running:
            ended, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for request in ended:
                name = running.pop(request)
                n_ended += 1
                shown.advance(1)
                shown.say(f"[{n_ended}/{len(todo)}] {name}: {_ended(request)}")
    except KeyboardInterrupt:
        for request in running:
            ray.cancel(request, force=False)
        ray.wait(list(running), num_returns=len(running), timeout=120.0)
        raise


def _ended(request: Any) -> str:
    """How a cell ended, in words."""
    try:
        cell, seconds = ray.get(request)
    except ray.exceptions.RayTaskError as error:
        return f"failed: {cause(error)}"
    except ray.exceptions.RayError as error:
        return f"failed: its process died {RETRIES + 1} times ({str(error).strip().splitlines()[0]}); the same call tries it again"
    test = (cell.get("test") or {}).get("transductive") or {}
    ap = f"AP {100 * test['ap']:.2f}, " if "ap" in test else ""
    return f"{ap}{seconds:.0f} s" if cell["state"] == "done" else f"{cell['state']}: {cell['note'] or 'see its log'}"


def _todo(state: dict[str, Any]) -> list[str]:
    """The cells to run; those with the same settings share one run."""
    first: dict[str, str] = {}
    for cell in state["cells"]:
        if cell["state"] not in CLOSED:
            first.setdefault(cell["hash"], cell["cell"])
    return list(first.values())


def _arguments(file: Any, runs: Any, out: Any, smoke: bool, data_dir: Any, results: Sequence[Any]) -> list[str]:
    """The arguments of ``hopedgn experiment`` with paths that mean the same on every node."""
    path = shared_path(file, "file")
    if not path.is_file():
        raise HopedgnFileNotFoundError(f"{path}: found no such file, expected an experiment file (TOML)", "invalid-argument")
    if runs is not None and out is not None:
        runs = None
    words = [str(path)]
    for flag, value in (("--runs", runs if runs is not None or out is not None else "runs/experiments"), ("--out", out), ("--data-dir", data_dir)):
        if value is not None:
            words += [flag, str(shared_path(value, flag[2:]))]
    if results:
        words += ["--results", *(str(shared_path(value, "results")) for value in results)]
    return [*words, "--smoke"] if smoke else words


def _command(words: Sequence[str]) -> dict[str, Any]:
    """The document that a verb of ``hopedgn experiment`` prints."""
    done = subprocess.run([sys.executable, "-m", "hopedgn", "experiment", *words, "--json", "--quiet"], capture_output=True, text=True)
    return _document(done.returncode, done.stdout, done.stderr)


def _document(status: int, stdout: str, stderr: str) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(stdout)
    except ValueError:
        raise HopedgnError(f"found no answer of `hopedgn experiment` (exit status {status}), expected one: {stderr.strip()}", "io") from None
    if "error" in document:
        raise HopedgnError(document["error"]["message"], document["error"]["code"])
    return document


def _run_cell(name: str, words: list[str]) -> tuple[dict[str, Any], float]:
    """Runs one cell, in a process that ends with this one; its state, and the seconds it took."""
    start = time.monotonic()
    command = [sys.executable, "-m", "hopedgn", "experiment", "run", *words, "--cell", name, "--json", "--quiet"]
    environment = os.environ | {PARENT: str(os.getpid())}
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as child:
            try:
                stdout, stderr = child.communicate()
            except KeyboardInterrupt:
                child.send_signal(signal.SIGINT)
                child.communicate()
                raise
        cell: dict[str, Any] = _document(child.returncode, stdout, stderr)["cells"][0]
        if cell["state"] != "running":
            return cell, time.monotonic() - start
        # What is left of an earlier attempt, or another experiment, still holds the run folder.
        time.sleep(PAUSE)
