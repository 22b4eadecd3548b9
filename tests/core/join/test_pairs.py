"""Pairs of the compiled join: switched on over a state that exists, of many models, and in one order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from streamwatch.core.join import join as initial_arrays
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import PairedAnswer
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.durable_streams import ColumnShelf
from tests.core.join.join_stream import Stream, label, label_for_all, predict
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.streams import Joined, a_case, agrees_with, answers

COMPARED = (ComparisonSpec("old", ("new*",)),)
DAY = 86_400_000


@pytest.mark.slow
def test_comparisons_switched_on_over_a_state_pair_what_is_resolved_from_then_on():
    chance = Random(1)
    switched = 0
    for _ in range(100):
        spec, events, start_ms = a_case(chance)
        if spec.folds:
            continue
        roomy = {
            "max_dedup_entries": 1_000,
            "max_pending": 1_000,
            "max_models": 3,
            "horizon_ms": 20_000,
        }
        spec = replace(spec, comparisons=(), order="resolution", dedup_horizon_ms=20_000, **roomy)
        compared = replace(spec, comparisons=(ComparisonSpec("m", ("n", "o")),))
        naive = NaiveJoin(spec, start_ms)
        columns = Joined(lambda monitors, spec=spec: Pipeline(spec, monitors, digest_bytes), start_ms)
        cut = chance.randrange(len(events))
        columns.feed(events[:cut])
        for event in events[:cut]:
            naive.feed(event)
        shelf = ColumnShelf()
        shelf.commit(columns.pipeline)
        columns.pipeline = shelf.restored(Pipeline(compared, columns.monitors, digest_bytes))
        naive.spec = naive.pairs.spec = compared
        for event in events[cut:]:
            naive.feed(event)
            columns.feed([event])
            agrees_with(naive, columns, columns.read())
        switched += naive.count["pairs_made"] > 0
    assert switched > 8


def test_partners_are_in_the_order_of_their_names_before_a_restore_and_after_it():
    spec = JoinSpec(comparisons=COMPARED, horizon_ms=DAY)
    names = [f"new {number}" for number in range(9)]
    for restored in (False, True):
        shuffled = Random(3).sample(names, len(names))
        stream = Stream(spec)
        stream.feed(*(predict("1", "y", 0, model) for model in ("old", *shuffled)))
        stream.feed(*(label("1", "x", 1, model) for model in Random(4).sample(names, len(names))))
        if restored:
            shelf = ColumnShelf()
            shelf.commit(stream.pipeline)
            stream.pipeline = shelf.restored(Pipeline(spec, stream.monitors, digest_bytes))
        (outcome,) = stream.feed(label("1", "x", 2, "old"))
        assert answers(outcome) == tuple(PairedAnswer(name, "y") for name in names)


@pytest.mark.parametrize("assume", [None, "x"])
def test_there_is_room_for_the_pairs_of_any_number_of_models(monkeypatch, assume):
    monkeypatch.setattr(initial_arrays, "FIRST_PAIRS", 3)
    models = [f"m {number:02}" for number in range(40)]
    spec = JoinSpec(
        comparisons=tuple(ComparisonSpec(model, ("*",)) for model in models), horizon_ms=1_000, assume=assume
    )
    stream = Stream(spec)
    stream.feed(*(predict(id_, "x", 0, model) for id_ in "ab" for model in models))
    outcomes = stream.feed(label_for_all("a", "x", 1)) if assume is None else stream.until(5_000)
    for number, outcome in enumerate(outcomes[-len(models) :]):
        assert [pair.model for pair in outcome.pairs or ()] == models[:number]
    ids = 1 if assume is None else 2
    assert stream.value("pairs_made_total") == ids * len(models) * (len(models) - 1) // 2


def test_more_champions_than_a_word_has_bits_are_distinguished():
    champions = [f"old {number}" for number in range(150)]
    spec = JoinSpec(comparisons=tuple(ComparisonSpec(each, (f"new{each[3:]}",)) for each in champions))
    stream = Stream(spec)
    for number in (0, 63, 64, 65, 128, 149):
        models = [f"old {number}", f"new {number}", f"new {(number + 1) % 150}", f"new {(number + 64) % 150}"]
        stream.feed(*(predict(str(number), "x", number, model) for model in models))
        found = stream.feed(label_for_all(str(number), "x", number))
        assert [answers(outcome) for outcome in found] == [None, (PairedAnswer(models[0], "x"),), None, None]
