"""Models compared in the order of predictions, with folds and without: compared with the naive join."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from streamwatch.core.join import prediction_order
from streamwatch.core.join.durable.columns import PackedError, pack_columns
from streamwatch.core.join.durable.packed import HELD, HELD_PAIRS, key_of
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import PairedAnswer
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.durable_streams import DurableJoined, cramped_logs
from tests.core.join.join_stream import label, label_for_all, predict
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.streams import Columns, a_case, answers, cramped
from tests.core.join.test_join_model import COMPARISONS, counted, naive_counted
from tests.tiers import by_tier

STREAMS = by_tier(fast=8, default=200, everything=10_000)
ORDERED = JoinSpec(
    order="prediction_time", reorder_window_ms=10_000, comparisons=(ComparisonSpec("old", ("new*",)),)
)


def results(pipeline):
    counts = counted(SimpleNamespace(counters=pipeline.join.counters, pipeline=pipeline))
    return {name: count for name, count in counts.items() if count}


class BothJoins:
    """One stream through the compiled join and the naive one, with the same settings."""

    def __init__(self, spec, start_ms, chance):
        self.compiled = DurableJoined(spec, digest_bytes, start_ms)
        self.naive = NaiveJoin(spec, start_ms)
        self.columns = Columns(chance, digest_bytes)
        self.chance = chance

    def feed(self, events):
        if self.chance.random() < 0.7:
            self.compiled.feed_columns(self.columns.of(events))
        else:
            self.compiled.feed(events)
        for event in events:
            self.naive.feed(event)
        assert self.compiled.outcomes == self.naive.outcomes
        expected = {name: count for name, count in naive_counted(self.naive).items() if count}
        assert results(self.compiled.pipeline) == expected

    def restart(self, order):
        """Begin anew from a commit, with this order of outcomes."""
        self.compiled.commit()
        self.compiled.spec = replace(self.compiled.spec, order=order)
        self.compiled.restart()
        self.naive.spec = self.naive.order.spec = replace(self.naive.spec, order=order)
        if order == "resolution":
            self.naive.order.release_all()


def compare(seed):
    """Outcomes with pairs that were held, through restarts that change the order and others."""
    chance = Random(seed)
    spec, events, start_ms = a_case(chance)
    spec = replace(spec, order="prediction_time", comparisons=chance.choice(COMPARISONS[1:]))
    if chance.random() < 0.8:
        spec = replace(spec, max_models=9, max_pending=1000, max_dedup_entries=1000, max_reordered=1000)
        spec = replace(spec, horizon_ms=20_000, dedup_horizon_ms=20_000, reorder_window_ms=10_000)
    both = BothJoins(spec, start_ms, chance)
    at, most, held_pairs = 0, chance.choice([1, 5, 30]), 0
    while at < len(events):
        stop = min(len(events), at + chance.randrange(1, most + 1))
        both.feed(events[at:stop])
        at = stop
        held_pairs += sum(bool(held[3].pairs) for held in both.naive.order.held)
        if chance.random() < 0.3:
            both.restart(chance.choice(["prediction_time", "prediction_time", "resolution"]))
    assert both.compiled.monitors.retired == both.naive.retired_after_outcomes()
    return held_pairs


@pytest.mark.slow
def test_outcomes_keep_their_pairs_until_it_is_their_turn():
    with cramped_logs():
        assert sum(compare(seed) > 0 for seed in range(STREAMS)) > STREAMS // 4


@pytest.mark.slow
def test_names_that_only_pairs_of_held_outcomes_need_are_kept():
    with cramped(), cramped_logs():
        assert sum(compare(seed) > 0 for seed in range(10**6, 10**6 + STREAMS // 4)) > STREAMS // 25


def pairs(outcomes):
    return [(outcome.model, answers(outcome)) for outcome in outcomes]


def some_held(spec=ORDERED):
    """The outcomes of two ids: of the second, predicted first, the champion's has the pairs."""
    joined = DurableJoined(spec, digest_bytes, None)
    joined.feed([predict("b", "y", 0, model) for model in ("new 2", "new 1", "old")])
    joined.feed([predict("a", "x", 1_000, model) for model in ("old", "new 1")])
    joined.feed([label_for_all("a", "x", 2_000), label_for_all("b", "x", 3_000)])
    assert joined.outcomes == []
    return joined


RELEASED = [
    ("new 2", None),
    ("new 1", None),
    ("old", (PairedAnswer("new 1", "y"), PairedAnswer("new 2", "y"))),
    ("old", None),
    ("new 1", (PairedAnswer("old", "x"),)),
]


@pytest.mark.parametrize("restored", [False, True])
def test_pairs_take_their_turn_with_the_later_resolution(restored):
    joined = some_held()
    if restored:
        joined.commit()
        joined.restart()
    joined.feed([predict("c", at=30_000)])
    assert pairs(joined.outcomes) == RELEASED


@pytest.mark.parametrize("comparisons", [ORDERED.comparisons, ()], ids=["compared", "not compared any more"])
def test_what_is_held_leaves_with_its_pairs_when_the_order_is_that_of_labels_again(comparisons):
    joined = some_held()
    joined.commit()
    assert any(key[:1] == HELD_PAIRS for key in joined.shelf.values)
    joined.spec = replace(ORDERED, order="resolution", comparisons=comparisons)
    joined.restart()
    joined.feed([label("c", at=3_001)])
    assert pairs(joined.outcomes) == RELEASED
    joined.commit()
    assert not any(key[:1] in {HELD, HELD_PAIRS} for key in joined.shelf.values)


def test_at_the_end_of_a_recording_what_is_held_leaves_with_its_pairs():
    joined = some_held()
    assert pairs(joined.pipeline.release_held().outcomes) == RELEASED


@pytest.mark.parametrize("room", [1, 2, 7])
def test_little_room_for_what_is_released_changes_no_pair(monkeypatch, room):
    monkeypatch.setattr(prediction_order, "ROOM", room)
    joined = some_held()
    joined.feed([predict("c", at=30_000)])
    assert pairs(joined.outcomes) == RELEASED


@pytest.mark.parametrize(
    "pairs",
    [[(4, 9, 0)], [(4, 0, 9)], [(5, 0, 0)], [(-1, 0, 0)], [(4, 0, 0), (2, 0, 0)]],
    ids=["a model without a name", "a class without a name", "beyond the run", "before it", "out of order"],
)
def test_damaged_pairs_are_refused(pairs):
    joined = some_held()
    joined.commit()
    packed = pack_columns([*np.array(pairs, np.int64).T])
    values = sorted({**joined.shelf.values, key_of(HELD_PAIRS, 0): packed}.items())
    with pytest.raises(PackedError):
        Pipeline(ORDERED, joined.monitors, digest_bytes).restore(joined.shelf.snapshot, values)


def test_pairs_of_no_run_are_refused():
    joined = some_held()
    joined.commit()
    lone = {**joined.shelf.values, key_of(HELD_PAIRS, 7): joined.shelf.values[key_of(HELD_PAIRS, 0)]}
    with pytest.raises(PackedError, match="pairs of runs"):
        Pipeline(ORDERED, joined.monitors, digest_bytes).restore(joined.shelf.snapshot, sorted(lone.items()))
