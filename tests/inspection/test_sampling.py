"""A field that looks like the probability of a label is named in a note, with the settings for it."""

from __future__ import annotations

import json

import pytest

from streamwatch.history.recordings.lines import LineRecord
from streamwatch.inspection.guessing import guess
from tests.inspection.test_any_records import record


def sample(**fields: object) -> dict[str, list[LineRecord]]:
    predictions = [
        {
            "id": f"case-{i}",
            "model": "m",
            "prediction": "yn"[i % 2],
            **{
                name: value[i % len(value)] if isinstance(value, list) else value
                for name, value in fields.items()
            },
        }
        for i in range(60)
    ]
    labels = [{"id": f"case-{i}", "label": "yn"[i % 3 == 1]} for i in range(60)]
    return {
        topic: [record(topic, at, json.dumps(each).encode(), None) for at, each in enumerate(records)]
        for topic, records in (("predictions", predictions), ("labels", labels))
    }


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        (
            {"label_probability": [0.05, 1.0]},
            "label_probability: value.label_probability, min_label_probability: 0.05 to",
        ),
        (
            {"sampling_rate": [0.0123, 0.5]},
            "label_probability: value.sampling_rate, min_label_probability: 0.01 to",
        ),
        (
            {"propensity": [0.3, 0.9], "label_requested": [True, False]},
            (
                "label_probability: value.propensity, min_label_probability: 0.3, "
                "label_requested: value.label_requested to"
            ),
        ),
    ],
)
def test_it_is_named_with_settings_that_accept_what_was_seen(
    fields: dict[str, object], settings: str
) -> None:
    found = guess(sample(**fields))
    assert [topic.topic for topic in found.topics] == ["predictions", "labels"]
    [note] = found.notes
    assert note.startswith("topic predictions: ")
    assert f"add {settings} its mapping" in note


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"label_probability": [0.0, 0.5]},
        {"label_probability": [1e-7, 0.5]},
        {"label_probability": [5e-324, 0.5]},
        {"sampling_rate": [2.0, 5.0]},
        {"score": [0.3, 0.9]},
        {"propensity": ["low", "high"]},
    ],
)
def test_other_fields_are_not(fields: dict[str, object]) -> None:
    assert guess(sample(**fields)).notes == ()
