"""Per-class samples as arrays say what a list of samples says."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.estimators.names import Classes
from streamwatch.core.metrics.series import ClassNames, ClassSamples
from streamwatch.core.records.events import fold_name

NAN = float("nan")
VALUES = st.lists(st.floats(0, 1) | st.just(NAN), max_size=5)


def made(models: dict[str, list[float]]) -> ClassSamples:
    samples = ClassSamples("fading:0.999")
    for name, values in models.items():
        samples.add(name, ClassNames([f"c{n}" for n in range(len(values))]), np.array(values, np.float64))
    return samples


def listed(models: dict[str, list[float]]) -> list[tuple[tuple[str, str, str], float]]:
    return [
        ((f"c{n}", "fading:0.999", name), value)
        for name, values in models.items()
        for n, value in enumerate(values)
        if value == value  # noqa: PLR0124 - false for NaN
    ]


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_they_are_the_defined_values_of_all_models_in_order(models: dict[str, list[float]]) -> None:
    samples, expected = made(models), listed(models)
    assert samples == expected
    assert samples == made(models)
    assert samples != [*expected, "more"]
    assert len(samples) == len(expected)
    assert [samples[n] for n in range(len(expected))] == expected
    assert samples[-1:] == expected[-1:]
    for name in "abc":
        assert list(samples.of_model(name)) == [each for each in expected if each[0][2] == name]
        wanted = ["c3", "c0", "unknown"]
        found = {key[0]: value for key, value in samples.of_classes(name, wanted)}
        assert found == {k[0]: v for k, v in expected if k[2] == name and k[0] in wanted}


def test_a_position_beyond_the_end_is_refused() -> None:
    with pytest.raises(IndexError, match="expected a position below 1, got 1"):
        made({"a": [0.5]})[1]


@given(st.lists(VALUES, min_size=1, max_size=3), st.none() | VALUES)
def test_folds_become_the_mean_of_those_that_define_a_class_unless_the_model_says_it_itself(
    folds: list[list[float]], own: list[float] | None
) -> None:
    models = {fold_name("m", n): values for n, values in enumerate(folds)}
    samples = made(models | ({} if own is None else {"m": own}))
    samples.join_folds()
    by_class: dict[str, list[float]] = {}
    for (name, _, _), value in listed(models):
        by_class.setdefault(name, []).append(value)
    expected = {name: fmean(values) for name, values in by_class.items()}
    expected |= {key[0]: value for key, value in listed({"m": own or []})}
    assert dict(samples) == {(name, "fading:0.999", "m"): value for name, value in expected.items()}
    assert len(samples) == len(expected)


def test_classes_that_come_while_a_report_is_read_are_not_in_it_and_those_beyond_the_limit_are() -> None:
    classes = Classes(2)
    assert classes["a"] == 0
    assert classes["b"] == 1
    names = ClassNames(classes.names(folded=True), classes)
    samples = ClassSamples("landmark")
    samples.add("m", names, np.array([0.1, 0.2, 0.3]))
    assert dict(samples.of_classes("m", ["__other__", "a"])) == {
        ("__other__", "landmark", "m"): 0.3,
        ("a", "landmark", "m"): 0.1,
    }
    classes = Classes(9)
    assert classes["a"] == 0
    early = ClassSamples("landmark")
    early.add("m", ClassNames(classes.names(folded=False), classes), np.array([0.1]))
    assert classes["late"] == 1
    assert list(early.of_classes("m", ["late", "a"])) == [(("a", "landmark", "m"), 0.1)]
