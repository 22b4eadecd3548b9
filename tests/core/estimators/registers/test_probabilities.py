"""Probabilities equal scikit-learn at every prefix, under every mechanism, and say what they cannot use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec, probabilities_under
from streamwatch.core.estimators.registers.probabilities import register as snapshots
from streamwatch.core.estimators.registers.probabilities.observe import empty
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import AdwinSpec
from tests.core.estimators.registers.plain_probabilities import (
    Scored,
    at_threshold,
    calibration_error,
    effective,
    mean_auc,
    mean_brier,
    mean_log_loss,
    usable,
)
from tests.layouts import DEFAULT, EVERYTHING, TINY
from tests.tiers import by_tier, examples

AUC_OUTCOMES = 40
SPEC = replace(EVERYTHING, registers=(probabilities_under(EVERYTHING.forgetting, AUC_OUTCOMES),))
ALPHAS = {"fading:0.999": 0.999, "fading:0.6": 0.6}
SIZES = {"sliding:50": 50, "sliding:7": 7}


def stream(length: int, seed: int, classes: str = "abc") -> list[Outcome]:
    """Outcomes of one model, whose error changes in the midst; some without scores, some with faulty ones."""
    rng = np.random.default_rng(seed)
    found: list[Outcome] = []
    for i in range(length):
        truth = int(rng.integers(len(classes)))
        sure = 3.0 if i < length // 2 else 0.0
        values = rng.dirichlet([1.0 + sure * (k == truth) for k in range(len(classes))])
        values = np.round(values, 2) if i % 3 else values  # ties, and bins that begin at a score
        scores = dict(zip(classes, map(float, values), strict=True))
        answer = max(scores, key=lambda name: scores[name])
        match i % 11:
            case 4:
                scores = None
            case 5:
                scores[classes[truth]] = math.nan
            case 6:
                del scores[classes[truth]]
            case 7:
                scores = {name: score / 2 for name, score in scores.items()}
            case 8:
                scores["d"] = 0.0
            case 9:
                scores.pop(answer, None)
            case _:
                pass
        found.append(Outcome("m", classes[truth], answer, event_ms=i, delay_ms=0, scores=scores))
    return found


def scored(outcomes: Sequence[Outcome]) -> list[Scored | None]:
    """What can be used of each, from the first that has scores on."""
    first = next((i for i, o in enumerate(outcomes) if o.scores), len(outcomes))
    return [usable(o.true_class, o.predicted_class, o.scores) for o in outcomes[first:]]


def values_of(estimators: EstimatorSet) -> dict[tuple[str, ...], float]:
    """Value of every series of the model, by name and mechanism."""
    return {
        (family.name, *(part for part in key if part != "m")): float(value)
        for family in estimators.families()
        for key, value in family.samples
        if not hasattr(value, "counts")
    }


def weights_of(name: str, length: int, adwin: dict[tuple[str, ...], float]) -> np.ndarray:
    """Weight of each of `length` outcomes, oldest first, under a mechanism."""
    age = np.arange(length)[::-1]
    if name in ALPHAS:
        return ALPHAS[name] ** age.astype(np.float64)
    width = SIZES.get(name) or int(adwin.get(("adwin_window_outcomes", name), length))
    return (age < width).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(by_tier(fast=1, default=1, everything=5)))
def test_losses_equal_scikit_learn_under_every_mechanism_at_every_prefix(seed: int) -> None:
    outcomes = stream(by_tier(fast=120, default=200, everything=900), seed)
    estimators = EstimatorSet(SPEC)
    cuts = 0
    for t, outcome in enumerate(outcomes, 1):
        estimators.fold([outcome])
        now = values_of(estimators)
        seen = scored(outcomes[:t])
        for forgetting in SPEC.forgetting:
            weights = weights_of(forgetting.name, len(seen), now)
            remembered = [o if w else None for o, w in zip(seen, weights, strict=True)]
            cuts += isinstance(forgetting, AdwinSpec) and now["adwin_window_outcomes", forgetting.name] < t
            for name, expected in (
                ("log_loss", mean_log_loss(remembered, weights)),
                ("brier_score", mean_brier(remembered, weights)),
                ("scored_effective_sample_size", effective(remembered, weights)),
            ):
                value = now.get((name, forgetting.name), math.nan)
                assert value == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), (t, name)
    assert cuts > 20  # ADWIN's windows did shrink, to the width that the model's own has


@pytest.mark.slow
def test_calibration_and_auc_equal_scikit_learn_at_every_prefix() -> None:
    outcomes = stream(by_tier(fast=100, default=200, everything=1_000), 3)
    estimators = EstimatorSet(SPEC)
    for t, outcome in enumerate(outcomes, 1):
        estimators.fold([outcome])
        now = values_of(estimators)
        seen = [o for o in scored(outcomes[:t]) if o is not None]
        weights = 0.999 ** np.arange(len(seen), dtype=np.float64)[::-1]
        error, auc = calibration_error(seen, weights), mean_auc(seen, AUC_OUTCOMES)
        assert now.get(("calibration_error_ratio",), math.nan) == pytest.approx(error, abs=1e-9, nan_ok=True)
        assert now.get(("auc_ratio",), math.nan) == pytest.approx(auc, abs=1e-9, nan_ok=True)


def test_threshold_curves_equal_scikit_learn() -> None:
    outcomes = stream(400, 4)
    estimators = EstimatorSet(SPEC)
    estimators.fold(outcomes)
    seen = [o for o in scored(outcomes) if o is not None]
    weights = 0.999 ** np.arange(len(seen), dtype=np.float64)[::-1]
    document = estimators.details()["m"]["probabilities"]
    assert isinstance(document, dict)
    assert set(document["curves"]) == set("abcd")
    for name, curve in document["curves"].items():
        each = zip(document["thresholds"], curve["precision"], curve["recall"], strict=True)
        for threshold, precision, recall in islice(each, 0, None, by_tier(fast=7, default=3, everything=1)):
            expected = at_threshold(seen, weights, name, threshold)
            shown = [math.nan if value is None else value for value in (precision, recall)]
            assert shown == pytest.approx(expected, abs=1e-6, nan_ok=True), (name, threshold)


def test_where_no_area_is_asked_for_nothing_is_written_beside_the_ring_and_all_else_stays() -> None:
    found: list[dict[str, object]] = []
    for auc_outcomes in (0, AUC_OUTCOMES):
        probabilities = ProbabilitiesSpec(auc_outcomes=auc_outcomes)
        assert len(empty(probabilities).labels) >= 1  # the loop writes to one slot at least
        estimators = EstimatorSet(replace(TINY, registers=(probabilities,)))
        estimators.fold(stream(200, 5))
        document = estimators.details()["m"]["probabilities"]
        assert isinstance(document, dict)
        found.append(document)
    assert found[0]["auc"] is None
    assert all(found[0][name] == found[1][name] for name in ("calibration_error", "reliability", "curves"))


def test_what_cannot_be_used_is_counted_by_reason() -> None:
    outcomes = [
        Outcome("m", "a", "a", 0, 0),  # before the first scores: of no concern
        Outcome("m", "a", "a", 1, 0, scores={"a": 0.9, "b": 0.1}),
        Outcome("m", "a", "a", 2, 0, scores={"a": 0.9, "b": -0.1}),
        Outcome("m", "a", "a", 3, 0, scores={"a": 1.5, "b": 0.1}),
        Outcome("m", "a", "a", 4, 0, scores={"a": math.inf, "b": 0.1}),
        Outcome("m", "a", "a", 5, 0, scores={"a": 0.0, "b": 0.0}),
        Outcome("m", "a", "b", 6, 0, scores={"b": 1.0}),
        Outcome("m", "a", "a", 7, 0, scores={"a": 0.4, "b": 0.4}),
        Outcome("m", "a", "a", 8, 0),
    ]
    estimators = EstimatorSet(SPEC)
    estimators.fold(outcomes)
    now = values_of(estimators)
    assert now["scored_outcomes_total",] == 2
    assert now["scores_unusable_total", "invalid"] == 4
    assert now["scores_unusable_total", "label_absent"] == 1
    assert now["scores_unnormalized_total",] == 1
    assert now["log_loss", "landmark"] == pytest.approx((-math.log(0.9) - math.log(0.5)) / 2)
    # The newest of the last seven is without scores, five more cannot be used: one is left.
    assert now["scored_effective_sample_size", "sliding:7"] == 1


def test_a_certain_mistake_costs_the_logarithm_of_the_least_score() -> None:
    estimators = EstimatorSet(SPEC)
    estimators.fold([Outcome("m", "a", "b", 0, 0, scores={"a": 0.0, "b": 1.0})])
    now = values_of(estimators)
    assert now["log_loss", "landmark"] == pytest.approx(-math.log(1e-15))
    assert now["brier_score", "landmark"] == 2.0
    assert ("auc_ratio",) not in now  # one label alone ranks nothing


def test_a_model_without_scores_has_no_series_and_no_diagrams() -> None:
    estimators = EstimatorSet(replace(DEFAULT, registers=(ProbabilitiesSpec(),)))
    estimators.fold([Outcome("m", "a", "b", i, 0) for i in range(50)])
    assert not {name for name, *_ in values_of(estimators)} & {
        "log_loss",
        "scored_outcomes_total",
        "auc_ratio",
    }
    assert "probabilities" not in estimators.details()["m"]


@given(points=st.lists(st.integers(0, 120), max_size=5), resumed=st.integers(0, 120))
@settings(max_examples=examples(0.3))
def test_any_cut_and_any_restart_give_bitwise_the_same_state(points: list[int], resumed: int) -> None:
    outcomes = [
        replace_model(outcome, model)
        for one, other in zip(stream(60, 1), stream(60, 2, "ab"), strict=True)
        for outcome, model in ((one, "m"), (other, "n"))
    ]
    whole, pieces = EstimatorSet(SPEC), EstimatorSet(SPEC)
    whole.fold(outcomes)
    for start, end in zip([0, *sorted([*points, resumed])], [*sorted([*points, resumed]), 120], strict=True):
        pieces.fold(outcomes[start:end])
        if end == resumed:
            again = EstimatorSet(SPEC)
            for model in pieces.models():
                again.restore(pieces.snapshot(model))
            pieces = again
    assert [pieces.snapshot(model) for model in "mn"] == [whole.snapshot(model) for model in "mn"]


def replace_model(outcome: Outcome, model: str) -> Outcome:
    """The outcome of another model."""
    return Outcome(
        model, outcome.true_class, outcome.predicted_class, outcome.event_ms, 0, scores=outcome.scores
    )


def test_classes_beyond_the_limit_have_no_area_but_count_as_others() -> None:
    spec = replace(TINY, max_classes=8, registers=(ProbabilitiesSpec(max_auc_classes=2),))
    rng = np.random.default_rng(6)
    outcomes: list[Outcome] = []
    for i in range(300):
        values = rng.dirichlet((1, 1, 1, 1)).tolist()
        scores = dict(zip("abcd", values, strict=True))
        outcomes.append(Outcome("m", "abcd"[int(rng.integers(4))], "a", i, 0, scores=scores))
    estimators = EstimatorSet(spec)
    estimators.fold(outcomes)
    document = estimators.details()["m"]["probabilities"]
    assert isinstance(document, dict)
    first = [outcomes[0].true_class, "a"]
    assert list(document["auc_by_class"]) == list(dict.fromkeys([*first, "a", "b"]))[:2]
    seen = [o for o in scored(outcomes) if o is not None]
    for name, area in document["auc_by_class"].items():
        alone = [
            Scored("x" if o.true_class != name else name, "a", {name: o.scores[name], "x": 0.0}) for o in seen
        ]
        # With a constant score of the rest, whose own area is a half.
        assert area == pytest.approx(2 * mean_auc(alone, 1_000) - 0.5, abs=1e-6)


@pytest.mark.parametrize("buckets", [[100], [-1], [2**31 - 1], [1, 1], [1] * 99])
def test_a_snapshot_with_more_buckets_than_a_window_has_is_refused(buckets: list[int]) -> None:
    spec = probabilities_under(EVERYTHING.forgetting, AUC_OUTCOMES)
    damaged = msgspec.msgpack.decode(snapshots.encode(empty(spec)))
    window = damaged[4][0]
    window[0][3], window[1] = 1, buckets  # one row is in use
    with pytest.raises(ValueError, match="expected up to 5 buckets in up to"):
        snapshots.decode(msgspec.msgpack.encode(damaged), spec)


@pytest.mark.parametrize("field", ["classes", "held", "auc_held"])
def test_a_snapshot_with_a_negative_number_of_entries_is_refused(field: str) -> None:
    spec = probabilities_under(EVERYTHING.forgetting, AUC_OUTCOMES)
    damaged = msgspec.msgpack.decode(snapshots.encode(empty(spec)))
    damaged[0][snapshots._COUNTS.index(field)] = -1  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(ValueError, match="must fit their settings"):
        snapshots.decode(msgspec.msgpack.encode(damaged), spec)
