"""Scores and segments of outcomes in columns, beside scikit-learn, counting, and outcomes one by one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import streamwatch
from streamwatch import Evaluator
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec
from streamwatch.history.columns import default_spec

COUNT = 900


def frame(seed: int = 2) -> pd.DataFrame:
    """Labels 0 and 1, predictions from a probability, a country that some lack, a shop by number."""
    chance = np.random.default_rng(seed)
    true = (chance.random(COUNT) < 0.4).astype(int)
    high = np.clip(0.5 * true + 0.7 * chance.random(COUNT) - 0.1, 0.01, 0.99)
    country = np.array(["de", "fr", None], object)[chance.integers(0, 3, COUNT)]
    return pd.DataFrame(
        {
            "label": true,
            "prediction": (high >= 0.5).astype(int),
            "low": 1.0 - high,
            "high": high,
            "country": country,
            "shop": np.where(chance.random(COUNT) < 0.1, np.nan, chance.integers(1, 4, COUNT)),
        }
    )


def updated(given: pd.DataFrame, cut: int = COUNT) -> Evaluator:
    evaluator = Evaluator()
    for start in range(0, len(given), cut):
        part = given.iloc[start : start + cut]
        probabilities = part[["low", "high"]].set_axis([0, 1], axis=1)
        evaluator.update(
            part["label"], part["prediction"], scores=probabilities, segments=part[["country", "shop"]]
        )
    return evaluator


def test_probabilities_are_scikit_learns_and_values_of_segments_are_counted() -> None:
    given = frame()
    evaluator = updated(given)
    assert evaluator.value("log_loss") == pytest.approx(log_loss(given["label"], given[["low", "high"]]))
    area = roc_auc_score(given["label"], given["high"])
    assert evaluator.values()["auc_ratio"] == pytest.approx(area)
    for segment in ("country", "shop"):
        for value, part in given.groupby(segment):
            name = f"{segment}:{value if segment == 'country' else int(value)}"
            assert evaluator.values()[f"segment_outcomes_total:{name}"] == len(part)
            right = (part["label"] == part["prediction"]).to_numpy()
            weights = 0.999 ** np.arange(len(part))[::-1]
            expected = np.average(right, weights=weights)
            assert evaluator.values()[f"segment_accuracy_ratio:{name}"] == pytest.approx(expected, abs=1e-9)
    details = evaluator.details()
    assert {"confusion", "probabilities", "segments"} <= details.keys()


@pytest.mark.parametrize("cut", [1, 97])
def test_how_outcomes_are_cut_does_not_matter(cut: int) -> None:
    given = frame().iloc[: 3 * cut + 50]
    assert updated(given, cut).values() == updated(given).values()


def test_they_are_those_of_outcomes_given_one_by_one() -> None:
    given = frame()
    given.loc[5, ["low", "high"]] = math.nan
    given.loc[6, "low"] = math.nan
    estimators = EstimatorSet(default_spec())
    for at, row in enumerate(given.to_dict("records")):
        scores = {str(k): row[name] for k, name in enumerate(("low", "high")) if row[name] == row[name]}
        segments = {"country": row["country"]} if isinstance(row["country"], str) else {}
        if row["shop"] == row["shop"]:
            segments["shop"] = str(int(row["shop"]))
        estimators.fold(
            [
                Outcome(
                    "model",
                    str(row["label"]),
                    str(row["prediction"]),
                    event_ms=at,
                    delay_ms=0,
                    scores=scores or None,
                    segments=segments or None,
                )
            ]
        )
    assert updated(given)._estimators.snapshot("model") == estimators.snapshot("model")


def test_a_frame_is_replayed_with_scores_and_segments_by_the_names_of_its_columns() -> None:
    given = frame()
    found = streamwatch.replay(
        given,
        scores={0: "low", 1: "high"},
        segments={"country": "country", "shop": "shop"},
        points=7,
        progress=False,
    )
    assert found.evaluator.values() == updated(given).values()
    assert found.curves["model"]["segment_accuracy_ratio:country:de"].shape == (7,)
    estimates = pd.DataFrame(found.estimates())
    german = estimates[(estimates.segment_value == "de") & (estimates.metric == "segment_outcomes_total")]
    assert german.value.item() == (given["country"] == "de").sum()
    few = streamwatch.replay(given, segments=["country"], points=0, progress=False).evaluator.values()
    assert not any(name.startswith(("segment_accuracy_ratio:shop", "log_loss")) for name in few)
    with pytest.raises(KeyError, match="no column 'weekday'"):
        streamwatch.replay(given, segments=["weekday"], progress=False)


def test_a_curve_takes_them_too() -> None:
    given = frame()
    curve = Evaluator().curve(
        given["label"],
        given["prediction"],
        every=300,
        scores={0: given["low"], 1: given["high"]},
        segments=given[["country", "shop"]],
    )
    assert curve["outcome"].tolist() == [300, 600, 900]
    assert curve["log_loss:landmark"][-1] == updated(given).value("log_loss")


def test_without_them_nothing_is_shown_of_them() -> None:
    evaluator = Evaluator()
    evaluator.update([1, 0], [1, 1])
    assert not any(name.startswith(("segment", "log_loss", "scored")) for name in evaluator.values())
    evaluator.update([1], [1], segments={"country": [None]}, scores={"1": [math.nan]})
    assert not any(name.startswith(("segment", "log_loss", "scored")) for name in evaluator.values())


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"scores": {"a": [0.5]}}, r"scores\['a'\] must have one value per outcome \(2\), got shape \(1,\)"),
        ({"scores": {"a": [0.5, 1.5]}}, r"must be in \[0, 1\] or NaN, got 1\.5 at position 1"),
        ({"scores": {"a": ["x", "y"]}}, "must be numbers"),
        ({"scores": {1: [0, 1], "1": [1, 0]}}, "columns of different names, got '1'"),
        ({"segments": {"country": ["de"]}}, r"segments\['country'\] must have one value per outcome"),
        ({"segments": {"country": ["de", 1j]}}, r"segments\['country'\] must be texts"),
        ({"segments": {"": ["de", "fr"]}}, "columns of different names, got ''"),
    ],
)
def test_what_is_no_score_or_segment_is_refused_and_nothing_is_counted(options, shown: str) -> None:
    evaluator = Evaluator()
    with pytest.raises(ValueError, match=shown):
        evaluator.update([1, 0], [1, 1], **options)
    assert evaluator.models == []


def test_segments_are_refused_where_nobody_counts_them() -> None:
    with pytest.raises(ValueError, match="segments need a SegmentsSpec"):
        Evaluator(MonitorsSpec()).update([1], [1], segments={"country": ["de"]})


@pytest.mark.parametrize("absent", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_a_segment_that_is_absent_is_none_of_the_values(absent) -> None:
    evaluator, other = Evaluator(), Evaluator()
    evaluator.update([1, 1], [1, 0], segments={"country": ["de", absent]})
    other.update([1, 1], [1, 0], segments={"country": ["de", None]})
    assert evaluator.details()["segments"] == other.details()["segments"]
