"""Cuts over logs in memory: batches of time, whatever the limits."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

import pytest

from streamwatch.core.buckets.results import LOSS, MARK, data_loss_of
from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka.data_loss import LogLost
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.spark.reading import (
    Cut,
    CutSpec,
    SettingsChangedError,
    cut_of,
    next_cut,
    ranges,
    require_no_loss,
    require_same_settings,
)

NOW_MS = 1_000_000
FIRST = Cut("life", 4, 3)


@dataclass
class MemoryLog:
    """Timestamps of each partition's records."""

    stamps: dict[Partition, list[int]] = field(default_factory=dict)
    ids: dict[str, str | None] = field(default_factory=dict)

    async def topic_ids(self):
        return self.ids

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


ONE = Partition("t", 0)


async def cut_after(log, last, now_ms):
    """The next cut, as a restart reads it, and the ranges that its batch reads."""
    cut = await next_cut(log, last, None, now_ms, CutSpec(1_000, 10_000))
    read_again = cut_of(json.loads(json.dumps(cut.document())))
    assert read_again == cut
    return cut, [(r.partition, r.begin, r.end) for r in ranges(last, cut, ["t"])]


async def test_a_topic_made_anew_is_read_from_its_beginning_though_its_end_lies_before_the_position():
    log = MemoryLog({ONE: [1, 2, 3]}, {"t": "first"})
    last = (await all_cuts(log, None))[-1]
    log.stamps[ONE], log.ids = [2, NOW_MS], {"t": "second"}
    cut, read = await cut_after(log, last, 2 * NOW_MS)
    assert (read, cut.replaced, cut.waiting) == ([(ONE, 0, 2)], {ONE: "recreated"}, {"t": 0})
    require_no_loss(last, cut, "continue")
    with pytest.raises(LogLost, match=r"t/0 was read up to offset 3.*recreated.*at offset 0"):
        require_no_loss(last, cut, "fail")
    log.ids = {"t": "first"}  # of a broker that lags behind
    assert await next_cut(log, cut, None, 3 * NOW_MS, CutSpec(1_000, 10_000)) == cut
    log.stamps[ONE].append(2 * NOW_MS)
    log.ids = {"t": "second"}
    following, read = await cut_after(log, cut, 4 * NOW_MS)
    assert (read, following.replaced) == ([(ONE, 2, 3)], {})


async def test_a_topic_made_anew_is_found_by_its_id_also_once_it_outgrew_the_position():
    log = MemoryLog({ONE: [1, 2, 3]}, {"t": "first"})
    last = (await all_cuts(log, None))[-1]
    log.stamps[ONE], log.ids = [NOW_MS] * 5, {"t": "second"}
    cut, read = await cut_after(log, last, 2 * NOW_MS)
    assert (read, cut.replaced) == ([(ONE, 0, 5)], {ONE: "recreated"})


@pytest.mark.parametrize("topic_id", ["first", None])
async def test_a_log_that_ends_before_the_position_goes_on_at_what_is_later_than_the_last_batch(topic_id):
    log = MemoryLog({ONE: [1, 2, 3, 4]}, {"t": topic_id})
    last = (await all_cuts(log, None))[-1]
    log.stamps[ONE] = [1, 2]
    assert await next_cut(log, last, None, 2 * NOW_MS, CutSpec(1_000, 10_000)) == last
    log.stamps[ONE].append(NOW_MS + 1)
    cut, read = await cut_after(log, last, 2 * NOW_MS)
    assert (read, cut.replaced, cut.waiting) == ([(ONE, 2, 3)], {ONE: "truncation"}, {"t": 0})
    with pytest.raises(LogLost, match=r"t/0 was read up to offset 4.*now ends at 2 \(truncation\)"):
        require_no_loss(last, cut, "fail")


@pytest.mark.usefixtures("spark_installed")
def test_a_batch_reports_each_log_that_was_found_replaced_once():
    from streamwatch.spark.source import RangePartition, SourceSpec, TopicsReader  # noqa: PLC0415 - an extra

    spec = SourceSpec(KafkaSpec("none:0"), ["t"], lambda: lambda *_: [], [7], 3, "", 10)
    cut = replace(FIRST, batch=4, replaced={ONE: "recreated", Partition("t", 1): "recreated"})
    mark, lost = TopicsReader(spec).read(RangePartition(cut, 0, None))
    assert (mark[5], lost[5]) == (MARK, LOSS)
    assert mark[3:5] < lost[3:5]  # rows are put into this order
    assert lost[6] == "replaced/4"  # a name of its own: what has the same name takes its place
    assert data_loss_of(lost[7]).times == {"recreated": 2}
    (mark,) = TopicsReader(spec).read(RangePartition(replace(cut, replaced={}), 0, None))
