"""Histories of nodes, and tokens of node pairs with MITE, as ragged arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hopedgn import _columns, _native
from hopedgn.errors import HopedgnError
from hopedgn.events import Events

__all__ = ["PairEncoder", "PairTokens", "Ragged", "Store"]


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: row ``i`` of a column is ``column[offsets[i]:offsets[i + 1]]``.

    Columns are arrays of their own that may be changed; ``torch.from_dlpack`` and ``torch.from_numpy`` take them without a copy.
    """

    #: ``[n + 1]``
    offsets: NDArray[np.int64]
    #: Arrays over all rows, by name.
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: str) -> NDArray[Any]:
        """A column by its name."""
        return self.columns[key]

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name in ("columns", "offsets") or name.startswith("__"):
            # Not there yet while a copy is made.
            raise AttributeError(name)
        try:
            return self.columns[name]
        except KeyError:
            raise AttributeError(f"found no column {name!r}, expected one of {', '.join(self.columns)}") from None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each row."""
        return np.diff(self.offsets)

    def row(self, index: int) -> dict[str, NDArray[Any]]:
        """One row of every column, as views; negative numbers count from the end."""
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"found row {index}, expected one of {n} rows")
        index %= n
        part = slice(self.offsets[index], self.offsets[index + 1])
        return {name: column[part] for name, column in self.columns.items()}

    def padded(self, length: int | None = None, fill: float = 0) -> dict[str, NDArray[Any]]:
        """Every column as ``[n, length]``, the newest entries on the right and ``fill`` on the left; longer rows lose their oldest ones.

        ``mask`` says where there are entries. Without ``length`` the longest row decides.

        >>> import hopedgn
        >>> store = hopedgn.Store(hopedgn.Events.from_numpy([0, 0, 0], [1, 2, 3], [1, 2, 3]))
        >>> rows = store.history([0, 3], [9, 9], k=10).padded(2, fill=-1)
        >>> rows["neighbor"]
        array([[ 2,  3],
               [-1,  0]])
        >>> rows["mask"]
        array([[ True,  True],
               [False,  True]])
        """
        n, lengths = len(self), self.lengths
        if length is None:
            length = int(lengths.max(initial=0))
        kept = np.minimum(lengths, length)
        mask = np.arange(length) >= (length - kept)[:, None]
        # Positions of the kept entries, row after row: the order in which a mask is filled.
        ends = np.repeat(self.offsets[1:], kept)
        back = np.repeat(np.cumsum(kept), kept) - np.arange(kept.sum())
        entries = ends - back
        padded: dict[str, NDArray[Any]] = {}
        for name, column in self.columns.items():
            table = np.full((n, length), fill, dtype=column.dtype)
            table[mask] = column[entries]
            padded[name] = table
        padded["mask"] = mask
        return padded

    def __repr__(self) -> str:
        return f"Ragged({len(self):,} rows, {int(self.offsets[-1]):,} entries: {', '.join(self.columns)})"


class Store:
    """An index of events: what happened to each node strictly before any time. Its events never change.

    >>> import hopedgn
    >>> events = hopedgn.Events.from_numpy(["ann", "ann", "bob"], ["bob", "cem", "cem"], [1.0, 2.0, 3.0])
    >>> store = hopedgn.Store(events)
    >>> past = store.history(["ann", "cem"], [2.0, 9.0], k=5)
    >>> past.offsets, past.neighbor, past.time
    (array([0, 1, 3]), array([1, 0, 1]), array([1., 2., 3.]))
    >>> events.names[past.neighbor]
    array(['bob', 'ann', 'bob'], dtype=object)
    """

    def __init__(self, events: Events) -> None:
        self.events = events
        self._native = _native.Store(events._native)

    def history(
        self,
        nodes: Any,
        times: Any,
        k: int,
        *,
        side: Literal["src", "dst"] = "src",
        sampling: Literal["recent", "uniform"] = "recent",
        seed: int = 0,
    ) -> Ragged:
        """The last ``k`` events of each node strictly before its time, the oldest first.

        Columns: ``neighbor`` (number of the other node; ``events.names`` names it), ``event`` (number of the event) and ``time``. A name
        without events has an empty row. ``side`` matters only where sources and destinations have names of their own;
        ``sampling="uniform"`` draws with replacement.
        """
        names = _columns.names(nodes, "nodes")
        at = _columns.times(times, _columns.count(names), self.events._native, "times")
        offsets, neighbor, event, time = self._native.history(names, at, int(k), _columns.is_source(side), sampling, seed)
        return Ragged(offsets, {"neighbor": neighbor, "event": event, "time": time})

    def __repr__(self) -> str:
        return f"Store({self.events!r})"

    def __reduce__(self) -> tuple[Any, tuple[Events]]:
        return Store, (self.events,)


@dataclass(frozen=True)
class PairTokens:
    """Tokens of pairs: for each pair those of its source, then those of its destination.

    ``tokens`` has two rows for each pair, ``2 * i`` for its source and ``2 * i + 1`` for its destination, with the columns ``node``,
    ``event`` (-1 for the first token of a row, which is the node itself), ``age`` (time since the event) and ``row``, the MITE row of the
    token. ``mite`` has two rows of ``interval`` for each MITE row ``r``: at ``2 * r`` the times since the interactions of its node with the
    source, at ``2 * r + 1`` those with the destination, the newest first. ``counts`` is ``[rows, 2]``: how often the node occurs among the
    tokens of either side.
    """

    tokens: Ragged
    mite: Ragged
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tokens) // 2

    def __repr__(self) -> str:
        return f"PairTokens({len(self):,} pairs: {len(self.tokens['node']):,} tokens, {len(self.mite['interval']):,} MITE intervals)"

    def padded(self, length: int, k: int) -> dict[str, NDArray[Any]]:
        """Arrays of fixed sizes: ``node``, ``event``, ``age``, ``mask`` as ``[n, 2, length]``, ``mite`` as ``[n, 2, length, 2, k]`` with
        zeros where there is no interaction, ``mite_mask`` of the same shape, and ``counts`` as ``[n, 2, length, 2]``."""
        n = len(self)
        out: dict[str, NDArray[Any]] = {name: table.reshape(n, 2, length) for name, table in self.tokens.padded(length).items()}
        row, mask = out.pop("row"), out["mask"]
        counts = np.zeros((n, 2, length, 2), dtype=self.counts.dtype)
        counts[mask] = self.counts[row[mask]]
        out["counts"] = counts
        tokens, mite = self.tokens, self.mite
        padded = _native.pad_intervals(tokens.offsets, tokens["row"], mite.offsets, mite["interval"], length, k)
        out["mite"], out["mite_mask"] = (table.reshape(n, 2, length, 2, k) for table in padded)
        return out


class PairEncoder:
    """Histories of node pairs as tokens with multi-interacted time encoding (MITE), as HopeDGN sees them.

    ``tokens`` is the most tokens a side, the node itself included; ``k`` the most intervals of each node with either side; ``scope`` is
    ``"truncated"`` for interactions among the tokens, or ``"full"`` for all before the query. ``mite=False`` leaves intervals out.

    >>> import hopedgn
    >>> events = hopedgn.Events.from_numpy([0, 1, 0], [2, 2, 2], [1.0, 3.0, 4.0])
    >>> pair = hopedgn.PairEncoder(events).encode([0], [1], [5.0])  # nodes 0 and 1 have both met 2
    >>> pair.tokens.row(0)["node"], pair.tokens.row(0)["age"]
    (array([0, 2, 2]), array([0., 4., 1.], dtype=float32))
    >>> row = int(pair.tokens.row(0)["row"][-1])
    >>> pair.mite.row(2 * row)["interval"], pair.mite.row(2 * row + 1)["interval"]
    (array([1., 4.], dtype=float32), array([2.], dtype=float32))
    """

    def __init__(
        self,
        events: Events | Store,
        *,
        mite: bool = True,
        tokens: int = 32,
        k: int = 32,
        scope: Literal["truncated", "full"] = "truncated",
        precision: Literal["f64", "f32"] = "f64",
        sampling: Literal["recent", "uniform"] = "recent",
        seed: int = 0,
    ) -> None:
        if tokens < 1:
            raise HopedgnError(f"found tokens={tokens}, expected at least 1: the node itself is a token", "invalid-argument")
        if scope not in ("truncated", "full"):
            raise HopedgnError(f'found scope={scope!r}, expected "truncated" or "full"', "invalid-argument")
        if precision not in ("f64", "f32"):
            raise HopedgnError(f'found precision={precision!r}, expected "f64" or "f32"', "invalid-argument")
        self.store = events if isinstance(events, Store) else Store(events)
        self.tokens = tokens
        self.k = k if mite else 0
        self.scope = scope
        self.precision = precision
        self.sampling = sampling
        self.seed = seed

    def __repr__(self) -> str:
        return f"PairEncoder({self.store.events!r}, tokens={self.tokens}, k={self.k}, scope={self.scope!r})"

    def encode(self, src: Any, dst: Any, time: Any) -> PairTokens:
        """Tokens of each pair from events strictly before its time. A pair's tokens do not depend on the other pairs."""
        names = [_columns.names(nodes, what) for nodes, what in ((src, "src"), (dst, "dst"))]
        n = _columns.count(names[0])
        if _columns.count(names[1]) != n:
            raise HopedgnError(f"found {_columns.count(names[1])} destinations, expected {n}, one for each source", "invalid-argument")
        at = _columns.times(time, n, self.store.events._native)
        arrays = self.store._native.encode(
            names[0],
            names[1],
            at,
            length=self.tokens,
            k=self.k,
            full=self.scope == "full",
            f32_times=self.precision == "f32",
            sampling=self.sampling,
            seed=self.seed,
        )
        columns = {name: arrays[name] for name in ("node", "event", "age", "row")}
        mite = Ragged(arrays["interval_offsets"], {"interval": arrays["intervals"]})
        return PairTokens(Ragged(arrays["offsets"], columns), mite, arrays["counts"].reshape(-1, 2))
