"""The compiled register of segments against the one in objects, to the last bit of what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.registers.segments import state as numbers
from streamwatch.core.estimators.registers.segments.observe import EMPTY, forget, remember
from streamwatch.core.estimators.registers.segments.register import Segments, decode
from streamwatch.core.records.events import Outcome, segments_text
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.records.scores import lists_of
from tests.core.estimators.registers.plain_segments import EPOCH, OTHER, PlainSegments
from tests.tiers import few

MODELS = 3
CLASSES = 4
LENGTH = 3 * EPOCH


def snapshot(register: Segments | PlainSegments, row: int) -> bytes:
    return register.snapshots(np.array([row]))[0]


def many_values(rng: np.random.Generator, at: int) -> dict[str, str] | None:
    """Countries of which the frequent ones change in the middle, rare and ever new customers, a channel."""
    if rng.random() < 0.03:
        return None
    country = int(rng.zipf(1.3)) % 3_000
    given = {"country": f"c{country if at < LENGTH // 2 else (country + 7) % 3_000}"}
    if rng.random() < 0.3:
        given["customer"] = f"{at}" if rng.random() < 0.8 else OTHER
    if rng.random() < 0.5:
        given["channel"] = "web" if rng.random() < 0.7 else "shop"
    return given


def few_values(rng: np.random.Generator, at: int) -> dict[str, str] | None:
    """Three countries, and others at first."""
    return {"country": OTHER if at < 5 else "def"[int(rng.integers(3))]}


def seldom(rng: np.random.Generator, at: int) -> dict[str, str] | None:
    """Three countries in half of the batches, nothing in the others, whose labels are previous ones, too."""
    return few_values(rng, at) if at // 4_000 % 2 else None


def batch(
    rng: np.random.Generator, segments: Sequence[dict[str, str] | None], texts: list[str] | None
) -> Batch:
    """Outcomes of these segments, as columns that name them in `texts`, some with scores, or as objects."""
    n = len(segments)
    rows, truth, answer, label = rng.integers(0, (MODELS, CLASSES, CLASSES, CLASSES), (n, 4), np.int32).T
    outcomes = in_columns([Outcome("m", "x", "x", 0, 0, segments=each) for each in segments])
    if texts is not None:
        known = {text: number for number, text in enumerate(texts)}
        for text in {segments_text(each): None for each in segments if each is not None}:
            if text not in known:
                known[text] = len(texts)
                texts.append(text)
        given = np.array([-1 if each is None else known[segments_text(each)] for each in segments])
        records = np.zeros(n, OUTCOME)
        records["scores"] = np.where(given < 0, -1, SEGMENTS_FROM + given)
        scored = np.flatnonzero(rng.random(n) < 0.1)
        records["scores"][scored] = scored
        lists = lists_of([{0: 1.0}] * n, given)
        outcomes = OutcomeBatch(records, ["m"], ["x"], lists, texts)
    times = np.arange(n, dtype=np.int64)
    return Batch(
        outcomes,
        *(np.ascontiguousarray(column) for column in (rows, truth, answer, label)),
        event_ms=times,
        delay_ms=times,
        assumed=np.zeros(n, np.bool_),
        made=np.arange(n, dtype=np.uint32),
        resolved_ms=times,
        waited_ms=times,
    )


def batches(
    seed: int, values: Callable[[np.random.Generator, int], dict[str, str] | None], *, columns: bool
) -> list[Batch]:
    """Batches of different lengths, one longer than an epoch; every eighth begins a list of texts."""
    rng = np.random.default_rng(seed)
    cuts = np.cumsum([1, 2, EPOCH + 9, *rng.integers(1, 3_000, 200)])
    ends = [0, *cuts[cuts < LENGTH].tolist(), LENGTH]
    lists: list[list[str]] = [[] for _ in range(len(ends) // 8 + 1)]
    return [
        batch(rng, [values(rng, at) for at in range(start, end)], lists[number // 8] if columns else None)
        for number, (start, end) in enumerate(pairwise(ends))
    ]


SPECS = {
    "with room": (many_values, SegmentsSpec(alpha=0.97, max_values=20, max_classes=CLASSES)),
    "a full table": (many_values, SegmentsSpec(alpha=0.97, max_values=20, max_classes=CLASSES, max_total=50)),
    "one value": (many_values, SegmentsSpec(max_values=1, max_classes=CLASSES)),
    "no room at all": (few_values, SegmentsSpec(max_values=2, max_classes=CLASSES, max_total=2)),
    "few values": (few_values, SegmentsSpec(max_values=2, max_classes=CLASSES)),
    "seldom": (seldom, SegmentsSpec(max_values=2, max_classes=CLASSES)),
}


@pytest.mark.slow
@pytest.mark.parametrize("columns", [False, True], ids=["objects", "columns"])
@pytest.mark.parametrize("name", few(SPECS, 2))
def test_what_is_kept_is_that_of_the_register_in_objects(
    name: str,
    columns: bool,  # noqa: FBT001 - a parameter
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbers, "_MIN_CROWD", 2_000)  # so that numbers of values are released often
    values, spec = SPECS[name]
    compiled, plain = Segments(spec, MODELS), PlainSegments(spec)
    for count, given in enumerate(batches(len(name), values, columns=columns)):
        compiled.observe(given)
        plain.observe(given)
        if count % 7 == 3:
            for each in (compiled, plain):
                each.clear(count % MODELS)
        if count % 5 == 4:
            assert [snapshot(compiled, row) for row in range(MODELS)] == [
                snapshot(plain, row) for row in range(MODELS)
            ]
    assert [snapshot(compiled, row) for row in range(MODELS)] == [
        snapshot(plain, row) for row in range(MODELS)
    ]


def test_states_of_the_register_in_objects_are_resumed_and_the_other_way_round() -> None:
    values, spec = SPECS["with room"]
    given = batches(8, values, columns=True)
    half = len(given) // 2
    plain = PlainSegments(spec)
    for each in given[:half]:
        plain.observe(each)
    resumed, plain_again = Segments(spec, MODELS), PlainSegments(spec)
    for row in range(MODELS):
        resumed.restore(row, snapshot(plain, row))
        plain_again.restore(row, snapshot(resumed, row))
    for each in given[half:]:
        plain.observe(each)
        resumed.observe(each)
        plain_again.observe(each)
    for row in range(MODELS):
        assert snapshot(resumed, row) == snapshot(plain, row) == snapshot(plain_again, row)


def test_states_with_more_values_than_there_is_room_for_go_on_as_those_of_the_register_in_objects() -> None:
    values, spec = SPECS["with room"]
    given = batches(8, values, columns=True)
    half = len(given) // 2
    before = Segments(spec, MODELS)
    for each in given[:half]:
        before.observe(each)
    less = SPECS["a full table"][1]
    compiled, plain = Segments(less, MODELS), PlainSegments(less)
    for each in (compiled, plain):
        for row in range(MODELS):
            each.restore(row, snapshot(before, row))
    for count, each in enumerate(given[half:]):
        compiled.observe(each)
        plain.observe(each)
        if count == 3:  # room again, for a while
            compiled.clear(0)
            plain.clear(0)
    for row in range(MODELS):
        assert snapshot(compiled, row) == snapshot(plain, row)


def test_a_state_with_more_values_than_there_is_room_for_counts_those_left_out() -> None:
    values, spec = SPECS["with room"]
    before, after = Segments(spec, MODELS), Segments(SPECS["a full table"][1], MODELS)
    for each in batches(5, values, columns=False)[:6]:
        before.observe(each)
    for row in range(MODELS):
        after.restore(row, snapshot(before, row))
    assert sum(len(each) for each in after._state.rows) == 50
    kept, had = (int(each._state.values["outcomes"].sum()) for each in (after, before))
    assert kept + int(after._state.segments["left_out"].sum()) == had


def test_a_value_that_finds_room_only_after_a_restore_is_entered_once() -> None:
    rng = np.random.default_rng(6)

    def observe(register: Segments, row: int, values: str) -> None:
        given = batch(rng, [{"country": value} for value in values], None)
        register.observe(replace(given, rows=np.full(len(values), row, np.int32)))

    spec = SegmentsSpec(max_values=2, max_classes=CLASSES)
    before, after = Segments(spec, MODELS), Segments(replace(spec, max_total=3), MODELS)
    observe(before, 0, "ab" + 100 * "c")
    observe(before, 1, "x")
    for row in (1, 0):  # x, all others and a have room; b has none, and c is still distinguished from others
        after.restore(row, snapshot(before, row))
    after.clear(1)
    observe(after, 0, "a" + (EPOCH - 102) * "c" + "ac")
    [segment] = decode(snapshot(after, 0), CLASSES).segments
    assert {value.name: value.outcomes for value in segment.values} == {OTHER: 100, "a": 3, "c": EPOCH - 101}
    assert after._table.rows.room == 0
    after.clear(0)
    assert after._table.rows.room == 3


def test_a_key_that_is_removed_leaves_all_others_where_they_are_found() -> None:
    rng = np.random.default_rng(4)
    keys, meanings = np.full(64, EMPTY, np.int64), np.zeros(64, np.int32)
    known: dict[int, int] = {}
    for step in range(5_000):
        key = int(rng.integers(40)) << (32 if rng.random() < 0.5 else 0)
        if len(known) < 32 and rng.random() < 0.5:
            assert remember(keys, meanings, np.array([key]), np.array([step], np.int32)) == (key not in known)
            known[key] = step
        else:
            assert forget(keys, meanings, np.array([key])) == (known.pop(key, None) is not None)
        held = keys != EMPTY
        assert dict(zip(keys[held].tolist(), meanings[held].tolist(), strict=True)) == known
        again = np.array(list(known), np.int64)
        assert remember(keys, meanings, again, np.array(list(known.values()), np.int32)) == 0
