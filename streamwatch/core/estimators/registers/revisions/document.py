"""JSON document of a model's revisions for the API."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.revisions.comparison import Comparison
from streamwatch.core.estimators.registers.revisions.sums import (
    ALL_GAINED,
    ALL_LOST,
    ALL_OUTCOMES,
    ALL_REVISED,
)


def document_of(
    counts: NDArray[np.int64],
    whole: Comparison,
    by_bin: Sequence[Comparison],
    edges_ms: NDArray[np.int64],
) -> dict[str, object]:
    """Build counts since the register's start, and faded comparisons; undefined values are absent.

    Parameters
    ----------
    counts
        Counts of a model with outcomes, shape (4,).
    whole
        Comparison over all its outcomes.
    by_bin
        Comparison in each bin of waiting time.
    edges_ms
        Edges of the bins, shape (len(by_bin) + 1,).
    """
    there = [k for k, said in enumerate(by_bin) if isfinite(said.first)]
    gain: dict[str, float] = {"value": whole.gain, "effective_sample_size": whole.n_eff}
    if isfinite(whole.lower):
        gain |= {"lower": whole.lower, "upper": whole.upper}
    return {
        "outcomes": int(counts[ALL_OUTCOMES]),
        "revised": int(counts[ALL_REVISED]),
        "gained": int(counts[ALL_GAINED]),
        "lost": int(counts[ALL_LOST]),
        "first_accuracy": whole.first,
        "last_accuracy": whole.last,
        "revised_ratio": whole.revised,
        "gain": gain,
        "by_waiting_time": {
            "over_seconds": [int(edges_ms[k]) / 1000 for k in there],
            "up_to_seconds": [int(edges_ms[k + 1]) / 1000 for k in there],
            "weight": [by_bin[k].weight for k in there],
            "first_accuracy": [by_bin[k].first for k in there],
            "last_accuracy": [by_bin[k].last for k in there],
            "revised_ratio": [by_bin[k].revised for k in there],
        },
    }
