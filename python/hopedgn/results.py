"""What a fitted model returns: recommendations, explanations and its report."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Explanation", "Recommendation", "Report"]


class Recommendation(NamedTuple):
    """A likely destination."""

    #: The destination.
    dst: Any
    #: The score of the pair, as ``predict_proba`` gives it.
    score: float
    #: The same where it is the probability that the next partner is this destination, otherwise ``None``.
    probability: float | None
    #: Whether source and destination interacted before.
    known: bool
    #: Why, in words.
    reason: str | None


class Explanation:
    """Why a pair gets its score; prints as text. Its fields are those of ``hopedgn score --explain --json``."""

    def __init__(self, fields: dict[str, Any], text: str) -> None:
        self.fields = fields
        self.text = text

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(f"found no field {name!r}, expected one of {', '.join(fields)}")

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return dict(self.fields)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


class Report:
    """The HTML report of a training: settings, curves, test metrics. A notebook shows it; :meth:`save` writes it."""

    def __init__(self, page: str) -> None:
        self.html = page

    def _repr_html_(self) -> str:
        # In a frame of its own, so that its style does not leak into the notebook.
        return f'<iframe srcdoc="{html.escape(self.html, quote=True)}" style="width: 100%; height: 640px; border: 0"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Report({len(self.html):,} characters of HTML; save(path) writes them)"
