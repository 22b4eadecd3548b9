"""Whatever the interleaving of polls and wherever it is cut: one log, one sequence."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec
from streamwatch.core.records.batch import RecordBatch, no_records
from streamwatch.core.records.events import Partition
from tests.core.merge.logs import Entry, Logs, Reader, sequence_of
from tests.tiers import by_tier

SPEC = MergeSpec()
LATER = 60_000


def logs_of(seed: int, *, skew_ms: int = 0, transactions: bool = False, count: int = 60) -> Logs:
    """Draw logs of one to three prediction and label partitions, appended over some seconds."""
    chance = random.Random(seed)
    logs = Logs({"labels": "label", "mixed": "both", "predictions": "prediction"})
    for topic, most in (("predictions", 3), ("labels", 3), ("mixed", 1)):
        for number in range(chance.randrange(1 if topic != "mixed" else 0, most + 1)):
            logs.entries[Partition(topic, number)] = []
    gap, together = chance.choice((1, 20, 100, 700)), chance.choice((1, 6))
    for i in range(count):
        partition = chance.choice(list(logs.entries))
        stamp = 10_000 + gap * (i // together)
        entries = logs.entries[partition]
        appended = stamp + chance.randrange(5, 300)
        appended = max(appended, entries[-1].appended_ms) if entries else appended
        readable = (appended // 7_000 + 1) * 7_000 + 20 if transactions else appended
        shown = stamp + (skew_ms if partition.topic == "labels" else -chance.randrange(0, 200))
        entries.append(Entry(shown, appended, readable, chance.random() > 0.05))
    return logs


def with_time(logs: Logs, rows: list[tuple[Partition, int, int]]) -> list[tuple[Partition, int, int]]:
    """Leave out records that could not be decoded: they are only counted, wherever they come."""
    return [row for row in rows if logs.entries[row[0]][row[1]].decodable]


def lived(logs: Logs, seed: int, start_ms: int, *, crashes: int, stop_ms: int = 120_000) -> Reader:
    """Read from `start_ms` on, crashing some times; the last life, with the whole sequence."""
    chance = random.Random(seed)
    progress, out, now_ms = MergeProgress(), [], start_ms
    spec = replace(SPEC, records_per_turn=chance.choice((1, 4, SPEC.records_per_turn)))
    for _ in range(crashes):
        reader = Reader(logs, spec, chance, progress, chance.choice((1, 3, 50)), chance.choice((0.2, 0.6, 1)))
        until_ms = now_ms + chance.randrange(100, 9_000)
        reader.run(now_ms, until_ms)
        progress = reader.crash(until_ms)
        out += reader.out
        now_ms = until_ms + chance.randrange(0, 3_000)
    reader = Reader(logs, spec, chance, progress, 20, 0.8).run(now_ms, max(stop_ms, now_ms + LATER), 100)
    reader.out = out + reader.out
    return reader


@pytest.mark.slow
@settings(max_examples=by_tier(fast=10, default=100, everything=10_000))
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.sampled_from((-100, 0, 300)), st.booleans())
def test_live_backlog_and_restarts_give_the_sequence_of_the_whole_log(
    seed: int,
    polls: int,
    skew_ms: int,
    transactions: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    logs = logs_of(seed, skew_ms=skew_ms, transactions=transactions)
    expected = sequence_of(logs)
    start_ms = random.Random(polls).choice((9_000, 200_000))
    reader = lived(logs, polls, start_ms, crashes=random.Random(polls).randrange(6))
    assert not reader.progress.out_of_order
    assert not reader.progress.corrected
    assert with_time(logs, reader.out) == with_time(logs, expected)
    assert sorted(row[:2] for row in reader.out) == sorted(row[:2] for row in expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_records_stamped_before_what_was_released_go_at_once_at_the_clocks_time_and_are_counted(
    seed: int,
) -> None:
    logs = logs_of(seed, skew_ms=-5_000)
    reader = lived(logs, seed, 9_000, crashes=seed % 3)
    clocks = [clock for *_, clock in reader.out]
    assert clocks == sorted(clocks)
    assert sorted((p, offset) for p, offset, _ in reader.out) == sorted(
        (p, offset) for p, entries in logs.entries.items() for offset in range(len(entries))
    )
    assert set(reader.progress.out_of_order) <= {"labels", "mixed", "predictions"}
    backlog = lived(logs, seed, 200_000, crashes=0)
    assert not backlog.progress.out_of_order
    assert backlog.out == sequence_of(logs), "a backlog read at once is in order"


def test_equal_times_go_predictions_first_then_by_partition_and_offset() -> None:
    sides = {"labels": "label", "mixed": "both", "predictions": "prediction"}
    entries = [Entry(10_000, 10_000, 10_000)] * 3
    logs = Logs(
        sides,
        {
            Partition("labels", 0): entries,
            Partition("mixed", 0): entries,
            Partition("predictions", 0): entries,
        },
    )
    reader = Reader(logs, SPEC, random.Random(0), MergeProgress()).run(20_000, 25_000)
    assert [p.topic for p, *_ in reader.out] == ["predictions"] * 3 + ["mixed"] * 3 + ["labels"] * 3


def test_a_partition_that_was_at_its_end_and_falls_silent_is_left_behind_after_the_longest_wait() -> None:
    silent, other = Partition("predictions", 0), Partition("labels", 0)
    later = [Entry(t, t, t) for t in range(12_000, 20_000, 1_000)]
    logs = Logs(
        {"labels": "label", "predictions": "prediction"},
        {silent: [Entry(10_000, 10_000, 10_000)], other: later},
    )
    reader = Reader(logs, MergeSpec(max_hold_back_ms=5_000), random.Random(0), MergeProgress(), share=1)
    reader.run(10_000, 12_000)
    reader.unreachable = frozenset({silent})
    reader.run(12_000, 15_000)
    assert [p for p, *_ in reader.out] == [silent]
    assert reader.merge.holds(15_000)[silent] == pytest.approx(3, abs=0.2)
    reader.run(15_000, 40_000)
    assert reader.merge.left_behind == [silent]
    assert len(reader.out) == 1 + len(later)


def test_a_partition_not_yet_at_its_end_holds_the_others_without_limit() -> None:
    unread, other = Partition("predictions", 0), Partition("labels", 0)
    entries = [Entry(10_000, 10_000, 10_000)]
    logs = Logs({"labels": "label", "predictions": "prediction"}, {unread: entries, other: entries})
    reader = Reader(logs, MergeSpec(max_hold_back_ms=5_000), random.Random(0), MergeProgress(), share=1)
    reader.unreachable = frozenset({unread})
    reader.run(20_000, 60_000)
    assert reader.out == []
    assert reader.merge.holds(60_000)[unread] > 30


def test_partitions_ahead_are_not_asked_for_more_but_never_the_one_that_is_waited_for() -> None:
    behind, ahead = Partition("predictions", 0), Partition("labels", 0)
    logs = Logs(
        {"labels": "label", "predictions": "prediction"},
        {
            behind: [Entry(10_000 + i, 0, 30_000) for i in range(5)],
            ahead: [Entry(10_000 + i, 0, 0) for i in range(100)],
        },
    )
    spec = MergeSpec(max_held_records=10)
    reader = Reader(logs, spec, random.Random(0), MergeProgress(), share=1).run(20_000, 29_000)
    assert reader.merge.crowded() == {ahead}
    assert reader.merge.held_records <= 10 + reader.most
    reader.run(30_000, 60_000)
    assert reader.out == sequence_of(logs)


def test_the_settings_bound_what_is_held_in_bytes() -> None:
    spec = MergeSpec(max_held_bytes=0)
    logs = Logs(
        {"labels": "label", "predictions": "prediction"},
        {
            Partition("predictions", 0): [Entry(10_000, 0, 90_000)],
            Partition("labels", 0): [Entry(10_000 + i, 0, 0) for i in range(100)],
        },
    )
    reader = Reader(logs, spec, random.Random(0), MergeProgress(), share=1).run(20_000, 21_000)
    assert reader.merge.held_records == reader.most


def test_records_are_of_their_topic_also_after_partitions_were_exchanged() -> None:
    merge = Merge(SPEC, {"a": "prediction", "b": "label"}, MergeProgress())
    nothing = no_records()
    one = RecordBatch(np.zeros(1, nothing.rows.dtype), None, (), nothing.vocabulary)
    stamps_ms, decodable = np.ones(1, np.int64), np.ones(1, np.bool_)
    for partitions in (("a", 0), ("a", 1), ("b", 0)), (("a", 0), ("b", 0), ("b", 1)):
        merge.set_partitions([Partition(*each) for each in partitions])
        for topic, number in partitions:
            merge.add({Partition(topic, number): Arrivals(stamps_ms, stamps_ms, decodable, one)}, 0)
        released = merge.drain(0)
        numbers = released.records.rows["topic"]
        assert [released.records.topics[n] for n in numbers.tolist()] == [topic for topic, _ in partitions]


def test_a_partition_that_was_removed_and_comes_back_begins_as_after_a_restart() -> None:
    stays, comes_back = Partition("a", 0), Partition("a", 1)
    running_ms = {stays: 9_000, comes_back: 5_000}
    through = Merge(SPEC, {"a": "prediction"}, MergeProgress(running_ms=running_ms, clock_ms=9_000))
    through.set_partitions([stays, comes_back])
    through.set_partitions([stays])
    through.set_partitions([stays, comes_back])
    restarted = Merge(SPEC, {"a": "prediction"}, MergeProgress(running_ms={stays: 9_000}, clock_ms=9_000))
    restarted.set_partitions([stays, comes_back])
    nothing = no_records()
    stamps_ms, decodable = np.full(1, 1_000), np.ones(1, np.bool_)
    one = RecordBatch(np.zeros(1, nothing.rows.dtype), None, (), nothing.vocabulary)
    times: list[list[int]] = []
    for merge in (through, restarted):
        merge.add({comes_back: Arrivals(np.zeros(1, np.int64), stamps_ms, decodable, one)}, 0)
        times.append(merge.drain(0).times_ms.tolist())
    assert times == [[1_000], [1_000]]
