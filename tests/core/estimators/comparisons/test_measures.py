"""Every number of a comparison beside its definition, at every prefix."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from streamwatch.core.estimators.comparisons.measures import CRITICAL
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import (
    AdwinSpec,
    ComparisonSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
    UtilitySpec,
)
from tests.core.estimators.comparisons.plain_comparison import PlainComparison

SPEC = MonitorsSpec(
    forgetting=(
        LandmarkSpec(),
        FadingSpec(0.9),
        FadingSpec(0.999),
        SlidingSpec(7),
        SlidingSpec(40),
        AdwinSpec(),
    ),
    comparisons=(ComparisonSpec("old", ("new*",)),),
)


def outcome(y, champion, challenger, event_ms, *, challenger_last=True):
    """The later outcome of a pair, of whichever model."""
    if challenger_last:
        return Outcome("new", y, challenger, event_ms, 0, pairs=(PairedAnswer("old", champion),))
    return Outcome("old", y, champion, event_ms, 0, pairs=(PairedAnswer("new", challenger),))


def values_of(comparisons, forgetting=None):
    """Measures under one forgetting (None: those without), of the only comparison."""
    found = {}
    for family in comparisons.families():
        for (challenger, champion, *more), value in family.samples:
            assert (challenger, champion) == ("new", "old")
            if forgetting is None and "forgetting" not in family.labels:
                found[":".join([family.name, *more])] = value
            elif more == [forgetting]:
                found[family.name] = value
    return found


def drawn(seed, number, champion_error, challenger_error, classes=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    for event_ms in range(number):
        y = classes[rng.choice(len(classes), p=[0.8, 0.15, 0.05])]
        answers = [
            y if rng.random() >= error else classes[rng.integers(len(classes))]
            for error in (champion_error, challenger_error)
        ]
        yield y, *answers, event_ms, bool(rng.random() < 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("champion_error", "challenger_error"), [(0.3, 0.3), (0.05, 0.4), (0.02, 0.0)])
def test_every_measure_equals_its_definition_at_every_prefix(champion_error, challenger_error):
    comparisons, plain = ComparisonSet(SPEC), PlainComparison()
    for y, champion, challenger, event_ms, last in drawn(1, 150, champion_error, challenger_error):
        comparisons.fold([outcome(y, champion, challenger, event_ms, challenger_last=last)])
        plain.take(y, champion, challenger, event_ms)
        for forgetting, expected in {
            "landmark": plain.landmark(),
            "fading:0.9": plain.faded(0.9),
            "fading:0.999": plain.faded(0.999),
            "sliding:7": plain.sliding(7),
            "sliding:40": plain.sliding(40),
        }.items():
            assert values_of(comparisons, forgetting) == pytest.approx(expected, rel=1e-9, abs=1e-12), (
                forgetting
            )
        now = values_of(comparisons)
        assert now["comparison_pairs_total"] == len(plain.pairs)
        assert now["comparison_last_pair_timestamp_seconds"] == event_ms / 1000


def test_a_comparison_has_no_adwin_window():
    comparisons = ComparisonSet(SPEC)
    comparisons.fold([outcome("a", "a", "b", 1)])
    assert values_of(comparisons, AdwinSpec().name) == {}


def test_mcnemar_as_scipy_and_the_papers_have_it():
    """n01 = 25, n10 = 10: (25 − 10)²/35; the 99 % level of χ²(1) is the critical value."""
    comparisons = ComparisonSet(SPEC)
    pairs = [("a", "b", "a")] * 25 + [("a", "a", "b")] * 10 + [("a", "a", "a")] * 60 + [("a", "b", "b")] * 5
    comparisons.fold([outcome(*pair, 0) for pair in pairs])
    now = values_of(comparisons, "landmark")
    assert now["comparison_mcnemar"] == pytest.approx(225 / 35, rel=1e-12)
    assert now["comparison_mcnemar_calibrated"] == now["comparison_mcnemar"]
    assert now["comparison_q"] == pytest.approx(math.log(30 / 15), rel=1e-12)
    assert chi2.isf(0.01, 1) == pytest.approx(CRITICAL, abs=5e-4)


def test_faded_mcnemar_of_equal_models_is_chi_squared_only_when_calibrated():
    """E[M] = 1/(1 + α) where the models are equal; D²/V has the quantiles that SciPy gives χ²(1)."""
    alpha, found, calibrated = 0.99, [], []
    rng = np.random.default_rng(3)
    champion_wrong, challenger_wrong = rng.random((2, 60_000)) < 0.3
    spec = replace(SPEC, forgetting=(FadingSpec(alpha),))
    comparisons = ComparisonSet(spec)
    for start in range(0, 60_000, 600):  # so far apart that the statistics are as good as independent
        comparisons.fold(
            outcome("a", "b" if a else "a", "b" if b else "a", 0)
            for a, b in zip(
                champion_wrong[start : start + 600], challenger_wrong[start : start + 600], strict=True
            )
        )
        now = values_of(comparisons, f"fading:{alpha}")
        found.append(abs(now["comparison_mcnemar"]))
        calibrated.append(abs(now["comparison_mcnemar_calibrated"]))
    assert np.mean(found) == pytest.approx(1 / (1 + alpha), abs=0.25)
    assert np.mean(calibrated) == pytest.approx(1.0, abs=0.45)
    assert np.mean(np.array(calibrated) > chi2.isf(0.5, 1)) == pytest.approx(0.5, abs=0.2)


def compared_verdict(comparisons, plain):
    now = values_of(comparisons)
    assert now["comparison_verdict"] == plain.verdict.verdict
    assert now["comparison_lead_dispersion"] == pytest.approx(plain.verdict.phi, rel=1e-9)
    if plain.verdict.since[0]:
        assert now["comparison_verdict_since_pair"] == plain.verdict.since[0]
        assert now["comparison_verdict_since_timestamp_seconds"] == plain.verdict.since[1] / 1000
    for side, detector in (("better", plain.verdict.better), ("worse", plain.verdict.worse)):
        expected = max(0.0, math.log(max(detector.mean, 1.0)) / math.log(plain.verdict.threshold))
        assert now[f"comparison_verdict_evidence:{side}"] == pytest.approx(expected, abs=1e-9)
    lead, lower, upper = plain.verdict.interval()
    for name, expected in (("", lead), ("_lower", lower), ("_upper", upper)):
        got = now.get(f"comparison_lead{name}", math.nan)
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_the_verdict_on_a_better_challenger_equals_its_definition():
    spec = replace(SPEC, verdict_outcomes=2_000)
    comparisons, plain = ComparisonSet(spec), PlainComparison()
    plain.verdict.__init__(2_000, 0.05)
    claimed = set()
    turns = [*drawn(5, 1_600, 0.3, 0.1), *drawn(6, 1_400, 0.1, 0.35)]
    for position, (y, champion, challenger, _, last) in enumerate(turns):
        comparisons.fold([outcome(y, champion, challenger, position, challenger_last=last)])
        plain.take(y, champion, challenger, position)
        if position % 50 == 0 or position > 1_140:
            claimed.add(plain.verdict.verdict)
            if position % 10 == 0:
                compared_verdict(comparisons, plain)
    assert claimed >= {1, -1}


def plain_balanced_lead(labels, y, champion, challenger):
    """§10's balanced utility from all earlier labels."""
    counts = {}
    for age, label in enumerate(reversed(labels)):
        counts[label] = counts.get(label, 0.0) + 0.9999**age
    present = {k for k, c in counts.items() if c >= 0.05} | {y}
    total = sum(counts.get(k, 0.0) for k in present)
    share = {k: max((counts.get(k, 0.0) + 1) / (total + len(present)), 0.005) for k in present}
    worth = min(1.0, min(share.values()) / share[y])
    return worth * ((challenger == y) - (champion == y))


def test_a_comparison_is_judged_by_the_utility_of_its_champion():
    costs = UtilitySpec("old", "costs", (("a", "b", 10.0), ("b", "a", 1.0)), other=0.0)
    for utility in (UtilitySpec("old", "balanced"), costs):
        spec = replace(SPEC, utilities=(utility, UtilitySpec("*")))
        comparisons, plain, labels = ComparisonSet(spec), PlainComparison(), []
        for y, champion, challenger, event_ms, last in drawn(7, 1_400, 0.3, 0.1):
            if utility.kind == "balanced":
                lead = plain_balanced_lead(labels[-3_000:], y, champion, challenger)
            else:
                worth = {("a", "b"): 0.0, ("b", "a"): 0.9}
                lead = worth.get((y, challenger), 1.0) - worth.get((y, champion), 1.0)
            labels.append(y)
            comparisons.fold([outcome(y, champion, challenger, event_ms, challenger_last=last)])
            plain.take(y, champion, challenger, event_ms, lead)
        compared_verdict(comparisons, plain)
