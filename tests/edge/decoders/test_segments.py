"""Segments of predictions, from a record to the event."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from streamwatch.core.records.events import EventGroup, Invalid, Prediction
from streamwatch.edge.decoders.formats.json import read_json
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.trees import TreeDecoder, needs_trees, sided
from streamwatch.settings.field_forms import Segments
from tests.edge.decoders.records import AT_MS, of

PATHS = {"country": "value.country", "channel": "value.a.channel"}
WRITTEN = TypeAdapter(Segments)


def decoded(mapping: TopicMapping, content: dict[str, Any]) -> Any:
    assert needs_trees(mapping)
    decoder = TreeDecoder("predictions", sided("prediction", mapping), read_json)
    found = decoder.decode(of({"id": 1, "model": "m", "prediction": "x", **content}), AT_MS)
    return found.events if isinstance(found, EventGroup) else found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"country": "DE", "a": {"channel": "web"}}, {"country": "DE", "channel": "web"}),
        ({"country": 49, "a": {"channel": True}}, {"country": "49", "channel": "true"}),
        ({"country": "DE", "a": {}}, {"country": "DE"}),
        ({"country": None}, None),
        ({}, None),
    ],
)
def test_a_segment_is_text_and_may_be_absent(content: dict[str, Any], expected: object) -> None:
    event = decoded(TopicMapping(segments=PATHS), content)
    assert isinstance(event, Prediction)
    assert event.segments == expected


@pytest.mark.parametrize("content", [{"x": 1}, [1], "", "a\nb", "ä" * 65])
def test_a_segment_that_cannot_be_a_name_makes_the_record_invalid(content: object) -> None:
    event = decoded(TopicMapping(segments=PATHS), {"country": content})
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_segment"


def test_each_element_of_an_array_has_its_own() -> None:
    mapping = TopicMapping(
        id="value.rows[].id", prediction="value.rows[].p", segments={"c": "value.rows[].c", "all": "value.r"}
    )
    rows = [{"id": "a", "p": "x", "c": "de"}, {"id": "b", "p": "y"}]
    events = decoded(mapping, {"rows": rows, "r": "north"})
    assert [event.segments for event in events] == [{"c": "de", "all": "north"}, {"all": "north"}]


def test_a_list_of_fields_names_each_by_its_last_part() -> None:
    written = ["country", "value.a.channel", "header:region"]
    assert WRITTEN.validate_python(written) == {**PATHS, "region": "header:region"}
    assert WRITTEN.validate_python(PATHS) == PATHS


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (["value.a.c", "value.b.c"], "two segments are called c"),
        ([3], "a segment must be a field or a path, got 3"),
        ({"c": "nowhere"}, "nowhere"),
        ({"": "value.c"}, "1 to 128 bytes"),
    ],
)
def test_what_is_wrong_with_segments_is_stated(written: object, shown: str) -> None:
    with pytest.raises(ValidationError, match=shown):
        WRITTEN.validate_python(written)
