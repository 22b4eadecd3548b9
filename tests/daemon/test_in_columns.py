"""Records through decoder, merge and join: alike with most entries outside the table, and no object each."""

from __future__ import annotations

import asyncio
import io
import json
import random
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join import join as joining
from streamwatch.core.join.cold.overflow import Overflow, OverflowSpec
from streamwatch.core.join.cold.store import MemoryRuns
from streamwatch.core.join.join import CompiledJoin
from streamwatch.core.merge import MergeProgress, MergeSpec
from streamwatch.core.pipeline.checkpoint import Checkpoint
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.events import Partition
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import JoinSpec
from streamwatch.daemon.batch_processor import BatchProcessor, StoreMaintenance
from streamwatch.daemon.status import Clocks
from streamwatch.edge.keys import bytes_of_keys, id_keys
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, gathered
from streamwatch.edge.stores.memory import MemoryStore
from streamwatch.telemetry import Telemetry
from tests.core.join.cold.cold_model import SMALL
from tests.daemon.fake_daemon import plain_topics
from tests.edge.sources.kafka.batches.pieces import piece_of
from tests.interpreter_calls import calls_of
from tests.layouts import TINY

START_MS = 1_700_000_000_000
PARTITIONS = tuple(Partition(topic, n) for topic in ("predictions", "labels") for n in range(2))
JOIN = JoinSpec(horizon_ms=60_000, early_horizon_ms=60_000, dedup_horizon_ms=60_000)


class Daemon:
    """A batch processor; `table`: entries in it; `names`: numbers of names."""

    def __init__(self, *, join: JoinSpec = JOIN, table: int | None = None, names: int = 65_536) -> None:
        self.now_ms = 0
        self.log = io.StringIO()
        self.monitors = EstimatorSet(TINY)
        runs = MemoryRuns()
        overflow = None if table is None else Overflow(runs, OverflowSpec(table, 20, SMALL))
        pipeline = Pipeline(join, self.monitors, bytes_of_keys, overflow)
        maintenance = StoreMaintenance(pipeline, runs, Path("state")) if table is not None else None
        topics = plain_topics(id_keys("", digest=True), Vocabulary(names))
        self.processor = BatchProcessor(
            Checkpoint(pipeline, self.monitors, TINY, 1_000),
            MemoryStore(),
            topics,
            Telemetry(stream=self.log, clock=lambda: 0.0),  # else lines are held back by how long it took
            Clocks(lambda: START_MS + 10**9, lambda: self.now_ms),
            MergeSpec(settle_ms=0),
            MergeProgress(),
            maintenance=maintenance,
        )
        self.alarms = []
        self.retired = []

    async def take(self, poll: Poll) -> None:
        """Receive a poll and evaluate all that it lets go."""
        self.now_ms += 1
        await self.processor.receive(poll)
        while self.processor.has_ready:
            await self.processor.make_room()
            self.processor.evaluate()
            while self.processor.maintenance and (work := self.processor.take_work()):
                await self.processor.maintenance.run_in_thread(work)
                self.processor.evaluate()
        if self.processor.maintenance:
            self.processor.maintenance.schedule_next()
        alarms, retired = self.processor.settle()
        self.alarms += alarms
        self.retired += retired

    def results(self) -> object:
        """Everything published but where entries lie, positions, alarms and what was logged."""
        models = self.monitors.models()
        return (
            [each for each in self.processor.pipeline.families() if each.name != "join_entries"],
            [self.monitors.snapshot(model) for model in models],
            self.processor.progress.state(),
            self.alarms,
            self.retired,
            [json.loads(line) | {"timestamp": ""} for line in self.log.getvalue().splitlines()],
        )


def poll_of(records: dict[Partition, list[KafkaRecord]], now_ms: int, *, at_end: bool = True) -> Poll:
    """A poll of these records, in which every partition was found at its end."""
    states = {}
    for partition in PARTITIONS:
        found = records.get(partition, [])
        position = found[-1].offset + 1 if found else 0
        states[partition] = PartitionState(position, position, at_end, now_ms if at_end else None)
    return Poll(
        {partition: gathered(partition, [piece_of(each)]) for partition, each in records.items() if each},
        states,
    )


def written(chance: random.Random, number: int, at_ms: int) -> tuple[str, bytes | None]:
    """A record of any kind: topic and value."""
    id_, model, side = (
        f"id-{max(0, number - chance.randrange(60))}",
        f"m{chance.randrange(3)}",
        chance.random(),
    )
    shown = f"c{chance.randrange(3)}"
    if chance.random() < 0.08:
        odd = chance.choice((None, b"{", b"[]", b'{"id": 1e400}', b'{"id":"x","model":"m0"}'))
        return chance.choice(("predictions", "labels")), odd
    stamp = f',"timestamp":{at_ms - chance.randrange(2_000)}' if chance.random() < 0.5 else ""
    if side < 0.55:
        scores = ',"scores":{"c0":0.25,"c1":0.75}' if chance.random() < 0.1 else ""
        return (
            "predictions",
            f'{{"id":"{id_}","model":"{model}","prediction":"{shown}"{stamp}{scores}}}'.encode(),
        )
    named = f',"model":"{model}"' if chance.random() < 0.3 else ""
    return "labels", f'{{"id":"{id_}","label":"{shown}"{named}{stamp}}}'.encode()


def polls(chance: random.Random, count: int) -> list[Poll]:
    """A stream of all kinds of records, cut into polls of any size, time passing quickly at times."""
    at_ms, offsets = START_MS, dict.fromkeys(PARTITIONS, 0)
    found: list[Poll] = []
    number = 0
    while number < count:
        poll: dict[Partition, list[KafkaRecord]] = {}
        for _ in range(chance.choice((1, 7, 60, 700))):
            number += 1
            at_ms += chance.choice((0, 1, 5, 100)) if chance.random() < 0.99 else 70_000
            topic, value = written(chance, number, at_ms)
            partition = Partition(topic, chance.randrange(2))
            record = KafkaRecord(*partition, offsets[partition], at_ms, None, value)
            offsets[partition] += 1
            poll.setdefault(partition, []).append(record)
        found.append(poll_of(poll, len(found) + 1))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_counters_snapshots_alarms_and_log_are_the_same_with_most_entries_outside_the_table(
    seed: int,
) -> None:
    limits = random.Random(seed)
    join = JoinSpec(
        horizon_ms=60_000,
        early_horizon_ms=60_000,
        dedup_horizon_ms=60_000,
        max_pending=limits.choice((40, 10_000)),
        max_models=limits.choice((2, 10)),
    )
    inside, outside = Daemon(join=join), Daemon(join=join, table=30)

    async def run() -> None:
        for daemon in (inside, outside):
            for poll in polls(random.Random(seed), 3_000):
                await daemon.take(poll)
        assert outside.processor.maintenance
        assert await outside.processor.maintenance.stop(None)

    asyncio.run(run())
    assert outside.results() == inside.results()
    assert (
        outside.processor.pipeline.join.entries_outside > 0 == inside.processor.pipeline.join.entries_outside
    )
    assert inside.processor.records >= 3_000


def ever_new_names(chance: random.Random) -> list[Poll]:
    """Predictions and labels whose models and classes change all the time, half of them held for a while."""
    offsets = dict.fromkeys(PARTITIONS, 0)
    found: list[Poll] = []
    for number in range(200):
        poll: dict[Partition, list[KafkaRecord]] = {}
        for n in range(number * 30, number * 30 + 30):
            shown, model = f"c{(n + chance.randrange(20)) // 20 % 40}", f"m{n // 60}"
            for topic, content in (
                ("predictions", {"id": f"{n}", "model": model, "prediction": shown}),
                ("labels", {"id": f"{n - 30}", "label": shown} | ({"model": model} if n % 2 else {})),
            ):
                partition = Partition(topic, n % 2)
                value = json.dumps(content).encode()
                poll.setdefault(partition, []).append(
                    KafkaRecord(*partition, offsets[partition], START_MS + n, None, value)
                )
                offsets[partition] += 1
        if number % 4 < 2:  # the others wait for these partitions, which are not at their ends
            poll = {each: records for each, records in poll.items() if each.partition}
        found.append(poll_of(poll, number + 1, at_end=number % 4 == 3))
    return found


@pytest.mark.slow
def test_names_beyond_the_numbers_that_there_are_take_over_those_that_no_held_record_needs() -> None:
    few, many = Daemon(names=9), Daemon()

    async def run() -> None:
        for daemon in (few, many):
            for poll in ever_new_names(random.Random(1)):
                await daemon.take(poll)

    asyncio.run(run())
    *ours, log = cast("Sequence[object]", few.results())
    *theirs, _ = cast("Sequence[object]", many.results())
    assert ours == theirs
    assert few.processor.pipeline.join.counters.predictions_resolved > 1_000
    full = [line for line in cast("list[dict[str, object]]", log) if line["event"] == "name_table_full"]
    assert "classes" in {line["kind"] for line in full}


def calls_and_blocks(work: Callable[[], None]) -> tuple[int, int]:
    """How often a function was called, Python's or C's, and by how many more blocks of memory were in use.

    Blocks are counted where a call ends, before what it made is freed: that walks through all memory.
    """
    calls, most, before = 0, 0, sys.getallocatedblocks()

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls, most
        calls += event in ("call", "c_call")
        if event in ("return", "c_return"):
            most = max(most, sys.getallocatedblocks())

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls, most - before


def ordinary(start: int, count: int) -> dict[Partition, list[KafkaRecord]]:
    """Predictions of ids and their labels, half of each."""
    poll: dict[Partition, list[KafkaRecord]] = {partition: [] for partition in PARTITIONS}
    for n in range(start, start + count // 2):
        at_ms = START_MS + n
        for partition, content in (
            (PARTITIONS[n % 2], f'{{"id":"i{n}","model":"m","prediction":"a","timestamp":{at_ms}}}'),
            (PARTITIONS[2 + n % 2], f'{{"id":"i{n}","label":"{"ab"[n % 3 == 0]}","timestamp":{at_ms}}}'),
        ):
            poll[partition].append(KafkaRecord(*partition, n // 2, at_ms, None, content.encode()))
    return poll


@pytest.mark.slow
def test_an_ordinary_record_costs_no_object_and_no_call() -> None:
    """100,000 of them in polls of 2,000: were there one object for each, so many would be there at a time.

    Blocks in use are counted at every call of one poll in five.
    """
    daemon, size, count = Daemon(), 2_000, 100_000
    given: Sequence[Poll] = [
        poll_of(ordinary(start // 2, size), 1 + start // size) for start in range(0, count + 4 * size, size)
    ]
    with asyncio.Runner() as runner:
        for poll in given[:4]:  # what is imported, loaded or kept by the first is nobody's cost
            runner.run(daemon.take(poll))
        calls = 0
        for number, poll in enumerate(given[4:]):
            take: Callable[[], None] = lambda poll=poll: runner.run(daemon.take(poll))  # noqa: E731
            if number % 5:
                calls += calls_of(take)
                continue
            called, blocks = calls_and_blocks(take)
            calls += called
            assert blocks < size / 2
    assert daemon.processor.records == count + 4 * size
    assert daemon.processor.pipeline.join.counters.predictions_resolved == daemon.processor.records / 2
    assert calls < count


async def test_room_is_made_in_a_thread_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function but the one that grows in time is forbidden to grow, and what comes out is the same."""
    stream, roomy = polls(random.Random(3), 12_000), Daemon()
    for poll in stream:
        await roomy.take(poll)
    monkeypatch.setattr(joining, "_LARGE", 1_024)
    monkeypatch.setattr(joining, "_AHEAD", 900)
    threads: set[int] = set()
    grow, grown = CompiledJoin.with_more_room, joining.grown

    def noted(join: CompiledJoin) -> joining.Arrays:
        threads.add(threading.get_ident())
        return grow(join)

    def refused(*_: object) -> joining.Arrays:
        raise AssertionError("there was no room")

    monkeypatch.setattr(CompiledJoin, "with_more_room", noted)
    monkeypatch.setattr(joining, "grown", lambda a, n=900: refused() if n == 0 else grown(a, n))
    narrow = Daemon()
    for poll in stream:
        await narrow.take(poll)
    assert narrow.results() == roomy.results()
    assert threads
    assert threading.get_ident() not in threads
