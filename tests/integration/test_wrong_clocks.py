"""On Apache Kafka, with the default settings of time: a host 30 days behind, and records far ahead."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer

from streamwatch.assembly.state import HostClocks
from tests.integration.conftest import Broker
from tests.integration.running import daemon, value
from tests.integration.topics import create_topic, fresh
from tests.integration.watched import summed

PARTITIONS = 4
HOUR_MS, MONTH_MS = 3_600_000, 30 * 86_400_000
YEAR_9999_MS = 253_402_300_000_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writer:
    """Writes predictions, each with its label."""

    def __init__(self, broker: Broker, topics: Mapping[str, str]) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1})
        self._topics = topics
        self.written = 0

    async def outcomes(self, count: int, off_ms: int = 0) -> None:
        """Write outcomes dated now, or by a clock that is `off_ms` ahead."""
        for _ in range(count):
            name, number = str(self.written), self.written
            self.written += 1
            prediction = {"id": name, "model": "m", "prediction": "a"}
            self._send("predictions", prediction, number % PARTITIONS, now_ms() + off_ms)
            self._send("labels", {"id": name, "label": "a"}, number // 3 % PARTITIONS, now_ms())
        assert await asyncio.to_thread(self._producer.flush, 60) == 0

    def _send(self, side: str, document: Mapping[str, str], partition: int, stamp_ms: int) -> None:
        value_ = json.dumps(document)
        self._producer.produce(self._topics[side], value_, partition=partition, timestamp=stamp_ms)


@pytest.mark.timeout(900)
async def test_neither_a_host_30_days_behind_nor_records_far_ahead_expire_or_orphan_anything(
    kafka: Broker,
) -> None:
    anything = str(2**63 - 1)  # brokers refuse what is more than an hour ahead of them, unless told otherwise
    topics = {
        side: await create_topic(kafka, fresh(side), PARTITIONS, message_timestamp_after_max_ms=anything)
        for side in ("predictions", "labels")
    }
    behind_ms = MONTH_MS
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "start_from": "earliest"},
        "topics": topics,
        "join": {"horizon": "30m"},
    }
    writer = Writer(kafka, topics)
    async with daemon(document, HostClocks(lambda: now_ms() - behind_ms)) as running:
        await writer.outcomes(2)
        await running.until(lambda s: value(s, "merge_held_records") > 0)
        await writer.outcomes(500)
        samples = await running.until(lambda s: value(s, "predictions_resolved_total") == writer.written)
        assert value(samples, "host_clock_behind") == 1
        behind_ms = 0
        await writer.outcomes(500)
        await running.until(lambda s: value(s, "host_clock_behind") == 0)
        for off_ms in (HOUR_MS, YEAR_9999_MS - now_ms()):
            await writer.outcomes(100)
            await writer.outcomes(1, off_ms)
            await writer.outcomes(100)
        samples = await running.until(lambda s: value(s, "predictions_resolved_total") == writer.written)
    for counted in ("predictions_expired", "labels_orphaned", "labels_late"):
        assert value(samples, f"{counted}_total") == 0
    assert summed(samples, "timestamps_corrected_total") == 2
    assert value(samples, "timestamps_corrected_total", reason="future") == 2
    assert summed(samples, "records_out_of_order_total") == 0


@pytest.mark.timeout(900)
async def test_a_host_whose_clock_is_set_forth_and_back_evaluates_what_one_with_a_steady_clock_does(
    kafka: Broker,
) -> None:
    topics = {side: await create_topic(kafka, fresh(side), PARTITIONS) for side in ("predictions", "labels")}
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "start_from": "earliest"},
        "topics": topics,
        "join": {"horizon": "30m"},
    }
    writer, off_ms = Writer(kafka, topics), 0
    async with daemon(document, HostClocks(lambda: now_ms() + off_ms)) as moved, daemon(document) as steady:
        for jump_ms in (HOUR_MS, -HOUR_MS, 2 * HOUR_MS, -MONTH_MS, MONTH_MS, -1_500, 0):
            off_ms = jump_ms
            await writer.outcomes(150)
            await moved.until(
                lambda s: (
                    summed(s, "records_evaluated_total") + value(s, "merge_held_records")
                    == 2 * writer.written
                )
            )
        found = [
            await each.until(lambda s: value(s, "predictions_resolved_total") == writer.written)
            for each in (moved, steady)
        ]
    for samples in found:
        for counted in ("predictions_expired", "labels_orphaned", "labels_late"):
            assert value(samples, f"{counted}_total") == 0
        for counted in ("records_out_of_order_total", "timestamps_corrected_total"):
            assert summed(samples, counted) == 0
    evaluated = [
        {
            key: sample
            for key, sample in samples.items()
            if key[0].endswith("_ratio") or key[0].startswith(("outcomes", "drift", "verdict"))
        }
        for samples in found
    ]
    assert len(evaluated[0]) > 10
    assert evaluated[0] == evaluated[1]
