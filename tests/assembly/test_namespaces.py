"""Namespaces from settings to decoders, and what `check` says of them."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.topics import build_topics, mappings_of
from streamwatch.core.records.events import Label, Prediction
from streamwatch.folds import Scheme
from streamwatch.settings import Settings, SettingsError
from tests.edge.decoders.records import of


def settings(topics: dict[str, Any], kind: str = "memory", **sections: Any) -> Settings:
    document: dict[str, Any] = {
        "kafka": {"bootstrap_servers": ["none:0"]},
        "topics": topics,
        "state": {"kind": kind},
        **sections,
    }
    return Settings(**document)


def two_use_cases(model: str = "value.model") -> dict[str, Any]:
    mapping = {"model": model}
    return {
        side: [{"name": f"{use}-{side}", "namespace": use, "mapping": mapping} for use in ("fraud", "churn")]
        for side in ("predictions", "labels")
    }


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_the_ids_of_two_use_cases_that_number_alike_have_different_keys(kind: str) -> None:
    topics = build_topics(settings(two_use_cases(), kind))
    ids: dict[str, str] = {}
    for name, content in (
        ("fraud-predictions", {"id": 1, "model": "m", "prediction": "a"}),
        ("fraud-labels", {"id": 1, "label": "a"}),
        ("churn-predictions", {"id": 1, "model": "m", "prediction": "a"}),
        ("churn-labels", {"id": 1, "label": "a"}),
    ):
        (event,) = topics[name].decoder.decode_all([of(content, topic=name)], [0])
        assert isinstance(event, Prediction | Label)
        ids[name] = event.id
    assert ids["fraud-predictions"] == ids["fraud-labels"] != ids["churn-predictions"] == ids["churn-labels"]


def test_a_model_named_in_two_namespaces_is_reported_to_be_one() -> None:
    assert topic_properties.shared_models(settings(two_use_cases("=m")).topics) == {"m": ["churn", "fraud"]}
    assert topic_properties.shared_models(settings(two_use_cases()).topics) == {}


def test_a_fold_is_looked_at_unless_settings_say_null() -> None:
    default = settings({"predictions": "p", "labels": "l"})
    silent = settings({"predictions": {"name": "p", "mapping": {"fold": None}}, "labels": "l"})
    assert mappings_of(default.topics)["p"][0].mapping.fold == "value.fold"
    assert mappings_of(silent.topics)["p"][0].mapping.fold is None
    assert specs.folds_scheme(default) is None
    assert specs.monitors_spec(default).folds == ""
    assert not specs.join_spec(default).folds


def test_folds_that_test_some_ids_only_need_the_order_of_resolution() -> None:
    topics = {"predictions": "p", "labels": "l"}
    folds = {"scheme": "cross-validation", "k": 5, "prequential": False}
    found = settings(topics, folds=folds)
    assert specs.folds_scheme(found) == Scheme("cross-validation", 5, prequential=False)
    assert specs.join_spec(found).folds_share_stream
    assert specs.monitors_spec(found).folds_share_stream
    with pytest.raises(SettingsError, match=r"join.order: expected resolution with folds.prequential: false"):
        specs.folds_scheme(settings(topics, folds=folds, join={"order": "prediction_time"}))


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_ids_that_are_shown_are_those_of_the_records(kind: str) -> None:
    topics = build_topics(settings(two_use_cases(), kind), ids_as_text=True)
    content = {"id": 1, "model": "m", "prediction": "a"}
    record = of(content, topic="fraud-predictions")
    (event,) = topics["fraud-predictions"].decoder.decode_all([record], [0])
    assert isinstance(event, Prediction)
    assert event.id == "1"
