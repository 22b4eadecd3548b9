"""The notation of paths."""

from __future__ import annotations

import re

import pytest

from streamwatch.edge.decoders.mapping import (
    PATH,
    Constant,
    InArray,
    InHeader,
    InKey,
    InTopic,
    InValue,
    parse_field_location,
)

UNDERSTOOD = {
    "key": InKey(),
    "topic": InTopic(),
    "header:a b": InHeader("a b"),
    "=v[0]": Constant("v[0]"),
    "value.a": InValue(("a",)),
    "value.a b.c-d": InValue(("a b", "c-d")),
    'value."a.b".c': InValue(("a.b", "c")),
    'value."predictions[0]"': InValue(("predictions[0]",)),
    'value."[]"': InValue(("[]",)),
    'value."say ""hi"""': InValue(('say "hi"',)),
    "value.a[0]": InArray(("a", 0)),
    "value.a[12].b[3]": InArray(("a", 12, "b", 3)),
    "value[0]": InArray((0,)),
    "value[]": InArray((), ()),
    "value.a[]": InArray(("a",), ()),
    "value.a[1][].b[0].c": InArray(("a", 1), ("b", 0, "c")),
}


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_a_path_is_read_and_its_pattern_for_editors_agrees(text: str) -> None:
    assert parse_field_location(text) == UNDERSTOOD[text]
    assert re.fullmatch(PATH, text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("value.a[-1]", "expected an index that counts from the front, from 0, got 'value.a[-1]'"),
        ("value.a[x]", "expected value.list[0].field for one element"),
        ("value.a[0", "expected value.list[0].field for one element"),
        ('value."a', "expected value.list[0].field for one element"),
        ("value.a[0]b", "expected value.list[0].field for one element"),
        ("values", "expected value.some.field, value, key, header:name, topic or a constant =text"),
        ("value.", "expected value.some.field"),
        ("value..a", "expected value.some.field"),
        ("value.a.", "expected value.some.field"),
        ("payload.a", "expected value.some.field"),
        ("header:", "expected value.some.field"),
        ("=", "expected value.some.field"),
        ("", "expected value.some.field"),
    ],
)
def test_what_is_no_path_is_reported_with_what_to_write(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_field_location(text)
    assert not re.fullmatch(PATH, text)


def test_one_record_is_not_read_by_the_elements_of_two_arrays_within_each_other() -> None:
    with pytest.raises(ValueError, match=re.escape("expected [] or * at most once")):
        parse_field_location("value.a[].b[]")
