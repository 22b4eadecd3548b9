"""The estimators over arrays, beside scikit-learn and counting by hand."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef

import streamwatch
from streamwatch import Evaluator
from streamwatch.history import evaluator as module
from streamwatch.history.columns import times_of

EAST = timezone(timedelta(hours=5))
CLASSES = np.array(["legit", "fraud", "review"])


def stream(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """True classes that come in runs, and predictions that are right four times of five."""
    chance = np.random.default_rng(seed)
    true = CLASSES[np.cumsum(chance.random(count) < 0.3) % 3]
    return true, np.where(chance.random(count) < 0.8, true, CLASSES[chance.integers(0, 3, count)])


def test_it_says_what_scikit_learn_says_and_what_counting_says() -> None:
    true, predicted = stream(3_000)
    evaluator = Evaluator()
    evaluator.update(true, predicted)
    assert evaluator.value("kappa") == pytest.approx(cohen_kappa_score(true, predicted), abs=1e-9)
    assert evaluator.value("mcc") == pytest.approx(matthews_corrcoef(true, predicted), abs=1e-9)
    right, repeated = (true == predicted).mean(), (true[1:] == true[:-1]).mean()
    assert evaluator.value("accuracy_ratio") == pytest.approx(right, abs=1e-12)
    assert evaluator.value("kappa_persistent") == pytest.approx((right - repeated) / (1 - repeated), abs=1e-9)


def test_the_published_confusion_gives_the_published_measures() -> None:
    (attempted, failed), *_ = [doctest.testmod(module)[::-1]]
    assert (attempted > 3, failed) == (True, 0)


@pytest.mark.parametrize("cut", [1, 7, 256, 3_000])
def test_how_a_stream_is_cut_does_not_matter(cut: int) -> None:
    true, predicted = stream(1_000)
    whole, parts = Evaluator(), Evaluator()
    alarms = whole.update(true, predicted)
    found = [
        alarm
        for start in range(0, len(true), cut)
        for alarm in parts.update(true[start : start + cut], predicted[start : start + cut])
    ]
    assert found == alarms
    assert parts.values() == whole.values()


@pytest.mark.parametrize("make", [list, tuple, np.array, lambda x: np.array(x, object), pd.Series])
def test_columns_of_any_make_are_the_same(make) -> None:
    true, predicted = (column.tolist() for column in stream(500))
    expected, given = Evaluator(), Evaluator()
    expected.update(true, predicted)
    given.update(make(true), make(predicted))
    assert given.values() == expected.values()


def test_classes_are_named_as_in_json_whatever_numpy_calls_them() -> None:
    names = {
        tuple(sorted({str(row["class"]) for row in evaluator.rows() if "class" in row}))
        for evaluator, true in (
            (Evaluator(), [True, False]),
            (Evaluator(), np.array([True, False])),
            (Evaluator(), ["true", "false"]),
        )
        if not evaluator.update(true, true)
    }
    assert names == {("false", "true")}
    mixed = Evaluator()
    mixed.update(["1", "0"], [1, 0.0])
    assert mixed.value("accuracy_ratio") == 1.0


def test_several_models_are_distinguished() -> None:
    true, predicted = stream(600)
    models = np.where(np.arange(600) % 2, "a", "b")
    evaluator = Evaluator()
    evaluator.update(true, predicted, model=models)
    assert sorted(evaluator.models) == ["a", "b"]
    for name in "ab":
        of = models == name
        assert evaluator.value("accuracy_ratio", model=name) == (true == predicted)[of].mean()
    assert {str(row["model"]) for row in evaluator.rows()} == {"a", "b"}


def test_a_curve_is_what_looking_every_so_many_outcomes_shows() -> None:
    true, predicted = stream(950)
    curve = pd.DataFrame(Evaluator().curve(true, predicted, every=100))
    assert curve["outcome"].tolist() == [*range(100, 1_000, 100), 950]
    hits = np.cumsum(true == predicted)
    for outcome, accuracy in zip(curve["outcome"], curve["accuracy_ratio:landmark"], strict=True):
        assert accuracy == pytest.approx(hits[int(outcome) - 1] / outcome, abs=1e-12)


def test_a_model_that_falls_is_called_worse_and_since_when() -> None:
    chance = np.random.default_rng(7)
    true = np.repeat(chance.integers(0, 2, 1_500), 5)  # no change is right nine times of ten
    predicted = np.where(np.arange(7_500) < 2_500, true, 1 - true)
    evaluator = Evaluator()
    alarms = evaluator.update(true, predicted, event_ms=np.datetime64("2026-01-01") + np.arange(7_500))
    assert {"page_hinkley", "adwin"} <= {alarm.detector for alarm in alarms}
    verdict = evaluator.verdicts()["persistent"]
    assert verdict["verdict"] == -1
    assert 2_400 < verdict["since_outcome"] < 2_700
    assert all(alarm.event_ms > 1_767_000_000_000 for alarm in alarms)


def test_nothing_is_known_before_anything_came() -> None:
    evaluator = Evaluator()
    assert evaluator.update([], []) == []
    assert evaluator.models == []
    with pytest.raises(KeyError, match=r"model: no model has outcomes so far, got 'model'"):
        evaluator.values()
    evaluator.update(["a"], ["a"])
    assert math.isnan(evaluator.value("kappa"))


@pytest.mark.parametrize(
    ("arguments", "options", "shown"),
    [
        (([1, 2], [1]), {}, "equally long, got 2 and 1"),
        (([1], [1]), {"model": ["a", "b"]}, r"one per outcome \(1\), got 2"),
        (([1.5j], [1]), {}, r"y_true must be texts, whole numbers or booleans, got 1\.5j"),
        (
            (["a", ""], ["a", "a"]),
            {},
            "y_true must be texts of 1 to 128 bytes without control characters, .*got ''",
        ),
        (([None], ["a"]), {}, "y_true must be texts"),
        (([1], [1]), {"event_ms": [1, 2]}, r"one time per outcome \(1\), got shape \(2,\)"),
        (([1], [1]), {"event_ms": [0.5]}, "datetimes or whole milliseconds, got float64"),
        (
            ([1, 1], [1, 1]),
            {"event_ms": np.array(["2026-01-01", "NaT"], "datetime64[ms]")},
            "event_ms must be known, got none in row 1",
        ),
        (([1], [1]), {"event_ms": [None]}, "datetimes or whole milliseconds"),
        (([1], [1]), {"event_ms": [pd.NaT]}, "event_ms must be known, got none in row 0"),
        (([1, 0], [1, 0]), {"event_ms": pd.to_datetime(["2026-01-01", None])}, "known, got none in row 1"),
        (([0.3, 0.7], [0.2, 0.9]), {}, r"y_true must be texts, whole numbers or booleans, got 0\.3"),
        (([0, 1], np.array([0.5, 1.0])), {}, r"y_pred must be texts, whole numbers or booleans, got 0\.5"),
        ((np.ones((2, 2)), [1, 2]), {}, r"one dimension, got shape \(2, 2\)"),
        (([[1], [2]], ["a", "b"]), {}, r"y_true must be texts, whole numbers or booleans, got \[1\]"),
        ((["a", {}], ["a", "b"]), {}, r"y_true must be texts, whole numbers or booleans, got \{\}"),
        (([1], [1]), {"event_ms": [1_700_000_000_000_000_000]}, "years 1 to 9999, got 17.* in row 0"),
        (([1], [1]), {"event_ms": np.array([2**64 - 1], np.uint64)}, "years 1 to 9999, got 18446"),
        (([1], [1]), {"event_ms": np.array([2**60], "datetime64[s]")}, "years 1 to 9999, got .* in row 0"),
        (([1], [1]), {"event_ms": [datetime(1, 1, 1, tzinfo=EAST)]}, "years 1 to 9999, got 0001-01-01"),
        (([1], [1]), {"scores": np.ones((1, 2))}, "scores must be a mapping or a frame, .* got ndarray"),
    ],
)
def test_what_is_no_outcome_is_refused(arguments, options, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        Evaluator().update(*arguments, **options)


def test_scalars_of_numpy_in_a_list_are_classes_as_predictions_come_one_by_one() -> None:
    evaluator, other = Evaluator(), Evaluator()
    evaluator.update([np.int64(1), np.True_, np.str_("x")], [np.int8(1), np.float32(2), "x"])
    other.update([1, True, "x"], [1, 2, "x"])
    assert evaluator.details()["classes"] == other.details()["classes"]
    assert evaluator.rows() == other.rows()


@pytest.mark.parametrize(
    ("measure", "forgetting", "shown"),
    [
        ("kapa", "landmark", "measure 'kapa' is not known under a forgetting; near: kappa"),
        ("outcomes_total", "landmark", "measure 'outcomes_total' is not known"),
        ("kappa", "fading:0.9", "expected one of landmark, fading:0.999, .*, got 'fading:0.9'"),
    ],
)
def test_a_measure_that_is_not_there_is_refused_and_one_that_is_undefined_is_not(
    measure: str, forgetting: str, shown: str
) -> None:
    evaluator = Evaluator()
    evaluator.update([0, 1], [0, 1])
    with pytest.raises(KeyError, match=shown):
        evaluator.value(measure, forgetting)
    assert math.isnan(evaluator.value("log_loss"))
    assert math.isnan(evaluator.value("recall_ratio:2", "fading:0.999"))


def test_datetimes_with_and_without_a_zone_are_times() -> None:
    hour = datetime(2026, 1, 1, 12, tzinfo=UTC)
    east = hour.astimezone(timezone(timedelta(hours=3)))
    for times in ([hour, east], [hour.replace(tzinfo=None)] * 2, pd.Series([hour, east.astimezone(UTC)])):
        assert times_of(times, 2, 0).tolist() == [1_767_268_800_000] * 2


@pytest.mark.slow
def test_it_is_imported_only_when_asked_for() -> None:
    script = "import sys, streamwatch; print('numpy' in sys.modules); streamwatch.Evaluator"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    with pytest.raises(AttributeError, match="no attribute 'evaluator_of_all'"):
        _ = streamwatch.evaluator_of_all
