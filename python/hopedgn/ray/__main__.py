"""``python -m hopedgn.ray experiment OPTIONS``: what ``hopedgn experiment run --on`` starts.

``OPTIONS`` are the arguments of :func:`hopedgn.ray.experiment` as a JSON document. Progress goes to stderr. Exit status 0: the cells ran,
whatever came of them; 1: stopped by Ctrl-C; 2: could not run, and stdout says why.
"""

from __future__ import annotations

import json
import sys

from hopedgn.errors import HopedgnError
from hopedgn.ray import experiment


def main(words: list[str]) -> int:
    """Runs the command, and returns its exit status."""
    if len(words) != 2 or words[0] != "experiment":
        print(f"found {words}, expected: experiment OPTIONS, as `hopedgn experiment run --on` calls it")
        return 2
    try:
        experiment(**json.loads(words[1]))
    except KeyboardInterrupt:
        return 1
    except (HopedgnError, ValueError, TypeError) as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
