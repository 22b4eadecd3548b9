"""Elec2 with labels 0.1 s to hours late: read as it is written, the numbers of its backlog, to the bit."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from tests.integration.conftest import Broker
from tests.integration.elec2_stories import (
    HOUR,
    MODELS,
    PARTITIONS,
    SECOND,
    TOO_LATE,
    Teller,
    Told,
    recording,
)
from tests.integration.one_log import (
    all_evaluated,
    assert_same_numbers,
    dumped,
    killed_again_and_again,
    replayed,
)
from tests.integration.running import child, value
from tests.integration.topics import create_topic, fresh
from tests.tiers import by_tier

PAST_ROWS: Final = by_tier(fast=3_000, default=3_000, everything=30_000)
LIVE_ROWS: Final = by_tier(fast=1_000, default=1_000, everything=15_000)
LIVE_SECONDS: Final = by_tier(fast=25, default=25, everything=300)
PAST_HOURS: Final = 8
HORIZON_HOURS: Final = 4
TICK_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Span:
    """Record times of a stretch that is written live, after hours that are there already.

    A stretch `pace` times as fast as the clock is dated in the past and ends with the clock: whatever comes
    from the future would be corrected.
    """

    began_ms: int
    """Host's time at which its writing begins."""
    pace: int

    @property
    def end_ms(self) -> int:
        return self.began_ms + LIVE_SECONDS * SECOND

    @property
    def live_ms(self) -> int:
        """Where the live stretch begins."""
        return self.end_ms - LIVE_SECONDS * SECOND * self.pace

    @property
    def start_ms(self) -> int:
        return self.live_ms - PAST_HOURS * HOUR

    def reached_ms(self, host_ms: int) -> int:
        """Record time up to which everything is written at a time of the host."""
        return self.live_ms + (host_ms - self.began_ms) * self.pace

    def times_ms(self) -> list[int]:
        """When each row is predicted."""
        past = [self.start_ms + i * (self.live_ms - self.start_ms) // PAST_ROWS for i in range(PAST_ROWS)]
        return past + [self.live_ms + i * (self.end_ms - self.live_ms) // LIVE_ROWS for i in range(LIVE_ROWS)]

    def label_ms(self, chance: random.Random, record_ms: int) -> int:
        """Draw the time of a label: 0.1 s to 3 h late, of hours ago often in the live stretch."""
        if self.live_ms - 3 * HOUR < record_ms < self.live_ms and chance.random() < 0.3:
            return chance.randrange(self.live_ms, self.end_ms)
        return record_ms + round(math.exp(chance.uniform(math.log(100), math.log(3 * HOUR))))

    def told(self) -> list[Told]:
        """Every record up to the end, by time."""
        teller = Teller(self.start_ms, label_ms=self.label_ms)
        told = teller.told(recording()[: PAST_ROWS + LIVE_ROWS], self.times_ms())
        return [record for record in told if record[0].record_ms < self.end_ms]


class Writer:
    """Writes records as time passes."""

    def __init__(self, broker: Broker, topics: Mapping[str, str], told: Sequence[Told]) -> None:
        options = {"linger.ms": 1, "queue.buffering.max.messages": 500_000}
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **options})
        self._topics = topics
        self._told = told
        self._written = 0

    async def write_until(self, record_ms: int) -> None:
        """Write everything dated before this, and wait for the broker to have it."""
        while self._written < len(self._told) and self._told[self._written][0].record_ms < record_ms:
            item, _ = self._told[self._written]
            self._written += 1
            self._producer.produce(
                self._topics[item.side], item.value, item.id, item.partition, timestamp=item.record_ms
            )
            if self._written % 10_000 == 0:
                self._producer.poll(0)
        assert await asyncio.to_thread(self._producer.flush, 60) == 0

    async def write_live(self, span: Span) -> None:
        """Write the live stretch at its pace."""
        while self._written < len(self._told):
            await self.write_until(span.reached_ms(now_ms()))
            await asyncio.sleep(TICK_SECONDS)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def overrides(broker: Broker, topics: Mapping[str, str], state: Path | None = None) -> list[str]:
    return [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        *(f"topics.{side}s=[{{name: {name}, mapping: {{id: key}}}}]" for side, name in topics.items()),
        "state.kind=memory" if state is None else f"state.directory={state}",
        f"join.horizon={HORIZON_HOURS}h",
        "time.settle=3s",
    ]


def longest_joined_live_ms(told: Sequence[Told], span: Span) -> int:
    """Longest delay of a label in the live stretch."""
    predicted = {written.id: item.record_ms for item, written in reversed(told) if item.side == "prediction"}
    return max(
        item.record_ms - predicted[written.id]
        for item, written in told
        if item.side == "label" and written.id in predicted and item.record_ms >= span.live_ms
    )


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("pace", [1, 20])
async def test_elec2_read_as_it_is_written_says_what_its_backlog_and_its_replay_say(
    kafka: Broker, tmp_path: Path, pace: int
) -> None:
    topics = {side: await create_topic(kafka, fresh(side), PARTITIONS) for side in ("prediction", "label")}
    for name in ("live", "killed", "backlog"):
        (tmp_path / name).mkdir()
    durable = overrides(kafka, topics, tmp_path / "state")
    with child(tmp_path / "live", *overrides(kafka, topics)) as daemon:
        daemon.url()
        span = Span(now_ms() + 3 * SECOND, pace)
        told = span.told()
        assert TOO_LATE > HORIZON_HOURS * HOUR
        assert HOUR < longest_joined_live_ms(told, span) < HORIZON_HOURS * HOUR
        writer = Writer(kafka, topics, told)
        await writer.write_until(span.live_ms)
        writing = asyncio.create_task(writer.write_live(span))
        await killed_again_and_again(tmp_path / "killed", durable, writing, random.Random(pace))
        live = await all_evaluated(daemon, len(told), MODELS)
    with child(tmp_path / "killed", *durable) as daemon:
        killed = await all_evaluated(daemon, len(told), MODELS)
    with child(tmp_path / "backlog", *overrides(kafka, topics)) as daemon:
        backlog = await all_evaluated(daemon, len(told), MODELS)
    dumped(kafka, topics, PARTITIONS, tmp_path / "log.jsonl")
    replay = await asyncio.to_thread(replayed, tmp_path / "log.jsonl", overrides(kafka, topics))
    for counted in ("late", "early", "duplicate", "corrected"):
        assert value(backlog["samples"], f"labels_{counted}_total") > 0
    assert value(backlog["samples"], "predictions_expired_total") > 0
    assert_same_numbers(backlog, (live, killed), replay)
