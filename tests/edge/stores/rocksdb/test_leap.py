"""Time that leaps: much falls due at once, in parts, with commits and crashes in between."""

from __future__ import annotations

import pytest

from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import Stream, label_for_all, predict, tick
from tests.edge.stores.rocksdb.stream import DurableStream, alive_now, digested

pytestmark = pytest.mark.slow

WAITING, AT_ONCE = 1_000, 50
SPEC = JoinSpec(horizon_ms=60_000, early_horizon_ms=30_000, assume="x")


def fill(stream):
    """Predictions and labels that wait, ten a second."""
    for start in range(0, WAITING, 100):
        events = []
        for n in range(start, start + 100):
            events.append(predict(f"p{n}", "x", 100 * n))
            events.append(label_for_all(f"l{n}", "x", 100 * n))
        stream.feed(*digested(events))
        if isinstance(stream, DurableStream):
            stream.commit()


@pytest.fixture
def memory():
    stream = Stream(SPEC)
    fill(stream)
    return stream


@pytest.fixture
def durable(tmp_path):
    stream = DurableStream(tmp_path / "state", SPEC, cache_entries=0, due_records=AT_ONCE)
    fill(stream)
    stream.commit()
    stream.reopen()
    yield stream
    stream.store.close()


def test_a_leap_of_time_gives_what_it_gives_at_once(memory, durable):
    leap = 10**9
    assert durable.until(leap) == memory.until(leap)
    assert durable.parts > WAITING // AT_ONCE // 2
    assert durable.pipeline.snapshot() == memory.pipeline.snapshot()
    assert alive_now(durable) == alive_now(memory)
    assert len(memory.monitors.folded) == WAITING


def test_little_is_in_memory_at_any_time_of_a_leap(durable, monkeypatch):
    largest = []
    taking = DurableStream.take

    def take(stream, events):
        step = taking(stream, events)
        stream.commit()
        largest.append(len(stream.store._records.by_id))
        return step

    monkeypatch.setattr(DurableStream, "take", take)
    durable.until(10**9)
    assert len(largest) > 5
    assert max(largest) < 4 * AT_ONCE


def test_a_life_that_ends_half_way_through_a_leap_is_continued_by_the_next(memory, durable):
    leap = 10**9
    expected = memory.until(leap)
    outcomes, parts = [], 0
    while not (step := durable.take([tick(leap)])).events:
        outcomes += step.outcomes
        durable.commit()
        durable.take([tick(leap)])  # this part is lost
        durable.reopen()
        parts += 1
    outcomes += step.outcomes
    assert parts > 5
    assert outcomes == expected
    assert durable.pipeline.snapshot() == memory.pipeline.snapshot()
    assert alive_now(durable) == alive_now(memory)


def test_events_do_not_overtake_what_is_due(durable):
    accepted = durable.counters.predictions_accepted
    step = durable.take(digested([predict("late", "x", 10**9)]))
    assert step.events == []
    assert step.outcomes
    assert durable.counters.predictions_accepted == accepted
