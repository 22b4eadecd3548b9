"""Settled and corrected accuracy equal the rules worked out from all outcomes, at every prefix."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.estimators.registers.late_labels.accuracy import estimates_of, wilson
from streamwatch.core.estimators.registers.late_labels.observe import HIT, geometry_of
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing, counted
from tests.core.estimators.registers.late_labels.plain_late import Known, edges_of, plain_late, width_of
from tests.tiers import by_tier

HORIZON_MS = 100_000
GEOMETRY = geometry_of(HORIZON_MS)
ROW = np.zeros(1, np.int64)


def stream(seed: int, number: int, span_ms: int, accuracy: float = 0.8) -> list[Known]:
    """Outcomes in the order in which they become known, within a span; errors take a fifth of the time."""
    rng = np.random.default_rng(seed)
    predicted = np.sort(rng.integers(10**12, 10**12 + span_ms, number))
    hit = rng.random(number) < accuracy
    delay = np.rint(rng.exponential(np.where(hit, 0.25, 0.05) * HORIZON_MS)).astype(np.int64)
    delay[rng.random(number) < 0.05] = 0
    found = [
        Known(int(p), int(p + d), bool(h))
        for p, d, h in zip(predicted, delay, hit, strict=True)
        if d <= HORIZON_MS and p + d < 10**12 + span_ms
    ]
    return sorted(found, key=lambda o: o.known_ms)


def observe(ring: LabelRing, outcomes: list[Known], row: int = 0) -> None:
    ring.observe(
        np.full(len(outcomes), row, np.int32),
        np.array([o.hit for o in outcomes], np.bool_),
        np.array([o.known_ms for o in outcomes], np.int64),
        np.array([o.delay_ms for o in outcomes], np.int64),
    )


def values_of(share) -> tuple[float, ...] | None:
    values = (share.value[0], share.lower[0], share.upper[0], share.n_eff[0])
    return None if np.isnan(values[0]) else tuple(map(float, values))


def test_buckets_and_bins_are_those_of_the_rules() -> None:
    for horizon_ms in (1_000, HORIZON_MS, 86_400_000, 14 * 86_400_000):
        geometry = geometry_of(horizon_ms)
        assert geometry.width_ms == width_of(horizon_ms)
        assert geometry.edges_ms.tolist() == edges_of(horizon_ms)
        assert geometry.edges_ms[-1] == horizon_ms


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_limits_of_a_share_do_not_leave_what_a_share_can_be(share) -> None:
    labels = np.arange(1.0, 2_000.0)
    lower, upper = wilson(np.full(len(labels), share), labels)
    assert lower.min() >= 0.0
    assert upper.max() <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(by_tier(fast=1, default=3, everything=20)))
def test_every_accuracy_equals_the_rules_at_every_prefix(seed) -> None:
    outcomes = stream(seed, 700, 3 * HORIZON_MS)
    ring = LabelRing(1, GEOMETRY)
    settled = corrected = 0
    for t, outcome in enumerate(outcomes, 1):
        observe(ring, [outcome])
        if t % 3:
            continue
        view = ring.view(ROW)
        late, plain = estimates_of(ring, ROW).late, plain_late(outcomes[:t], HORIZON_MS)
        assert counted(view, GEOMETRY).shares[0, HIT] == pytest.approx(plain.shares[True], abs=1e-9)
        for found, expected in ((late.settled, plain.settled), (late.corrected, plain.corrected)):
            assert values_of(found) == (None if expected is None else pytest.approx(expected, abs=1e-9))
        if plain.corrected is None or plain.naive is None:
            assert np.isnan(late.bias[0])
        else:
            assert late.bias[0] == pytest.approx(plain.naive - plain.corrected[0], abs=1e-9)
            corrected += 1
        settled += plain.settled is not None
    assert settled
    assert corrected


def test_models_are_estimated_side_by_side_as_alone() -> None:
    streams = [stream(seed, 900, 3 * HORIZON_MS, accuracy) for seed, accuracy in ((1, 0.9), (2, 0.5))]
    both = LabelRing(3, GEOMETRY)
    for row, outcomes in zip((2, 0), streams, strict=True):
        observe(both, outcomes, row)
    found = estimates_of(both, np.array([2, 0, 1])).late
    for index, outcomes in enumerate(streams):
        alone = LabelRing(1, GEOMETRY)
        observe(alone, outcomes)
        expected = estimates_of(alone, ROW).late
        assert found.corrected.value[index] == expected.corrected.value[0]
        assert found.settled.lower[index] == expected.settled.lower[0]
    assert np.isnan(found.settled.value[2])
    assert np.isnan(found.bias[2])


def test_nothing_is_reported_before_a_horizon_has_passed_or_below_thirty_outcomes() -> None:
    ring = LabelRing(1, GEOMETRY)
    observe(ring, stream(3, 500, HORIZON_MS // 2)[:300])
    late = estimates_of(ring, ROW).late
    assert np.isnan(late.settled.value[0])
    assert np.isnan(late.corrected.value[0])
    few = LabelRing(1, GEOMETRY)
    observe(few, [Known(1_000 * n, 1_000 * n, n % 2 == 0) for n in range(29)])
    observe(few, [Known(HORIZON_MS + 40_000, HORIZON_MS + 40_000, hit=True)])
    assert np.isnan(estimates_of(few, ROW).late.settled.value[0])


def test_without_errors_the_hits_are_all_there_is() -> None:
    outcomes = [o for o in stream(4, 900, 3 * HORIZON_MS) if o.hit]
    ring = LabelRing(1, GEOMETRY)
    observe(ring, outcomes)
    late = estimates_of(ring, ROW).late
    assert late.settled.value[0] == late.corrected.value[0] == 1.0
    assert late.bias[0] == 0.0
