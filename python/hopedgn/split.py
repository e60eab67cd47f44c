"""Splits of events into training, validation and test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hopedgn import _native

if TYPE_CHECKING:
    from hopedgn.events import Events

__all__ = ["Split"]


class Split:
    """Training, validation and test events; made by :meth:`Events.split`.

    Unpacks into three :class:`Events`. The attributes ``train``, ``val``, ``test``, ``new_node_val`` and ``new_node_test`` are the numbers
    of the events in the whole stream, for models that look back on all of it; ``new_nodes`` and ``masked`` are names of nodes.

    >>> import hopedgn
    >>> split = hopedgn.Events.read("collegemsg").split("tgb")
    >>> split
    Split(41,885 train, 8,974 val, 8,976 test events; 401 new nodes)
    >>> bool(split.events.time[split.val[0]] > split.events.time[split.train[-1]])
    True
    """

    def __init__(self, events: Events, native: _native.Split) -> None:
        self.events = events
        self._native = native
        self.train = native.part("train")
        self.val = native.part("val")
        self.test = native.part("test")
        self.new_node_val = native.part("new_node_val")
        self.new_node_test = native.part("new_node_test")

    @property
    def masked(self) -> NDArray[Any]:
        """Names of the nodes that are kept out of training."""
        return self.events.names[self._native.masked_and_new()[0]]

    @property
    def new_nodes(self) -> NDArray[Any]:
        """Names of the nodes that do not occur in training."""
        return self.events.names[self._native.masked_and_new()[1]]

    @property
    def times(self) -> tuple[float, float]:
        """The last times of training and of validation."""
        return self._native.times

    def __iter__(self) -> Iterator[Events]:
        return iter([self.events[self.train], self.events[self.val], self.events[self.test]])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(part):,} {what}" for what, part in zip(("train", "val", "test"), (self.train, self.val, self.test)))
        return f"Split({sizes} events; {len(self.new_nodes):,} new nodes)"
