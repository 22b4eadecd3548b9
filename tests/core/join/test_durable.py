"""A compiled join begun anew from its commits goes on as if it never ended, as a naive one says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import DEDUP, parts_of
from streamwatch.core.join.durable.restoring import check_generations
from streamwatch.core.join.table import DedupState, Generation
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.edge.keys import digest_bytes
from tests.core.join.durable_streams import DurableJoined, cramped_logs
from tests.core.join.join_stream import alive, digested
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.naive_reports import naive_alive
from tests.core.join.shelf import ColumnShelf
from tests.core.join.streams import (
    Joined,
    a_case,
    agrees_with,
    cramped,
    crowded_digests,
    listened,
    reported,
)
from tests.tiers import by_tier

STREAMS = by_tier(fast=6, rotating=12, default=40, everything=10_000)


def compare(chance, digests=digest_bytes):
    """One stream in one life, and in many; how often it was begun anew."""
    spec, events, start_ms = a_case(chance)
    spec = listened(spec)
    one_life = Joined(lambda monitors: Pipeline(spec, monitors, digest_bytes), start_ms)
    naive = NaiveJoin(spec, start_ms)
    columns = DurableJoined(spec, digests, start_ms)
    most, seldom = chance.choice([1, 5, 30]), chance.choice([1, 2, 5])
    at = restarts = 0
    while at < len(events):
        stop = min(len(events), at + chance.randrange(1, most + 1))
        one_life.feed(events[at:stop])  # cuts change nothing: test_same_as_naive.py
        for event in events[at:stop]:
            naive.feed(event)
        columns.feed(events[at:stop])
        if chance.randrange(2):
            columns.commit()
            if chance.randrange(seldom) == 0:
                columns.restart()
                restarts += 1
        said = columns.read()
        reports = reported(stop, events)
        assert columns.results(said, reports=reports) == one_life.results(reports=reports)
        agrees_with(naive, columns, said)
        at = stop
    if digests is digest_bytes:
        columns.commit()
        columns.restart()
        assert alive(columns) == digested(naive_alive(naive))
    return restarts


@pytest.mark.slow
def test_lives_that_follow_each_other_say_what_one_life_says():
    restarts = sum(compare(Random(seed)) for seed in range(STREAMS))
    assert restarts > 3 * STREAMS


@pytest.mark.slow
def test_it_is_so_when_every_commit_writes_old_entries_anew_and_merges():
    with cramped_logs():
        for seed in range(10**6, 10**6 + STREAMS):
            compare(Random(seed))


def test_it_is_so_with_names_that_are_released_and_ids_whose_digests_nearly_agree():
    with cramped_logs(), cramped():
        for seed in range(2 * 10**6, 2 * 10**6 + STREAMS // 2):
            compare(Random(seed), crowded_digests)


class Numbered(ColumnShelf):
    """Requires of commits that a value of dedup entries follows all others of its generation."""

    def commit(self, pipeline):
        before = {key: value for key, value in self.values.items() if key[:1] == DEDUP}
        super().commit(pipeline)
        for key in [key for key in self.values if key[:1] == DEDUP and self.values[key] != before.get(key)]:
            assert key not in before
            generation, number = parts_of(key)[1:]
            of_generation = [parts_of(each) for each in before]
            assert all(each.second < number for each in of_generation if each.first == generation)


def test_generations_of_dedup_entries_are_numbered_in_succession_whatever_was_dropped_before_a_start():
    dropped = empty = 0
    for seed in range(5 * 10**6, 5 * 10**6 + STREAMS):
        chance = Random(seed)
        spec, events, start_ms = a_case(chance)
        spec = replace(
            listened(spec),
            dedup_horizon_ms=chance.choice([2_000, 9_000, 10**9]),
            max_dedup_entries=chance.choice([1, 3, 8, 17, 1_000]),
        )
        naive, durable = NaiveJoin(spec, start_ms), DurableJoined(spec, digest_bytes, start_ms)
        durable.shelf = Numbered()
        at = 0
        while at < len(events):
            stop = min(len(events), at + chance.randrange(1, 9))
            for event in events[at:stop]:
                naive.feed(event)
            durable.feed(events[at:stop])
            durable.commit()
            if chance.randrange(3) == 0:
                durable.restart()
            sizes = [len(each) for each in naive.dedup.generations]
            first = naive.dedup.generation + 1 - len(sizes)
            arrays = durable.pipeline.join.arrays
            ring = np.roll(arrays.generations, -int(arrays.totals["closed_start"][0]))
            closed = ring["count"][: int(arrays.totals["closed"][0])].tolist()
            assert [*closed, int(arrays.totals["open_entries"][0])] == sizes
            assert int(arrays.totals["generation"][0]) == first + len(sizes) - 1
            assert int(arrays.totals["floor"][0]) == first
            written = {parts_of(key).first for key, _ in durable.shelf.items() if key[:1] == DEDUP}
            assert written == {first + n for n, size in enumerate(sizes) if size}
            dropped, empty = dropped + (first > 0), empty + (first > 0 and not any(sizes))
            at = stop
    assert dropped > 10 * STREAMS
    assert empty, "all that was written was dropped before a start"


@pytest.mark.parametrize(
    ("closed", "opened", "floor", "said"),
    [
        ([3, 5], 6, 3, "in succession, got \\[3, 5, 6\\]"),
        ([5, 4], 6, 4, "in succession"),
        ([4, 5], 7, 4, "in succession"),
        ([-2, -1], 0, -2, "in succession"),
        ([*range(64)], 64, 0, "in succession"),
        ([4, 5], 6, 3, "generation 4 as the oldest of dedup entries, got 3"),
        ([], 6, 7, "generation 6 as the oldest"),
    ],
)
def test_generations_that_were_not_numbered_so_are_refused(closed, opened, floor, said):
    state = DedupState([Generation(each, 0, -1) for each in closed], Generation(opened, 0, -1), 0, 0, floor)
    with pytest.raises(PackedError, match=said):
        check_generations(state)
