"""Beyond one machine, on Ray: score billions of pairs, run grids of experiments, search settings, train on several workers.

>>> import hopedgn.ray
>>> hopedgn.ray.score("runs/mine", "pairs", "scores", address="auto")  # doctest: +SKIP
Written(out='scores', rows=1000000, parts=20, ...)

:func:`score` and :func:`recommend` read and write Parquet; :class:`Scorer` is their model for pipelines of Ray Data. :func:`experiment` runs the
cells of an experiment file as tasks, :func:`tune` searches settings with early stopping, :func:`fit` trains one model on several workers. Needs Ray: ``pip install 'hopedgn[ray]'``.
Which of them you need, and what each costs, is in ``docs/src/scale.md``.

Run folders, data and outputs are files that every node sees at the same path, as on a shared file system.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("ray") is None or importlib.util.find_spec("pyarrow") is None:
    raise ImportError("hopedgn.ray needs Ray and pyarrow, and one of them is not installed; install both with: pip install 'hopedgn[ray]'")

from hopedgn.ray._job import Written
from hopedgn.ray.experiment import experiment
from hopedgn.ray.fit import fit
from hopedgn.ray.recommend import recommend
from hopedgn.ray.score import Scorer, score
from hopedgn.ray.tune import Tuned, tune

__all__ = ["Scorer", "Tuned", "Written", "experiment", "fit", "recommend", "score", "tune"]
