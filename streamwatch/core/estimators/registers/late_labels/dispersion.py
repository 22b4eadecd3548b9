"""Dispersion of the errors by bucket: their variance relative to that of independent outcomes.

Correlated errors make counts of neighbouring buckets vary more, and together. Pearson's statistic divided by
its degrees of freedom estimates by how much (McCullagh, Nelder 1989, §4.5). It is computed for single buckets
and, as the correlation may extend beyond these, for blocks of 2 and 4; the largest of the three is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from streamwatch.core.estimators.registers.late_labels.accuracy import Floats

BLOCKS: Final = (1, 2, 4)
"""Numbers of buckets that are counted as one."""
LEAST_FREEDOM: Final = 8
"""Degrees of freedom below which blocks of a length are not used."""
_NOTHING: Final = 1e-9


def dispersion(
    wrong: Floats, weight: Floats, edges: Sequence[int], blocks: Sequence[int] = BLOCKS
) -> float | None:
    """Estimate the dispersion of errors around the error rate of their segment; at least 1.

    In each segment, blocks are laid from its end backwards; what is left at its beginning, and segments of
    hits or errors only, are left out. A boundary takes two degrees of freedom: for the error rate and for its
    position.

    Parameters
    ----------
    wrong, weight
        Cumulative sums of errors and of outcomes before each bucket, and of all, (n + 1,).
    edges
        Boundaries of the segments, from 0 to n, ascending.
    blocks
        Lengths of blocks, in buckets.

    Returns
    -------
    float or None
        At least 1; None if no length leaves 8 degrees of freedom.
    """
    found = [
        max(1.0, squares / freedom)
        for squares, freedom in (_pearson(wrong, weight, edges, block) for block in blocks)
        if freedom >= LEAST_FREEDOM
    ]
    return max(found) if found else None


def _pearson(wrong: Floats, weight: Floats, edges: Sequence[int], block: int) -> tuple[float, int]:
    """Pearson's statistic of blocks of one length within their segments, and its degrees of freedom."""
    squares, freedom = 0.0, 2 - len(edges)
    for start, stop in pairwise(edges):
        ends = np.arange(start + (stop - start) % block, stop + 1, block)
        outcomes, errors = np.diff(weight[ends]), np.diff(wrong[ends])
        there = outcomes > _NOTHING
        outcomes, errors = outcomes[there], errors[there]
        n, e = float(outcomes.sum()), float(errors.sum())
        if len(outcomes) < 2 or e <= _NOTHING or n - e <= _NOTHING:
            continue
        error = e / n
        squares += float(((errors - outcomes * error) ** 2 / outcomes).sum()) / (error * (1.0 - error))
        freedom += len(outcomes) - 1
    return squares, freedom
