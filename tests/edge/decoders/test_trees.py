"""Values read as trees: the same events as of the plain decoder, and what only trees can tell."""

from __future__ import annotations

import json
import math
import random
import time
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

from streamwatch.core.records.events import EventGroup, Invalid, Label, NullRecord, Prediction, Side
from streamwatch.edge.decoders.envelopes import KINDS
from streamwatch.edge.decoders.envelopes.kserve_v2 import elements
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder, read_json
from streamwatch.edge.decoders.mapping import (
    REASONS,
    ClassOfLargest,
    ClassOfScore,
    KindRule,
    ScoreArray,
    SidedMapping,
    TopicMapping,
)
from streamwatch.edge.decoders.trees import MAX_ELEMENTS, TreeDecoder, needs_trees, sided
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.mutations import damage, mutated
from tests.edge.decoders.records import AT_MS, FakeRecord, of
from tests.edge.decoders.test_scanner import MAPPINGS
from tests.processor_time import own_garbage

OBJECT_OF_SCORES = TopicMapping(prediction=ClassOfLargest("value.s"), scores=None)


def trees(*mappings: TopicMapping, side: Side = "prediction", **options: Any) -> TreeDecoder:
    parts = [part for mapping in mappings for part in sided(side, mapping)]
    return TreeDecoder("predictions", parts, read_json, **options)


def classes(mapping: TopicMapping, *contents: Any) -> list[str]:
    """The class of each content, or the reason."""
    decoder = trees(mapping)
    found = []
    for content in contents:
        event = decoder.decode(of({"id": 1, "model": "m", "s": content}), AT_MS)
        if isinstance(event, EventGroup):
            [event] = event.events
        found.append(event.reason if isinstance(event, Invalid) else event.predicted_class)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPPINGS)
def test_trees_and_the_plain_decoder_make_the_same_of_every_record(name: str) -> None:
    side, mapping = MAPPINGS[name][:2]
    assert not needs_trees(mapping)
    chance = random.Random(name)
    keys = id_keys("space", digest=True)
    plain = JsonDecoder(DecoderSpec("predictions", side, mapping, keys))
    whole = TreeDecoder("predictions", sided(side, mapping), read_json, keys=keys)
    for n in range(1_500):
        record = mutated(chance, n, chance.choice((0.0, 0.2, 0.6)), mapping.timestamp_unit)
        found = whole.decode(record, AT_MS)
        if isinstance(found, Invalid) and found.reason in {"invalid_json", "invalid_utf8"}:
            with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
                msgspec.json.decode(
                    record.value or b""
                )  # the plain decoder skips fields that nobody asks for
        else:
            assert found == plain.decode(record, AT_MS), record


@pytest.mark.parametrize("score", [0, 0.5, -3, 1e300, "0.7", "-1e3", 0.49999])
def test_a_threshold_divides_as_comparison_does(score: float | str) -> None:
    mapping = TopicMapping(prediction=ClassOfScore("value.s", 0.5, "yes", "no"))
    assert classes(mapping, score) == ["yes" if float(score) >= 0.5 else "no"]


def test_a_score_that_is_no_finite_number_is_reported() -> None:
    mapping = TopicMapping(prediction=ClassOfScore("value.s", 0.5, "yes", "no"))
    reported = classes(mapping, None, "high", True, [], {}, "nan", 10**400)
    assert reported == ["missing_prediction", *["invalid_score"] * 6]


def test_a_probability_gives_the_scores_of_both_classes_unless_the_record_has_its_own() -> None:
    decoder = trees(TopicMapping(prediction=ClassOfScore("value.s", 0.75, "yes", "no", probability=True)))
    base = {"id": 1, "model": "m"}
    for content, expected in (
        ({"s": 0.75}, {"yes": 0.75, "no": 0.25}),
        ({"s": "0.5"}, {"yes": 0.5, "no": 0.5}),
        ({"s": 0}, {"yes": 0.0, "no": 1.0}),
        ({"s": 0.75, "scores": {"yes": 0.5, "no": 0.5}}, {"yes": 0.5, "no": 0.5}),
    ):
        found = decoder.decode(of(base | content), AT_MS)
        assert isinstance(found, Prediction)
        assert found.scores == expected
        assert found.predicted_class == ("yes" if float(content["s"]) >= 0.75 else "no")
    for odd in (1.5, -0.5, 50, "high"):
        found = decoder.decode(of(base | {"s": odd}), AT_MS)
        assert isinstance(found, Invalid)
        assert found.reason == "invalid_score"


def test_a_score_that_is_not_declared_to_be_a_probability_gives_no_scores() -> None:
    decoder = trees(TopicMapping(prediction=ClassOfScore("value.s", 0.5, "yes", "no")))
    found = decoder.decode(of({"id": 1, "model": "m", "s": 0.75}), AT_MS)
    assert isinstance(found, Prediction)
    assert found.scores is None


def test_the_largest_score_is_numpys_argmax_and_ties_are_counted() -> None:
    chance = np.random.default_rng(3)
    names = tuple("dacb")
    array = trees(TopicMapping(prediction=ClassOfLargest("value.s", names), scores=None))
    by_name = trees(OBJECT_OF_SCORES)
    for _ in range(300):
        scores = chance.integers(-2, 3, 4).astype(float)
        tied = int((scores == scores.max()).sum() > 1)
        base = {"id": 1, "model": "m"}
        for decoder, content, expected in (
            (array, scores.tolist(), names[int(scores.argmax())]),
            (
                by_name,
                dict(zip(names, scores.tolist(), strict=True)),
                min(name for name, score in zip(names, scores, strict=True) if score == scores.max()),
            ),
        ):
            found = decoder.decode(of(base | {"s": content}), AT_MS)
            event = Prediction("1", "m", expected, AT_MS)
            assert found == (EventGroup((event,), AT_MS, 1) if tied else event)


def test_a_prediction_that_is_refused_for_another_field_is_no_tie() -> None:
    mapping = TopicMapping(prediction=ClassOfLargest("value.s"), scores=None)
    tied = {"id": "a", "model": "m", "s": {"x": 0.5, "y": 0.5}}
    decoder = TreeDecoder("predictions", sided("prediction", mapping), read_json)
    refused = decoder.decode(of(tied | {"timestamp": "noon"}), AT_MS)
    assert isinstance(refused, Invalid)
    assert refused.reason == "invalid_timestamp"
    assert decoder.decode(of(tied), AT_MS) == EventGroup((Prediction("a", "m", "x", AT_MS),), AT_MS, 1)


def test_aliases_of_one_class_add_up_before_the_largest_is_taken() -> None:
    mapping = TopicMapping(prediction=ClassOfLargest("value.s"), classes={"a": "x", "b": "x"})
    assert classes(mapping, {"a": 0.3, "b": 0.3, "c": 0.4}) == ["x"]


def test_probabilities_of_aliases_that_add_up_to_more_than_one_are_invalid() -> None:
    decoder = trees(TopicMapping(classes={"a": "x", "b": "x"}))
    base = {"id": 1, "model": "m", "prediction": "a"}
    for scores, expected in (
        ({"a": 0.25, "b": 0.5, "c": 0.25}, {"x": 0.75, "c": 0.25}),
        ({"a": 0.5, "b": 0.5000005}, {"x": 1.0}),  # rounded by the producer
    ):
        found = decoder.decode(of(base | {"scores": scores}), AT_MS)
        assert isinstance(found, Prediction)
        assert found.scores == expected
    found = decoder.decode(of(base | {"scores": {"a": 0.9, "b": 0.9, "c": 0.1}}), AT_MS)
    assert isinstance(found, Invalid)
    assert found.reason == "invalid_scores"


def test_scores_that_make_no_class_are_reported() -> None:
    bad = "invalid_class_scores"
    odd = [None, {}, [], "a", 1, {"a": None}, {"a": "x"}, {"": 1}, {"a": True}, [0.5, 0.5]]
    assert classes(OBJECT_OF_SCORES, *odd) == ["missing_prediction", *[bad] * 9]
    array = TopicMapping(prediction=ClassOfLargest("value.s", ("a", "b")))
    assert classes(array, [1], [1, 2, 3], [1, None], {"a": 1}) == [bad] * 4


def test_scores_of_an_array_are_probabilities_by_class() -> None:
    mapping = TopicMapping(scores=ScoreArray("value.p", ("a", "b")))
    base = {"id": 1, "model": "m", "prediction": "a"}
    decoder = trees(mapping)
    assert decoder.decode(of(base | {"p": [0.25, 0.75]}), AT_MS) == Prediction(
        "1", "m", "a", AT_MS, None, {"a": 0.25, "b": 0.75}
    )
    for odd in ([0.5], [0.5, 1.5], {"a": 1}, [0.5, None]):
        assert decoder.decode(of(base | {"p": odd}), AT_MS).reason == "invalid_scores"


@pytest.mark.parametrize(
    ("mapping", "complaint"),
    [
        (TopicMapping(prediction=ClassOfScore("value.s", 0, "a", "a")), "expected classes that differ"),
        (TopicMapping(prediction=ClassOfScore("value.s", 0, "", "a")), "a class must be 1 to 128 bytes"),
        (TopicMapping(prediction=ClassOfLargest("value.s", ("a", "a"))), "expected classes that differ"),
        (TopicMapping(prediction=ClassOfLargest("s")), "prediction: expected value.some.field"),
        (TopicMapping(when={"value.a[-1]": ("x",)}), "when: expected an index"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_reported(mapping: TopicMapping, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        trees(mapping)


BATCH = TopicMapping(id="value.ids[]", prediction="value.y[].c", timestamp="value.t[]", scores=None)


def test_arrays_are_read_side_by_side_and_an_absent_optional_one_is_absent_for_all() -> None:
    value = {"model": "m", "ids": ["a", 2], "y": [{"c": "x"}, {"c": "y"}]}
    first, second = Prediction("a", "m", "x", AT_MS), Prediction("2", "m", "y", AT_MS)
    assert trees(BATCH).decode(of(value), AT_MS) == EventGroup((first, second), AT_MS)
    first.timestamp_ms, second.timestamp_ms = 5, 6
    assert trees(BATCH).decode(of(value | {"t": [5, 6]}), AT_MS) == EventGroup((first, second), AT_MS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ids": None}, "missing_elements"),
        ({"ids": {}}, "missing_elements"),
        ({"y": []}, "element_counts_differ"),
        ({"ids": [], "y": []}, "missing_elements"),
        ({"t": [1]}, "element_counts_differ"),
        ({"t": "x"}, "missing_elements"),
        ({"ids": [1] * (MAX_ELEMENTS + 1), "y": [{"c": 1}] * (MAX_ELEMENTS + 1)}, "too_many_elements"),
    ],
)
def test_arrays_that_do_not_fit_make_one_invalid_record(change: dict[str, Any], reason: str) -> None:
    value = {"model": "m", "ids": ["a", "b"], "y": [{"c": "x"}, {"c": "y"}]} | change
    assert trees(BATCH).decode(of(value), AT_MS) == Invalid("predictions", 3, 42, reason, model="m")


@pytest.mark.parametrize("taken", [ClassOfLargest("value.scores"), "value.ids[]"])
def test_scores_that_all_elements_share_count_for_each_of_them(taken: str | ClassOfLargest) -> None:
    """Else a record of 100 KB makes millions of scores, for many seconds and hundreds of megabytes."""
    decoder = trees(TopicMapping(id="value.ids[]", prediction=taken, scores="value.scores"))
    for count, scores, reason in ((100, 100, ""), (4_000, 1_000, "too_many_elements"), (1, 1_000, "")):
        shared = {str(n): 0.5 if n else 1.0 for n in range(scores)}
        found = decoder.decode(of({"model": "m", "ids": list(range(count)), "scores": shared}), AT_MS)
        assert getattr(found, "reason", "") == reason
        if not reason:
            events = getattr(found, "events", (found,))
            assert [len(event.scores) for event in events] == [scores] * count


def test_an_element_without_its_own_id_is_known_by_its_number_within_the_length_of_ids() -> None:
    decoder = trees(TopicMapping(id="key", prediction="value.y[]"))
    value = {"model": "m", "y": [1, 0]}
    found = decoder.decode(of(value, key=b"k" * 126), AT_MS)
    assert [event.id for event in found.events] == ["k" * 126 + "#0", "k" * 126 + "#1"]
    found = decoder.decode(of(value, key=b"k" * 127), AT_MS)
    assert [event.reason for event in found.events] == ["invalid_id"] * 2
    assert decoder.decode(of(value), AT_MS).reason == "missing_id"


def test_predictions_precede_labels_then_mappings_then_elements() -> None:
    parts = [
        SidedMapping("label", TopicMapping(model=None, label="value.truth")),
        SidedMapping("prediction", TopicMapping(model="=b", prediction="value.b[]")),
        SidedMapping("prediction", TopicMapping(model="=a", prediction="value.a")),
    ]
    found = TreeDecoder("predictions", parts, read_json).decode(
        of({"id": 1, "truth": "t", "b": ["x", "y"], "a": "z"}), AT_MS
    )
    assert found == EventGroup(
        (
            Prediction("1#0", "b", "x", AT_MS),
            Prediction("1#1", "b", "y", AT_MS),
            Prediction("1", "a", "z", AT_MS),
            Label("1", "t", AT_MS),
        ),
        AT_MS,
    )


def test_an_optional_class_that_is_absent_makes_nothing_and_a_needed_one_is_missing() -> None:
    optional = TopicMapping(model="=m", prediction="value.y[]", optional=True)
    decoder = trees(optional)
    assert decoder.decode(of({"id": 1}), AT_MS) == EventGroup((), AT_MS)
    assert decoder.decode(of({"id": 1, "y": [None, "b"]}), AT_MS) == Prediction("1#1", "m", "b", AT_MS)
    strict = trees(TopicMapping(model="=m", prediction="value.y[]"))
    assert strict.decode(of({"id": 1}), AT_MS).reason == "missing_elements"


@pytest.mark.parametrize("side", ["prediction", "label"])
def test_a_null_value_withdraws_for_each_mapping_that_is_for_it(side: Literal["prediction", "label"]) -> None:
    mappings = [TopicMapping(id="key", model=f"={m}", when={"header:to": (m, "all")}) for m in "ab"]
    decoder = trees(*mappings, side=side)
    withdraws = side == "prediction"
    for to, models in ((b"all", "ab"), (b"a", "a")):
        found = decoder.decode(FakeRecord(None, b"k", (("to", to),)), AT_MS)
        events = found.events if isinstance(found, EventGroup) else (found,)
        assert list(events) == [NullRecord("predictions", "k", m, AT_MS, withdraws) for m in models]
    found = decoder.decode(FakeRecord(None, b"k"), AT_MS)
    assert found == NullRecord("predictions", "k", "a", AT_MS, withdraws=False)


@pytest.mark.slow
def test_whatever_a_record_holds_no_decoder_raises_and_reasons_are_known() -> None:
    chance = random.Random(11)
    seeds = [
        {"specversion": "1.0", "id": "e", "source": "s", "type": "t", "data": {"id": 1, "prediction": "x"}},
        {"payload": {"op": "c", "before": None, "after": {"id": 1, "prediction": "x"}}, "schema": {}},
        {"id": "r", "instances": [1], "predictions": [1, {"a": 0.5}, [0.1, 0.9]]},
        {"id": "r", "model_name": "m", "outputs": [{"name": "o", "shape": [2, 1], "data": [0, 1]}]},
        {"meta": {"puid": "p"}, "data": {"names": ["a", "b"], "ndarray": [[0.1, 0.9], [1, 0]]}},
    ]
    mappings = [
        TopicMapping(model="=m", prediction="value.predictions[]"),
        TopicMapping(
            model="value.model", prediction=ClassOfLargest("value.columns[]"), scores="value.columns[]"
        ),
        TopicMapping(model=None, prediction=ClassOfScore("value.data.p[0]", 1, "a", "b"), optional=True),
    ]
    decoders = [
        trees(mapping, side=side, envelope=kind)
        for mapping in mappings
        for side in ("prediction", "label")
        for kind in (None, *KINDS.values())
    ]
    for n in range(3_000):
        value = bytearray(json.dumps(seeds[n % len(seeds)]).encode())
        damage(chance, value)
        headers = ((("ce_specversion", b"1.0"), ("ce_id", b"\xff")), ())[n % 2]
        for decoder in decoders:
            found = decoder.decode(FakeRecord(bytes(value), headers=headers), AT_MS)
            for event in found.events if isinstance(found, EventGroup) else (found,):
                assert not isinstance(event, Invalid) or event.reason in REASONS


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 2), (2, 3, 2), (1, 4), (0, 2), (4, 1, 1)])
def test_tensors_are_divided_as_numpy_divides_them(shape: tuple[int, ...]) -> None:
    data = list(range(math.prod(shape)))
    rows = [row.ravel().tolist() for row in np.array(data).reshape(shape)] if shape[0] else []
    expected = [row[0] if len(row) == 1 else row for row in rows]
    assert elements(list(shape), data) == expected


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ([2], [1]),
        ([2, 2], [1, 2, 3]),
        (None, [1]),
        ([1], None),
        ([], [1]),
        ([-1], [1]),
        ([True], [1]),
        (["1"], [1]),
        ([1] * 17, [1]),
        ([2**62] * 50_000, [1]),
        ([1, 10**18, 10**18], [1]),
        ([1, 2, 10**18, 0], [1]),
    ],
)
def test_a_tensor_whose_shape_does_not_fit_is_none(shape: Any, data: Any) -> None:
    assert elements(shape, data) is None


def test_a_shape_of_fifty_thousand_dimensions_costs_nothing() -> None:
    """Their product took five seconds."""
    with own_garbage():
        began = time.thread_time()
        assert elements([2**62] * 50_000, [1]) is None
        assert time.thread_time() - began < 0.5


@pytest.mark.parametrize("name", [{"a": "x" * 300_000}, msgspec.json.decode(b"[" * 900 + b"]" * 900), 7])
def test_columns_are_named_by_text_and_nothing_else_is_written_out_for_every_row(name: Any) -> None:
    """A long object as name of a column became fifty thousand texts of it: fifteen gigabytes."""
    opened = KINDS["seldon"].open({"data": {"names": [name], "ndarray": [[1]] * 50_000}}, FakeRecord(b""))
    assert not isinstance(opened, str | None)
    assert opened.tree["columns"] is None


def test_two_columns_of_one_name_are_no_columns() -> None:
    """Of two scores, one would be lost, and the other class would look the likelier."""
    opened = KINDS["seldon"].open({"data": {"names": ["a", "a"], "ndarray": [[0.9, 0.1]]}}, FakeRecord(b""))
    assert not isinstance(opened, str | None)
    assert (opened.tree["columns"], opened.tree["rows"]) == (None, [[0.9, 0.1]])


def test_paths_that_hold_deep_arrays_name_no_model() -> None:
    deep = "[" * 900 + "]" * 900
    decoder = trees(
        TopicMapping(model="value.a", kind=KindRule()), TopicMapping(model="value.b", kind=KindRule())
    )
    found = decoder.decode(FakeRecord(f'{{"a": {deep}, "b": {deep}, "kind": "x"}}'.encode()), AT_MS)
    assert isinstance(found, Invalid)
    assert (found.reason, found.model) == ("unknown_kind", None)
