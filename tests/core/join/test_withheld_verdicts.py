"""No verdict is given on a model that is wrong because of its mapping."""

from __future__ import annotations

from streamwatch.core.join.caveats import Mismatch, alarms_without_verdicts, families_without_verdicts
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import VERDICT, Alarm


def alarm(model: str, detector: str) -> Alarm:
    return Alarm(model, detector, 1, 7, 0, 0, 0.0, 0.0, 0.0, -1.0, 7.0)


DISJOINT = [Mismatch("m", disjoint=(("1",), ("fraud",))), Mismatch("n", predictions=5)]


def test_changes_of_a_verdict_are_withheld_while_classes_are_disjoint_and_drifts_are_not() -> None:
    alarms = [alarm(model, detector) for model in ("m", "n", "o") for detector in (VERDICT, "adwin")]
    kept = [(each.model, each.detector) for each in alarms_without_verdicts(alarms, DISJOINT)]
    assert kept == [("m", "adwin"), ("n", VERDICT), ("n", "adwin"), ("o", VERDICT), ("o", "adwin")]


def test_only_series_that_say_which_verdict_holds_are_withheld_and_only_of_that_model() -> None:
    families = [
        Family(
            "verdict",
            "gauge",
            "",
            ("model", "opponent"),
            [(("m", "persistent"), -1.0), (("n", "persistent"), 1.0)],
        ),
        Family("outcomes_total", "counter", "", ("model",), [(("m",), 100.0), (("n",), 100.0)]),
    ]
    shown = {each.name: dict(each.samples) for each in families_without_verdicts(families, DISJOINT)}
    assert shown == {
        "verdict": {("n", "persistent"): 1},
        "outcomes_total": {("m",): 100, ("n",): 100},
    }
    assert families_without_verdicts(families, []) == families


def test_verdicts_in_any_order_are_withheld_where_outcomes_are_no_fair_sample() -> None:
    names = ("verdict", "cohort_verdict", "cohort_lead", "outcomes_total")
    families = [
        Family(name, "gauge", "", ("model", "opponent"), [(("m", "o"), 1.0), (("n", "o"), 1.0)])
        for name in names
    ]
    shown = {each.name: len(each.samples) for each in families_without_verdicts(families, [], {"m"})}
    assert shown == {"verdict": 1, "cohort_verdict": 1, "cohort_lead": 1, "outcomes_total": 2}
    alarms = [alarm(model, detector) for model in ("m", "n") for detector in (VERDICT, "adwin")]
    kept = [(each.model, each.detector) for each in alarms_without_verdicts(alarms, [], {"m"})]
    assert kept == [("m", "adwin"), ("n", VERDICT), ("n", "adwin")]
