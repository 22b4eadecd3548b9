"""Streams at the edges of what may come: every number stays finite, and cohorts find room."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamwatch.core.estimators.names import Classes, Slice
from streamwatch.core.estimators.registers.cohorts import CohortsSpec, bytes_of
from streamwatch.core.estimators.registers.cohorts.state import (
    CLASS,
    HELD_OUTCOMES,
    HITS,
    LIVE,
    MODEL,
    MOST_COUNTED,
    SLOTS,
    WHOLE,
    empty,
)
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.streams import Outcomes
from tests.tiers import few

DAY_MS = 86_400_000
BEGAN_MS = 1_700_000_000_000


def drawn(
    count: int = 6_000,
    every_ms: float = 60_000.0,
    delay_ms: float = 600_000.0,
    *,
    accuracy: float = 0.8,
    classes: int = 3,
    horizon_ms: int = DAY_MS,
    labelled: float = 1.0,
    known: bool = True,
    seed: int = 1,
) -> Outcomes:
    """Outcomes in the order of labels, of predictions at random times."""
    rng = np.random.default_rng(seed)
    made_at = BEGAN_MS + np.cumsum(rng.exponential(every_ms, count)).astype(np.int64)
    delay = np.minimum(rng.exponential(delay_ms, count), horizon_ms).astype(np.int64)
    label = rng.integers(0, classes, count)
    predicted = np.where(rng.random(count) < accuracy, label, (label + 1) % max(classes, 2))
    come = np.flatnonzero(rng.random(count) < labelled)
    order = come[np.argsort((made_at + delay)[come], kind="stable")]
    at = (made_at + delay)[order]
    last = rng.integers(0, classes, len(order)) if known else np.full(len(order), -1)
    made = np.searchsorted(made_at, at, side="right").astype(np.int64)
    return Outcomes(at, delay[order], made, label[order], predicted[order], last)


def after_a_gap(outcomes: Outcomes, gap_ms: int) -> Outcomes:
    """The second half comes much later."""
    later = np.arange(len(outcomes.at)) >= len(outcomes.at) // 2
    return outcomes._replace(at=outcomes.at + later * gap_ms)


def with_steps_back(outcomes: Outcomes) -> Outcomes:
    """Every seventh clock is behind the others, as it never should be."""
    back = (np.arange(len(outcomes.at)) % 7 == 0) * 5 * DAY_MS
    return outcomes._replace(at=outcomes.at - back)


EXTREMES: dict[str, tuple[int, Outcomes]] = {
    "ten a day": (60 * DAY_MS, drawn(3_000, DAY_MS / 10, 5.0 * DAY_MS, horizon_ms=60 * DAY_MS)),
    "a thousand a second": (600_000, drawn(60_000, 1.0, 30_000.0, horizon_ms=600_000)),
    "a horizon of a second": (1_000, drawn(6_000, 20.0, 200.0, horizon_ms=1_000)),
    "delays of 0": (DAY_MS, drawn(delay_ms=0.0)),
    "all labels at the horizon": (DAY_MS, drawn(delay_ms=1e15)),
    "all labels at a horizon of two seconds": (2_000, drawn(12_000, 2.0, delay_ms=1e15, horizon_ms=2_000)),
    "one class": (DAY_MS, drawn(classes=1)),
    "always right": (DAY_MS, drawn(accuracy=1.0)),
    "always wrong": (DAY_MS, drawn(accuracy=0.0)),
    "one label in a hundred": (DAY_MS, drawn(30_000, labelled=0.01)),
    "no label known": (DAY_MS, drawn(known=False)),
    "a gap of ten years": (
        600_000,
        after_a_gap(drawn(horizon_ms=600_000, delay_ms=60_000.0), 3_650 * DAY_MS),
    ),
    "clocks that step back": (DAY_MS, with_steps_back(drawn())),
    "all at one moment": (DAY_MS, drawn(every_ms=0.0, delay_ms=0.0)),
    "a delay beyond the horizon": (60_000, drawn(delay_ms=600_000.0)),
}


@pytest.mark.parametrize("by_prediction", few([False, True], 1))
@pytest.mark.parametrize("name", EXTREMES)
def test_numbers_stay_finite_and_cohorts_few(name, by_prediction) -> None:
    horizon_ms, outcomes = EXTREMES[name]
    spec = CohortsSpec(horizon_ms, outcomes=1_000, by_prediction=by_prediction)
    register = register_of(spec, start=(100.0, 100.0))
    batch = batch_of(outcomes)
    classes = Classes(12)
    assert classes["a"] == 0
    for chosen in np.array_split(np.arange(len(outcomes.at)), 40):
        register.observe(part(batch, chosen))
        record = register.taken_in([0]).models[0]
        for field in flat_fields(record):
            assert np.isfinite(field).all()
        assert 0 <= record["next_cohort"] - record["first_cohort"] < SLOTS
        json.dumps(register.details([Slice("m", 0, classes)])(0), allow_nan=False)
    assert register.taken_in([0]).models[0]["observed"] == len(outcomes.at)


def test_more_outcomes_than_32_bits_count_are_left_out_and_said() -> None:
    """57,000 a second of one model with a horizon of 14 days fill a bucket."""
    batch = batch_of(drawn(6_000, horizon_ms=DAY_MS))
    half = np.arange(6_000) < 3_000
    full, usual = (register_of(CohortsSpec(DAY_MS, outcomes=1_000), start=(100.0, 100.0)) for _ in range(2))
    for register in (full, usual):
        register.observe(part(batch, half))
    models, classes = full.taken_in([0]).models, full.state.classes
    models["bucket_outcomes"][0, :LIVE] = MOST_COUNTED
    classes["counts"][0, 0, :LIVE, HITS, WHOLE] += MOST_COUNTED - classes["counts"][:, 0].sum((0, 2, 3))
    made = models["made"][0]
    models["made"][0] += 2**33  # that many predictions in the cohort that is open
    for register in (full, usual):
        register.observe(part(batch, ~half))
        register.taken_in([0])
    assert models["made"][0] > made
    assert (models["bucket_outcomes"][0] <= MOST_COUNTED).all()
    assert classes["counts"][:, 0].sum((0, 2, 3), dtype=np.int64).max() <= MOST_COUNTED
    settled, as_usual = (each.state.classes["sums"]["totals"][:, 0].sum() for each in (full, usual))
    assert 0 < settled < as_usual, "what was left out is not among the settled outcomes"
    details = full.details([Slice("m", 0, _named())])(0)["cohorts"]
    assert details["left_out"] > LIVE
    assert models["judged_predictions"][0] < 2**32


def flat_fields(record):
    """All floating-point fields of a record and of those in it."""
    for name in record.dtype.names:
        value = record[name]
        if value.dtype.names:
            for inner in value.reshape(-1):
                yield from flat_fields(inner)
        elif value.dtype.kind == "f":
            yield value


@pytest.mark.parametrize("kind", [MODEL, CLASS, HELD_OUTCOMES])
def test_a_record_has_no_padding_and_ends_with_a_cache_line(kind) -> None:
    """Snapshots compare whole records."""
    assert kind.itemsize == sum(kind.fields[name][0].itemsize for name in kind.names)
    assert kind.itemsize % 64 == 0


def test_a_model_takes_no_more_bytes_than_promised() -> None:
    state = empty(1, 100)
    for classes in (1, 2, 8, 100):
        own = min(classes, len(state.classes)) * CLASS.itemsize + 8 * classes
        assert MODEL.itemsize + HELD_OUTCOMES.itemsize + own <= bytes_of(classes)


def test_labels_that_take_seconds_are_judged_within_hours_of_a_long_horizon() -> None:
    outcomes = drawn(8_000, 1_000.0, 500.0, horizon_ms=60 * DAY_MS)
    register = register_of(CohortsSpec(60 * DAY_MS, outcomes=1_000), start=(100.0, 100.0))
    register.observe(batch_of(outcomes))
    assert register.taken_in([0]).models[0]["judged"] > 40
    details = register.details([Slice("m", 0, _named())])(0)["cohorts"]
    assert details["age_rule"] == "complete"
    assert details["as_good_as_immediate"] == (details["age_seconds"] <= 60)


def _named() -> Classes:
    classes = Classes(12)
    assert classes["a"] == 0
    return classes


def test_ten_a_day_are_judged_at_the_horizon_or_before() -> None:
    horizon_ms, outcomes = EXTREMES["ten a day"]
    register = register_of(CohortsSpec(horizon_ms, outcomes=1_000), start=(100.0, 100.0))
    register.observe(batch_of(outcomes))
    assert register.taken_in([0]).models[0]["judged"] > 0
