"""The order of predictions in columns: switched on and off over a state that exists, and damaged values."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from streamwatch.core.jit import CompiledFunction
from streamwatch.core.join import held_outcomes, prediction_order, reorder_windows
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import HELD, HELD_SCORES, key_of
from streamwatch.core.join.warming import warm_up_order
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.durable_streams import ColumnShelf, DurableJoined, cramped_logs
from tests.core.join.join_stream import label, predict

ORDERED = JoinSpec(order="prediction_time", reorder_window_ms=10_000)


def restarted(joined, spec):
    joined.commit()
    joined.spec = spec
    joined.restart()


def compiled():
    """Types that each entry point was compiled or loaded for."""
    named = {**vars(held_outcomes), **vars(reorder_windows), **vars(prediction_order)}
    functions = (each for each in named.values() if isinstance(each, CompiledFunction))
    return {each.__qualname__: list(map(str, each.signatures)) for each in functions if each.kept}


def some_held():
    """Three outcomes held, the last of which has scores, and one that waits for its label."""
    joined = DurableJoined(ORDERED, digest_bytes, None)
    joined.feed(
        [predict("a", at=0), predict("b", at=1000), predict("c", at=2000, scores={"x": 0.5, "y": 0.5})]
    )
    joined.feed([label("c", at=3000), label("b", at=3500), label("a", at=4000), predict("d", at=5000)])
    assert joined.outcomes == []
    return joined


def test_warming_up_leaves_nothing_to_compile():
    warm_up_order()
    before = compiled()
    del before["open_again"]  # of model buckets
    assert all(before.values())
    joined = some_held()
    restarted(joined, ORDERED)
    joined.feed([label("d", at=6000), predict("e", at=30_000)])
    joined.pipeline.release_held()
    assert len(joined.outcomes) == 4
    assert {name: compiled()[name] for name in before} == before


def test_it_begins_over_a_state_that_was_in_the_order_of_labels():
    joined = DurableJoined(JoinSpec(), digest_bytes, None)
    joined.feed([predict("a", at=0), predict("b", at=1000)])
    restarted(joined, ORDERED)
    joined.feed([label("b", at=2000), label("a", at=3000)])
    assert joined.outcomes == []
    joined.feed([predict("c", at=13_000)])
    assert [outcome.delay_ms for outcome in joined.outcomes] == [3000, 1000]


def test_what_is_held_is_released_when_the_order_is_that_of_labels_again():
    joined = some_held()
    restarted(joined, replace(ORDERED, order="resolution"))
    assert joined.pipeline.join.holdings().held == 3
    joined.feed([label("d", at=6000)])
    assert [outcome.delay_ms for outcome in joined.outcomes] == [4000, 2500, 1000, 1000]
    assert joined.outcomes[2].scores == {"x": 0.5, "y": 0.5}
    restarted(joined, replace(ORDERED, order="resolution"))
    assert not [key for key in joined.shelf.values if key[:1] in {HELD, HELD_SCORES}]
    assert joined.pipeline.join.counters.predictions_resolved == 4


@pytest.mark.parametrize(("window_ms", "until"), [(4_000, 7_000), (60_000, 63_000)])
def test_another_window_holds_for_what_is_held(window_ms, until):
    joined = some_held()
    restarted(joined, replace(ORDERED, reorder_window_ms=window_ms))
    joined.feed([predict("e", at=until - 1)])
    held = len(joined.outcomes)
    joined.feed([predict("f", at=until)])
    assert (held, len(joined.outcomes)) == (0, 3)


def test_a_lower_limit_lets_the_oldest_go_and_a_higher_one_no_more():
    joined = some_held()
    restarted(joined, replace(ORDERED, max_reordered=1))
    joined.feed([predict("e", at=5001)])
    assert [outcome.delay_ms for outcome in joined.outcomes] == [4000, 2500]
    assert joined.pipeline.join.counters.outcomes_released_early == 2
    restarted(joined, replace(ORDERED, max_reordered=5))
    joined.feed([label("d", at=6000)])
    restarted(joined, replace(ORDERED, max_reordered=5))
    assert joined.pipeline.join.holdings().held == 2
    joined.feed([predict("f", at=30_000)])
    assert [outcome.delay_ms for outcome in joined.outcomes[2:]] == [1000, 1000]


def test_runs_are_written_again_rather_than_growing_without_limit():
    joined = DurableJoined(replace(ORDERED, reorder_window_ms=10**9), digest_bytes, None)
    with cramped_logs():
        joined.feed([predict("old", at=0), label("old", at=1)])
        for n in range(1, 60):
            joined.spec = replace(joined.spec, reorder_window_ms=10**9 if n % 2 else 10)
            joined.feed([predict(str(n), at=n * 100), label(str(n), at=n * 100 + 1)])
            joined.commit()
            joined.restart()
            runs = [key for key in joined.shelf.values if key[:1] == HELD]
            assert len(runs) <= joined.pipeline.join.holdings().held + 2


def a_change(values, key, change):
    damaged = dict(values)
    damaged[key] = change(damaged[key])
    return sorted(damaged.items())


@pytest.mark.parametrize(
    "change",
    [lambda value: value[:-1], lambda value: value + b"x", lambda _: b"", lambda value: b"\x01" + value[1:]],
    ids=["shorter", "longer", "empty", "of another version"],
)
def test_damaged_values_are_refused(change):
    joined = some_held()
    joined.commit()
    values = a_change(joined.shelf.values, key_of(HELD, 0), change)
    with pytest.raises(PackedError):
        Pipeline(ORDERED, joined.monitors, digest_bytes).restore(joined.shelf.snapshot, values)


def test_values_that_contradict_each_other_are_refused():
    joined = some_held()
    joined.commit()
    shelf: ColumnShelf = joined.shelf
    fresh = Pipeline(ORDERED, joined.monitors, digest_bytes)
    twice = sorted({**shelf.values, key_of(HELD, 1): shelf.values[key_of(HELD, 0)]}.items())
    with pytest.raises(PackedError, match="different sequences"):
        fresh.restore(shelf.snapshot, twice)
    lone = sorted({**shelf.values, key_of(HELD_SCORES, 7): shelf.values[key_of(HELD_SCORES, 0)]}.items())
    with pytest.raises(PackedError, match="some of no run"):
        Pipeline(ORDERED, joined.monitors, digest_bytes).restore(shelf.snapshot, lone)


@pytest.mark.parametrize("room", [1, 2, 7])
def test_little_room_for_what_is_released_changes_nothing(monkeypatch, room):
    chance = Random(room)
    events = []
    for n in range(300):
        events.append(predict(str(n), at=n * 200))
        if n % 3:
            events.append(label(str(max(0, n - chance.randrange(20))), at=n * 200 + 1))
    spec = replace(ORDERED, reorder_window_ms=3_000, max_reordered=15, assume="x", horizon_ms=9_000)
    wide = DurableJoined(spec, digest_bytes, None)
    wide.feed(events)
    monkeypatch.setattr(prediction_order, "ROOM", room)
    narrow = DurableJoined(spec, digest_bytes, None)
    narrow.feed(events)
    assert narrow.results() == wide.results()
    assert len(wide.outcomes) > 150
