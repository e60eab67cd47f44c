"""Learn from streams of timestamped interactions which pair of nodes meets next.

>>> import hopedgn
>>> events = hopedgn.Events.read("collegemsg")  # or from_pandas, from_arrow, from_numpy
>>> model = hopedgn.LinkPredictor(epochs=1).fit(events, progress=False)
>>> model.predict_proba([1624], [1713]).shape
(1,)

Events and files: :class:`Events`. Models: :class:`LinkPredictor`, :func:`models`, :func:`settings`. Parts for models of your own:
:class:`Store`, :class:`PairEncoder`, :mod:`hopedgn.sampling`, :mod:`hopedgn.metrics`, :mod:`hopedgn.dwl`. A server: :class:`Client`.
"""

from __future__ import annotations

from hopedgn import metrics
from hopedgn._native import __version__, get_num_threads, set_num_threads
from hopedgn._settings import models, settings
from hopedgn.errors import HopedgnError, HopedgnFileNotFoundError, HopedgnTypeError, HopedgnWarning, NotFittedError
from hopedgn.events import Events, Split
from hopedgn.predictor import LinkPredictor
from hopedgn.results import Explanation, Recommendation, Report
from hopedgn.store import PairEncoder, PairTokens, Ragged, Store

__all__ = [
    "Events",
    "Explanation",
    "HopedgnError",
    "HopedgnFileNotFoundError",
    "HopedgnTypeError",
    "HopedgnWarning",
    "LinkPredictor",
    "NotFittedError",
    "PairEncoder",
    "PairTokens",
    "Ragged",
    "Recommendation",
    "Report",
    "Split",
    "Store",
    "__version__",
    "get_num_threads",
    "metrics",
    "models",
    "set_num_threads",
    "settings",
]
