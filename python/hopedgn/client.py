"""A client of the server: ingest events, score pairs, recommend, look at nodes."""

from __future__ import annotations

import json
import random
import time as clock
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from hopedgn.errors import HopedgnError

__all__ = ["Client", "EventRow", "Ingested", "NodeInfo", "PairRow", "RecommendedItem", "Recommended", "Score", "ServerError", "Status"]

#: Answers that a later attempt may change: too many requests, and a server that is not there yet or any more.
_RETRIED = (429, 502, 503, 504)


class EventRow(TypedDict, total=False):
    """An event to ingest."""

    src: str | int
    dst: str | int
    time: float | str
    label: float
    features: Sequence[float]
    id: str | int


class PairRow(TypedDict, total=False):
    """A pair to score; without a time, just after the last event."""

    src: str | int
    dst: str | int
    time: float | str


class Ingested(TypedDict, total=False):
    """How the server took events in. A repetition of the same request has the same answer; earlier events than ``watermark`` are refused from then on."""

    accepted: int
    duplicates: int
    first_seq: int
    last_seq: int
    watermark: float


class Score(TypedDict, total=False):
    """The score of one pair. ``known`` says which of the two have events."""

    src: str | int
    dst: str | int
    time: float
    date: str
    score: float
    probability: float
    intensity: float
    lift: float
    known: dict[str, bool]
    explanation: dict[str, Any]


class RecommendedItem(TypedDict, total=False):
    """A likely destination."""

    rank: int
    dst: str | int
    score: float
    probability: float
    known: bool
    reason: str


class Recommended(TypedDict, total=False):
    """The likely destinations of a source, by the model and after so many events."""

    model: str
    seq: int
    src: str | int
    known: bool
    time: float
    compared: int
    items: list[RecommendedItem]


class NodeInfo(TypedDict, total=False):
    """What happened to a node: its newest events first."""

    id: str | int
    seq: int
    events: int
    first_time: float
    last_time: float
    history: list[dict[str, Any]]


class Status(TypedDict, total=False):
    """How the server is."""

    version: str
    model: str
    architecture: str
    probabilities: bool
    events: int
    nodes: int
    watermark: float
    watermark_date: str
    held: int
    has_dates: bool
    bipartite: bool
    may_write: bool
    log: dict[str, Any]
    waiting: dict[str, int]
    uptime: float


class ServerError(HopedgnError):
    """An answer of the server that is an error. ``status`` is that of HTTP, 0 where no answer came."""

    status: int

    def __init__(self, message: str = "", code: str | None = None, status: int = 0) -> None:
        super().__init__(message, code)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.code, self.status)


class Client:
    """The HTTP interface of ``hopedgn serve``.

    Requests are repeated with growing pauses when the server is busy (429, 503), cannot be reached or breaks off; it may name the pause with
    ``Retry-After``. Events carry an idempotency key, so that a repeated request never ingests them twice.

    >>> from hopedgn import Client
    >>> client = Client("http://localhost:8080", token="…")
    >>> client.score([{"src": "ann", "dst": "bob"}])[0]["score"]  # doctest: +SKIP
    0.93
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, retries: int = 5, backoff: float = 0.5
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise HopedgnError(f"found the address {url!r}, expected one that begins with http:// or https://", "invalid-argument")
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self._token = token
        self._random = random.Random()
        self._sleep = clock.sleep

    def ingest(self, events: Iterable[EventRow | tuple[Any, Any, Any]], *, key: str | None = None) -> Ingested:
        """Sends events, rows or tuples of source, destination and time. ``key`` names this batch: the server takes a key once.

        Without one, each call has a key of its own, which its repetitions share.
        """
        rows = [_row(event) for event in events]
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return cast("Ingested", self._request("POST", "/v1/events", {"events": rows}, headers))

    def score(self, pairs: Iterable[PairRow | tuple[Any, ...]], *, explain: bool = False) -> list[Score]:
        """Scores of pairs, in order; with ``explain`` each with the events that changed it most."""
        answer = self._request("POST", "/v1/score", {"pairs": [_row(pair) for pair in pairs], "explain": explain})
        return cast("list[Score]", answer["scores"])

    def recommend(
        self,
        src: str | int,
        k: int = 10,
        *,
        time: float | str | None = None,
        exact: bool = False,
        exclude_seen: bool = False,
        reasons: bool = False,
    ) -> Recommended:
        """The ``k`` likeliest destinations of a source: of its recent partners, their partners and popular ones, or with ``exact`` of all."""
        given = (("exact", exact), ("exclude_seen", exclude_seen), ("reasons", reasons))
        flags = {name: "true" for name, is_given in given if is_given}
        query: dict[str, Any] = {"src": src, "k": k, "time": time, **flags}
        return cast("Recommended", self._request("GET", "/v1/recommend" + _query(query)))

    def node(self, node: str | int, *, limit: int | None = None) -> NodeInfo:
        """What happened to a node, its newest events first."""
        path = f"/v1/nodes/{urllib.parse.quote(str(node), safe='')}"
        return cast("NodeInfo", self._request("GET", path + (_query({"limit": limit}) if limit is not None else "")))

    def load_model(self, run: str) -> dict[str, Any]:
        """Answers with another run from now on; ``run`` is a folder on the machine of the server."""
        return cast("dict[str, Any]", self._request("POST", "/v1/models", {"run": str(run)}))

    def status(self) -> Status:
        """How the server is."""
        return cast("Status", self._request("GET", "/v1/status"))

    def _request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Accept": "application/json"} | dict(headers or {})
        if data is not None:
            sent["Content-Type"] = "application/json"
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self.url + path, data=data, headers=sent, method=method)
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    text = answer.read()
                return json.loads(text) if text else {}
            except urllib.error.HTTPError as error:
                if last or error.code not in _RETRIED:
                    raise _failure(error) from None
                self._sleep(self._pause(attempt, error.headers.get("Retry-After")))
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                if last:
                    reason = getattr(error, "reason", error)
                    raise ServerError(f"could not reach {self.url}: {reason}; is the server running?", "unreachable") from error
                self._sleep(self._pause(attempt, None))
        raise AssertionError("the last attempt returns or raises")

    def _pause(self, attempt: int, asked: str | None) -> float:
        """What the server asks for, otherwise twice as long each time, with some chance so that clients do not come back together."""
        if asked is not None:
            try:
                return min(max(0.0, float(asked)), 60.0)
            except ValueError:
                pass
        return min(self.backoff * 2.0**attempt, 30.0) * (0.5 + 0.5 * self._random.random())

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


def _row(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return {str(name): _plain(value) for name, value in row.items() if value is not None}
    return {name: _plain(value) for name, value in zip(("src", "dst", "time"), row) if value is not None}


def _plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's numbers as Python's."""
    return value.tolist() if hasattr(value, "tolist") else value


def _query(values: Mapping[str, Any]) -> str:
    return "?" + urllib.parse.urlencode({name: value for name, value in values.items() if value is not None})


def _failure(error: urllib.error.HTTPError) -> ServerError:
    """The error that the server describes, or what HTTP says."""
    text = error.read().decode(errors="replace")
    try:
        described = json.loads(text)["error"]
        return ServerError(str(described["message"]), described.get("code"), error.code)
    except (ValueError, KeyError, TypeError):
        return ServerError(f"found status {error.code} ({error.reason}), expected 200", "http", error.code)
