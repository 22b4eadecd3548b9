"""Outcomes that enter ADWIN's buckets together, beside outcomes that enter one by one."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from streamwatch.core.estimators.forgetting.adwin import (
    ENTERED,
    FIRST_BLOCK_ROW,
    PARAMETERS,
    PER_ROW,
    WINDOW,
    enter,
)

LAST = FIRST_BLOCK_ROW - 1


@numba.njit
def _entered(windows, parameters, number):
    return enter(windows[0], parameters[0].entering, number)


def _one_by_one(rows: list[list[int]], losses: list[int]) -> list[int]:
    """Add losses to rows of buckets; return what enters the row after the last."""
    further: list[int] = []
    for loss in losses:
        entering = loss
        for row in rows:
            row.append(entering)
            if len(row) <= PER_ROW:
                break
            entering = row.pop(0) + row.pop(0)
        else:
            further.append(entering)
    return further


@pytest.mark.parametrize("most", [1, 2, 5, 6, 7, 31, ENTERED])
def test_outcomes_that_enter_together_make_the_buckets_of_outcomes_one_by_one(most: int) -> None:
    rng = np.random.default_rng(most)
    windows, parameters = np.zeros(1, WINDOW), np.zeros(1, PARAMETERS)
    rows: list[list[int]] = [[] for _ in range(LAST)]
    for _ in range(6_000 // most):
        losses = rng.integers(0, 2, rng.integers(1, most + 1)).tolist()
        parameters["entering"][0, 0, PER_ROW : PER_ROW + len(losses)] = losses
        number = _entered(windows, parameters, len(losses))
        further = parameters["entering"][0, 0, PER_ROW : PER_ROW + number].tolist()
        assert further == _one_by_one(rows, losses)
        buckets = windows["buckets"][0].tolist()
        assert [windows["losses"][0, r, : buckets[r]].tolist() for r in range(LAST)] == rows
        assert windows["rows"][0] == sum(1 for row in rows if row)
    assert rows[-1]  # so full rows of every size were merged
