"""Estimates by segment, against every value's outcomes evaluated in plain Python.

The previous label is that of the model's stream, whatever the value of that outcome.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from streamwatch.core.estimators.registers.segments import AVAILABLE, SegmentsSpec
from streamwatch.core.estimators.registers.segments.observe import EPOCH
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import OTHER, Outcome, fold_name
from tests.core.estimators.measures import plain_measures
from tests.layouts import TINY
from tests.tiers import by_tier

ALPHA = 0.98
WITHOUT_STREAM = {"kappa_temporal_correction", "kappa_transition"}
PLAIN = sorted(set(plain_measures.MEASURES) & {measure.name for measure in AVAILABLE})


def outcomes(
    length: int, *, values: Sequence[str] = ("de", "fr", "it"), seed: int = 3, models: str = "mn"
) -> list[Outcome]:
    rng = np.random.default_rng(seed)
    found: list[Outcome] = []
    for i in range(length):
        truth, answer = "abc"[rng.integers(3)], "abc"[rng.integers(3)]
        country = values[int(rng.integers(len(values)))]
        segments = {"country": country}
        if rng.random() < 0.5:
            segments["channel"] = "web" if rng.random() < 0.7 else "shop"
        found.append(
            Outcome(
                models[int(rng.integers(len(models)))],
                truth,
                truth if rng.random() < 0.6 else answer,
                event_ms=i,
                delay_ms=0,
                segments=segments if rng.random() < 0.95 else None,
            )
        )
    return found


def estimators(**chosen: object) -> EstimatorSet:
    spec = replace(SegmentsSpec(alpha=ALPHA, max_classes=4), **chosen)  # type: ignore[arg-type]
    return EstimatorSet(replace(TINY, max_models=4, registers=(spec,)))


def series(watched: EstimatorSet, name: str) -> dict[tuple[str, ...], float]:
    return {
        key: float(value)  # type: ignore[arg-type]
        for family in watched.families()
        if family.name == name
        for key, value in family.samples
    }


class ByHand:
    """Outcomes of each value, each with the label before it in its model's stream."""

    def __init__(self) -> None:
        self.of_values: dict[tuple[str, str, str], list[tuple[str, str, str | None]]] = {}
        self._last: dict[str, str] = {}

    def add(self, outcome: Outcome, stream: str) -> None:
        """Add an outcome; its previous label is that of the last outcome of the same `stream`."""
        before, self._last[stream] = self._last.get(stream), outcome.true_class
        for name, value in (outcome.segments or {}).items():
            mine = self.of_values.setdefault((outcome.model, name, value), [])
            mine.append((outcome.true_class, outcome.predicted_class, before))

    def remembered(self, key: tuple[str, str, str]) -> list[plain_measures.Remembered]:
        """Outcomes of a value with their weights now; losses before are those of the same value."""
        mine = self.of_values[key]
        return [
            plain_measures.Remembered(
                truth,
                answer,
                before,
                ALPHA ** (len(mine) - 1 - i),
                mine[i - 1][0] != mine[i - 1][1] if i else None,
            )
            for i, (truth, answer, before) in enumerate(mine)
        ]


def test_every_measure_of_every_value_is_that_of_its_outcomes_with_the_previous_label_of_the_stream() -> None:
    watched = estimators(measures=tuple(measure.name for measure in AVAILABLE))
    given = outcomes(600)
    given[240:300] = [structs.replace(outcome, segments=None) for outcome in given[240:300]]  # a whole batch
    by_hand, compared = ByHand(), 0
    for start in range(0, len(given), 60):
        watched.fold(given[start : start + 60])
        for outcome in given[start : start + 60]:
            by_hand.add(outcome, outcome.model)
        totals = series(watched, "segment_outcomes_total")
        assert totals == {key: len(mine) for key, mine in by_hand.of_values.items()}
        for measure in PLAIN:
            shown = series(watched, f"segment_{measure}")
            for key in by_hand.of_values:
                expected = plain_measures.MEASURES[measure](by_hand.remembered(key))
                assert shown.get(key) == (None if expected is None else pytest.approx(expected, abs=1e-7))
                compared += 1
    assert compared > 1_000


def test_a_fold_that_tests_some_ids_has_the_previous_label_of_all_folds() -> None:
    spec = SegmentsSpec(ALPHA, measures=("kappa_persistent",), max_classes=4, folds_share_stream=True)
    watched = EstimatorSet(
        replace(TINY, max_models=4, registers=(spec,), folds="of two", folds_share_stream=True)
    )
    chance = random.Random(5)
    by_hand = [ByHand(), ByHand(), ByHand()]
    before: dict[str, str] = {}
    given: list[Outcome] = []
    for i, outcome in enumerate(outcomes(600)):
        fold = chance.randrange(2)
        name = fold_name("m", fold) if outcome.model == "m" else "n"
        given.append(
            structs.replace(
                outcome,
                model=name,
                label_at_prediction=before.get("m") if name != "n" else chance.choice("abc"),
            )
        )
        before[outcome.model] = outcome.true_class
        for k, each in enumerate(by_hand):  # what a fold's own values see, and the labels of both folds
            mine = outcome.segments if name == (fold_name("m", k) if k < 2 else "n") else None
            each.add(structs.replace(outcome, segments=mine), outcome.model)
        if i % 60 == 59:
            watched.fold(given)
            given = []
            again = EstimatorSet(
                replace(TINY, max_models=4, registers=(spec,), folds="of two", folds_share_stream=True)
            )
            for model in watched.models():
                again.restore(watched.snapshot(model))
            watched = again
    shown = series(watched, "segment_kappa_persistent")
    kappa = plain_measures.MEASURES["kappa_persistent"]
    keys = sorted(by_hand[0].of_values)
    assert keys == sorted(by_hand[1].of_values)
    for key in keys:
        first, second = (kappa(each.remembered(key)) for each in by_hand[:2])
        assert first is not None
        assert second is not None
        assert shown[key] == pytest.approx((first + second) / 2, abs=1e-9)
    for key in by_hand[2].of_values:
        assert shown[key] == pytest.approx(kappa(by_hand[2].remembered(key)), abs=1e-9)


def test_every_measure_that_can_be_chosen_has_a_value_wherever_there_are_outcomes() -> None:
    watched = estimators(measures=tuple(measure.name for measure in AVAILABLE))
    watched.fold(outcomes(600))
    for measure in AVAILABLE:
        shown = series(watched, f"segment_{measure.name}")
        assert shown.keys() == series(watched, "segment_outcomes_total").keys(), measure.name
        assert all(map(math.isfinite, shown.values())), measure.name


def test_values_beyond_the_limit_are_one_together_and_all_outcomes_are_counted_once() -> None:
    watched = estimators(max_values=3)
    given = outcomes(500, values=[f"v{i}" for i in range(12)])
    watched.fold(given)
    for model in "mn":
        of_model = [o.segments["country"] for o in given if o.model == model and o.segments]
        first = list(dict.fromkeys(of_model))[:3]
        expected = {value: float(of_model.count(value)) for value in first}
        expected[OTHER] = len(of_model) - sum(expected.values())
        totals = series(watched, "segment_outcomes_total")
        assert {key[2]: n for key, n in totals.items() if key[:2] == (model, "country")} == expected


def test_an_outcome_that_finds_no_room_is_counted_and_the_count_survives() -> None:
    watched = estimators(max_total=3)
    given = outcomes(300, values=["a", "b", "c", "d"], models="m")
    watched.fold(given)
    asked = sum(len(outcome.segments or {}) for outcome in given)
    in_rows = math.fsum(series(watched, "segment_outcomes_total").values())
    left_out = math.fsum(series(watched, "segment_outcomes_left_out_total").values())
    assert left_out > 0
    assert in_rows + left_out == asked
    again = estimators()
    again.restore(watched.snapshot("m"))
    assert again.families() == watched.families()


def of_countries(countries: Sequence[str]) -> list[Outcome]:
    return [Outcome("m", "x", "x", i, 0, segments={"country": c}) for i, c in enumerate(countries)]


def counted(watched: EstimatorSet) -> dict[str, float]:
    return {key[2]: n for key, n in series(watched, "segment_outcomes_total").items()}


def test_values_without_room_count_among_the_others_as_soon_as_those_have_a_row() -> None:
    rng = np.random.default_rng(8)
    for trial in range(by_tier(fast=6, default=20, everything=100)):
        room, most = 2 + trial % 5, 1 + trial % 3
        watched = estimators(max_values=most, max_total=room)
        expected: dict[tuple[str, str, str], float] = {}
        left_out: dict[tuple[str, str], float] = {}
        given = outcomes(400, values=[f"v{i}" for i in rng.permutation(9)], seed=trial)
        if trial % 2:
            given[0] = structs.replace(given[0], segments={"country": OTHER})
        for start in range(0, len(given), 37):
            watched.fold(given[start : start + 37])
            for outcome in given[start : start + 37]:
                for name, value in (outcome.segments or {}).items():
                    one = (outcome.model, name)
                    own = sum(key[:2] == one and key[2] != OTHER for key in expected)
                    free = len(expected) < room
                    counted_in = (*one, value)
                    if counted_in not in expected and not (value != OTHER and own < most and free):
                        counted_in = (*one, OTHER)
                    if counted_in in expected or free:
                        expected[counted_in] = expected.get(counted_in, 0.0) + 1.0
                    else:
                        left_out[one] = left_out.get(one, 0.0) + 1.0
            assert series(watched, "segment_outcomes_total") == expected
            assert series(watched, "segment_outcomes_left_out_total") == left_out


def test_after_a_restore_with_less_room_every_new_outcome_counts_where_there_are_others() -> None:
    before, after = estimators(max_values=3, max_total=9), estimators(max_values=3, max_total=2)
    before.fold(of_countries([*"ABCD", *"AB"]))
    after.restore(before.snapshot("m"))
    assert counted(after) == {OTHER: 1.0, "A": 2.0}, "names before `__other__` do not take its row"
    after.fold(of_countries([*"ABCDE"]))
    assert counted(after) == {OTHER: 5.0, "A": 3.0}
    assert series(after, "segment_outcomes_left_out_total") == {("m", "country"): 3.0}


def test_a_value_that_became_frequent_replaces_one_that_became_rare() -> None:
    watched = estimators(max_values=2, max_total=3)
    watched.fold(of_countries(["a", "b"] * (EPOCH // 2) + ["a", "c", "c", "d"] * (EPOCH // 4)))
    after = counted(watched)
    assert after == {"a": EPOCH * 3 // 4, "c": 0.0, OTHER: EPOCH * 3 // 4}, (
        "c has the row of b, of which nothing came; what came before was counted among the others"
    )
    watched.fold(of_countries(["c", "b"]))
    assert counted(watched) == {**after, "c": 1.0, OTHER: EPOCH * 3 // 4 + 1}


def test_a_value_only_a_little_more_frequent_does_not() -> None:
    watched = estimators(max_values=1)
    watched.fold(of_countries(["a"] * (EPOCH * 2 // 5) + ["b"] * (EPOCH * 3 // 5)))
    assert set(counted(watched)) == {"a", OTHER}


def test_state_is_the_same_however_the_stream_is_cut_across_epochs() -> None:
    given = outcomes(2 * EPOCH + 500, values=["a", *"bcdefgh", *"aaaa"], models="m")
    whole, cut, resumed = (estimators(max_values=3) for _ in range(3))
    whole.fold(given)
    for start in range(0, len(given), 997):
        cut.fold(given[start : start + 997])
        again = estimators(max_values=3)
        if start:
            again.restore(resumed.snapshot("m"))
        again.fold(given[start : start + 997])
        resumed = again
    assert cut.snapshot("m") == whole.snapshot("m") == resumed.snapshot("m")
    assert resumed.families() == whole.families()


def changed(at: int, length: int, *, everywhere: bool) -> list[Outcome]:
    """From `at` on, one country of four errs in 60 instead of 10 of 100 cases, or all do."""
    rng = np.random.default_rng(11)
    found: list[Outcome] = []
    for i in range(length):
        country = "abcd"[int(rng.integers(4))]
        rate = 0.6 if i >= at and (everywhere or country == "c") else 0.1
        wrong = rng.random() < rate
        found.append(Outcome("m", "x", "y" if wrong else "x", i, 0, segments={"country": country}))
    return found


def test_a_change_in_one_value_is_located_there() -> None:
    watched = estimators()
    watched.fold(changed(4_000, 4_800, everywhere=False))
    change = watched.facts.segment_change("m")
    assert change is not None
    assert (change.segment, change.value) == ("country", "c")
    assert change.share > 0.7
    assert change.traffic == pytest.approx(0.25, abs=0.1)
    assert change.now > 0.5 > change.before
    shares = series(watched, "segment_extra_errors_ratio")
    assert math.fsum(shares.values()) == pytest.approx(1.0)
    assert shares["m", "country", "c"] == pytest.approx(change.share)


def test_a_change_everywhere_is_located_nowhere() -> None:
    watched = estimators()
    watched.fold(changed(4_000, 4_800, everywhere=True))
    assert watched.facts.segment_change("m") is None


def test_without_segments_nothing_is_shown() -> None:
    watched = estimators()
    watched.fold([Outcome("m", "x", "x", i, 0) for i in range(50)])
    assert watched.facts.segment_change("m") is None
    assert watched.facts.segment_change("of nobody") is None
    assert "segments" not in watched.details()["m"]
    assert series(watched, "segment_outcomes_total") == {}


def test_details_name_the_busiest_values_first() -> None:
    watched = estimators()
    watched.fold(outcomes(400, values=["de", "de", "de", "fr"], models="m"))
    segments = watched.details()["m"]["segments"]
    assert isinstance(segments, dict)
    assert [value["value"] for value in segments["country"]["values"]] == ["de", "fr"]
    traffic = [value["traffic_ratio"] for value in segments["country"]["values"]]
    assert math.fsum(traffic) == pytest.approx(1.0)
    assert segments["country"]["values_left_out"] == 0


def test_a_segment_that_is_named_no_more_takes_no_room_from_others_before_or_after_a_restart() -> None:
    chosen = {"names": frozenset({"country"}), "max_total": 4}
    given = outcomes(120, values=("de", "fr", "it", "at"), models="m")
    undisturbed, restarted = estimators(**chosen), estimators(**chosen)
    undisturbed.fold(given)
    restarted.fold(given[:60])
    again = estimators(**chosen)
    again.restore(restarted.snapshot("m"))
    again.fold(given[60:])
    assert again.snapshot("m") == undisturbed.snapshot("m")
    shown = series(undisturbed, "segment_outcomes_total")
    assert {key[1:] for key in shown} == {("country", value) for value in ("de", "fr", "it", "at")}
