"""What an operator reads when topics contradict each other, or folds cannot be."""

# ruff: noqa: E501  # exact texts are the interface

from __future__ import annotations

import pytest

from streamwatch.settings import SettingsError, load


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (
            "{predictions: [a, a], labels: b}",
            (
                "topics in --set: topic 'a' is listed twice under predictions: list it once, with `mappings` for "
                "several events of one record"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {}, mappings: [{}]}, labels: b}",
            "topics.predictions[0] in --set: topic 'a' has both mapping and mappings: expected one of them",
        ),
        (
            "{predictions: {name: a, envelope: soap}, labels: b}",
            (
                "topics.predictions[0].envelope in --set: expected one of cloudevents, debezium, kserve_v1, "
                "kserve_v2, seldon, got 'soap'"
            ),
        ),
        (
            "{predictions: {name: a, envelope: debezium}, labels: {name: a, mapping: {label: value.y}}}",
            "topics in --set: topic 'a' carries predictions and labels: give both one envelope",
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {score: value.p, threshold: high}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction.threshold in --set: expected a number, or a path such "
                "as value.cutoff, got 'high'\n"
                "topics.predictions[0].mapping.prediction.above: required, but set nowhere (--set, --set)\n"
                "topics.predictions[0].mapping.prediction.below: required, but set nowhere (--set, --set)"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {score: value.p, threshold: .nan, above: x, below: y}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction.threshold in --set: expected a number, or a path such "
                "as value.cutoff, got nan"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {score: value.p, threshold: -inf, above: x, below: y}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction.threshold in --set: expected a number, or a path such "
                "as value.cutoff, got '-inf'"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {score: value.p, threshold: true, above: x, below: y}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction.threshold in --set: expected a number, or a path such "
                "as value.cutoff, got True"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {label_probability: value.pi, min_label_probability: true}}, labels: b}",
            "topics.predictions[0].mapping.min_label_probability in --set: expected a number, got true",
        ),
        (
            "{predictions: {name: a, mapping: {prediction: {most: value.p}}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction in --set: expected a path, a list of paths, "
                "{path, strip_prefix, strip_suffix}, {score, threshold, above, below} or "
                "{largest: path of the scores}, got {'most': 'value.p'}"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {prediction: 'value.p[-1]'}}, labels: b}",
            (
                "topics.predictions[0].mapping.prediction in --set: expected an index that counts from the front, "
                "from 0, got 'value.p[-1]'"
            ),
        ),
        (
            "{predictions: a, labels: a}",
            (
                "topics in --set: topic 'a' carries predictions and labels: give it the same mapping under both, "
                "with `kind` to distinguish them; or, if every record holds both, under each side a mapping of its own"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {kind: {field: value.type}}}, labels: b}",
            "topics in --set: the mapping of topic 'a' has `kind`: list it under predictions and labels",
        ),
        (
            "{predictions: {name: a, mapping: {model: [value.name, version]}}, labels: b}",
            (
                "topics.predictions[0].mapping.model[1] in --set: expected value.some.field, value, key, "
                "header:name, topic or a constant =text, got 'version'"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {model: [value.name]}}, labels: b}",
            "topics.predictions[0].mapping.model in --set: expected at least 2 entries, got 1",
        ),
        (
            "{predictions: {name: a, mapping: {id: {name: value.id}}}, labels: b}",
            (
                "topics.predictions[0].mapping.id in --set: expected a path, a list of paths, "
                "{path, strip_prefix, strip_suffix} or {key_of: path}, got {'name': 'value.id'}"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {model: [value.name, {path: value.v}]}}, labels: b}",
            (
                "topics.predictions[0].mapping.model[1] in --set: expected strip_prefix or strip_suffix beside "
                "path, got neither"
            ),
        ),
        (
            "{predictions: {name: a, mapping: {model: {key_of: key}}}, labels: b}",
            (
                "topics.predictions[0].mapping.model.key_of in --set: key_of: expected an object, such as "
                "value.scores, or value.pred_* for fields that are called so, got 'key'"
            ),
        ),
        (
            "{predictions: {name: a, decode: {value.x: xml}}, labels: b}",
            (
                "topics.predictions[0].decode.value.x[0] in --set: expected 'json', 'csv', 'tsv' or 'base64', "
                "got 'xml'"
            ),
        ),
        (
            "{predictions: {name: a, namespace: x}, labels: [{name: b, namespace: x}, c]}",
            "topics in --set: namespace '' has no prediction topic, so nothing in it can ever match",
        ),
        (
            "{predictions: [a, {name: b, namespace: x}], labels: c}",
            "topics in --set: namespace 'x' has no label topic, so nothing in it can ever match",
        ),
        (
            "{predictions: {name: a, namespace: x, mapping: {kind: {}}}, labels: {name: a, mapping: {kind: {}}}}",
            "topics in --set: topic 'a' carries predictions and labels: give both one namespace",
        ),
    ],
)
def test_topics_that_contradict_each_other_are_reported(topics: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, ["kafka.bootstrap_servers=x:1", f"topics={topics}"], {})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (
            "{scheme: jackknife}",
            (
                "folds.scheme in --set: expected 'cross-validation', 'split-validation' or 'bootstrap', "
                "got 'jackknife'"
            ),
        ),
        (
            "{scheme: cross-validation, k: 1}",
            "folds in --set: k must be at least 2 under cross-validation, got 1",
        ),
        ("{scheme: bootstrap, k: 0}", "folds.k in --set: must be in [1, 1000], got 0"),
    ],
)
def test_folds_that_cannot_be_are_reported(folds: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(
            None, ["kafka.bootstrap_servers=x:1", "topics={predictions: a, labels: b}", f"folds={folds}"], {}
        )
    assert str(caught.value) == message
