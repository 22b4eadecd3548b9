"""Digests of outcomes: the same wherever commits end, and another one for whatever differs."""

from __future__ import annotations

import zlib

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamwatch.core.publishing.candidacy import VERSION, Decisions, DecisionsError, from_parts, to_parts
from streamwatch.core.publishing.kept import KeptOutcomes, Keys, added, outcomes_sum
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from tests.tiers import examples

COUNT = 12
MODELS, CLASSES, SEGMENTS = ["m", "n"], ["a", "b", "c"], ["s", "t"]


def outcomes() -> NDArray[np.void]:
    chance = np.random.default_rng(1)
    records = np.zeros(COUNT, OUTCOME)
    for name in ("low", "high", "event_ms", "delay_ms", "resolved_ms", "waited_ms", "made"):
        records[name] = chance.integers(0, 1 << 30, COUNT)
    records["model"] = chance.integers(0, 2, COUNT)
    for name in ("true_class", "predicted_class"):
        records[name] = chance.integers(0, 3, COUNT)
    records["label_at_prediction"] = chance.integers(-1, 3, COUNT)
    records["last_class"] = chance.integers(0, 4, COUNT)
    records["scores"] = SEGMENTS_FROM + chance.integers(0, 2, COUNT)
    return records


def kept(records: NDArray[np.void], classes: list[str] = CLASSES) -> KeptOutcomes:
    without = np.full(len(records), -1, np.int64)
    keys = Keys(np.zeros(0, np.uint8), np.zeros(len(records), np.int64), without)
    return KeptOutcomes.of(OutcomeBatch(records, MODELS, classes, segments=SEGMENTS), keys)


def digest(records: NDArray[np.void], cuts: list[int]) -> int:
    found, first = 0, 0
    for end in [*sorted(cuts), len(records)]:
        found = added(found, outcomes_sum(kept(records[first:end]), first + 1))
        first = end
    return found


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(st.integers(0, COUNT), max_size=5))
def test_a_digest_does_not_tell_where_commits_ended(cuts: list[int]) -> None:
    assert digest(outcomes(), cuts) == digest(outcomes(), [])


def test_the_first_of_some_outcomes_have_their_own_digest() -> None:
    records = outcomes()
    for count in range(COUNT + 1):
        assert outcomes_sum(kept(records), 1, count) == digest(records[:count], [])


@pytest.mark.parametrize("name", [name for name in OUTCOME.names or () if name not in ("assumed", "carried")])
def test_another_value_of_any_column_is_another_digest(name: str) -> None:
    records = outcomes()
    other = records.copy()
    values = records[name]
    step = values != values[5]
    other[name][5] = values[step][0]
    assert digest(other, []) != digest(records, [])


@pytest.mark.parametrize("name", ["assumed", "carried"])
def test_another_flag_is_another_digest(name: str) -> None:
    other = outcomes()
    other[name][5] = 1
    assert digest(other, []) != digest(outcomes(), [])


def test_another_order_is_another_digest() -> None:
    records = outcomes()
    assert digest(records[::-1], []) != digest(records, [])


def test_numbers_of_names_do_not_count() -> None:
    records, other = outcomes(), outcomes()
    for name in ("true_class", "predicted_class"):
        other[name] = 2 - records[name]
    known = records["label_at_prediction"]
    other["label_at_prediction"] = np.where(known < 0, -1, 2 - known)
    last = records["last_class"]
    other["last_class"] = np.where(last == 0, 0, 4 - last)
    assert outcomes_sum(kept(other, CLASSES[::-1]), 1) == outcomes_sum(kept(records), 1)


DECISIONS = Decisions(3, 1, b"book", b"pacing", {"id": b"x" * 700_000}, [("a", "b", -1)])


def test_decisions_come_back_from_their_parts() -> None:
    chance = np.random.default_rng(3)
    large = Decisions(3, 1, chance.bytes(600_000), b"", {}, [])
    for each in (DECISIONS, large):
        assert from_parts(to_parts(each)) == each
        assert to_parts(each) == to_parts(each)
    assert len(to_parts(large)) > 1


@pytest.mark.parametrize("parts", [[], [b""], [b"none"], to_parts(DECISIONS)[:-1]])
def test_parts_that_are_none_are_refused(parts: list[bytes]) -> None:
    with pytest.raises(DecisionsError, match="cannot be read"):
        from_parts(parts)


def test_decisions_of_another_version_are_refused_by_name_whatever_they_hold() -> None:
    encoded = msgspec.msgpack.encode((VERSION + 1, ["another", "form"]))
    with pytest.raises(DecisionsError, match="expected decisions of version 1 in the ledger, got 2"):
        from_parts([zlib.compress(encoded)])
    without = zlib.compress(msgspec.msgpack.encode(DECISIONS))
    with pytest.raises(DecisionsError, match="cannot be read"):
        from_parts([without])
