"""Which it looks like when the error changed: exact parts, and what it says of simulated changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.notifying.class_shift import (
    ClassShift,
    class_shift,
    label_correlation,
    shift_between,
)
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from tests.core.estimators.measures.summed import FIELDS, confusion
from tests.layouts import DEFAULT, TINY
from tests.tiers import by_tier, examples

Z = 1.959963984540054
SIDE = st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1)), min_size=4, max_size=4)


def side(counts: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    n = np.array([float(count) for count, _ in counts])
    return n, np.array([float(round(count * recall)) for count, recall in counts])


def parts_by_hand(
    before: tuple[np.ndarray, np.ndarray], recent: tuple[np.ndarray, np.ndarray]
) -> list[Fraction]:
    """Change by classes and by model, in fractions."""
    n_b, n_r = int(before[0].sum()), int(recent[0].sum())
    classes = model = Fraction(0)
    for b, hits_b, r, hits_r in zip(*before, *recent, strict=True):
        if b == r == 0:
            continue
        e_b = 1 - Fraction(int(hits_b), int(b)) if b else 1 - Fraction(int(hits_r), int(r))
        e_r = 1 - Fraction(int(hits_r), int(r)) if r else e_b
        s_b, s_r = Fraction(int(b), n_b), Fraction(int(r), n_r)
        classes += (s_r - s_b) * (e_r + e_b) / 2
        model += (s_r + s_b) / 2 * (e_r - e_b)
    return [classes, model]


@given(SIDE, SIDE)
@settings(max_examples=examples(2.0))
def test_the_parts_are_exact_and_add_up_to_the_change_of_the_error(
    counts_before: list[tuple[int, float]], counts_recent: list[tuple[int, float]]
) -> None:
    before, recent = side(counts_before), side(counts_recent)
    found = class_shift(before, recent, list("abcd"), Z)
    if min(before[0].sum(), recent[0].sum()) < 100:
        assert found is None
        return
    assert found is not None
    classes, model = parts_by_hand(before, recent)
    assert found.by_classes == pytest.approx(float(classes), abs=1e-12)
    assert found.by_model == pytest.approx(float(model), abs=1e-12)
    error = [1.0 - hits.sum() / n.sum() for n, hits in (before, recent)]
    assert found.change == pytest.approx(error[1] - error[0], abs=1e-12)
    lead = abs(found.by_classes) - abs(found.by_model)
    assert found.looks_like == (
        "unclear" if abs(lead) <= found.uncertainty else "classes" if lead > 0 else "model"
    )


def width_by_hand(
    before: tuple[np.ndarray, np.ndarray],
    recent: tuple[np.ndarray, np.ndarray],
    correlation: tuple[float, float] = (0.0, 0.0),
) -> float:
    """Half-width from its definition: class by class, moments of one draw, no more than every outcome."""
    classes = model = unknown = 0.0
    n = before[0].sum(), recent[0].sum()
    moments = [[0.0, 0.0], [0.0, 0.0]]
    for counts in zip(*before, *recent, strict=True):
        pairs = counts[:2], counts[2:]
        shares = [pair[0] / all_of_it for pair, all_of_it in zip(pairs, n, strict=True)]
        if min(pair[0] for pair in pairs) < 5:
            unknown += max(shares)  # e from 0 to 1 on either side
            continue
        errors = [1.0 - hits / count for count, hits in pairs]
        for moment, share in zip(moments, shares, strict=True):
            moment[0] += share * sum(errors) / 2
            moment[1] += share * (sum(errors) / 2) ** 2
        for count, hits in pairs:
            error = (count - hits + 1) / (count + 2)
            model += (sum(shares) / 2) ** 2 * error * (1 - error) / count
    for (first, second), all_of_it in zip(moments, n, strict=True):
        classes += (second - first**2) / all_of_it
    grown = [(1 + rho) / max(1 - rho, 0.002) for rho in correlation]
    return Z * (grown[0] * classes + grown[1] * model) ** 0.5 + unknown


@given(SIDE, SIDE, st.sampled_from([(0.0, 0.0), (0.5, 0.25), (0.0, 0.9), (1.0, 0.0)]))
@settings(max_examples=examples(2.0))
def test_the_uncertainty_is_that_of_its_definition(
    counts_before: list[tuple[int, float]],
    counts_recent: list[tuple[int, float]],
    correlation: tuple[float, float],
) -> None:
    before, recent = side(counts_before), side(counts_recent)
    found = class_shift(before, recent, list("abcd"), Z, correlation)
    if found is not None:
        assert found.uncertainty == pytest.approx(
            width_by_hand(before, recent, correlation), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize(
    ("recent", "correlation"),
    [([(600, 0.95), (400, 0.5)], (0.5, 0.25)), ([(996, 0.95), (4, 0.5)], (0.0, 0.0))],
)
def test_the_uncertainty_of_two_sides_is_that_of_its_definition(
    recent: list[tuple[int, float]], correlation: tuple[float, float]
) -> None:
    sides = side([(9_000, 0.9), (1_000, 0.5)]), side(recent)
    found = class_shift(*sides, ["c0", "c1"], Z, correlation)
    assert found is not None
    assert found.uncertainty == pytest.approx(width_by_hand(*sides, correlation), rel=1e-9)


def test_the_correlations_are_those_of_the_window() -> None:
    def totals(rows: list[list[float]], repeats: float, lost_twice: float) -> Totals:
        made = confusion(rows)
        changed = {"repeats": repeats, "pairs": 1_000.0, "lost_twice": lost_twice}
        return Totals(**{f: np.array([changed[f]]) if f in changed else getattr(made, f) for f in FIELDS})

    window = totals([[570.0, 30.0], [200.0, 200.0]], 700.0, 60.0)
    past = totals([[9_070.0, 530.0], [700.0, 700.0]], 0.0, 0.0)
    found = shift_between(past, [window], ["c0", "c1"], 0.05, nan)
    assert found is not None
    sides = (np.array([9_000.0, 1_000.0]), np.array([8_500.0, 500.0])), side([(600, 0.95), (400, 0.5)])
    correlation = (0.7 - 0.52) / 0.48, (0.06 - 0.23**2) / (0.23 * 0.77)
    assert found.uncertainty == pytest.approx(width_by_hand(*sides, correlation), rel=1e-9)


def shift(before: list[tuple[int, float]], recent: list[tuple[int, float]], level: float = nan) -> ClassShift:
    found = class_shift(side(before), side(recent), ["c0", "c1"], Z, level=level)
    assert found is not None
    return found


def test_a_class_that_went_from_10_to_40_percent_with_recall_unchanged_is_the_classes() -> None:
    found = shift([(9_000, 0.95), (1_000, 0.5)], [(600, 0.95), (400, 0.5)])
    assert found.looks_like == "classes"
    assert found.by_model == 0.0
    assert (found.share.name, found.share.before, found.share.after) == ("c1", 0.1, 0.4)


def test_a_recall_that_fell_with_shares_unchanged_is_the_model() -> None:
    found = shift([(9_000, 0.95), (1_000, 0.9)], [(900, 0.95), (100, 0.3)])
    assert found.looks_like == "model"
    assert found.by_classes == 0.0
    assert found.recall is not None
    assert (found.recall.name, found.recall.before, found.recall.after) == ("c1", 0.9, pytest.approx(0.3))


def test_few_outcomes_and_halves_of_either_are_unclear() -> None:
    assert shift([(9_000, 0.95), (1_000, 0.5)], [(108, 0.95), (12, 0.5)]).looks_like == "unclear"
    assert shift([(9_000, 0.95), (1_000, 0.6)], [(750, 0.89), (250, 0.5)]).looks_like == "unclear"


def test_a_class_never_seen_before_leaves_it_unclear() -> None:
    """What the model made of it before, nobody knows."""
    found = shift([(10_000, 0.95), (0, 0.0)], [(600, 0.95), (400, 0.0)])
    assert found.looks_like == "unclear"
    assert found.share.name == "c1"


def test_a_past_of_another_level_than_the_one_before_the_change_leaves_it_unclear() -> None:
    found = shift([(9_000, 0.95), (1_000, 0.5)], [(600, 0.95), (400, 0.5)], level=0.095)
    assert (found.looks_like, found.past_differs) == ("classes", False)
    found = shift([(9_000, 0.95), (1_000, 0.5)], [(600, 0.95), (400, 0.5)], level=0.2)
    assert (found.looks_like, found.past_differs) == ("unclear", True)


def test_correlated_labels_and_losses_make_it_less_sure() -> None:
    before, recent = side([(9_000, 0.95), (1_000, 0.5)]), side([(600, 0.95), (400, 0.5)])
    widths = [
        class_shift(before, recent, ["c0", "c1"], Z, correlation)
        for correlation in ((0.0, 0.0), (-0.5, nan), (0.8, 0.0), (0.0, 0.8), (1.0, 1.0))
    ]
    plain, negative, labels, losses, all_of_it = (found.uncertainty for found in widths if found is not None)
    assert plain == negative < min(labels, losses) < all_of_it


def test_the_correlation_of_labels_is_that_of_a_coin_and_of_runs() -> None:
    assert label_correlation(np.array([0.5, 0.5]), 500.0, 1_000.0) == 0.0
    assert label_correlation(np.array([0.5, 0.5]), 900.0, 1_000.0) == pytest.approx(0.8)
    assert np.isnan(label_correlation(np.array([1.0, 0.0]), 1_000.0, 1_000.0))
    assert np.isnan(label_correlation(np.array([0.5, 0.5]), 0.0, 0.0))


CHANGED, OUTCOMES = 6_000, 9_000


def found_at_alarms(
    seed: int, shares: tuple[float, float], recalls: tuple[tuple[float, float], ...], sticky: float
) -> list[str]:
    """Findings at each alarm of a change of the share of c1, and of the recalls of c0 and c1."""
    chance = np.random.default_rng(seed)
    late = np.arange(OUTCOMES) >= CHANGED
    drawn = (chance.random(OUTCOMES) < np.where(late, shares[1], shares[0])).astype(int)
    kept = np.flatnonzero(np.concatenate(([True], chance.random(OUTCOMES - 1) >= sticky)))
    runs = np.diff(np.append(kept, OUTCOMES))
    label = np.repeat(drawn[kept], runs)
    hit = chance.random(OUTCOMES) < np.array(recalls)[late.astype(int), label]
    outcomes = [
        Outcome("m", f"c{y}", f"c{y if h else 1 - y}", t, 0)
        for t, (y, h) in enumerate(zip(label.tolist(), hit.tolist(), strict=True))
    ]
    estimators = EstimatorSet(replace(DEFAULT, max_models=1))
    estimators.fold(outcomes[:CHANGED])
    words: list[str] = []
    for start in range(CHANGED, OUTCOMES, 50):
        for alarm in estimators.fold(outcomes[start : start + 50]):
            if alarm.judgement is None:
                found = estimators.facts.class_shift("m", alarm.before)
                words.append(found.looks_like if found else "nothing")
    return words


STEADY = ((0.95, 0.5), (0.95, 0.5))


CASES = {
    "10 to 40 percent": ((0.1, 0.4), STEADY, "classes"),
    "both recalls": ((0.3, 0.3), ((0.95, 0.8), (0.8, 0.5)), "model"),
    "recall of the rare class": ((0.1, 0.1), ((0.97, 0.9), (0.97, 0.3)), "model"),
    "half and half": ((0.1, 0.25), ((0.95, 0.6), (0.89, 0.5)), "unclear"),
}
"""Share of c1 before and after, recalls of c0 and c1 before and after, and what is true."""


@pytest.mark.slow
@pytest.mark.parametrize("sticky", [0.0, 0.8])
@pytest.mark.parametrize("case", CASES)
def test_it_is_found_or_left_unclear_at_the_alarms_of_simulated_changes(case: str, sticky: float) -> None:
    shares, recalls, true = CASES[case]
    runs = by_tier(fast=8, default=12, everything=200)
    last: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for seed in range(runs):
        words = found_at_alarms(seed, shares, recalls, sticky)
        if words:
            last[words[-1]] += 1
            false.update({word for word in words if word not in {true, "unclear"}})
    total = last.total()
    assert total >= runs * 0.6, "hardly an alarm: nothing was tested"
    most = max(2, 0.15 * total) if sticky else max(1, 0.1 * total)
    assert sum(false.values()) <= most, "two alarms or so a run, each wrong at 5 % or somewhat more"
    assert sticky or last[true] >= 0.8 * total, f"too often unclear: {last}"


def test_nothing_is_found_without_a_window_the_model_or_enough_outcomes() -> None:
    outcomes = [Outcome("m", "a", "a", t, 0) for t in range(500)]
    estimators = EstimatorSet(TINY)
    estimators.fold(outcomes)
    assert estimators.facts.class_shift("m", nan) is None
    estimators = EstimatorSet(replace(DEFAULT, max_models=1))
    assert estimators.facts.class_shift("m", nan) is None
    estimators.fold(outcomes[:50])
    assert estimators.facts.class_shift("m", nan) is None
