"""Alarms are judged by the errors of judged cohorts, as plain sums over all outcomes in them say."""

from __future__ import annotations

import random
from dataclasses import replace
from math import copysign, inf, sqrt

import numpy as np
import pytest
from msgspec.structs import replace as replace_field

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.rules import AlarmsSpec
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.readout import confirmation_of
from streamwatch.core.estimators.registers.cohorts.readout import expected_ms as expected_ms_of
from streamwatch.core.estimators.registers.cohorts.state import (
    FAST_RULE,
    HITS,
    MISSES,
    MODEL,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
)
from streamwatch.core.estimators.registers.cohorts.trackers import NEVER
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Confirmation
from streamwatch.core.specs import MonitorsSpec
from tests.core.estimators.registers.cohorts.naive_cohorts import NaiveCohorts
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of

START = (100.0, 100.0)


def plainly(
    starts: list[int], outcomes: list[tuple[int, bool, float]], phi: float, at_ms: int, rise: float
) -> Confirmation | None:
    """The rule, from the beginnings of stretches and a list of all outcomes in judged cohorts.

    An outcome is the opening of its stretch or cohort, whether it is a hit, and its weight.
    """
    best: tuple[float, Confirmation | None, float] = (-inf, None, 0.0)
    for start in starts[1:]:
        sides = [
            [(hit, w) for opened, hit, w in outcomes if (opened >= start) is after] for after in (False, True)
        ]
        totals = [sum(w for _, w in side) for side in sides]
        if start > at_ms or min(totals) < 100:
            continue
        errors = [
            sum(w for hit, w in side if not hit) / total for side, total in zip(sides, totals, strict=True)
        ]
        variance = sum(
            sum(w * w * ((0.0 if hit else 1.0) - error) ** 2 for hit, w in side) / total**2
            for side, total, error in zip(sides, totals, errors, strict=True)
        )
        deviation = sqrt(phi * variance)
        change = errors[1] - errors[0]
        z = change / deviation if deviation else copysign(inf, change) if change else 0.0
        if best[1] is None or z > best[0]:
            best = (z, Confirmation(z >= 3, start, errors[0], errors[1]), change + 2 * deviation)
    _, found, bound = best
    return found if found is not None and (found.is_confirmed or bound < rise / 2) else None


def plainly_of(naive: NaiveCohorts, judged_until: int, at_ms: int, rise: float) -> Confirmation | None:
    """The rule for what the plain cohorts of a model have judged."""
    if not naive.judged or judged_until <= at_ms:
        return None
    phi = max(opponent.phi for opponent in naive.opponents.values())
    return plainly(naive.starts, naive.judged_outcomes, phi, at_ms, rise)


@pytest.mark.slow
@pytest.mark.parametrize(("crowded", "predictions"), [(1.0, 12_000), (5.0, 12_000)])
def test_a_confirmation_is_what_plain_sums_say(crowded: float, predictions: int) -> None:
    stream = Stream(predictions, classes=2, majority=0.6, accuracy=(0.85, 0.7), crowded=crowded)
    outcomes = outcomes_of(stream, 3)
    naive = NaiveCohorts(stream.horizon_ms, predictions=1_000, start=START)
    register = register_of(CohortsSpec(stream.horizon_ms, outcomes=1_000), start=START)
    batch, decided = batch_of(outcomes), []
    for i, (at, delay, made, label, predicted, last) in enumerate(
        zip(*(column.tolist() for column in outcomes), strict=True)
    ):
        naive.take(at, delay, made, label, predicted, last if last >= 0 else None)
        register.observe(part(batch, slice(i, i + 1)))
        if i % 197 or naive.judged < 40:
            continue
        own = register.taken_in([0]).models[0]
        until = int(own["cohorts"]["ended_ms"][int(own["first_cohort"] - 1) % 18])
        for back in (0.05, 0.3, 1.0):
            for rise in (0.05, 0.3):
                at_ms = at - int(back * stream.horizon_ms)
                found = register.confirmation(0, at_ms, rise)
                expected = plainly_of(naive, until, at_ms, rise)
                assert (found is None) is (expected is None), i
                if found is None or expected is None:
                    continue
                assert (found.is_confirmed, found.since_ms) == (expected.is_confirmed, expected.since_ms)
                assert (found.before, found.after) == pytest.approx((expected.before, expected.after))
                decided.append(found.is_confirmed)
    assert set(decided) == {True, False}


DAY_MS = 86_400_000


def judged_record(
    stretches: list[tuple[int, list[tuple[bool, float]]]],
    newer: int,
    ended_ms: int,
    phis: tuple[float, float],
) -> np.void:
    """A model's record with weighted hits and misses by stretch, and so many newer cohorts not judged."""
    model = np.zeros(1, MODEL)[0]
    first = 900 if stretches else 0
    model["first_cohort"], model["next_cohort"], model["bounds"] = (
        first,
        first + newer,
        len(stretches) + newer,
    )
    model["bounds_ms"] = NEVER
    if stretches:
        model["cohorts"]["ended_ms"] = [ended_ms if k == (first - 1) % SLOTS else NEVER for k in range(SLOTS)]
    for k, (start_ms, outcomes) in enumerate(stretches):
        model["bounds_ms"][k] = start_ms
        for hit, weight in outcomes:
            model["stretches"][k]["weights"][HITS if hit else MISSES] += weight
            model["stretches"][k]["weight_squares"][HITS if hit else MISSES] += weight * weight
    for k in range(len(stretches), len(stretches) + newer):
        model["bounds_ms"][k] = ended_ms + k
    model["opponents"]["dispersion"] = phis
    return model


def test_a_confirmation_of_a_few_stretches_is_what_plain_sums_say() -> None:
    chance, decided = random.Random(1), list[tuple[bool, bool] | None]()
    for _ in range(150):
        number, errors = chance.randrange(9), (chance.choice([0.0, 0.2, 1.0]), chance.choice([0.0, 0.3, 1.0]))
        change = chance.randrange(number + 1)
        stretches: list[tuple[int, list[tuple[bool, float]]]] = []
        for k in range(number):
            size, error = chance.choice([4, 7, 12]), errors[k >= change]
            outcomes = [(chance.random() >= error, chance.choice([8.0, 10.0, 25.0])) for _ in range(size)]
            stretches.append((DAY_MS + 1_000 * k, outcomes))
        phis, ended_ms = (chance.choice([0.0, 1.7]), chance.choice([0.0, 1.0, 3.0])), DAY_MS + 1_000 * number
        at_ms = DAY_MS + chance.randrange(-500, 1_000 * (number + 1), 500)
        rise = chance.choice([0.05, 0.3, 0.9])
        found = confirmation_of(judged_record(stretches, chance.randrange(3), ended_ms, phis), at_ms, rise)
        expected = None
        if at_ms < ended_ms:
            single = [(start_ms, *outcome) for start_ms, outcomes in stretches for outcome in outcomes]
            expected = plainly([start for start, _ in stretches], single, max(1.0, *phis), at_ms, rise)
        assert (found is None) is (expected is None)
        if found is not None and expected is not None:
            assert (found.is_confirmed, found.since_ms) == (expected.is_confirmed, expected.since_ms)
            assert (found.before, found.after) == pytest.approx((expected.before, expected.after))
        decided.append(found and (found.is_confirmed, found.after - found.before == 1.0))
    assert set(decided) == {None, (True, False), (False, False), (True, True)}


@pytest.mark.parametrize(
    ("judged", "rule", "age_ms", "is_open", "closes_ms", "ended_ms", "expected_ms"),
    [
        (40, SETTLED_RULE, 90_000, 1, DAY_MS + 7, NEVER, None),
        (41, SETTLED_RULE, 90_000, 1, DAY_MS + 7, NEVER, DAY_MS + 90_007),
        (41, SETTLED_RULE, 90_000, 1, DAY_MS - 7, NEVER, DAY_MS + 90_000),
        (41, SETTLED_RULE, 90_000, 0, DAY_MS + 7, DAY_MS - 7, DAY_MS + 90_000),
        (41, WHOLE_HORIZON, 90_000, 0, DAY_MS - 7, DAY_MS + 7, DAY_MS + 90_007),
        (41, FAST_RULE, 60_001, 1, DAY_MS, NEVER, DAY_MS + 60_001),
        (41, FAST_RULE, 60_000, 1, DAY_MS, NEVER, None),
        (41, SETTLED_RULE, 60_000, 1, DAY_MS, NEVER, DAY_MS + 60_000),
    ],
)
def test_an_alarm_is_judged_once_the_cohort_of_its_time_has_its_age(
    judged: int, rule: int, age_ms: int, is_open: int, closes_ms: int, ended_ms: int, expected_ms: int | None
) -> None:
    """Unless labels come within a minute, or the dispersion is not known yet."""
    model = np.zeros(1, MODEL)[0]
    model["judged"], model["next_cohort"], model["is_open"], model["closes_ms"] = (
        judged,
        903,
        is_open,
        closes_ms,
    )
    model["cohorts"]["age_ms"], model["cohorts"]["ended_ms"] = 5, 2 * DAY_MS
    newest = model["cohorts"][902 % SLOTS]
    newest["rule"], newest["age_ms"], newest["ended_ms"] = rule, age_ms, ended_ms
    assert expected_ms_of(model, DAY_MS) == expected_ms


def test_labels_that_come_at_once_need_no_confirmation_and_late_ones_do() -> None:
    soon = replace(Stream(predictions=8_000), mean_delays=(1e-5, 1e-5))
    for stream, is_late in ((soon, False), (Stream(predictions=8_000), True)):
        register = register_of(CohortsSpec(stream.horizon_ms, outcomes=1_000))
        assert register.confirmation_expected_ms(0, 5) is None, "nothing is judged yet"
        outcomes = outcomes_of(stream, 1)
        register.observe(batch_of(outcomes))
        now = int(outcomes.at.max())
        expected = register.confirmation_expected_ms(0, now)
        if is_late:
            assert expected is not None
            assert now < expected <= now + 2 * stream.horizon_ms
        else:
            assert expected is None


def notified(stream: Stream, seed: int, stated_later_ms: int = 0) -> list[Notification]:
    """Notifications of alarms of detectors, reviewed after every hundred outcomes.

    Labels state a time that is `stated_later_ms` after the clock at which they came.
    """
    spec = replace(MonitorsSpec(), max_models=1, registers=(CohortsSpec(stream.horizon_ms),))
    monitors, book = EstimatorSet(spec), AlarmBook(AlarmsSpec(), "state")
    outcomes = [
        replace_field(each, event_ms=each.resolved_ms + stated_later_ms)
        for each in outcomes_of(stream, seed).events()
    ]
    issued: list[Notification] = []
    for start in range(0, len(outcomes), 100):
        some = outcomes[start : start + 100]
        issued += book.announce(monitors.fold(some), some[-1].resolved_ms, monitors.facts, behind=False)
        issued += book.review(monitors.facts, some[-1].resolved_ms, behind=False)
    return [each for each in issued if any(p.alarm.judgement is None for p in each.parts)]


BASE = Stream(predictions=40_000, horizon_ms=4_000_000_000, classes=2, majority=0.5, mean_delays=(0.2, 0.02))


@pytest.mark.slow
def test_more_traffic_is_hardly_ever_confirmed_where_errors_are_labelled_sooner() -> None:
    # From the middle on, there are 8 times as many predictions, whose first labels are errors.
    parts = {
        (seed, p.alarm.detector, p.started_at_ms): p
        for seed in range(1, 7)
        for each in notified(replace(BASE, accuracy=(0.8, 0.8), crowded=8.0), seed)
        for p in each.parts
        if p.alarm.after > p.before
    }
    assert len(parts) >= 6, "detectors find a rise of the error in every stream"
    assert sum(p.confirmation is not None for p in parts.values()) <= 1
    assert "labels_changed" in {p.reason for p in parts.values()}


def test_a_model_that_errs_more_is_confirmed() -> None:
    issued = notified(replace(BASE, accuracy=(0.8, 0.6)), 1)
    confirmed = [p.confirmation for each in issued for p in each.parts if p.confirmation is not None]
    assert confirmed
    assert "labels_changed" not in {p.reason for each in issued for p in each.parts}
    last = confirmed[-1]
    assert (last.before, last.after) == pytest.approx((0.2, 0.4), abs=0.06)


@pytest.mark.parametrize("days", [-10, 10])
def test_the_times_that_labels_state_do_not_change_what_cohorts_confirm(days: int) -> None:
    stream = replace(BASE, accuracy=(0.8, 0.6))

    def decided(stated_later_ms: int) -> list[tuple[object, ...]]:
        return [
            (part.alarm.outcome, part.alarm.detector, part.expected_ms, part.confirmation)
            for each in notified(stream, 1, stated_later_ms)
            for part in each.parts
        ]

    found = decided(days * 86_400_000)
    assert found == decided(0)
    assert any(confirmation is not None for *_, confirmation in found)


def test_the_beginning_is_found_within_a_few_cohorts() -> None:
    stream = replace(BASE, accuracy=(0.8, 0.6))
    (first, *_) = [
        p.confirmation for each in notified(stream, 2) for p in each.parts if p.confirmation is not None
    ]
    outcomes = outcomes_of(stream, 2)
    made_at = np.sort(outcomes.at - outcomes.delay)
    fell = int(made_at[int(0.6 * len(made_at))])
    assert abs(first.since_ms - fell) < stream.horizon_ms / 4
