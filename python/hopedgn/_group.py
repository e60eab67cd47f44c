"""The processes that train together, as the environment names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from hopedgn.errors import HopedgnError

_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Group(TypedDict):
    """The place of this process among those that train together."""

    rank: int
    workers: int
    address: str
    hosts: bool
    folder: str | None
    silence: float | None
    patience: float | None


def from_environment(environment: Mapping[str, str]) -> Group | None:
    """The group that ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` name; ``None`` without ``WORLD_SIZE``, or with 1."""
    given = {name: environment[name] for name in (*_NAMES, "HOPEDGN_SILENCE", "HOPEDGN_PATIENCE") if environment.get(name)}
    if given.get("WORLD_SIZE", "1") == "1":
        return None
    for name in _NAMES:
        if name not in given:
            expected = f"expected all of {', '.join(_NAMES)}; set it for every process"
            raise HopedgnError(f"found WORLD_SIZE but no {name}, {expected}", "invalid-argument")
    rank, workers, port = (_number(given, name) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    silence, patience = (_seconds(given, name) for name in ("HOPEDGN_SILENCE", "HOPEDGN_PATIENCE"))
    address = f"{given['MASTER_ADDR']}:{port}"
    return Group(rank=rank, workers=workers, address=address, hosts=rank == 0, folder=None, silence=silence, patience=patience)


def _number(given: Mapping[str, str], name: str) -> int:
    if not given[name].isdecimal():
        raise HopedgnError(f"found {name}={given[name]}, expected a whole number of at least 0", "invalid-argument")
    return int(given[name])


def _seconds(given: Mapping[str, str], name: str) -> float | None:
    if name not in given:
        return None
    try:
        seconds = float(given[name])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise HopedgnError(f"found {name}={given[name]}, expected seconds above 0", "invalid-argument")
    return seconds
