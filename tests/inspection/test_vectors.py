"""Numbers for each class: whose they are, and how well they tell."""

from __future__ import annotations

import json
import random
from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamwatch.history.recordings.lines import LineRecord
from streamwatch.inspection.columns import FlatRecord, flatten, vectors_of
from streamwatch.inspection.streams import elements_of


def records(*values: object) -> list[FlatRecord]:
    return [flatten(LineRecord(n + 1, json.dumps(value).encode())) for n, value in enumerate(values)]


def drawn(seed: int, width: int, classes: int) -> tuple[list[list[float]], list[str]]:
    """Numbers, and the class of each row: where it stands they are mostly higher."""
    chance = random.Random(seed)
    truth = [chance.randrange(classes) for _ in range(120)]
    rows = [[chance.random() + 0.4 * (at == true) for at in range(width)] for true in truth]
    return rows, [f"c{true}" for true in truth]


@pytest.mark.parametrize(("width", "classes"), [(2, 2), (3, 3), (5, 3), (5, 5)])
def test_the_order_of_classes_is_the_one_of_all_whose_numbers_are_highest(width: int, classes: int) -> None:
    rows, texts = drawn(width * 10 + classes, width, classes)
    [vector] = vectors_of(records(*({"p": row} for row in rows)))
    names = sorted(set(texts))
    overall = np.mean(rows, axis=0)
    means = {
        name: np.mean([r for r, t in zip(rows, texts, strict=True) if t == name], axis=0) for name in names
    }
    best = max(
        permutations(range(width), len(names)),
        key=lambda locations: sum((means[n] - overall)[at] for n, at in zip(names, locations, strict=True)),
    )
    expected = {at: name for name, at in zip(names, best, strict=True)}
    found = vector.order(list(enumerate(texts)))
    assert found == tuple(expected.get(at, f"class {at}") for at in range(width))


def test_how_well_numbers_tell_is_by_the_area_under_the_curve_of_scikit_learn() -> None:
    rows, texts = drawn(7, 3, 3)
    [vector] = vectors_of(records(*({"p": row} for row in rows)))
    areas = [
        roc_auc_score([text == name for text in texts], [row[at] for row in rows])
        for at, name in enumerate(("c0", "c1", "c2"))
    ]
    expected = np.mean([2 * area - 1 for area in areas])
    assert vector.separation(("c0", "c1", "c2"), list(enumerate(texts))) == pytest.approx(expected)


def test_numbers_that_say_nothing_of_the_classes_have_no_order() -> None:
    chance = random.Random(3)
    [vector] = vectors_of(records(*({"p": [0.5, 0.5]} for _ in range(40))))
    assert vector.order([(at, chance.choice("ab")) for at in range(40)]) is None


@pytest.mark.parametrize(
    ("numbers", "is_distribution"),
    [
        ([0.2, 0.8], True),
        ([0.3, 0.69], True),
        ([0.2, 0.5], False),
        ([1.5, -0.5], False),
        ({"a": 1, "b": 0}, True),
    ],
)
def test_a_distribution_has_no_negative_number_and_adds_up_to_one(
    numbers: object, *, is_distribution: bool
) -> None:
    [vector] = vectors_of(records({"p": numbers}))
    assert vector.is_distribution is is_distribution


def test_arrays_of_equal_lengths_are_taken_apart_side_by_side_and_others_alone() -> None:
    found = elements_of(
        records(
            {"id": 1, "a": [{"x": 1}, {"x": 2}], "b": ["p", "q"], "c": [1, 2, 3]},
            {"id": 2, "a": [{"x": 3}], "b": ["r"], "c": []},
        )
    )
    shown = [[(row.element, row.scalars) for row in rows] for rows in found]
    shared = [{"value.id": 1}] * 2 + [{"value.id": 2}]
    first = [
        {"value.a[].x": 1, "value.b[]": "p"},
        {"value.a[].x": 2, "value.b[]": "q"},
        {"value.a[].x": 3, "value.b[]": "r"},
    ]
    assert len(shown) == 2
    assert [at for at, _ in shown[0]] == [0, 1, 0]
    for (_, scalars), own, own_id in zip(shown[0], first, shared, strict=True):
        assert own.items() <= scalars.items()
        assert own_id.items() <= scalars.items()
    assert [scalars["value.c[]"] for _, scalars in shown[1]] == [1, 2, 3]


def test_arrays_of_a_group_are_as_long_as_each_other_and_not_only_as_its_first() -> None:
    found = elements_of(
        records({"a": [1, 2], "b": [3, 4]}, {"a": [5, 6], "c": [7, 8]}, {"b": [9], "c": [10, 11]}),
    )
    shown = [[row.scalars for row in rows] for rows in found]
    assert [{name: scalar for name, scalar in scalars.items() if "[]" in name} for scalars in shown[1]] == [
        {"value.c[]": 7},
        {"value.c[]": 8},
        {"value.c[]": 10},
        {"value.c[]": 11},
    ]
    assert [scalars["value.b[]"] for scalars in shown[0] if "value.b[]" in scalars] == [3, 4, 9]


def test_a_whole_number_that_no_float_can_hold_is_no_number_of_a_class() -> None:
    beyond = 10**400
    assert vectors_of(records({"p": [beyond, 1], "q": {"a": beyond, "b": 1}}, {"p": [1, 2]})) == []
