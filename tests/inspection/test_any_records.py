"""Whatever records hold, inspecting them ends with settings that load or with problems that are reported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.assembly.inspection import inspect
from streamwatch.history.recordings.lines import LineRecord

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["id", "a.b", 'q"', "x[0]", "prediction", "\x1b[31m", "fold", ""]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**29, 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
CONTENTS = st.dictionaries(
    TEXTS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=5,
)


def record(topic: str, offset: int, value: bytes | None, key: bytes | None) -> LineRecord:
    return LineRecord(
        offset + 1, value, topic, 0, offset, -1 if offset % 2 else 1_764_000_000_000 + offset, 0, key
    )


@given(st.lists(st.tuples(CONTENTS, st.binary(max_size=8)), min_size=1, max_size=6), st.binary(max_size=20))
def test_records_of_any_shape(contents: list[tuple[dict[str, object], bytes]], odd: bytes) -> None:
    topics = {
        topic: [
            *(
                # every shape stands there some times, under ids that both topics have
                record(topic, 5 * at + turn, json.dumps({**content, "k": f"{at}-{turn}"}).encode(), key)
                for at, (content, key) in enumerate(contents)
                for turn in range(5)
            ),
            record(topic, 1_000, odd, None),
            record(topic, 1_001, None, odd),
        ]
        for topic in ("one", "two")
    }
    found = inspect(topics)
    assert found.text is not None or found.problems


def test_names_with_control_characters_are_escaped_wherever_they_are_shown() -> None:
    values = [{"\x1b id": f"i{n}", "id": f"e{n}", "prediction": "ab"[n % 2]} for n in range(60)]
    labels = [{"\x1b id": f"i{n}", "id": f"e{n}", "label": "ab"[n % 2 if n % 5 else 0]} for n in range(60)]
    found = inspect(
        {
            topic: [record(topic, at, json.dumps(value).encode(), None) for at, value in enumerate(of_topic)]
            for topic, of_topic in (("one", values), ("two", labels))
        }
    )
    assert found.text is not None
    assert "\x1b" not in found.text
    assert "one: names that cannot be mapped: value: '\\x1b id'" in " ".join(found.text.split("\n# "))


def test_numbers_of_classes_whose_records_meet_no_label_are_no_prediction() -> None:
    topics = {
        "one": [{"id": f"i-{n}", "p": {"a": 0.25 + n / 100, "b": 0.75 - n / 100}} for n in range(20)],
        "two": [
            *({"id": f"i-{n}"} for n in range(20)),
            *({"id": f"other-{n}", "y": "ab"[n % 2]} for n in range(20)),
        ],
    }
    found = inspect(
        {
            topic: [record(topic, at, json.dumps(each).encode(), None) for at, each in enumerate(rows)]
            for topic, rows in topics.items()
        }
    )
    assert found.problems


@pytest.mark.parametrize("other", ["__other__", "\u200b", "x" * 129])
@pytest.mark.parametrize("of_array", [True, False])
def test_classes_that_no_class_may_be_called_are_not_proposed(other: str, *, of_array: bool) -> None:
    topics: dict[str, list[LineRecord]] = {"made": [], "known": []}
    for n in range(60):
        text, p = (other, 0.9) if n % 3 else ("x", 0.2)
        p += n % 7 / 100
        made = {"id": f"tx{n}", "scores": [p, 1.0 - p] if of_array else p}
        topics["made"].append(record("made", 2 * n, json.dumps(made).encode(), None))
        known = {"id": f"tx{n}", "label": text}
        topics["known"].append(record("known", 2 * n, json.dumps(known).encode(), None))
    found = inspect(topics)
    assert found.text is None
    assert found.problems
