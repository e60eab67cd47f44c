"""k-dimensional dynamic Weisfeiler-Lehman tests: which dynamic graphs and node tuples can a model separate at all?

>>> import hopedgn
>>> from hopedgn import dwl
>>> ring = hopedgn.Events.from_numpy([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0], [1] * 6)
>>> triangles = hopedgn.Events.from_numpy([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], [1] * 6)
>>> dwl.separates(ring, triangles, k=1), dwl.separates(ring, triangles, k=2)
(False, True)
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from hopedgn import _columns, _native
from hopedgn._tables import as_events
from hopedgn.errors import HopedgnError
from hopedgn.events import Events

__all__ = ["Verdict", "compare", "separates"]


class Verdict(NamedTuple):
    """What a test found."""

    #: The dimension.
    k: int
    #: Whether the test separates the graphs, or the tuples.
    separated: bool
    #: The first round in which they differ, ``None`` if they never do.
    round: int | None
    #: Rounds that split a colour.
    rounds: int
    #: Colours at the end.
    classes: int
    #: Whether no further round would split one.
    stable: bool
    #: The difference, as ``hopedgn wl --json`` shows it.
    witness: dict[str, Any] | None


def compare(
    a: Any,
    b: Any,
    k: int = 2,
    *,
    tuples: tuple[Any, Any] | None = None,
    until: Any = None,
    directed: bool = False,
    without_times: bool = False,
    features: bool = False,
    marked: bool = False,
    max_memory: int | None = None,
) -> Verdict:
    """Runs the test on two graphs, or on two tuples of nodes, the first of ``a``, the second of ``b``.

    A graph is :class:`~hopedgn.Events`, or a table whose rows are events: a data frame, or lists of source, destination and time.
    ``until`` uses events strictly before that time only; ``directed`` separates the directions of events; ``without_times`` is the test on
    the static graph; ``features`` begins with node features as labels. ``marked`` is marked DWL instead of k-DWL: pairs, coloured by 1-DWL
    with both nodes marked. Time grows with the number of nodes to the power ``k + 1``; ``max_memory`` is bytes, 4 GiB by default.

    >>> from hopedgn import dwl
    >>> square = [(0, 2, 1.0), (0, 3, 1.0), (1, 2, 1.0), (1, 3, 1.0)]
    >>> dwl.compare([*square, (2, 3, 1.0)], [*square, (0, 1, 1.0)], marked=True, tuples=([0, 1], [2, 3])).separated
    False
    """
    if marked and k != 2:
        raise HopedgnError(f"found k={k} with marked=True, expected 2; marked DWL colours pairs", "invalid-argument")
    a, b = as_events(a), as_events(b)
    numbers = None
    if tuples is not None:
        if len(tuples) != 2 or len(tuples[0]) != len(tuples[1]):
            raise HopedgnError("found tuples of different lengths, expected two that are equally long", "invalid-argument")
        numbers = (_numbers(a, tuples[0]), _numbers(b, tuples[1]))
    document = _native.compare(
        a._native,
        b._native,
        None if marked else int(k),
        until=None if until is None else _columns.one_time(until, a._native, "until"),
        directed=directed,
        without_times=without_times,
        features=features,
        tuples=numbers,
        max_memory=max_memory,
    )
    return Verdict(**json.loads(document))


def separates(a: Any, b: Any, k: int = 2, **options: Any) -> bool:
    """Whether k-DWL separates ``a`` from ``b``; graphs and options as in :func:`compare`.

    >>> from hopedgn import dwl
    >>> dwl.separates([(0, 1, 1.0), (1, 2, 2.0)], [(0, 1, 1.0), (2, 3, 2.0)], k=1)
    True
    """
    return compare(a, b, k, **options).separated


def _numbers(events: Events, nodes: Any) -> Any:
    """Numbers of the nodes of a tuple. Where both sides have names of their own, the first is a source if there is one of that name, the
    others are destinations."""
    sides = [events.index_of(nodes, side="src"), events.index_of(nodes, side="dst")]
    numbers = np.where(sides[1] >= 0, sides[1], sides[0])
    if len(numbers) and sides[0][0] >= 0:
        numbers[0] = sides[0][0]
    if (numbers < 0).any():
        name = np.asarray(nodes, dtype=object)[int(np.argmax(numbers < 0))]
        raise HopedgnError(f"found no node called {name}, expected a node of the stream; name nodes as the input does", "unknown-node")
    return numbers
