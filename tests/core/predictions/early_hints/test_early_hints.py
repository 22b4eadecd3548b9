"""Early hints equal plain sums, come when predictions change and seldom else, and survive restarts."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamwatch.core.predictions.early_hints import EarlyHints, EarlyHintsSpec
from streamwatch.core.predictions.early_hints.observe import CLASSES
from streamwatch.core.predictions.early_hints.register import decode
from streamwatch.core.predictions.kind import PREDICTED, PredictionBatch, batch_of
from streamwatch.core.records.events import Outcome, Prediction, fold_name
from tests.core.predictions.early_hints.plain_early import Predicted, hints
from tests.tiers import by_tier, examples, few

SPEC = EarlyHintsSpec(max_models=2)


def predictions(made: list[Predicted], model: str = "m") -> list[Prediction]:
    """Predictions of one model, a millisecond apart; the rest of a score is another class's."""
    return [
        Prediction(str(i), model, name, i, scores=None if s is None else {name: s, f"not {name}": 1 - s})
        for i, (name, s) in enumerate(made)
    ]


def changing(seed: int, length: int, classes: str = "ab", *, scored: bool = True) -> list[Predicted]:
    """Predictions whose shares and scores change after two thirds."""
    rng = np.random.default_rng(seed)
    made: list[Predicted] = []
    for i in range(length):
        shares = np.ones(len(classes))
        shares[0] = 1 if i < 2 * length // 3 else 4
        name = str(rng.choice(list(classes), p=shares / shares.sum()))
        score = round(float(rng.uniform(0.5, 1)), 3)
        made.append((name, score if scored and i % 500 else None))
    return made


def watched(made: list[Predicted], spec: EarlyHintsSpec = SPEC) -> EarlyHints:
    watch = EarlyHints(spec)
    watch.observe(batch_of(predictions(made)))
    return watch


@pytest.mark.parametrize(
    ("classes", "scored"), few([("ab", True), ("ab", False), ("abcdefghij", True), ("abcdefghij", False)], 1)
)
def test_hints_and_capital_equal_plain_sums(classes: str, scored: bool) -> None:  # noqa: FBT001
    made = changing(1, 9_000, classes, scored=scored)
    watch = EarlyHints(SPEC)
    batch = predictions(made)
    given_at: list[tuple[int, str | None, bool]] = []
    for start in range(0, len(made), 32):
        watch.observe(batch_of(batch[start : start + 32]))
        view = watch.views()["m"]
        if view.hints > len(given_at):
            assert view.hint is not None
            given_at.append((view.predictions, view.hint.predicted_class, view.hint.more))
    expected, capital = hints(made, SPEC.threshold)
    assert given_at == expected
    assert given_at
    evidence = max(0.0, math.log(capital) / math.log(SPEC.threshold)) if capital else 0.0
    assert watch.views()["m"].evidence == pytest.approx(evidence, rel=1e-9)


def test_a_change_of_scores_alone_gives_a_hint() -> None:
    rng = np.random.default_rng(3)
    made: list[Predicted] = [("a", float(s)) for s in rng.uniform(0.7, 1, 10_000)]
    made += [("a", float(s)) for s in rng.uniform(0.5, 0.9, 3_000)]
    view = watched(made).views()["m"]
    assert view.hints == 1
    assert view.hint is not None
    assert (view.hint.predicted_class, view.hint.more) == (None, False)
    assert view.score_before == pytest.approx(0.85, abs=0.02)
    assert view.score_now == pytest.approx(0.7, abs=0.03)


def test_a_hint_ends_when_what_is_new_has_become_what_was() -> None:
    rng = np.random.default_rng(4)
    made: list[Predicted] = [("ab"[int(rng.random() < 0.1)], None) for _ in range(10_000)]
    made += [("ab"[int(rng.random() < 0.6)], None) for _ in range(3_000)]
    watch = watched(made)
    assert watch.views()["m"].hint is not None
    assert watch.views()["m"].before["b"] < 0.3 < watch.views()["m"].now["b"]
    watch.observe(batch_of(predictions([("ab"[int(rng.random() < 0.6)], None) for _ in range(9_000)])))
    view = watch.views()["m"]
    assert view.hint is None
    assert view.before["b"] == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def columns(classes: NDArray[np.int32], scores: NDArray[np.float64]) -> PredictionBatch:
    """Predictions of one model, a millisecond apart."""
    records = np.zeros(len(classes), PREDICTED)
    records["class"], records["score"] = classes, scores
    records["record_ms"] = records["event_ms"] = np.arange(len(classes))
    return PredictionBatch(records, ["m"], ["a", "b"])


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_without_a_change_hints_are_as_rare_as_promised(correlation: float) -> None:
    runs = by_tier(fast=4, default=20, everything=400)
    false = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        length = SPEC.predictions
        fresh = rng.random(length) >= correlation
        at = np.maximum.accumulate(np.where(fresh, np.arange(length), 0))
        classes = (rng.random(length) < 0.3).astype(np.int32)[at]
        watch = EarlyHints(SPEC)
        watch.observe(columns(classes, rng.random(length)))
        false += watch.views()["m"].hints > 0
    assert false <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


@pytest.mark.parametrize(("share", "most"), [(0.6, 1_300), (0.45, 2_048), (0.4, 3_500)])
def test_a_shift_from_a_share_of_three_tenths_is_found_within_so_many_predictions(
    share: float, most: int
) -> None:
    delays: list[int] = []
    for seed in range(by_tier(fast=3, default=30, everything=200)):
        rng = np.random.default_rng(seed)
        made = np.concatenate([rng.random(20_000) < 0.3, rng.random(4_096) < share]).astype(np.int32)
        watch = EarlyHints(SPEC)
        watch.observe(columns(made[:20_000], np.full(20_000, np.nan)))
        before, at = watch.views()["m"].hints, 20_000
        while at < len(made) and watch.views()["m"].hints == before:
            watch.observe(columns(made[at : at + 64], np.full(64, np.nan)))
            at += 64
        delays.append(at - 20_000)
    assert np.median(delays) <= most


def test_with_a_longer_reach_every_second_prediction_is_compared_with_those_twice_as_far_back() -> None:
    made = changing(1, 18_000)
    spec = EarlyHintsSpec(predictions=200_000, reach=8_000)
    twice = watched([each for each in made for _ in range(2)], spec).views()["m"]
    once = watched(made, EarlyHintsSpec(predictions=100_000)).views()["m"]
    assert twice.hints == once.hints
    assert twice.evidence == once.evidence
    assert twice.now == once.now


def test_nothing_is_said_of_a_change_before_anything_can_be_compared():
    watch = EarlyHints(EarlyHintsSpec(predictions=200_000, reach=5_000))
    made = np.random.default_rng(1).integers(0, 2, 9_000).astype(np.int32)
    watch.observe(columns(made[:8_192], np.full(8_192, np.nan)))
    assert watch.views()["m"].evidence == 0.0
    assert watch.details()["m"]["early_hints"]["reach"] == 8_192, "every second is compared"
    named = [each.name for each in watch.families() if each.samples]
    assert "early_hint" not in named
    watch.observe(columns(made[8_192:], np.full(len(made) - 8_192, np.nan)))
    assert "early_hint" in [each.name for each in watch.families() if each.samples]


def test_a_day_s_rhythm_gives_no_hint_where_the_reach_is_days_and_does_where_it_is_hours() -> None:
    rng = np.random.default_rng(8)
    days = np.arange(200_000) / 20_000
    made = (rng.random(200_000) < 0.3 + 0.2 * np.sin(2 * np.pi * days)).astype(np.int32)
    hints_by_reach: dict[int, int] = {}
    for reach in (4_096, 61_440):
        watch = EarlyHints(EarlyHintsSpec(predictions=200_000, reach=reach))
        watch.observe(columns(made, np.full(len(made), np.nan)))
        hints_by_reach[reach] = watch.views()["m"].hints
    assert hints_by_reach[4_096] > 0
    assert hints_by_reach[61_440] == 0


def test_the_accuracy_to_expect_is_that_of_labelled_scores_over_the_predictions_now() -> None:
    watch = EarlyHints(SPEC)
    rng = np.random.default_rng(5)
    sure = [float(s) for s in rng.uniform(0.5, 1, 4_000)]
    watch.observe(batch_of(predictions([("a", s) for s in sure])))
    assert math.isnan(watch.views()["m"].expected_accuracy)
    truths = ["a" if rng.random() < s - 0.1 else "b" for s in sure]
    watch.learn(
        [
            Outcome("m", y, "a", i, 0, scores={"a": s, "b": 1 - s}, resolved_ms=i)
            for i, (y, s) in enumerate(zip(truths, sure, strict=True))
        ]
    )
    assert watch.views()["m"].expected_accuracy == pytest.approx(0.65, abs=0.04)
    watch.observe(batch_of(predictions([("a", 0.95)] * 4_000)))  # before any label says so
    assert watch.views()["m"].expected_accuracy == pytest.approx(0.85, abs=0.05)


@given(cuts=st.lists(st.integers(0, 6_000), max_size=5), resumed=st.integers(0, 6_000))
@settings(max_examples=examples(0.2), deadline=None)
def test_any_cut_restart_and_numbering_give_bitwise_the_same_state(cuts: list[int], resumed: int) -> None:
    events = [
        Prediction(each.id, "mn"[i % 2], each.predicted_class, each.record_ms, scores=each.scores)
        for i, each in enumerate(predictions(changing(6, 6_000, "abcdefghijkl")))
    ]
    spec = EarlyHintsSpec(max_models=2, bucket_ms=70)
    whole, pieces, numbered = EarlyHints(spec), EarlyHints(spec), EarlyHints(spec)
    outcomes = [
        Outcome(
            e.model,
            "a",
            e.predicted_class,
            e.record_ms + i % 9,
            i % 9,
            assumed=i % 7 == 0,
            scores=e.scores,
            resolved_ms=e.record_ms + i % 9,
        )
        for i, e in enumerate(events)
    ]
    whole.observe(batch_of(events))
    whole.learn(outcomes)
    points = sorted({0, resumed, *cuts, len(events)})
    names, classes = ["n", "m"], list("lkjihgfedcba")
    for start, end in pairwise(points):
        batch = batch_of(events[start:end])
        pieces.observe(batch)
        pieces.learn(outcomes[start:end])
        if end == resumed:
            snapshot = pieces.snapshot()
            pieces = EarlyHints(spec)
            pieces.restore(snapshot)
            assert pieces.snapshot() == snapshot
        records = batch.records.copy()
        records["model"] = [names.index(event.model) for event in events[start:end]]
        records["class"] = [classes.index(event.predicted_class) for event in events[start:end]]
        numbered.observe(PredictionBatch(records, names, classes))
        numbered.learn(outcomes[start:end])
    assert pieces.snapshot() == whole.snapshot()
    assert numbered.snapshot() == whole.snapshot()


def test_models_beyond_the_limit_and_folds_are_left_out_until_one_retires() -> None:
    watch = EarlyHints(SPEC)
    made: list[Predicted] = [("a", None)] * 64
    for model in ("m", fold_name("f", 0), "n", "o"):
        watch.observe(batch_of(predictions(made, model)))
    assert list(watch.views()) == ["m", "n"]
    watch.forget("m")
    watch.observe(batch_of(predictions(made, "o")))
    assert watch.views()["o"].predictions == 64
    again = EarlyHints(EarlyHintsSpec(max_models=1))
    again.restore(watch.snapshot())
    assert list(again.views()) == ["n"]


def test_series_and_details_say_what_is_defined() -> None:
    watch = watched(changing(7, 9_000))
    watch.observe(batch_of(predictions([("a", None)], "young")))
    found = {family.name: dict(family.samples) for family in watch.families()}
    assert found["early_hint"] == {("m",): 1.0}
    hints_given = found["early_hints_total"]["m",]
    assert isinstance(hints_given, int)
    assert hints_given >= 1
    assert found["expected_accuracy_ratio"] == {}
    details = watch.details()
    assert set(details) == {"m", "young"}
    document = details["m"]["early_hints"]
    assert isinstance(document, dict)
    assert document["expected_accuracy"] is None
    assert set(document["shares_now"]) == {"a", "b"}
    assert sum(document["shares_before"].values()) == pytest.approx(1.0)


def test_what_was_kept_under_another_reach_or_stretch_is_another_section() -> None:
    specs = [SPEC, EarlyHintsSpec(reach=5_000), EarlyHintsSpec(bucket_ms=5)]
    assert len({EarlyHints(spec).section for spec in specs}) == 3
    assert EarlyHints(EarlyHintsSpec(delta=0.01, predictions=200_000)).section == EarlyHints(SPEC).section


def test_bytes_that_are_no_state_are_refused() -> None:
    with pytest.raises(ValueError, match=r".+"):
        EarlyHints(SPEC).restore(b"\xc1 no state")


def test_a_state_with_more_classes_than_a_model_can_have_is_refused() -> None:
    [kept] = decode(watched(changing(7, 100)).snapshot())
    more = msgspec.structs.replace(kept, classes=[f"c{n}" for n in range(CLASSES + 1)])
    with pytest.raises(ValueError, match=f"expected at most {CLASSES} classes"):
        more.record()


@pytest.mark.parametrize("wrong", [{"reach": 4_095}, {"predictions": 4_000}])
def test_a_reach_that_gives_no_comparison_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="need 4096 ≤ reach ≤ predictions"):
        EarlyHintsSpec(**wrong)
