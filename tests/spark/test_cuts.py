"""Cuts over logs in memory: batches of time, whatever the limits."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

import pytest

from streamwatch.core.records.events import Partition
from streamwatch.spark.reading import (
    Cut,
    CutSpec,
    SettingsChangedError,
    cut_of,
    next_cut,
    ranges,
    require_same_settings,
)

NOW_MS = 1_000_000
FIRST = Cut("life", 4, 3)


@dataclass
class MemoryLog:
    """Timestamps of each partition's records."""

    stamps: dict[Partition, list[int]] = field(default_factory=dict)

    async def ends(self):
        return {partition: (0, len(stamps)) for partition, stamps in self.stamps.items()}

    async def offsets_at(self, moment_ms):
        return {
            partition: next((i for i, stamp in enumerate(stamps) if stamp >= moment_ms), len(stamps))
            for partition, stamps in self.stamps.items()
        }


async def all_cuts(log, most, now_ms=NOW_MS):
    found = [FIRST]
    while (following := await next_cut(log, found[-1], most, now_ms, CutSpec(1_000, 10_000))) != found[-1]:
        found.append(following)
    return found


def running_maximum(stamps):
    newest, found = -1, []
    for stamp in stamps:
        newest = max(newest, stamp)
        found.append(newest)
    return found


@pytest.mark.parametrize("seed", range(30))
async def test_a_batch_holds_exactly_what_has_a_record_time_up_to_its_end(seed):
    random = Random(seed)
    spread = random.choice([5, 1_000, 900_000])
    log = MemoryLog(
        {
            Partition("topic", number): [random.randrange(spread) for _ in range(random.randrange(60))]
            for number in range(random.randrange(1, 5))
        }
    )
    most = random.choice([1, 7, 50, None])
    cuts = await all_cuts(log, most)
    for cut in cuts[1:]:
        for partition, stamps in log.stamps.items():
            times = running_maximum(stamps)
            assert cut.positions[partition] == sum(time <= cut.end_ms for time in times)
        there = sum(map(len, log.stamps.values()))
        assert cut.waiting == {"topic": there - sum(cut.positions.values())}
    if any(log.stamps.values()):
        assert [cut.batch for cut in cuts] == list(range(len(cuts)))
        assert cuts[-1].positions == {partition: len(stamps) for partition, stamps in log.stamps.items()}


@pytest.mark.parametrize("seed", range(10))
async def test_a_batch_is_larger_than_its_limit_only_within_one_moment(seed):
    random = Random(seed)
    log = MemoryLog({Partition("t", n): sorted(random.randrange(40) for _ in range(50)) for n in range(3)})
    cuts = await all_cuts(log, 20)
    for before, cut in pairwise(cuts):
        times = [
            time
            for partition, stamps in log.stamps.items()
            for time in stamps[before.positions.get(partition, 0) : cut.positions[partition]]
        ]
        assert len(times) <= 20 or len(set(times)) == 1


async def test_records_younger_than_settle_wait():
    partition = Partition("t", 0)
    log = MemoryLog({partition: [NOW_MS - 5_000, NOW_MS - 500]})
    cut = await next_cut(log, FIRST, None, NOW_MS, CutSpec(1_000, 10_000))
    assert cut.positions == {partition: 1}


async def test_a_record_from_the_future_does_not_hold_up_what_follows_it():
    partition = Partition("t", 0)
    log = MemoryLog({partition: [10, NOW_MS + 1_000_000, 20, 30], Partition("t", 1): [15]})
    cut = await next_cut(log, FIRST, None, NOW_MS, CutSpec(1_000, 10_000))
    assert cut.positions[partition] == 4


async def test_a_partition_that_was_added_begins_at_its_first_record():
    log = MemoryLog({Partition("t", 0): [1, 2, 3]})
    cuts = await all_cuts(log, None)
    log.stamps[Partition("t", 1)] = [5, 6]
    cut = await next_cut(log, cuts[-1], None, 2 * NOW_MS, CutSpec(1_000, 10_000))
    assert [(r.partition, r.begin, r.end) for r in ranges(cuts[-1], cut, ["t"])] == [
        (Partition("t", 1), 0, 2)
    ]


async def test_of_a_partition_that_was_added_what_retention_took_before_is_not_missed():
    """A task that asked from offset 0 on would find the log overtaken: data loss that nobody had."""

    class Shortened(MemoryLog):
        async def ends(self):
            return {p: (40 if p.partition else 0, end) for p, (_, end) in (await super().ends()).items()}

    added = Partition("t", 1)
    log = Shortened({Partition("t", 0): [1, 2, 3]})
    cuts = await all_cuts(log, None)
    log.stamps[added] = [5] * 42
    cut = await next_cut(log, cuts[-1], None, 2 * NOW_MS, CutSpec(1_000, 10_000))
    read_again = cut_of(json.loads(json.dumps(cut.document())))
    assert [(r.partition, r.begin, r.end) for r in ranges(cuts[-1], read_again, ["t"])] == [(added, 40, 42)]
    assert cut.waiting == {"t": 0}
    log.stamps[Partition("t", 0)].append(2_000_001)
    following = await next_cut(log, cut, None, 4 * NOW_MS, CutSpec(1_000, 10_000))
    assert following.begins == {}


@pytest.mark.parametrize("stamps", [[], [2 * NOW_MS + 5_000]], ids=["empty", "of later"])
async def test_a_partition_that_was_added_makes_no_batch_without_records(stamps):
    """Its mark alone would come to one bucket of ids, and buckets of models wait for all: the job ended."""
    log = MemoryLog({Partition("t", 0): [1, 2, 3]})
    last = (await all_cuts(log, None))[-1]
    log.stamps[Partition("t", 1)] = stamps
    log.stamps[Partition("t", 0)].append(2 * NOW_MS + 5_000)
    assert await next_cut(log, last, None, 2 * NOW_MS, CutSpec(1_000, 10_000)) == last
    following = await next_cut(log, last, None, 3 * NOW_MS, CutSpec(1_000, 10_000))
    assert following.batch == last.batch + 1
    assert following.positions[Partition("t", 1)] == len(stamps)


def test_a_cut_of_the_version_before_is_read():
    document = replace(FIRST, batch=3, positions={Partition("t", 0): 5}).document()
    del document["begins"], document["waiting"]
    assert cut_of(document).positions == {Partition("t", 0): 5}


async def test_with_nothing_new_there_is_no_batch():
    log = MemoryLog({Partition("t", 0): [1, 2, 3]})
    last = (await all_cuts(log, None))[-1]
    assert await next_cut(log, last, None, 10 * NOW_MS, CutSpec()) == last


async def test_a_cut_goes_through_json_as_spark_keeps_it():
    log = MemoryLog({Partition("a", 0): [1, 2], Partition("a", 11): [3], Partition("b", 0): []})
    cut = (await all_cuts(log, None))[-1]
    assert cut_of(json.loads(json.dumps(cut.document()))) == cut


def test_other_buckets_or_rules_than_at_the_first_start_are_refused_by_name():
    first = Cut("life", 4, 3, "rules")
    with pytest.raises(SettingsChangedError, match=r"spark.id_buckets: expected 4 .* got 5"):
        require_same_settings(first, replace(first, id_buckets=5))
    with pytest.raises(SettingsChangedError, match=r"spark.model_buckets: expected 3 .* got 2"):
        require_same_settings(first, replace(first, model_buckets=2))
    with pytest.raises(SettingsChangedError, match="join, folds and monitors"):
        require_same_settings(first, replace(first, rules="others"))
    require_same_settings(replace(first, batch=9), first)


def test_ranges_follow_the_order_of_the_settings_and_leave_out_what_is_empty():
    positions = {Partition("b", 1): 4, Partition("b", 0): 2, Partition("a", 0): 9, Partition("c", 0): 1}
    end = Cut("life", 4, 3, "", 2, 7, 0, positions)
    begin = Cut("life", 4, 3, "", 1, -1, 0, {Partition("b", 0): 2, Partition("a", 0): 3})
    found = [(each.partition, each.begin, each.end) for each in ranges(begin, end, ["c", "b", "a"])]
    assert found == [(Partition("c", 0), 0, 1), (Partition("b", 1), 0, 4), (Partition("a", 0), 3, 9)]
