"""Outcomes in columns come back as they were, and what is none is refused."""

from __future__ import annotations

from collections import Counter
from functools import partial

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from streamwatch.core.pipeline import journal
from streamwatch.core.pipeline.journal import EntryWriter, models_of, read
from streamwatch.core.records.events import LEAST_PROBABILITY, Outcome, PairedAnswer, as_float32
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from tests.core.pipeline.outcome_batches import batch_of, written

names = st.sampled_from(["a", "b", "ü", "a longer name"])
outcomes = st.builds(
    Outcome,
    names,
    names,
    names,
    st.integers(-(2**40), 2**45),
    st.integers(0, 2**40),
    st.booleans(),
    st.none() | st.dictionaries(names, st.floats(0, 1) | st.just(0.1 + 0.2)),
    st.none() | names,
    st.none()
    | st.lists(st.builds(PairedAnswer, names, names, st.integers(0, 2**32 - 1)), min_size=1, max_size=3).map(
        tuple
    ),
    st.none(),
    st.none() | names,
    st.integers(0, 2**32 - 1),
    st.integers(-(2**40), 2**45),
    st.integers(0, 2**40),
)
sampled = st.floats(as_float32(LEAST_PROBABILITY), 1, width=32).flatmap(
    lambda probability: st.builds(
        partial(replace, label_probability=probability),
        outcomes,
        label_requested=st.none() | st.booleans(),
    )
)
outcomes |= sampled


@given(st.lists(st.lists(outcomes, min_size=1), min_size=1, max_size=4))
def test_outcomes_of_several_batches_come_back_in_order(parts):
    writer = EntryWriter()
    for part in parts:
        writer.add(batch_of(part))
    found = read(writer.close())
    assert isinstance(found, OutcomeBatch)
    assert list(found) == [outcome for part in parts for outcome in part]
    assert writer.models() == models_of(found)
    counted = Counter(outcome.model for part in parts for outcome in part)
    assert dict(zip(*models_of(found), strict=True)) == counted


@given(st.lists(st.lists(outcomes, min_size=1), min_size=1, max_size=5), st.integers(1, 4))
def test_outcomes_packed_in_parts_come_back_in_order(batches, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "PART_ROWS", rows)
        value = written([batch_of(batch) for batch in batches])
    assert list(read(value)) == [outcome for batch in batches for outcome in batch]


@given(st.lists(outcomes, min_size=1, max_size=20), st.data())
def test_outcomes_that_are_selected_keep_their_pairs(some, data):
    batch = batch_of(some)
    chosen = data.draw(st.lists(st.integers(0, len(some) - 1), unique=True))
    assert list(batch.only(np.array(chosen, np.int64))) == [some[number] for number in chosen]
    assert list(batch[2:7]) == some[2:7]
    assert list(batch.paired()) == [outcome for outcome in some if outcome.pairs]
    assert batch[0] == some[0]


@given(st.lists(outcomes, min_size=1, max_size=5), st.data())
def test_a_value_that_is_cut_short_or_has_more_is_refused(some, data):
    value = written([batch_of(some)])
    cut = data.draw(st.integers(1, len(value) - 1))
    for wrong in (value[:cut], value + b"x"):
        with pytest.raises(ValueError, match=r"expected|Input data|bytes|malformed"):
            read(wrong)


def test_outcomes_take_few_bytes():
    some = [
        Outcome(
            "mno"[n % 3],
            str(n % 3),
            "0",
            10**12 + n - n % 200,  # the label's own time
            30_000 + n % 1_000,
            label_at_prediction="1",
            made=10**6 + n,
            resolved_ms=10**12 + n,
            waited_ms=30_000 + n % 1_000 + n % 100,
        )
        for n in range(5_000)
    ]
    assert len(written([batch_of(some)])) < 10 * len(some)
    assert OUTCOME.itemsize == 88
    revised = [*some[:-1], replace(some[-1], last_class="1")]
    assert len(written([batch_of(some)])) < len(written([batch_of(revised)]))


@pytest.mark.parametrize("resolved_ms", [2**60 + 1, 2**63, 2**64 - 1, -(2**63)])
def test_a_first_time_that_no_outcome_has_is_refused(resolved_ms):
    entry = msgspec.msgpack.decode(written([batch_of([Outcome("m", "a", "b", 1_000, 0)])]))
    assert entry[4] == Outcome("m", "a", "b", 1_000, 0).resolved_ms
    entry[4] = resolved_ms
    with pytest.raises(ValueError, match=r"expected|Expected"):
        read(msgspec.msgpack.encode(entry))


@pytest.mark.parametrize("name", ["true_class", "predicted_class"])
def test_an_outcome_without_a_class_is_refused(name):
    batch = batch_of([Outcome("m", "a", "b", 1_000, 0)])
    batch.records[name] = -1
    with pytest.raises(ValueError, match=f"expected a class of every outcome as {name}"):
        read(written([batch]))
