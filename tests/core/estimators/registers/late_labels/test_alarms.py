"""An alarm says since when predictions err otherwise, the same however the stream is cut or resumed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import DAY_MS
from tests.layouts import DEFAULT
from tests.tiers import by_tier, few

HOUR_MS = 3_600_000
SPEC = replace(DEFAULT, registers=(LateLabelsSpec(DAY_MS),))
BEGAN_MS = 1_760_000_000_000
WIDTH_MS = 3 * DAY_MS / 128


def late_stream(seed: int, before: float = 0.1, after: float = 0.4) -> tuple[list[Outcome], int]:
    """Outcomes in the order of their labels, about 3 h after predictions that err otherwise since a time."""
    rng = np.random.default_rng(seed)
    predicted = BEGAN_MS + np.sort(rng.integers(0, 2 * DAY_MS, 6_000))
    changed = BEGAN_MS + int(rng.integers(1.2 * DAY_MS, 1.6 * DAY_MS))
    wrong = rng.random(len(predicted)) < np.where(predicted < changed, before, after)
    delay = rng.gamma(9.0, HOUR_MS / 3, len(predicted)).astype(np.int64)
    truth = rng.integers(0, 2, len(predicted))
    order = np.argsort(predicted + delay, kind="stable")
    return [
        Outcome(
            "m", "ab"[truth[i]], "ab"[truth[i] ^ int(wrong[i])], int(predicted[i] + delay[i]), int(delay[i])
        )
        for i in order.tolist()
    ], changed


def test_the_change_at_an_alarm_is_that_of_the_outcomes_up_to_it() -> None:
    outcomes, _ = late_stream(1)
    whole, cut, traced, resumed = (EstimatorSet(SPEC) for _ in range(4))
    alarms = whole.fold(outcomes)
    assert any(alarm.predictions for alarm in alarms)
    parts = [outcomes[start : start + 701] for start in range(0, len(outcomes), 701)]
    assert [alarm for part in parts for alarm in cut.fold(part)] == alarms
    assert traced.trace(outcomes).alarms == alarms
    first = resumed.fold(outcomes[:4_000])
    again = EstimatorSet(SPEC)
    again.restore(resumed.snapshot("m"))
    assert [*first, *again.fold(outcomes[4_000:])] == alarms
    assert again.snapshot("m") == whole.snapshot("m") == cut.snapshot("m") == traced.snapshot("m")
    for alarm in alarms:
        if alarm.predictions is not None:
            alone = EstimatorSet(SPEC)
            alone.fold(outcomes[: alarm.outcome])
            late = alone.details()["m"]["late_labels"]
            assert isinstance(late, dict)
            assert late["change"]["since_timestamp_seconds"] == alarm.predictions.since_ms / 1000


@pytest.mark.parametrize(("before", "after"), [(0.1, 0.4), (0.05, 0.2)])
def test_the_change_is_found_among_predictions_and_not_when_labels_came(before, after) -> None:
    """Within a bucket (34 minutes) in the median; the alarm itself is hours late, as labels are."""
    errors, late, inside = [], [], []
    for seed in range(by_tier(fast=4, default=12, everything=200)):
        outcomes, changed = late_stream(seed, before, after)
        alarms = EstimatorSet(SPEC).fold(outcomes)
        rises = [a for a in alarms if a.event_ms > changed and a.after > a.before]
        assert rises
        late.append(rises[0].event_ms - changed)
        found = [alarm.predictions for alarm in rises if alarm.predictions is not None]
        if found:
            errors.append(abs(found[-1].since_ms - changed))
            inside += [found[-1].earliest_ms <= changed <= found[-1].latest_ms]
    assert len(errors) >= 0.75 * len(late)
    assert np.median(errors) <= WIDTH_MS
    assert np.median(late) >= 2 * HOUR_MS
    assert np.mean(inside) >= 0.75


def test_an_error_that_falls_is_no_rise_among_predictions() -> None:
    outcomes, _ = late_stream(3)
    for alarm in EstimatorSet(SPEC).fold(outcomes):
        if alarm.predictions is not None:
            assert (alarm.after > alarm.before) is (alarm.predictions.after > alarm.predictions.before)
        if alarm.judgement is not None:
            assert alarm.predictions is None


def test_a_verdict_says_whether_only_quick_labels_could_be_in() -> None:
    outcomes, _ = late_stream(4)
    verdicts = [alarm for alarm in EstimatorSet(SPEC).fold(outcomes) if alarm.judgement is not None]
    young = [alarm.event_ms < outcomes[0].event_ms + DAY_MS for alarm in verdicts]
    assert any(young)
    assert [bool(v.judgement and v.judgement.quick_labels_only) for v in verdicts] == young
    without = EstimatorSet(DEFAULT).fold(outcomes)
    assert not any(alarm.judgement and alarm.judgement.quick_labels_only for alarm in without)


@pytest.mark.parametrize(
    ("waiting_share", "quick"), [(0.0, False), (0.04, False), (0.5, True)], ids=["none", "few", "many"]
)
@pytest.mark.parametrize("size", few([700, 1, 100_000], 1))
def test_quick_labels_are_judged_by_delays_and_by_what_waits_not_by_the_horizon(
    waiting_share, quick, size
) -> None:
    """Labels within a minute and a horizon of a day: all are in, unless many predictions wait for one."""
    rng = np.random.default_rng(5)
    outcomes = []
    for number in range(6_000):
        label = str(int(rng.random() < 0.5))
        predicted = label if rng.random() < 0.95 else str(1 - int(label))
        at = 1_760_000_000_000 + 5_000 * number
        made = max(1, round((number + 1) / (1 - waiting_share)))
        outcomes.append(Outcome("m", label, predicted, at, 30_000, made=made, resolved_ms=at))
    estimators = EstimatorSet(SPEC)
    found = [
        alarm
        for start in range(0, len(outcomes), size)
        for alarm in estimators.fold(outcomes[start : start + size])
    ]
    judged = [alarm.judgement for alarm in found if alarm.judgement is not None]
    assert judged
    assert {each.quick_labels_only for each in judged} == {quick}
