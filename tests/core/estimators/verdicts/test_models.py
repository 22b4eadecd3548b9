"""Verdicts of models by name: notified with since when, by the utility of each model, whatever the cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.pipeline.sections import document_of, spec_of
from streamwatch.core.records.events import VERDICT, Outcome
from streamwatch.core.specs import MonitorsSpec, UtilitySpec

COSTS = UtilitySpec("*-costs", "costs", (("fraud", "legit", 100.0), ("legit", "fraud", 1.0)), other=0.0)
SPEC = replace(
    MonitorsSpec(), max_models=8, utilities=(COSTS, UtilitySpec("*-fair", "balanced"), UtilitySpec())
)


def changing(n, at, model="m"):
    """Labels repeat with .8; the model is right with .95, from outcome `at` + 1 on with .5."""
    rng = np.random.default_rng(5)
    label, outcomes = 0, []
    for i in range(n):
        label = label if rng.random() < 0.8 else 1 - label
        right = rng.random() < (0.95 if i < at else 0.5)
        outcomes.append(Outcome(model, str(label), str(label if right else 1 - label), 1_000 * i, 5))
    return outcomes


def frauds(n, models):
    """One fraud in a hundred; every model finds nine in ten of them, and nine in ten it finds are none."""
    rng = np.random.default_rng(6)
    outcomes = []
    for i in range(n):
        fraud = rng.random() < 0.01
        flagged = rng.random() < (0.9 if fraud else 0.082)
        predicted = ("legit", "fraud")[flagged]
        outcomes += [Outcome(m, ("legit", "fraud")[fraud], predicted, i, 5) for m in models]
    return outcomes


def series(monitors, name):
    return next(dict(family.samples) for family in monitors.families() if family.name == name)


def test_a_change_of_the_verdict_on_no_change_is_an_alarm_that_says_since_when() -> None:
    monitors = EstimatorSet(SPEC)
    alarms = [a for a in monitors.fold(changing(12_000, 6_000)) if a.detector == VERDICT]
    better, worse = alarms
    assert (better.judgement.verdict, worse.judgement.verdict) == (1, -1)
    assert (better.before, better.after, worse.before, worse.after) == (0.0, 1.0, 1.0, -1.0)
    assert [a.ordinal for a in alarms] == [1, 2]
    assert better.judgement.since < 100
    assert 5_900 < worse.judgement.since < 6_200 < worse.outcome < 7_000
    for alarm in alarms:
        assert alarm.judgement.opponent == "persistent"
        assert alarm.judgement.since_ms == 1_000 * (alarm.judgement.since - 1)
        assert alarm.event_ms == 1_000 * (alarm.outcome - 1)
        assert alarm.statistic >= alarm.threshold == 4e6
    assert list(monitors.recent_alarms)[-1] == worse
    key = ("m", "persistent")
    assert series(monitors, "verdict")[key] == -1
    assert series(monitors, "verdict_since_timestamp_seconds")[key] == worse.judgement.since_ms / 1000
    assert series(monitors, "verdict_since_outcome")[key] == worse.judgement.since
    lower, lead, upper = (series(monitors, name)[key] for name in ("lead_lower", "lead", "lead_upper"))
    assert lower < lead < upper < 0
    assert lead == pytest.approx(-0.3, abs=0.05)
    assert ("m", "temporal_correction") not in series(monitors, "verdict")
    assert {side for *_, side in series(monitors, "verdict_evidence")} == {"better", "worse"}


def test_a_useful_detector_of_frauds_is_worse_by_accuracy_and_better_by_what_it_is_for() -> None:
    monitors = EstimatorSet(SPEC)
    monitors.fold(frauds(12_000, ("triage", "triage-fair", "triage-costs")))
    verdicts = {
        model: value for (model, whom), value in series(monitors, "verdict").items() if whom == "persistent"
    }
    assert verdicts == {"triage": -1, "triage-fair": 1, "triage-costs": 1}


def test_models_judged_by_costs_do_not_depend_on_batches_or_on_stopping_and_resuming() -> None:
    outcomes = frauds(1_500, ("a-costs", "b"))
    names = [str(i) for i in range(9)]
    outcomes += [Outcome("a-costs", names[i % 9], names[i % 7], i, 5) for i in range(300)]
    whole, cut = EstimatorSet(SPEC), EstimatorSet(SPEC)
    expected = whole.fold(outcomes)
    found = []
    for start in range(0, len(outcomes), 97):
        found += cut.fold(outcomes[start : start + 97])
        resumed = EstimatorSet(SPEC)
        for model in cut.models():
            resumed.restore(cut.snapshot(model))
        cut = resumed
    assert found == expected
    for model in whole.models():
        assert whole.snapshot(model) == cut.snapshot(model)


def test_utilities_are_part_of_the_settings_that_a_state_keeps() -> None:
    assert spec_of(document_of(SPEC)) == (SPEC, ())
