"""The API says the same numbers as the exposition, by model."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.metrics.series import ClassNames, ClassSamples, Family, Histogram
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes import json_api
from streamwatch.edge.web.routes.json_api import JsonExporter
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from tests.edge.web.exposition import PLAIN, families, of_report, parsed, realistic, report
from tests.tiers import examples

JSON = "application/json; charset=utf-8"


def answer(made: list[Family], model: str | None = None, **details: dict[str, object]) -> Any:
    path = {} if model is None else {"model": model}
    body = JsonExporter().render(Asked(report(made, details), path))
    return None if body is None else json.loads(body)


def value_at(tree: Any, path: list[str]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def as_number(value: float | str) -> float:
    return float(value) if isinstance(value, str) else value


def test_every_sample_of_the_exposition_is_in_the_api() -> None:
    made = [each for each in realistic() if not each.name.startswith("comparison_")]  # they have their own
    document = answer(made)
    text = of_report(PrometheusExporter().render(Asked(report(made), media_type=PLAIN)))
    seen = 0
    for name, kind, _, samples in parsed(text, PLAIN):
        for sample, labels, value in samples:
            named = dict(labels)
            metric = name.removeprefix("streamwatch_") + ("_total" if kind == "counter" else "")
            le = named.pop("le", None)
            model = named.pop("model", None)
            tree = document["stream"] if model is None else document["models"][model]["metrics"]
            found = value_at(tree, [metric, *named.values()])
            if kind == "histogram":
                part = sample.rpartition("_")[2]
                found = found["buckets"][le] if part == "bucket" else found[part]
            assert found == value, (sample, labels)
            seen += 1
    assert seen > 100


@given(made=families())
@settings(max_examples=examples(0.5))
def test_odd_names_and_infinities_read_back(made: list[Family]) -> None:
    document = answer(made)
    for family in made:
        for values, value in family.samples:
            named = dict(zip(family.labels, values, strict=True))
            model = named.pop("model", None)
            tree = document["stream"] if model is None else document["models"][model]["metrics"]
            found = value_at(tree, [family.name, *named.values()])
            if isinstance(value, Histogram):
                assert (found["count"], found["sum"]) == (value.counts[-1], value.total)
                assert tuple(found["buckets"].values()) == value.counts
            else:
                assert as_number(found) == value


def test_labels_nest_in_alphabetical_order_of_their_names() -> None:
    baseline = Family(
        "baseline_accuracy_ratio",
        "gauge",
        "h",
        ("baseline", "forgetting", "model"),
        [(("persistent", "landmark", "m"), 0.85)],
    )
    metrics = answer([baseline])["models"]["m"]["metrics"]
    assert metrics == {"baseline_accuracy_ratio": {"persistent": {"landmark": 0.85}}}


def test_one_model_can_be_asked_for_with_its_details() -> None:
    made = [Family("outcomes_total", "counter", "h", ("model",), [(("a",), 1), (("b",), 2)])]
    assert answer(made, "b", b={"classes": ["down", "up"]}) == {
        "published_timestamp_seconds": 1_760_000_000.5,
        "model": "b",
        "metrics": {"outcomes_total": 2},
        "details": {"classes": ["down", "up"]},
    }
    assert answer(made, "nobody") is None


def test_matrices_and_diagrams_are_reported_of_one_model_only() -> None:
    made = [Family("outcomes_total", "counter", "h", ("model",), [(("a",), 1)])]
    matrix = {"forgetting": "fading:0.999", "classes": ["down", "up"], "counts": [[2.5, 0.0], [1.0, 3.0]]}
    details = {"classes": ["down", "up"], "confusion": matrix, "probabilities": {"auc": 0.5}}
    assert answer(made, "a", a=details)["details"] == details
    assert answer(made, a=details)["models"]["a"]["details"] == {"classes": ["down", "up"]}


def test_before_the_first_report_there_are_no_models_but_live_facts() -> None:
    live = [Family("kafka_up", "gauge", "h", (), [((), 0)])]
    body = JsonExporter().render(Asked(None, live=live))
    assert body is not None
    assert json.loads(body) == {"published_timestamp_seconds": None, "models": {}, "stream": {"kafka_up": 0}}


def test_an_undefined_value_is_absent() -> None:
    made = [Family("kappa", "gauge", "h", ("model",), [(("a",), math.nan), (("b",), 0.5)])]
    assert set(answer(made)["models"]) == {"b"}


@pytest.mark.parametrize("model", ["\ud800", "naïve", "a/b", ""])
def test_any_model_name_is_served(model: str) -> None:
    made = [Family("outcomes_total", "counter", "h", ("model",), [((model,), 1)])]
    (name,) = answer(made, **{model: {"classes": [model]}})["models"]
    assert name == model.encode("utf-8", "backslashreplace").decode()


@given(made=families(st.text(st.characters(), max_size=4)))
@settings(max_examples=examples(0.5))
def test_no_text_whatever_fails_an_answer(made: list[Family]) -> None:
    assert answer(made) is not None


def test_one_model_says_the_same_as_among_all() -> None:
    made = realistic()
    of_all = answer(made)["models"]["model-1"]
    alone = answer(made, "model-1")
    assert alone["metrics"] == of_all["metrics"]
    assert len(alone["metrics"]) > 20


@pytest.mark.slow
def test_many_models_of_many_classes_are_encoded_model_by_model_into_one_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models, classes = 60, 1_000
    names = ClassNames([f"class-{k}" for k in range(classes)])
    samples = ClassSamples("fading:0.999")
    chance = np.random.default_rng(7)
    for m in range(models):
        samples.add(f"m{m}", names, chance.random(classes))
    outcomes = [((f"m{m}",), 1.0) for m in range(models)]
    made = [
        Family("outcomes_total", "counter", "", ("model",), outcomes),
        Family("recall_ratio", "gauge", "", ("class", "forgetting", "model"), samples),
    ]
    lengths: list[int] = []

    def noted(document: object) -> bytes:
        text = encode(document)
        lengths.append(len(text))
        return text

    encode = json_api.encode
    monkeypatch.setattr(json_api, "encode", noted)
    tracemalloc.start()
    body = JsonExporter().render(Asked(report(made)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert body is not None
    document = json.loads(body)
    assert document["models"]["m59"]["metrics"]["recall_ratio"]["class-999"] == {
        "fading:0.999": list(samples.of_model("m59"))[-1][1]
    }
    assert len(document["models"]) == models
    assert max(lengths) < 1.5 * len(body) / models, "no call of the encoder, which holds up all else, is long"
    assert peak < 1.5 * len(body), "the texts of all models are not kept twice"
