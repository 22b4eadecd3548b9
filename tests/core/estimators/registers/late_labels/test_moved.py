"""Delays of two neighbouring halves of a horizon are compared as a plain rule over lists of outcomes says."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.accuracy import estimates_of
from streamwatch.core.estimators.registers.late_labels.observe import ERROR, HIT, geometry_of
from streamwatch.core.estimators.registers.late_labels.register import LateLabels, LateLabelsSpec, document_of
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing, counted, typical_delays
from streamwatch.core.specs import DAY_MS

GEOMETRY = geometry_of(60 * DAY_MS)
BEGAN_MS = 1_700_000_000_000
Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]
"""Times of labels, delays, hits."""


def outcomes_of(seed: int, hits: float = 15.0, later: float = 15.0, days: float = 150.0) -> Columns:
    """Hits are labelled after so many days on average, later after others; errors after three."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.random(rng.poisson(150 * days)) * days)
    hit = rng.random(len(day)) < 0.8
    delay = rng.exponential(np.where(hit, np.where(day < days - 60, hits, later), 3.0))
    is_in = (delay <= 60) & (day + delay <= days)
    delay_ms = np.rint(delay * DAY_MS).astype(np.int64)[is_in]
    at = BEGAN_MS + np.rint(day * DAY_MS).astype(np.int64)[is_in] + delay_ms
    order = np.argsort(at, kind="stable")
    return at[order], delay_ms[order], hit[is_in][order]


def ring_of(columns: Columns) -> LabelRing:
    ring = LabelRing(1, GEOMETRY)
    at, delay, hit = columns
    ring.observe(np.zeros(len(at), np.int32), hit, at, delay)
    return ring


def plain(columns: Columns, *, kind: bool) -> tuple[float, float, bool]:
    """Typical delays before and after, in ms, and whether they moved, from lists."""
    at, delay, hit = (column.tolist() for column in columns)
    edges = GEOMETRY.edges_ms[1:].tolist()
    bins = sum(edge <= GEOMETRY.horizon_ms / 2 for edge in edges)
    now, width = max(at), GEOMETRY.width_ms
    last = max(b for b in range(now // width + 1) if now - (b + 1) * width >= edges[bins - 1])
    step = log(edges[-1] / edges[0]) / 22
    means, variances, numbers = [], [], []
    for end in (last - 21, last):
        buckets = [[] for _ in range(21)]
        for one_at, one_delay, one_hit in zip(at, delay, hit, strict=True):
            bucket = (one_at - one_delay) // width - (end - 20)
            found = sum(edge < one_delay for edge in edges)
            if one_hit is kind and 0 <= bucket < 21 and found < bins:
                buckets[bucket].append(found)
        values = [x for bucket in buckets for x in bucket]
        n = len(values)
        mean = sum(values) / n
        variance = sum((x - mean) ** 2 for x in values) / n / n
        for block in (1, 3, 7):
            blocks = [buckets[i : i + block] for i in range(0, 21, block)]
            squares = sum(sum(x - mean for each in one for x in each) ** 2 for one in blocks)
            variance = max(variance, squares * len(blocks) / (len(blocks) - 1) / n**2)
        means.append(mean)
        variances.append(variance)
        numbers.append(n)
    change = means[1] - means[0]
    moved = (
        min(numbers) >= 100 and abs(change) >= 5 * sqrt(sum(variances)) and abs(change) * step >= log(1.05)
    )
    before, after = (edges[0] * exp((mean - 0.5) * step) for mean in means)
    return before, after, moved


@pytest.mark.parametrize("later", [15.0, 16.0, 19.0, 40.0, 6.0])
def test_typical_delays_and_whether_they_moved_are_those_of_lists(later: float) -> None:
    columns = outcomes_of(3, later=later)
    view = ring_of(columns).view(np.zeros(1, np.int64))
    found = typical_delays(counted(view, GEOMETRY), GEOMETRY)
    for kind, is_hit in ((ERROR, False), (HIT, True)):
        before, after, moved = plain(columns, kind=is_hit)
        assert found.before_ms[0, kind] == pytest.approx(before, rel=1e-9)
        assert found.after_ms[0, kind] == pytest.approx(after, rel=1e-9)
        assert bool(found.moved[0, kind]) is moved
    assert not found.moved[0, ERROR]
    assert bool(found.moved[0, HIT]) is (later in {40.0, 6.0})


def test_the_document_has_the_kind_whose_delays_moved_and_nothing_where_labels_are_assumed() -> None:
    ring = ring_of(outcomes_of(1, later=40.0))
    (estimate,) = estimates_of(ring, np.zeros(1, np.int64))
    moved = document_of(estimate, GEOMETRY, assumed=False)["delays_moved"]
    assert list(moved) == ["hits"]
    assert moved["hits"]["before_seconds"] < 0.9 * moved["hits"]["after_seconds"]
    assert "delays_moved" not in document_of(estimate, GEOMETRY, assumed=True)


def test_nothing_is_reported_before_both_halves_are_known_nor_of_few_outcomes() -> None:
    young = outcomes_of(2, later=40.0, days=70.0)
    few = tuple(column[::150] for column in outcomes_of(2, later=40.0))
    for columns in (young, few):
        (estimate,) = estimates_of(ring_of(columns), np.zeros(1, np.int64))
        assert estimate.moved == (None, None)


def test_the_register_names_the_kinds_whose_delays_moved_and_none_where_labels_are_assumed() -> None:
    for assumed, later, named in ((False, 40.0, ("hits",)), (True, 40.0, ()), (False, 15.0, ())):
        register = LateLabels(LateLabelsSpec(assumed=assumed), 1)
        register._ring = ring_of(outcomes_of(1, later=later))
        assert register.delays_moved(0) == named
