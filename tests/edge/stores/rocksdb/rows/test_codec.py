"""What is written of an id is what is read of it, whatever its chain holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.join.entry import EARLY, PENDING, RESOLVED, JoinEntry
from streamwatch.edge.stores.rocksdb.rows.codec import ChainCodec, deadline_of, tag
from streamwatch.edge.stores.rocksdb.rows.names import Names
from tests.tiers import examples

HORIZON_MS, EARLY_MS, FLOOR = 5_000, 2_000, 3
KEY = "k" * 16

name = st.sampled_from(["m", "n", "o"])
label = st.sampled_from(["x", "y", ""])
time_ms = st.integers(0, 2**45)


@st.composite
def records(draw):
    """One record, as the join leaves it; those that wait are tagged as an index entry would."""
    state = draw(st.integers(0, 8))
    if state >= RESOLVED:
        return JoinEntry(
            KEY, draw(name), state, draw(label), draw(label), 0, None, None, draw(st.integers(0, 300))
        )
    record_ms = draw(time_ms)
    due_s = -(-(record_ms + (EARLY_MS if state == EARLY else HORIZON_MS)) // 1000)
    pending = state == PENDING
    return JoinEntry(
        KEY,
        draw(name) if state <= EARLY else None,
        state,
        draw(label) if pending else "",
        "" if pending else draw(label),
        record_ms,
        draw(st.none() | time_ms | st.just(record_ms)),
        draw(st.none() | st.dictionaries(label, st.floats(0, 1), min_size=1)) if pending else None,
        tag(due_s + draw(st.sampled_from([0, 0, 0, 7])), draw(st.integers(0, 70_000))),
        label_at_prediction=draw(st.none() | label) if pending else None,
        segments=draw(st.none() | st.dictionaries(name, label, min_size=1)) if pending else None,
        topic=draw(st.sampled_from(["", "t", "u"])),
        last_class=draw(st.none() | label) if pending else None,
    )


def chained(rows):
    first = None
    for row in reversed(rows):
        row.next = first
        first = row
    return first


def told(first):
    """Everything a chain says."""
    rows = []
    while first is not None:
        waits = first.state < RESOLVED
        mark = (deadline_of(first.generation), (-2 - first.generation) >> 40) if waits else first.generation
        rows.append(
            (
                first.model,
                first.state,
                first.predicted_class,
                first.true_class,
                first.record_ms,
                first.timestamp_ms,
                first.scores,
                first.label_at_prediction,
                mark,
                first.segments,
                first.topic if waits else "",
                first.last_class,
            )
        )
        first = first.next
    return rows


@pytest.mark.slow
@settings(max_examples=examples(3))
@given(st.lists(st.lists(records(), min_size=1, max_size=20), min_size=1, max_size=8))
def test_a_chain_reads_back_as_it_was_without_what_is_dead(chains):
    codec = ChainCodec(Names(), HORIZON_MS, EARLY_MS, FLOOR)
    for rows in chains:
        first = chained(rows)
        alive = [row for row in told(first) if row[1] < RESOLVED or row[8] >= FLOOR]
        value = codec.pack(first)
        assert (value is None) == (not alive)
        assert value == ChainCodec(codec.names, HORIZON_MS, EARLY_MS, FLOOR).pack(first)
        if value is not None:
            assert told(codec.unpack(KEY, value)) == alive
