"""The budget of series: never over the limit, in the right order, the same for any order, and steady."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.metrics.series import ClassNames, ClassSamples, Family, Sample
from streamwatch.core.metrics.series_budget import Cut, SeriesBudget, lines_of, within
from streamwatch.core.metrics.table import is_needed
from tests.edge.web.exposition import realistic

FORGETTINGS = ("landmark", "fading:0.999", "sliding:1000", "adwin:0.05")
MAIN = "fading:0.999"
MINUTE = 60_000
DAY = 24 * 60 * MINUTE


def budget(most: int) -> SeriesBudget:
    return SeriesBudget(most, FORGETTINGS)


def keys(families: Iterable[Family]) -> set[tuple[str, tuple[str, ...]]]:
    return {(family.name, values) for family in families for values, _ in family.samples}


def labelled(family: Family, values: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(family.labels, values, strict=True))


def part_of(family: Family, values: tuple[str, ...]) -> int:
    """Part of a series in the order of what stays longest: needed, other, forgetting, segment, class."""
    labels = labelled(family, values)
    if "class" in labels:
        return 4
    if labels.keys() & {"value", "fold"}:
        return 3
    if is_needed(family.name, labels, MAIN):
        return 0
    return 1 if labels.get("forgetting", MAIN) == MAIN else 2


def owner(family: Family, values: tuple[str, ...]) -> str:
    labels = labelled(family, values)
    return labels.get("model", labels.get("challenger", ""))


def needed_lines(families: Sequence[Family]) -> int:
    return sum(
        lines_of(replace(family, samples=[sample]))
        for family in families
        for sample in family.samples
        if part_of(family, sample[0]) == 0 or not owner(family, sample[0])
    )


def shuffled(families: Sequence[Family], seed: int) -> list[Family]:
    rng = random.Random(seed)
    return [replace(f, samples=rng.sample(list(f.samples), len(f.samples))) for f in families]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 100), st.integers(0, 300))
def test_a_cut_fits_keeps_what_is_needed_and_leaves_out_the_least_needed_of_each_model(
    models: int, classes: int, percent: int, fixed: int
) -> None:
    families = realistic(models, classes)
    total, needed = sum(map(lines_of, families)), needed_lines(families)
    most = needed + fixed + (total - needed) * percent // 100
    cut = budget(most).cut(families, fixed, 0)
    assert cut.lines == sum(map(lines_of, cut.families)) <= most - fixed
    assert cut.lines + sum(cut.dropped.values()) == total
    shown, everything = keys(cut.families), keys(families)
    assert shown <= everything
    last, first_gone = Counter[str](), dict[str, int]()
    for family in families:
        for values, _ in family.samples:
            part, model = part_of(family, values), owner(family, values)
            if (family.name, values) in shown:
                last[model] = max(last[model], part)
            else:
                assert part > 0
                assert model
                first_gone[model] = min(first_gone.get(model, 9), part)
    for model, part in first_gone.items():
        assert last[model] <= part
    names = ("needed", "other", "forgetting", "segment", "class")
    gone = Counter(
        names[part_of(family, values)]
        for family in families
        for values, _ in family.samples
        if (family.name, values) not in shown
        for _ in range(lines_of(replace(family, samples=family.samples[:1])))
    )
    assert cut.dropped == gone
    assert cut.models == len(first_gone)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(1, 9), st.integers(1, 99), st.integers(0, 9))
def test_the_same_series_stay_whatever_the_order_of_models_and_series(
    models: int, classes: int, percent: int, seed: int
) -> None:
    families = realistic(models, classes)
    needed = needed_lines(families)
    most = needed + (sum(map(lines_of, families)) - needed) * percent // 100
    cut = budget(most).cut(families, 0, 0)
    other = budget(most).cut(shuffled(families, seed), 0, 0)
    assert keys(cut.families) == keys(other.families)
    assert (cut.lines, cut.dropped) == (other.lines, other.dropped)


def per_class(
    weights: dict[str, dict[str, float]], names: Sequence[str] = ("class_truth_ratio", "recall_ratio")
):
    """Per-class families and numbers of outcomes of models whose classes are so frequent."""
    families = [Family("outcomes_total", "counter", "h", ("model",), [((m,), 1_000.0) for m in weights])]
    for name in names:
        samples = ClassSamples(MAIN)
        for model, classes in weights.items():
            samples.add(model, ClassNames(list(classes)), np.array(list(classes.values()), np.float64))
        families.append(Family(name, "gauge", "h", ("class", "forgetting", "model"), samples))
    return families


def classes_of(cut: Cut, model: str) -> set[str]:
    (family,) = (each for each in cut.families if each.name == "recall_ratio")
    return {values[0] for values, _ in family.samples if values[2] == model}


def test_fifty_models_of_a_thousand_classes_keep_as_many_of_the_most_frequent_as_fit() -> None:
    weights = {f"m{m:02}": {f"c{(7 * c + m) % 1000}": 1 / (c + 1) for c in range(1_000)} for m in range(50)}
    cut = budget(50_000).cut(per_class(weights), 0, 0)
    assert 0.94 * 50_000 <= cut.lines <= 50_000
    for model, of_classes in weights.items():
        shown = classes_of(cut, model)
        assert len(shown) in {474, 475}
        assert shown == set(sorted(of_classes, key=lambda name: -of_classes[name])[: len(shown)])


def test_a_model_of_many_classes_takes_nothing_from_one_of_few() -> None:
    weights = {"large": {f"c{c}": 1 / (c + 1) for c in range(1_000)}, "small": {"a": 0.9, "b": 0.1}}
    cut = budget(1_000).cut(per_class(weights), 0, 0)
    assert classes_of(cut, "small") == {"a", "b"}
    assert cut.lines >= 900
    assert cut.models == 1


def swapping(step: int) -> dict[str, dict[str, float]]:
    """Classes whose shares move up and down by a third from report to report."""
    rng = random.Random(step)
    return {f"m{m}": {f"c{c}": (1 + rng.random() / 3) / (c + 10) for c in range(200)} for m in range(3)}


def test_classes_that_change_ranks_do_not_come_and_go() -> None:
    chosen = budget(400)
    shown = [keys(chosen.cut(per_class(swapping(n)), 0, n * MINUTE).families) for n in range(300)]
    assert len(set(map(frozenset, shown))) == 1
    over_days = [keys(chosen.cut(per_class(swapping(n)), 0, n * DAY).families) for n in range(1, 20)]
    assert len(set(map(frozenset, over_days))) == 1


def test_a_class_that_becomes_twice_as_frequent_is_shown_after_a_day_at_most() -> None:
    chosen = budget(100)
    weights = {"m": {f"c{c}": 0.5 / (c + 1) for c in range(200)}}
    assert "c150" not in classes_of(chosen.cut(per_class(weights), 0, 0), "m")
    weights["m"]["c150"] = 0.9
    assert "c150" not in classes_of(chosen.cut(per_class(weights), 0, 2 * 60 * MINUTE), "m")
    assert "c150" in classes_of(chosen.cut(per_class(weights), 0, DAY), "m")


def test_ranks_of_few_outcomes_do_not_stand_for_a_day() -> None:
    chosen = budget(100)
    weights = {"m": {f"c{c}": 0.5 / (c + 1) for c in range(200)}}
    chosen.cut(per_class(weights), 0, 0)
    weights["m"]["c150"] = 0.9
    families = per_class(weights)
    families[0] = replace(families[0], samples=[(("m",), 2_000.0)])
    assert "c150" in classes_of(chosen.cut(families, 0, 60 * MINUTE), "m")


def test_a_total_that_swings_around_the_limit_changes_what_is_shown_once() -> None:
    chosen = budget(1_000)
    shown: list[frozenset[tuple[str, tuple[str, ...]]]] = []
    for n in range(40):
        weights = {"m": {f"c{c}": 1 / (c + 1) for c in range(499 + (n % 2) * 20)}}
        shown.append(frozenset(keys(chosen.cut(per_class(weights), 0, n * MINUTE).families)))
    assert len(set(shown)) == 2
    assert len(set(shown[1:])) == 1


def test_everything_comes_back_once_it_fits_with_some_to_spare() -> None:
    chosen = budget(1_000)
    many = per_class({"m": {f"c{c}": 1 / (c + 1) for c in range(900)}})
    few = per_class({"m": {f"c{c}": 1 / (c + 1) for c in range(400)}})
    assert chosen.cut(many, 0, 0).dropped
    assert chosen.cut(few, 0, MINUTE).dropped == {}
    assert keys(chosen.cut(few, 0, 2 * MINUTE).families) == keys(few)


def test_a_new_model_never_makes_a_cut_too_long_and_has_what_is_needed_at_once() -> None:
    chosen = budget(2_500)
    for models in range(1, 12):
        families = realistic(models, 10)
        cut = chosen.cut(families, 0, models)
        assert cut.lines <= 2_500
        needed = {
            (family.name, values)
            for family in families
            for values, _ in family.samples
            if part_of(family, values) == 0
        }
        assert needed <= keys(cut.families) or needed_lines(families) > 2_500


def test_live_series_that_grow_push_out_others_and_never_the_limit() -> None:
    families = realistic(4, 10)
    most = sum(map(lines_of, families))
    chosen = budget(most)
    for fixed in (0, 1, 10, 500, 499, 0):
        cut = chosen.cut(families, fixed, 0)
        assert cut.lines + fixed <= most


def test_beyond_all_measure_whole_models_go_and_the_limit_holds() -> None:
    families = realistic(6, 3)
    most = needed_lines(families) // 2
    cut = budget(most).cut(families, 0, 0)
    assert cut.lines <= most
    assert cut.dropped["needed"] > 0
    assert {owner(f, values) for f in cut.families for values, _ in f.samples} == {
        "model-0",
        "model-1",
        "model-2",
    }


def test_the_largest_families_of_no_model_go_first() -> None:
    def lag(name: str, count: int) -> Family:
        samples: list[Sample] = [((str(n),), 1.0) for n in range(count)]
        return Family(name, "gauge", "h", ("partition",), samples)

    families = [lag("a", 5), lag("b", 500), lag("c", 50)]
    assert [each.name for each in within(families, 60)] == ["a", "c"]
    assert within(families, 555) == families


def test_a_forgetting_that_is_not_configured_goes_with_the_further_ones() -> None:
    samples: list[Sample] = [((name, "m"), 1.0) for name in (MAIN, "landmark", "stranger")]
    family = Family("kappa", "gauge", "h", ("forgetting", "model"), samples)
    cut = budget(1).cut([family], 0, 0)
    assert keys(cut.families) == {("kappa", (MAIN, "m"))}
    assert cut.dropped == {"forgetting": 2}


@pytest.mark.parametrize("classes", [2, 30])
def test_per_class_arrays_are_cut_as_lists_of_samples_are(classes: int) -> None:
    weights = {f"m{m}": {f"c{c}": 1 / (c + m + 1) for c in range(classes)} for m in range(5)}
    arrays = per_class(weights)
    lists = [replace(family, samples=list(family.samples)) for family in arrays]
    most = sum(map(lines_of, arrays)) * 2 // 3
    assert keys(budget(most).cut(arrays, 0, 0).families) == keys(budget(most).cut(lists, 0, 0).families)


def test_of_other_forgettings_the_first_of_the_settings_stay_longest() -> None:
    families = [
        Family(name, "gauge", "h", ("forgetting", "model"), [((each, "m"), 1.0) for each in FORGETTINGS])
        for name in ("first", "second")
    ]
    shown = keys(budget(5).cut(families, 0, 0).families)
    expected = {(name, (each, "m")) for name in ("first", "second") for each in (MAIN, "landmark")}
    assert shown == expected | {("first", ("sliding:1000", "m"))}


def test_even_needed_series_never_exceed_the_limit() -> None:
    families = [Family("outcomes_total", "counter", "h", ("model",), [((m,), 1.0) for m in "abc"])]
    for most in (1, 2):
        cut = budget(most).cut(families, 0, 0)
        assert keys(cut.families) == {("outcomes_total", (m,)) for m in "abc"[:most]}
        assert cut.lines == most


def test_a_limit_for_the_needed_series_alone_shows_all_of_them_as_the_reserve_is_for_others() -> None:
    """So the least limit that `streamwatch check` asks for has no reserve."""
    needed = Family("outcomes_total", "counter", "h", ("model",), [((f"m{n}",), 1.0) for n in range(100)])
    others = many_metrics("ab", 10)
    chosen = budget(7 + 100)
    for now_ms in (0, DAY, 2 * DAY):
        cut = chosen.cut([needed, *others], 7, now_ms)
        assert {name for name, _ in keys(cut.families)} == {"outcomes_total"}
        assert cut.lines == 100
        assert cut.dropped == {"other": 20}


def many_metrics(models: str, number: int = 200) -> list[Family]:
    """Metrics that nobody needs, with one series of each model."""
    return [
        Family(f"metric_{n:03}", "gauge", "h", ("model",), [((m,), 1.0) for m in models])
        for n in range(number)
    ]


def test_new_series_are_shown_for_a_minute_if_the_reserve_has_room() -> None:
    chosen = budget(100)
    assert len(keys(chosen.cut(many_metrics("m"), 0, DAY).families)) == 95
    for after, number in ((MINUTE - 1, 96), (MINUTE, 95)):
        assert len(keys(chosen.cut(many_metrics("m", 201), 0, DAY + after).families)) == number


def test_a_quota_of_no_line_rises_as_soon_as_there_is_room_for_a_class() -> None:
    """A class has two lines here, besides the one that is needed, and five are left free."""
    chosen = budget(100)
    families = per_class({"m": {f"c{c}": 0.5 / (c + 1) for c in range(50)}})
    assert classes_of(chosen.cut(families, 94, DAY), "m") == set()
    assert classes_of(chosen.cut(families, 93, DAY + 2 * 60 * MINUTE), "m") == set()
    assert classes_of(chosen.cut(families, 92, DAY + 4 * 60 * MINUTE), "m") == {"c0"}


def test_models_that_stay_get_the_lines_of_those_that_go() -> None:
    chosen = budget(100)
    chosen.cut(many_metrics("mn"), 0, DAY)
    assert len(keys(chosen.cut(many_metrics("m"), 0, DAY + MINUTE).families)) == 95
