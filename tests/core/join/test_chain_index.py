"""Among many models on one id, partners are looked up; few models' chains are walked. Both find the same."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.join import pairing
from streamwatch.core.join.chain_index import ChainIndex
from streamwatch.core.join.entry import PENDING, JoinEntry, append, forget
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from tests.core.join import test_join_model
from tests.core.join.join_stream import Stream, alive, label, label_for_all, predict
from tests.tiers import examples


@contextmanager
def nothing_walked():
    """However few models there are, the index is used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "WALKED", 0)
        yield


def test_with_the_index_every_counter_and_outcome_is_that_of_the_naive_join():
    with nothing_walked():
        test_join_model.test_every_counter_and_outcome_equals_a_naive_join_after_every_event()


@settings(max_examples=examples(4))
@given(test_join_model.cases(), st.data())
def test_the_index_finds_what_the_walk_finds_however_batches_are_cut(case, choose):
    spec, events = case
    walked, found = Stream(spec), Stream(spec)
    cuts = sorted(choose.draw(st.lists(st.integers(0, len(events)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        walked.feed(*events[start:end])
        with nothing_walked():
            found.feed(*events[start:end])
    assert found.monitors.folded == walked.monitors.folded
    assert found.pipeline.snapshot() == walked.pipeline.snapshot()
    assert alive(found) == alive(walked)


@settings(max_examples=examples(4))
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=40), st.data())
def test_entries_are_found_in_the_order_of_the_chain_as_it_grows_and_shrinks(steps, choose):
    by_id, index = {}, ChainIndex()
    for number, (model, leaves) in enumerate(steps):
        chain = pairing._entries(by_id["i"]) if by_id else []
        there = [entry for entry in chain if entry.model == model]
        if there and leaves:
            forget(by_id, there[0])
        elif not there:
            append(by_id, JoinEntry("i", model, PENDING, str(number), "", 0))
        if not by_id:
            continue
        if choose.draw(st.booleans()):
            index.update(by_id["i"])
            wanted = choose.draw(st.sets(st.sampled_from("abcdefgh")))
            in_chain = {id(entry) for entry in pairing._entries(by_id["i"])}
            found = [entry for entry in index.find(by_id["i"], wanted) if id(entry) in in_chain]
            assert found == [entry for entry in pairing._entries(by_id["i"]) if entry.model in wanted]


class Counting(ChainIndex):
    """Counts the entries that it walks over and those that it hands out."""

    walked = handed = 0

    def update(self, first):
        before = self._chains.get(first.id)
        super().update(first)
        after = self._chains[first.id]
        Counting.walked += after.length - (before.length if before is after else 0)

    def find(self, first, wanted):
        found = super().find(first, wanted)
        Counting.handed += len(found)
        return found


@pytest.mark.parametrize("labels", ["for all", "by model"])
def test_a_hundred_challengers_cost_as_many_steps_as_there_are_entries_and_pairs(monkeypatch, labels):
    monkeypatch.setattr(pairing, "ChainIndex", Counting)
    Counting.walked = Counting.handed = 0
    challengers, ids = 100, 5
    models = ["old", *(f"new-{number}" for number in range(challengers))]
    stream = Stream(JoinSpec(comparisons=(ComparisonSpec("old", ("new-*",)),)))
    stream.feed(*(predict(str(i), "x", 0, model) for i in range(ids) for model in models))
    if labels == "for all":
        stream.feed(*(label_for_all(str(i), "x", 1) for i in range(ids)))
    else:
        stream.feed(*(label(str(i), "x", 1, model) for model in models for i in range(ids)))
    assert stream.value("pairs_made_total") == challengers * ids
    assert Counting.walked <= (len(models) + 1) * ids, "a label that is retained is in the chain, too"
    # The champion is given every challenger, each of these the champion.
    assert Counting.handed == 2 * challengers * ids
