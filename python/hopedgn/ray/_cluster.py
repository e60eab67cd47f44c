"""The connection to a Ray cluster, and what it has."""

from __future__ import annotations

import logging
from typing import Any

import ray as _ray

from hopedgn.errors import HopedgnError

#: Ray, without its types: they differ between versions.
ray: Any = _ray


def connect(address: str | None) -> None:
    """Connects to a cluster: ``ray://HOST:PORT``, ``HOST:PORT``, ``auto`` for the one on this machine, ``local`` for a new one; ``None`` is
    ``RAY_ADDRESS``, or the one on this machine, or a new one. A process that is connected already stays so."""
    if ray.is_initialized():
        return
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise HopedgnError(
            f"found no Ray cluster at {address!r} ({reason}), expected the address of one; `ray status` names it, "
            '"auto" is the one on this machine, "local" starts one',
            "no-cluster",
        ) from error


def most_workers(num_cpus: float, num_gpus: float) -> int:
    """How many workers with these resources the nodes of the cluster hold together."""
    n = 0
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        has = node["Resources"]
        fits = [has.get(name, 0.0) / wanted for name, wanted in (("CPU", num_cpus), ("GPU", num_gpus)) if wanted > 0]
        n += int(min(fits, default=0.0) + 1e-9)
    if n == 0:
        raise HopedgnError(
            f"found no node with num_cpus={num_cpus} and num_gpus={num_gpus}, expected at least one; ask for fewer, or add nodes",
            "invalid-argument",
        )
    return n


def n_gpus() -> float:
    """GPUs of the cluster."""
    return float(ray.cluster_resources().get("GPU", 0.0))


def resources(num_cpus: float, num_gpus: float) -> None:
    """Refuses resources that no task can have."""
    if not num_cpus > 0 or not num_gpus >= 0:
        raise HopedgnError(
            f"found num_cpus={num_cpus} and num_gpus={num_gpus}, expected more than 0 CPUs and at least 0 GPUs", "invalid-argument"
        )


def cause(error: Any) -> BaseException:
    """What was raised in a task."""
    found = getattr(error, "cause", None)
    return found if isinstance(found, BaseException) else error
