"""Names and values of settings in Python and in the libraries."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from hopedgn import _native

__all__ = ["models", "settings"]


def dotted(name: str) -> str:
    """``train__lr`` as ``train.lr``, ``model__d_channel`` as ``model.d-channel``."""
    return name.replace("__", ".").replace("_", "-")


def written(value: Any) -> str:
    """A value as a settings file has it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str):
        return value
    return json.dumps(value)


def flattened(table: Mapping[str, Any], separator: str) -> dict[str, Any]:
    """Nested tables as one, their names joined."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}{separator}{inner}": v for inner, v in flattened(value, separator).items()}
        else:
            flat[name] = value
    return flat


def command_name() -> str:
    """What a run records as the program that trained it."""
    return os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"


def settings(model: str = "stats") -> dict[str, Any]:
    """Every setting of a model with its default, by the name that :class:`~hopedgn.LinkPredictor` takes.

    >>> import hopedgn
    >>> hopedgn.settings("hopedgn")["train__epochs"]
    50
    """
    options: dict[str, Any] = {"model": model, "preset": None, "settings": [], "run": "run", "resume": False, "warm_start": None, "command": []}
    device = {"device": "cpu", "precision": None, "cache": None}
    config = json.loads(_native.check_settings(json.dumps(options | device), "events"))
    flat = flattened({name: value for name, value in config.items() if name != "data"}, "__")
    return {name.replace("-", "_"): value for name, value in flat.items() if name != "model__name"}


def models() -> list[str]:
    """The names of all models.

    >>> import hopedgn
    >>> "hopedgn" in hopedgn.models()
    True
    """
    return _native.model_names()


def is_same(a: object, b: object) -> bool:
    """Settings are 32-bit floats in the libraries, which JSON writes with more digits."""
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.float32(a) == np.float32(b))
    return a == b
