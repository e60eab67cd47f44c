"""Learn from streams of timestamped interactions which pair of nodes meets next.

>>> import hopedgn
>>> events = hopedgn.Events.from_numpy(src=["ann", "bob"] * 50, dst=["bob", "cem"] * 50, time=range(100))  # or from_pandas, read, …
>>> model = hopedgn.LinkPredictor(epochs=1).fit(events, progress=False)
>>> model.predict_proba(["ann"], ["bob"]).shape
(1,)

Events and files: :class:`Events`. Models: :class:`LinkPredictor`, :func:`models`, :func:`settings`. Parts for models of your own:
:class:`Store`, :class:`PairEncoder`, :mod:`hopedgn.sampling`, :mod:`hopedgn.metrics`, :mod:`hopedgn.dwl`. A server: :class:`Client`.
"""

from __future__ import annotations

from hopedgn import dwl, metrics, sampling
from hopedgn._native import __version__, get_num_threads, set_num_threads
from hopedgn._settings import models, settings
from hopedgn.client import Client, ServerError
from hopedgn.errors import HopedgnError, HopedgnFileNotFoundError, HopedgnTypeError, HopedgnWarning, NotFittedError
from hopedgn.events import Events
from hopedgn.predictor import LinkPredictor
from hopedgn.results import Explanation, Recommendation, Report
from hopedgn.sampling import CandidateSampler, NegativeSampler, NeighborSampler
from hopedgn.split import Split
from hopedgn.store import PairEncoder, PairTokens, Ragged, Store

__all__ = [
    "CandidateSampler",
    "Client",
    "Events",
    "Explanation",
    "HopedgnError",
    "HopedgnFileNotFoundError",
    "HopedgnTypeError",
    "HopedgnWarning",
    "LinkPredictor",
    "NegativeSampler",
    "NeighborSampler",
    "NotFittedError",
    "PairEncoder",
    "PairTokens",
    "Ragged",
    "Recommendation",
    "Report",
    "ServerError",
    "Split",
    "Store",
    "__version__",
    "dwl",
    "get_num_threads",
    "metrics",
    "models",
    "sampling",
    "set_num_threads",
    "settings",
]
