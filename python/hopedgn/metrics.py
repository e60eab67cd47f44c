"""Metrics of link prediction, computed as the evaluation of the package does.

Ties are never broken by position: equal scores form one group in average precision, count one half in ROC AUC, and get the mean of the best
and the worst rank.

>>> from hopedgn import metrics
>>> metrics.average_precision([True, False, True], [0.9, 0.5, 0.4])
0.8333333333333333
>>> metrics.mrr(metrics.ranks([0.9, 0.2], [[0.5, 0.1], [0.5, 0.1]]))
0.75
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopedgn import _native
from hopedgn.errors import HopedgnError

__all__ = ["average_precision", "hits_at", "mrr", "ndcg_at", "ranks", "recall_at", "roc_auc"]


def average_precision(y_true: Any, y_score: Any) -> float:
    """Average precision of scores: labels first, as in scikit-learn."""
    return _native.binary_scores(*_labelled(y_true, y_score))[0]


def roc_auc(y_true: Any, y_score: Any) -> float:
    """Area under the ROC curve: the share of pairs of a positive and a negative in the right order."""
    return _native.binary_scores(*_labelled(y_true, y_score))[1]


def ranks(y_pos: Any, y_neg: Any) -> NDArray[np.float64]:
    """The rank from 1 of each positive among its negatives: an array ``[n, m]``, or ``n`` lists of any lengths."""
    positives = np.ascontiguousarray(y_pos, dtype=np.float64).reshape(-1)
    if isinstance(y_neg, np.ndarray) and y_neg.ndim == 2:
        rows: Sequence[Any] = list(y_neg)
    else:
        rows = list(y_neg)
    if len(rows) != len(positives):
        raise HopedgnError(f"found negatives for {len(rows)} positives, expected them for {len(positives)}", "invalid-argument")
    arrays = [np.asarray(row, dtype=np.float64).reshape(-1) for row in rows]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in arrays])]).astype(np.int64)
    flat = np.concatenate(arrays) if arrays else np.zeros(0)
    return _native.ranks(positives, np.ascontiguousarray(flat), offsets)


def mrr(ranks: Any) -> float:
    """Mean reciprocal rank."""
    return _native.mrr(_ranks(ranks))


def recall_at(ranks: Any, k: int) -> float:
    """Share of ranks of at most ``k``: each query has one true destination, so this is also Hits@k."""
    return _native.recall_at(_ranks(ranks), k)


hits_at = recall_at


def ndcg_at(ranks: Any, k: int) -> float:
    """Normalised discounted cumulative gain of the first ``k``."""
    return _native.ndcg_at(_ranks(ranks), k)


def _ranks(ranks: Any) -> NDArray[np.float64]:
    found = np.ascontiguousarray(ranks, dtype=np.float64).reshape(-1)
    if not (found >= 1).all():
        raise HopedgnError("found a rank below 1, expected ranks from 1", "invalid-argument")
    return found


def _labelled(y_true: Any, y_score: Any) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    labels = np.asarray(y_true).reshape(-1)
    if labels.dtype != np.bool_:
        if not np.isin(labels, (0, 1)).all():
            raise HopedgnError("found labels other than 0 and 1, expected 1 for true pairs and 0 for others", "invalid-labels")
        labels = labels.astype(np.bool_)
    return np.ascontiguousarray(labels), np.ascontiguousarray(y_score, dtype=np.float64).reshape(-1)
