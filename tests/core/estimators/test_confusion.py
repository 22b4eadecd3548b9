"""The confusion matrix by class name."""

from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.names import Classes, confusion_document


def classes_of(limit: int, *names: str) -> Classes:
    classes = Classes(limit)
    for name in names:
        classes[name] = len(classes)
    return classes


def test_rows_are_true_classes_in_order_of_appearance() -> None:
    document = confusion_document(np.array([[3.0, 1.0], [0.0, 2.0]]), classes_of(10, "up", "down"))
    assert document == {
        "forgetting": "fading:0.999",
        "classes": ("up", "down"),
        "counts": [[3.0, 1.0], [0.0, 2.0]],
    }


def test_a_class_that_no_outcome_showed_yet_is_left_out() -> None:
    """The names may be ahead of the counts: a class of scores whose outcome has yet to be folded."""
    document = confusion_document(np.array([[3.0]]), classes_of(10, "up", "down"))
    assert document["classes"] == ("up",)


def test_classes_beyond_the_limit_are_one() -> None:
    """Index 2 is any class beyond the limit of 2, index 3 a prediction of another of them."""
    counts = np.arange(16.0).reshape(4, 4)
    document = confusion_document(counts, classes_of(2, "up", "down"))
    assert document["classes"] == ("up", "down", "__other__")
    assert document["counts"] == [[0.0, 1.0, 5.0], [4.0, 5.0, 13.0], [20.0, 22.0, 50.0]]
