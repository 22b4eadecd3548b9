"""Time that leaps: much falls due at once, in parts, with commits and crashes in between."""

from __future__ import annotations

import pytest

from streamwatch.core.specs import JoinSpec
from tests.core.join_stream import Stream, label_for_all, predict
from tests.edge.rocks_stream import DurableStream, alive_now, digested

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
    stream = DurableStream(tmp_path / "state", SPEC, hot_records=0, due_records=AT_ONCE)
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
    passing = DurableStream.pass_time

    def pass_time(stream):
        outcomes = passing(stream)
        stream.commit()
        largest.append(len(stream.store._records.known))
        return outcomes

    monkeypatch.setattr(DurableStream, "pass_time", pass_time)
    durable.until(10**9)
    assert len(largest) > 5
    assert max(largest) < 4 * AT_ONCE


def test_a_life_that_ends_half_way_through_a_leap_is_continued_by_the_next(memory, durable):
    leap = 10**9
    expected = memory.until(leap)
    outcomes = Stream.until(without_rest(durable), leap)
    parts = 0
    while durable.pipeline.owes_time:
        durable.commit()
        kept = len(outcomes)
        outcomes += durable.pass_time()  # this part is lost
        durable.reopen()
        outcomes = outcomes[:kept] + durable.pass_time()
        parts += 1
    assert parts > 5
    assert outcomes == expected
    assert durable.pipeline.snapshot() == memory.pipeline.snapshot()
    assert alive_now(durable) == alive_now(memory)


def test_events_do_not_overtake_what_is_due(durable):
    Stream.until(without_rest(durable), 10**9)
    with pytest.raises(ValueError, match="must fall due before further events"):
        Stream.feed(durable, *digested([predict("late", "x", 10**9)]))


def without_rest(stream):
    """The same stream, whose time passes by one part only when it is fed."""
    stream.feed = lambda *events: Stream.feed(stream, *events)
    return stream
