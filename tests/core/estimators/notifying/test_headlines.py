"""Changes of headlines are alarms: by cohorts once these judge, before and elsewhere in label order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import VERDICT, Alarm, Outcome, fold_name
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of
from tests.layouts import BALANCED

HORIZON_MS = 600_000
UTILITIES = (UtilitySpec("fair", "balanced"),)
SPEC = replace(
    BALANCED,
    max_models=4,
    utilities=UTILITIES,
    registers=(CohortsSpec(HORIZON_MS, utilities=UTILITIES),),
)
FALLS = 8_000


def falling(model: str = "m", n: int = 14_000, at: int = FALLS) -> list[Outcome]:
    """One prediction a second, labelled 5 ms later; labels repeat with .6, it is right with .95, then .3."""
    rng = np.random.default_rng(5)
    label, outcomes = 0, []
    for i in range(n):
        before, label = label, label if rng.random() < 0.6 else 1 - label
        right = rng.random() < (0.95 if i < at else 0.3)
        outcomes.append(
            Outcome(
                model,
                str(label),
                str(label if right else 1 - label),
                1_000 * i + 5,
                5,
                label_at_prediction=str(before),
                made=i + 1,
                resolved_ms=1_000 * i + 5,
                waited_ms=5,
            )
        )
    return outcomes


def verdicts(alarms: list[Alarm]) -> list[Alarm]:
    return [alarm for alarm in alarms if alarm.detector == VERDICT]


def test_the_order_of_labels_is_notified_until_cohorts_judge_and_from_then_on_they_are() -> None:
    monitors = EstimatorSet(SPEC)
    first, better, worse = verdicts(monitors.fold(falling()))
    assert first.judgement is not None
    assert (first.judgement.basis, first.judgement.verdict) == ("labels", 1)
    for alarm, verdict in ((better, 1), (worse, -1)):
        assert alarm.judgement is not None
        assert (alarm.judgement.basis, alarm.judgement.verdict) == ("cohorts", verdict)
        assert alarm.judgement.status == "confirmed", "labels within seconds need no assumption"
        assert alarm.model == "m"
        assert alarm.event_ms == 1_000 * (alarm.outcome - 1) + 5
    assert (better.before, better.after, worse.before, worse.after) == (1.0, 1.0, 1.0, -1.0)
    assert worse.judgement is not None
    assert abs(worse.judgement.since_ms - 1_000 * FALLS) < 60_000
    assert abs(worse.judgement.since - FALLS) < 60
    assert worse.outcome - FALLS < 500
    ordinals = [alarm.ordinal for alarm in (first, better, worse)]
    assert ordinals == sorted(set(ordinals))
    assert monitors.details()["m"]["headline"] == {
        "basis": "cohorts",
        "verdict": "worse",
        "opponent": worse.judgement.opponent,
        "status": "confirmed",
        "since_timestamp_seconds": worse.judgement.since_ms / 1_000,
        "earliest_timestamp_seconds": (earliest_ms := worse.judgement.earliest_ms or 0) / 1_000,
        "latest_timestamp_seconds": (latest_ms := worse.judgement.latest_ms or 0) / 1_000,
    }
    assert earliest_ms <= 1_000 * FALLS <= latest_ms
    assert monitors.facts.headlines(["m"]) == {"m": -1}
    assert verdicts(monitors.recent_alarms)[-1] == worse


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 173])
def test_alarms_do_not_depend_on_cuts_or_on_resuming(size: int) -> None:
    outcomes = falling(n=9_000)
    expected = EstimatorSet(SPEC).fold(outcomes)
    assert len(verdicts(expected)) == 3
    monitors, found = EstimatorSet(SPEC), []
    for number, start in enumerate(range(0, len(outcomes), size)):
        found += monitors.fold(outcomes[start : start + size])
        if number % (10_000 // size) == 1:
            resumed = EstimatorSet(SPEC)
            resumed.restore(monitors.snapshot("m"))
            monitors = resumed
    assert found == expected
    assert EstimatorSet(SPEC).trace(outcomes).alarms == expected


def test_a_model_judged_otherwise_or_in_folds_keeps_the_order_of_labels() -> None:
    for model in ("fair", fold_name("m", 0)):
        monitors = EstimatorSet(SPEC)
        outcomes = falling(model)
        plain = EstimatorSet(replace(SPEC, registers=()))
        alarms = monitors.fold(outcomes)
        assert alarms == plain.fold(outcomes)
        judgements = [alarm.judgement for alarm in alarms if alarm.judgement is not None]
        assert {each.utility for each in judgements} == {"balanced" if model == "fair" else "accuracy"}
        bases = {each.basis for each in judgements}
        assert bases == {"labels"}
        (name,) = monitors.details()
        assert "headline" not in monitors.details()[name]
        assert monitors.facts.headlines([name]) == plain.facts.headlines([name]) == {name: -1}


def test_headlines_of_many_models_are_those_of_each() -> None:
    monitors = EstimatorSet(SPEC)
    names = ("m", "fair", "young", fold_name("folded", 0), fold_name("folded", 1))
    for name in names:
        monitors.fold(falling(name, n=60 if name == "young" else 12_000))
    asked = ["fair", "folded", "nobody", "m", "young"]
    found = monitors.facts.headlines(asked)
    assert found == {name: one for each in asked for name, one in monitors.facts.headlines([each]).items()}
    assert found == {"fair": -1, "folded": -1, "m": -1, "young": 0}


@pytest.mark.parametrize("by_cohorts", [False, True])
def test_details_say_what_a_model_is_judged_by_unless_that_is_accuracy(by_cohorts) -> None:
    by_pair = (("0", "0", 0.0), ("1", "1", 0.0), ("1", "0", 1.0), ("0", "1", 0.5))
    costs = UtilitySpec("dear", "costs", by_pair)
    utilities = (*UTILITIES, costs)
    registers = (CohortsSpec(HORIZON_MS, utilities=utilities),) if by_cohorts else ()
    monitors = EstimatorSet(replace(SPEC, utilities=utilities, registers=registers))
    for model in ("fair", "dear", "m"):
        monitors.fold(falling(model, n=60))
    utilities = {name: found.get("utility") for name, found in monitors.details().items()}
    assert utilities["dear"] == "costs"
    assert utilities["fair"] == "balanced"
    assert utilities["m"] is None


def test_a_headline_still_to_come_says_so() -> None:
    monitors = EstimatorSet(SPEC)
    monitors.fold(falling(n=500))
    assert monitors.details()["m"]["headline"] == {"basis": "labels"}
    assert monitors.facts.headlines(["nobody"]) == {}


def test_more_traffic_makes_no_false_headline_where_errors_are_labelled_sooner() -> None:
    # The model is right with .6 always, and both opponents with .5. From the middle on, there are 8 times as
    # many predictions, whose first labels are errors.
    stream = Stream(predictions=40_000, classes=2, majority=0.5, accuracy=(0.6, 0.6), crowded=8.0)
    stream = replace(stream, mean_delays=(0.2, 0.02))
    outcomes = outcomes_of(stream, 1).events()

    def headlines(*registers: CohortsSpec) -> list[tuple[str, int, str]]:
        found = verdicts(EstimatorSet(replace(SPEC, registers=registers)).fold(outcomes))
        return [(a.judgement.basis, a.judgement.verdict, a.judgement.status) for a in found if a.judgement]

    assert headlines() == [("labels", 1, ""), ("labels", -1, ""), ("labels", 1, "")]
    assert headlines(CohortsSpec(stream.horizon_ms)) == [
        ("labels", 1, ""),
        ("cohorts", 1, "early"),
        ("cohorts", 1, "confirmed"),
    ]
