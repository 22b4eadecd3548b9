"""Detectors in prediction time alarm as the same detectors do over outcomes sorted by prediction."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.registers.prediction_clock import (
    SETTLED_UNTIL,
    PredictionClockSpec,
    table_spec,
)
from streamwatch.core.estimators.registers.prediction_clock.register import SLACK_MS
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Alarm, Outcome
from streamwatch.core.specs import ModelDetectors, PageHinkleySpec
from tests.layouts import DEFAULT, TINY
from tests.tiers import examples, few

HORIZON_MS = 3_600_000
COLUMNS = (
    "detector_statistic:by_prediction",
    "detector_threshold:by_prediction",
    "alarm:by_prediction",
    SETTLED_UNTIL,
)
NAMED = PageHinkleySpec(name="by_prediction", threshold=4.0)
CLOCK = PredictionClockSpec(HORIZON_MS, (NAMED,))
SPEC = replace(TINY, max_models=3, registers=(CLOCK,))


def stream(seed: int, length: int = 400, change_at: int = 200) -> list[Outcome]:
    """Outcomes of two models, one prediction a minute, in the order of labels, which take up to an hour.

    From prediction number `change_at` on the models err in 60 %, before in 10 %.
    """
    rng = np.random.default_rng(seed)
    found: list[Outcome] = []
    for i in range(length):
        wrong = rng.random() < (0.6 if i >= change_at else 0.1)
        delay_ms = int(rng.integers(1, HORIZON_MS))
        model = "mn"[int(rng.integers(2))]
        found.append(Outcome(model, "a", "b" if wrong else "a", i * 60_000 + delay_ms, delay_ms))
    return sorted(found, key=lambda each: each.event_ms)


def _page_hinkley(misses: list[bool]) -> list[tuple[int, float, float]]:
    """(index, before, after) of each alarm of the detector over losses that come in this order."""
    spec = EstimatorSet(table_spec(CLOCK, 1))
    outcomes = [Outcome("m", "a", "b" if miss else "a", 0, 0) for miss in misses]
    return [(alarm.outcome - 1, alarm.before, alarm.after) for alarm in spec.fold(outcomes)]


def _expected(outcomes: list[Outcome], model: str) -> list[tuple[int, int, int, float, float]]:
    """(outcome, event time, prediction time, before, after) of each alarm, by sorting everything."""
    own = [each for each in outcomes if each.model == model]
    times = [each.event_ms for each in own]
    agreed = [0, 0, *map(min, times, times[1:], times[2:])]
    clock = np.maximum.accumulate(agreed)
    by_prediction = sorted(own, key=lambda each: each.event_ms - each.delay_ms)
    found: list[tuple[int, int, int, float, float]] = []
    for index, before, after in _page_hinkley([o.true_class != o.predicted_class for o in by_prediction]):
        predicted_ms = by_prediction[index].event_ms - by_prediction[index].delay_ms
        noticed = int(np.searchsorted(clock, predicted_ms + HORIZON_MS + SLACK_MS))
        if noticed < len(own):
            found.append((noticed + 1, own[noticed].event_ms, predicted_ms, before, after))
    return found


def _raised(alarms: list[Alarm], model: str) -> list[tuple[int, int, int | None, float, float]]:
    return [(a.outcome, a.event_ms, a.predicted_ms, a.before, a.after) for a in alarms if a.model == model]


@settings(deadline=None, max_examples=examples(0.1))
@given(st.integers(0, 2**32 - 1), st.integers(0, 400))
def test_alarms_are_those_of_all_outcomes_sorted_by_prediction(seed: int, change_at: int) -> None:
    outcomes = stream(seed, change_at=change_at)
    alarms = EstimatorSet(SPEC).fold(outcomes)
    for model in "mn":
        assert _raised(alarms, model) == _expected(outcomes, model)
    assert [alarm.event_ms for alarm in alarms] == sorted(alarm.event_ms for alarm in alarms)


@settings(deadline=None, max_examples=examples(0.1))
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 399), max_size=6))
def test_alarms_and_state_do_not_depend_on_cuts_and_restores(seed: int, cuts: list[int]) -> None:
    outcomes = stream(seed)
    whole, cut = EstimatorSet(SPEC), EstimatorSet(SPEC)
    expected, found = whole.fold(outcomes), list[Alarm]()
    bounds = sorted({0, *cuts, len(outcomes)})
    for start, stop in pairwise(bounds):
        found += cut.fold(outcomes[start:stop])
        resumed = EstimatorSet(SPEC)
        for model in cut.models():
            resumed.restore(cut.snapshot(model))
        resumed.restore_totals(cut.totals())
        cut = resumed
    assert found == expected
    assert [cut.snapshot(model) for model in "mn"] == [whole.snapshot(model) for model in "mn"]
    assert cut.totals() == whole.totals()


def _resumed(outcomes: list[Outcome], clock: PredictionClockSpec) -> EstimatorSet:
    """Estimators with this clock, restored from those of `SPEC` after these outcomes."""
    before, after = EstimatorSet(SPEC), EstimatorSet(replace(SPEC, registers=(clock,)))
    before.fold(outcomes)
    for model in before.models():
        after.restore(before.snapshot(model))
    return after


def test_a_detector_whose_parameters_change_begins_anew_alone_and_with_what_was_held_back() -> None:
    outcomes, cut = stream(8, 600), 350
    stricter = replace(NAMED, threshold=2.5)
    after = _resumed(outcomes[:cut], replace(CLOCK, detectors_by_model=(ModelDetectors("n", (stricter,)),)))
    alarms = after.fold(outcomes[cut:])
    assert _raised(alarms, "m") == [a for a in _expected(outcomes, "m") if a[1] >= outcomes[cut].event_ms]
    own = [each for each in outcomes if each.model == "n"]
    clock_ms = [each.event_ms for each in own if each in outcomes[:cut]][-3]
    passed_ms = clock_ms - HORIZON_MS - SLACK_MS
    kept = [each for each in own if each.event_ms - each.delay_ms > passed_ms]
    assert kept[0] in outcomes[:cut]
    alone = EstimatorSet(replace(SPEC, registers=(replace(CLOCK, detectors=(stricter,)),)))
    expected = [(a.event_ms, a.predicted_ms, a.ordinal) for a in alone.fold(kept)]
    assert len(expected) > 1
    assert [(a.event_ms, a.predicted_ms, a.ordinal) for a in alarms if a.model == "n"] == expected


def test_a_start_names_the_detectors_that_begin_anew_and_no_others() -> None:
    before = EstimatorSet(SPEC).estimators()
    stricter = replace(CLOCK, detectors=(replace(NAMED, threshold=2.5),))
    now = EstimatorSet(replace(SPEC, registers=(stricter,))).estimators()
    assert [now[name] for name in now.keys() - before.keys()] == ["by_prediction in prediction time"]


def test_with_less_room_after_a_restart_the_oldest_leave_before_their_time() -> None:
    outcomes = stream(4)
    after = _resumed(outcomes[:300], replace(CLOCK, max_unsettled=5))
    after.fold(outcomes[300:])
    document = after.details()["m"]["prediction_clock"]
    assert isinstance(document, dict)
    assert document["waiting"] <= 5
    assert document["waiting"] + document["evaluated"] == sum(each.model == "m" for each in outcomes)


def test_alarms_are_counted_and_shown_as_those_of_any_detector() -> None:
    estimators = EstimatorSet(SPEC)
    alarms = estimators.fold(stream(1))
    own = [alarm for alarm in alarms if alarm.model == "m"]
    samples = {family.name: dict(family.samples) for family in estimators.families()}
    key = ("by_prediction", "m")
    assert own
    assert samples["alarms_total"][key] == len(own)
    assert samples["last_alarm_timestamp_seconds"][key] == own[-1].event_ms / 1000
    assert samples["detector_threshold"][key] >= 4.0, "times the dispersion of the losses"
    assert [alarm.ordinal for alarm in own] == list(range(1, len(own) + 1))


def test_a_trace_raises_the_same_alarms() -> None:
    outcomes, spec = stream(2), replace(DEFAULT, registers=(CLOCK,))
    alarms = EstimatorSet(spec).fold(outcomes)
    assert {alarm.detector for alarm in alarms} >= {"by_prediction"}
    assert EstimatorSet(spec).trace(outcomes).alarms == alarms


def _asked(outcomes: list[Outcome]) -> list[dict[str, float | None]]:
    """Values of a trace's columns after each outcome: of a set that was fed one at a time, and asked."""
    estimators = EstimatorSet(SPEC)
    rows: list[dict[str, float | None]] = []
    for outcome in outcomes:
        alarms = estimators.fold([outcome])
        samples = {family.name: dict(family.samples) for family in estimators.families()}
        model = outcome.model
        settled = samples[SETTLED_UNTIL].get((model,))
        statistic, threshold = (
            samples[name].get(("by_prediction", model))
            for name in ("detector_statistic", "detector_threshold")
        )
        values = (statistic, threshold, len(alarms), settled)
        rows.append(dict(zip(COLUMNS, values, strict=True)))  # type: ignore[arg-type]
    return rows


def _traced(outcomes: list[Outcome], cuts: list[int]) -> list[dict[str, float | None]]:
    """Values of the same columns, of a trace in pieces."""
    estimators = EstimatorSet(replace(DEFAULT, registers=(CLOCK,)))
    rows: list[dict[str, float | None]] = []
    for start, stop in pairwise(sorted({0, *cuts, len(outcomes)})):
        chunk = estimators.trace(outcomes[start:stop])
        indices = [chunk.columns.index(name) for name in COLUMNS]
        rows += [dict(zip(COLUMNS, [row[k] for k in indices], strict=True)) for row in chunk.rows]  # type: ignore[misc]
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "cuts"), few([(2, [1, 2, 77, 310]), (1, []), (3, [200])], 1))
def test_columns_of_a_trace_say_what_a_set_says_after_every_outcome(seed: int, cuts: list[int]) -> None:
    outcomes = stream(seed)
    found = _traced(outcomes, cuts)
    assert found == _asked(outcomes)
    assert sum(row["alarm:by_prediction"] or 0 for row in found) > 0
    assert found[0][SETTLED_UNTIL] is None


def test_what_waits_was_seen_and_came_out_of_order_are_series() -> None:
    outcomes = stream(1, length=300)
    small = replace(SPEC, registers=(replace(CLOCK, max_unsettled=8),))
    estimators = EstimatorSet(small)
    estimators.fold(outcomes)
    early = Outcome("m", "a", "a", outcomes[-1].event_ms, outcomes[-1].event_ms)
    estimators.fold([early])
    samples = {family.name: dict(family.samples) for family in estimators.families()}
    own = [each for each in outcomes if each.model == "m"]
    waiting = samples["prediction_clock_waiting_outcomes"]["m",]
    assert 0 < waiting <= 8
    assert samples["prediction_clock_outcomes_total"]["m",] == len(own) + 1 - waiting
    disordered = samples["prediction_clock_disordered_total"]
    assert 0 < disordered["m", "overflowed"] <= len(own) - waiting
    assert disordered["m", "late"] >= 1


def test_the_change_is_located_where_predictions_changed_whatever_labels_take() -> None:
    """Errors are labelled after 50 minutes and hits at once: the order of labels alarms without cause."""
    change_ms = 200 * 60_000
    outcomes = [
        Outcome(
            "m",
            "a",
            "b" if (wrong := i % 10 < (6 if i >= 200 else 1)) else "a",
            i * 60_000 + (3_000_000 if wrong else 1_000),
            3_000_000 if wrong else 1_000,
        )
        for i in range(600)
    ]
    detectors = (PageHinkleySpec(threshold=4.0), *DEFAULT.detectors[1:])
    both = replace(DEFAULT, detectors=detectors, registers=(CLOCK,))
    alarms = EstimatorSet(both).fold(sorted(outcomes, key=lambda each: each.event_ms))
    (late, *_), (label, *_) = (
        [alarm for alarm in alarms if alarm.detector == name] for name in ("by_prediction", "page_hinkley")
    )
    assert late.predicted_ms is not None
    assert 0 <= late.predicted_ms - change_ms < 20 * 60_000
    assert label.event_ms < change_ms  # a false alarm: of the first hour only hits had labels
    assert label.predicted_ms is None
