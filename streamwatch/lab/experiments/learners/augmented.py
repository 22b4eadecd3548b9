"""A surrogate of the Temporally Augmented classifier of any order (Žliobaitė et al. 2015, §3.2).

Answers the most frequent label of those outcomes whose answer and last ℓ labels were the same as now: the
daemon's own for ℓ = 1, with counts that fade by .999, falling back to the classifier's answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.999
_LARGE = 2.0**200


def augmented(
    true_class: NDArray[np.integer], answers: NDArray[np.integer], classes: int, order: int
) -> NDArray[np.int64]:
    """Answers with the last `order` labels taken into account, (n,); an order of 0 uses the answer alone."""
    contexts = classes ** (order + 1)
    counts = [[0.0] * classes for _ in range(contexts)]
    unit, found = 1.0, np.empty(len(true_class), np.int64)
    for t, (context, truth, answer) in enumerate(_contexts(true_class, answers, classes, order)):
        row = counts[context]
        most = max(row)
        # Counts in a unit that grows by 1/α fade without being touched.
        known = most / unit >= 0.05
        found[t] = (answer if row[answer] == most else row.index(most)) if known else answer
        row[truth] += unit
        unit /= ALPHA
        if unit > _LARGE:
            counts = [[count / unit for count in row] for row in counts]
            unit = 1.0
    return found


def _contexts(
    true_class: NDArray[np.integer], answers: NDArray[np.integer], classes: int, order: int
) -> Iterator[tuple[int, int, int]]:
    """(number of the answer with the last labels, truth, answer) per outcome; before the first label, 0."""
    past, span = 0, classes**order
    for truth, answer in zip(true_class.tolist(), answers.tolist(), strict=True):
        yield answer * span + past, truth, answer
        past = (past * classes + truth) % span
