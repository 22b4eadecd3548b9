"""The confusion matrix of a model by class name: faded counts of (true, predicted)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.shadow import FADING_FACTOR
from streamwatch.core.estimators.names import Classes
from streamwatch.core.specs import FadingSpec


def joined_confusion(documents: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """The confusion matrix of several folds: their counts added up, by class name."""
    names = list(dict.fromkeys(name for document in documents for name in document["classes"]))
    counts = np.zeros((len(names), len(names)))
    for document in documents:
        at = [names.index(name) for name in document["classes"]]
        counts[np.ix_(at, at)] += np.array(document["counts"])
    return {"forgetting": documents[0]["forgetting"], "classes": names, "counts": counts.tolist()}


def confusion_document(counts: NDArray[np.float64], classes: Classes) -> dict[str, object]:
    """Name the rows and columns of a confusion matrix.

    Parameters
    ----------
    counts
        float64 (K, K) by local class index, rows are true classes; an outcome of age a counts .999^a. All
        indices from `classes.limit` on are classes beyond `max_classes` and become one, `__other__`, in which
        a hit and a mistake between two of them look alike.
    classes
        The model's classes.

    Returns
    -------
    dict
        `forgetting`: how the counts fade; `classes`: the names; `counts`: one row per true class, one number
        per predicted class.
    """
    size = min(len(counts), classes.limit + 1)
    folded = counts[:size, :size].copy()
    if len(counts) > size:
        folded[-1] += counts[size:, :size].sum(axis=0)
        folded[:, -1] += counts[:size, size:].sum(axis=1)
        folded[-1, -1] += counts[size:, size:].sum()
    return {
        "forgetting": FadingSpec(FADING_FACTOR).name,
        "classes": classes.names(folded=size > classes.limit)[:size],
        "counts": folded.tolist(),
    }
