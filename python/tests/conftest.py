"""Small data that every test can train on in a moment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopedgn


def _rows(n: int = 600, n_nodes: int = 40, seed: int = 1) -> tuple[Any, Any, Any]:
    random = np.random.RandomState(seed)
    src = random.randint(0, n_nodes, n)
    # Half of the events repeat a fixed partner, so that there is something to learn.
    dst = np.where(random.rand(n) < 0.5, (src * 7 + 3) % n_nodes, random.randint(0, n_nodes, n))
    dst = np.where(dst == src, (dst + 1) % n_nodes, dst)
    return src, dst, np.cumsum(random.randint(0, 3, n)).astype(float)


@pytest.fixture(scope="session")
def rows() -> tuple[Any, Any, Any]:
    """Sources, destinations and times."""
    return _rows()


@pytest.fixture(scope="session")
def events(rows: tuple[Any, Any, Any]) -> hopedgn.Events:
    """The same as events."""
    return hopedgn.Events.from_numpy(*rows)


@pytest.fixture(scope="session")
def csv(rows: tuple[Any, Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file."""
    path: Path = tmp_path_factory.mktemp("data") / "mail.csv"
    lines = [f"{s},{d},{t}" for s, d, t in zip(*rows)]
    path.write_text("\n".join(["src,dst,time", *lines]) + "\n")
    return path


@pytest.fixture(scope="session")
def fitted(events: hopedgn.Events) -> hopedgn.LinkPredictor:
    """A model that was trained for two epochs."""
    return hopedgn.LinkPredictor(epochs=2, device="cpu").fit(events, progress=False)


@pytest.fixture(scope="session")
def run_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed script ``hopedgn``."""
    script = Path(sys.executable).parent / "hopedgn"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "hopedgn"]

    def run(*arguments: object, ok: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, env=os.environ, **options)
        assert not ok or done.returncode == 0, done.stderr
        return done

    return run
