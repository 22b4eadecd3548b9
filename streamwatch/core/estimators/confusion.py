"""Confusion matrix of a model with class names: faded counts of (true, predicted)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.shadow import FADING_FACTOR
from streamwatch.core.estimators.names import Classes
from streamwatch.core.specs import FadingSpec


def joined_confusion(documents: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Add up the confusion matrices of several folds, by class name."""
    names = list(dict.fromkeys(name for document in documents for name in document["classes"]))
    counts = np.zeros((len(names), len(names)))
    for document in documents:
        at = [names.index(name) for name in document["classes"]]
        counts[np.ix_(at, at)] += np.array(document["counts"])
    return {"forgetting": documents[0]["forgetting"], "classes": names, "counts": counts.tolist()}


def confusion_document(counts: NDArray[np.float64], classes: Classes) -> dict[str, object]:
    """Build the confusion matrix with class names as the API serves it.

    Parameters
    ----------
    counts
        float64 (K, K) by local class index; rows are true classes. An outcome of age a counts .999^a. All
        indices from `classes.limit` on stand for classes beyond `max_classes`. They are merged into one
        class, `__other__`, in which a mistake between two such classes cannot be told from a hit.
    classes
        Classes of the model.

    Returns
    -------
    dict
        `forgetting`: name of the fading mechanism; `classes`: class names; `counts`: one row per true class,
        with one number per predicted class.
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
