"""Who is waited for, how long, and when a record waits for nobody."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec
from streamwatch.core.merge.released import IN_ORDER, Key
from streamwatch.core.merge.timestamps import REASONS
from streamwatch.core.records.batch import MOST_TOPICS, batch_of
from streamwatch.core.records.events import Partition, Prediction
from tests.core.merge.logs import Entry, Logs, Reader, sequence_of

BUSY, SILENT, OTHER = Partition("predictions", 0), Partition("predictions", 1), Partition("labels", 0)
SIDES = {"labels": "label", "predictions": "prediction"}
MINUTE, HOUR = 60_000, 3_600_000


def reader_of(entries: dict[Partition, list[Entry]], spec: MergeSpec, **polls: object) -> Reader:
    logs = Logs(SIDES, entries)  # type: ignore[arg-type]
    return Reader(logs, spec, random.Random(0), MergeProgress(), share=1, **polls)  # type: ignore[arg-type]


def at(*times_ms: int) -> list[Entry]:
    """Records stamped, appended and readable at these times."""
    return [Entry(t, t, t) for t in times_ms]


def arrivals(*stamps_ms: int, start: int = 0, appended: bool = False) -> Arrivals:
    count = len(stamps_ms)
    return Arrivals(
        np.arange(start, start + count),
        np.array(stamps_ms, np.int64),
        np.ones(count, np.bool_),
        batch_of(
            [Prediction(f"{start + i}", "m", "a", 0) for i in range(count)], np.arange(start, start + count)
        ),
        appended=appended,
    )


def test_a_silent_partition_that_answers_is_never_left_behind_however_busy_the_others() -> None:
    busy = at(*range(10_000, 40_000, 100))
    reader = reader_of({BUSY: busy, SILENT: at(10_000)}, MergeSpec(max_hold_back_ms=5_000))
    for now_ms in range(10_000, 45_000, 50):
        reader.poll(now_ms)
        assert reader.merge.left_behind == []
        assert reader.merge.holds(now_ms).get(SILENT, 0) <= 1
    assert len(reader.out) == 1 + len(busy)
    assert not reader.progress.out_of_order


@pytest.mark.parametrize("delivers", [False, True])
def test_a_partition_left_behind_stays_so_until_it_answers_again(*, delivers: bool) -> None:
    """What a poll says of one that cannot be reached is old news, and it delivers nothing."""
    merge = Merge(MergeSpec(max_hold_back_ms=5_000), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, SILENT])
    merge.found({SILENT: 0})
    released = []
    for now_ms in range(2_000, 22_000, 500):
        merge.add({BUSY: arrivals(now_ms, start=now_ms), SILENT: arrivals()}, now_ms)
        merge.add({SILENT: arrivals()}, now_ms)
        merge.found({BUSY: now_ms})
        merge.found({SILENT: 0})
        released.append(len(merge.release(now_ms, now_ms)))
    assert merge.left_behind == [SILENT]
    assert sum(released) >= 36
    assert not merge.holds(22_000), "nothing waits for it any more"
    merge.left_behind.clear()
    if delivers:
        merge.add({SILENT: arrivals(21_600)}, 22_000)
    else:
        merge.found({SILENT: 22_000})
    merge.add({BUSY: arrivals(22_000, start=22_000)}, 22_000)
    merge.found({BUSY: 22_000})
    times_ms = merge.release(22_000, 22_000).times_ms.tolist()
    assert times_ms == ([21_600] if delivers else []), "it is waited for again"


@pytest.mark.parametrize("ahead_ms", [4 * MINUTE, 3 * HOUR])
def test_a_time_ahead_of_the_host_waits_at_most_max_future_more(ahead_ms: int) -> None:
    """The broker's own times are believed, be its clock wrong."""
    spec, now_ms = MergeSpec(), 10 * HOUR
    merge = Merge(spec, SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, OTHER])
    merge.add({BUSY: arrivals(now_ms + ahead_ms, appended=True)}, now_ms)
    waited = next(
        passed_ms for passed_ms in range(0, 24 * HOUR, 1_000) if _released(merge, now_ms + passed_ms)
    )
    assert waited == min(ahead_ms, spec.max_future_ms) + spec.settle_ms


def _released(merge: Merge, now_ms: int) -> int:
    for partition in (BUSY, OTHER):
        merge.found({partition: now_ms})
    return len(merge.release(now_ms, now_ms))


@pytest.mark.parametrize("stamp_ms", [0, -1, 253_402_300_000_000])
def test_a_first_record_with_an_impossible_time_does_not_take_its_partition_with_it(stamp_ms: int) -> None:
    month_ago = [1_000_000 + 1_000 * i for i in range(50)]
    entries = {BUSY: at(stamp_ms, *month_ago), OTHER: at(*[t + 500 for t in month_ago])}
    start_ms = 30 * 24 * HOUR
    reader = reader_of(
        {p: [Entry(e.stamp_ms, 0, 0) for e in log] for p, log in entries.items()}, MergeSpec(), most=500
    )
    reader.run(start_ms, start_ms + 5_000)
    plain = reader_of(
        {BUSY: [Entry(t, 0, 0) for t in month_ago], OTHER: reader.logs.entries[OTHER]}, MergeSpec()
    )
    expected = [(p, o + (p == BUSY), clock) for p, o, clock in sequence_of(plain.logs)]
    assert [row for row in reader.out if row[:2] != (BUSY, 0)] == expected
    assert sum(reader.progress.corrected.values()) == 1
    assert not reader.progress.out_of_order


@pytest.mark.parametrize("decodable", [True, False])
def test_a_record_that_cannot_be_decoded_is_not_late_only_because_its_partition_paused(
    *, decodable: bool
) -> None:
    busy = at(*range(10_000, 2 * MINUTE, 1_000))
    paused = [*at(10_000), Entry(MINUTE, MINUTE, MINUTE, decodable)]  # it comes in time
    late = [Entry(20_000, 2 * MINUTE, 2 * MINUTE)]
    reader = reader_of({BUSY: busy, SILENT: paused, OTHER: late}, MergeSpec())
    for now_ms in range(10_000, 3 * MINUTE, 100):
        reader.poll(now_ms)
    assert len(reader.out) == len(busy) + 3
    assert reader.progress.out_of_order == {"labels": 1}, "of which nobody could know"
    clocks_ms = [clock_ms for *_, clock_ms in reader.out]
    assert clocks_ms == sorted(clocks_ms), "it comes at the clock's time"


def test_what_is_held_is_counted_in_bytes_whatever_came_last() -> None:
    merge = Merge(MergeSpec(max_held_bytes=1_000_000), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, OTHER])
    large, small = arrivals(*range(10_000, 10_100)), arrivals(10_100, start=100)
    merge.add({BUSY: replace(large, size_bytes=2_000_000)}, 10_000)
    merge.add({BUSY: replace(small, size_bytes=100)}, 10_000)
    merge.release(10_000, 20_000)
    assert merge.crowded() == {BUSY}
    merge.add({OTHER: arrivals(10_098)}, 10_000)
    assert len(merge.release(10_000, 20_000)) == 100
    assert not merge.crowded()


def test_a_single_record_that_is_too_large_is_enough_to_ask_for_no_more() -> None:
    merge = Merge(MergeSpec(max_held_bytes=1_000_000), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, OTHER])
    merge.add({BUSY: replace(arrivals(10_000), size_bytes=2_000_000)}, 10_000)
    merge.release(10_000, 20_000)
    assert merge.crowded() == {BUSY}


def test_whether_a_record_arrived_by_some_time_is_known_whatever_it_waits_for() -> None:
    merge = Merge(MergeSpec(), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY])

    def known(*times_ms: int) -> list[bool]:
        return [merge.holds_from_before(ms) for ms in times_ms]

    assert known(10**12) == [False]
    merge.add({BUSY: arrivals(10_000, 10_000 + HOUR)}, 9_000)
    assert known(8_999, 9_000) == [False, True], "nothing is judged yet"
    assert len(merge.release(9_100, 2 * HOUR)) == 1
    assert known(8_999, 9_000) == [False, True], "a jump waits for what follows it"
    merge.found({BUSY: 9_200})
    assert len(merge.release(9_200, 2 * HOUR)) == 1
    assert known(10**12) == [False]
    merge.set_partitions([BUSY, OTHER])
    merge.add({BUSY: arrivals(11_000, start=2)}, 9_300)
    assert len(merge.release(9_300, 2 * HOUR)) == 0
    assert known(9_299, 9_300) == [False, True], "another partition may deliver an earlier one"


def test_times_that_the_broker_set_are_believed_though_partitions_are_added_before_they_are_judged() -> None:
    merge = Merge(MergeSpec(), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([OTHER])
    merge.add({OTHER: arrivals(10_000 + HOUR, appended=True)}, 0)
    merge.set_partitions([BUSY, OTHER])
    released = merge.drain(10_000)
    assert (released.times_ms.tolist(), released.reasons.tolist()) == ([10_000 + HOUR], [0])


def test_a_producers_times_are_doubted_though_the_broker_set_those_that_came_next_of_the_same_poll() -> None:
    """A poll is added in several parts, and a topic's configuration may have changed between two records."""
    merge = Merge(MergeSpec(), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY])
    merge.add({BUSY: arrivals(10_000, 10_000 + 10 * HOUR)}, 0)
    merge.add({BUSY: arrivals(10_001, start=2, appended=True)}, 0)
    released = merge.drain(10_000)
    assert released.times_ms.tolist() == [10_000, 10_000, 10_001]
    assert [REASONS[code] for code in released.reasons.tolist()] == ["", "future", ""]


def test_records_wait_for_one_whose_time_is_not_known_though_its_partition_is_at_its_end() -> None:
    """Too few records came to say whether it is from the future or the host's clock is behind."""
    merge = Merge(MergeSpec(), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, OTHER])
    merge.add({BUSY: arrivals(10 * HOUR), OTHER: arrivals(9 * HOUR - MINUTE)}, 0)
    for now_ms in (2_000, 2 * MINUTE):
        merge.found({BUSY: now_ms, OTHER: now_ms})
        assert len(merge.release(now_ms, 9 * HOUR)) == 0
    merge.found({BUSY: 5 * MINUTE, OTHER: 5 * MINUTE})
    released = merge.release(5 * MINUTE, 9 * HOUR)
    assert [released.partitions[index] for index in released.indices.tolist()] == [BUSY, OTHER]
    assert released.times_ms.tolist() == [9 * HOUR - MINUTE] * 2
    assert released.lateness_ms.tolist() == [IN_ORDER] * 2


def test_what_was_released_is_let_go_once_nothing_is_held() -> None:
    merge = Merge(MergeSpec(), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY])
    for stamp_ms in (10_000, 20_000):
        merge.add({BUSY: arrivals(stamp_ms, start=stamp_ms)}, 0)
        merge.found({BUSY: 5_000})
        released = merge.release(5_000, 30_000)
        assert [event.id for event in released.records.objects] == [f"{stamp_ms}"]


def test_rows_name_their_topics_as_far_as_numbers_reach() -> None:
    sides = {f"t{n:03}": "prediction" for n in range(MOST_TOPICS + 1)}
    merge = Merge(MergeSpec(), sides, MergeProgress())  # type: ignore[arg-type]
    partitions = [Partition(topic, 0) for topic in sides]
    merge.set_partitions(partitions)
    merge.add(dict.fromkeys(partitions, arrivals(10_000)), 0)
    records = merge.drain(20_000).records
    names = [records.topics[number] for number in records.rows["topic"].tolist()]
    assert names == [*list(sides)[: MOST_TOPICS - 1], "", ""]


def test_a_record_of_the_last_ones_time_is_in_order_if_the_topic_of_that_is_no_longer_read() -> None:
    progress = MergeProgress(last=Key(10_000, "gone", 5, 7), clock_ms=10_000)
    merge = Merge(MergeSpec(), SIDES, progress)  # type: ignore[arg-type]
    merge.set_partitions([BUSY])
    merge.add({BUSY: arrivals(9_999, 10_000)}, 0)
    assert merge.drain(20_000).lateness_ms.tolist() == [1, IN_ORDER]


def test_however_much_may_go_it_goes_in_turns_of_so_many_and_in_order() -> None:
    spec = MergeSpec(records_per_turn=1_000)
    merge = Merge(spec, SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, OTHER])
    merge.add({BUSY: arrivals(*range(10_000, 14_500)), OTHER: arrivals(20_000)}, 20_000)
    merge.found({BUSY: 22_000, OTHER: 22_000})
    turns = list(merge.in_turns(22_000, 22_000))
    assert [len(turn) for turn in turns] == [1_000] * 4 + [501]
    times = [time_ms for turn in turns for time_ms in turn.times_ms.tolist()]
    assert times == [*range(10_000, 14_500), 20_000]
    assert not merge.held_records


def test_positions_of_what_was_released_are_used_again_without_what_waits_being_moved() -> None:
    """One partition is far ahead and waits while others come and go: its records stay what they are."""
    merge = Merge(MergeSpec(), SIDES, MergeProgress())  # type: ignore[arg-type]
    merge.set_partitions([BUSY, SILENT, OTHER])
    ahead = range(1_000_000, 1_003_000)
    merge.add({BUSY: arrivals(*ahead)}, 10_000)
    out: list[int] = []
    for turn in range(40):
        now_ms = 20_000 + turn
        stamps = range(100_000 + 2_000 * turn, 102_000 + 2_000 * turn)
        merge.add({OTHER: arrivals(*stamps, start=2_000 * turn)}, now_ms)
        merge.add({SILENT: arrivals(stamps[-1], start=turn)}, now_ms)
        out += merge.release(now_ms, 10**9).times_ms.tolist()
    released = merge.drain(10**9)
    out += released.times_ms.tolist()
    assert out == sorted([*range(100_000, 180_000), *range(101_999, 180_000, 2_000), *ahead])
    offsets = {p: released.offsets[released.indices == n] for n, p in enumerate(released.partitions)}
    assert offsets[BUSY].tolist() == list(range(3_000))
    ids = [event.id for event in released.records.events()]
    assert ids[-3_000:] == [str(n) for n in range(3_000)]
