"""The command ``hopedgn`` that the package installs: the same as the program of that name."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from hopedgn import _native
from hopedgn._processes import end_with_parent_if_asked

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``hopedgn`` with these arguments, by default those of the process, and returns its exit status.

    >>> from hopedgn.cli import main
    >>> main(["--version"])  # doctest: +SKIP
    hopedgn 0.2.0
    0
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    end_with_parent_if_asked()
    # `hopedgn experiment run --on` starts the same Python, and its cells this module: the file of the process is Python's.
    os.environ.setdefault("HOPEDGN_PYTHON", sys.executable)
    # Python's own handler would wait for the command to end; commands that can stop in between set theirs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _native.main(["hopedgn", *words], [sys.executable, "-m", "hopedgn"])


if __name__ == "__main__":
    sys.exit(main())
