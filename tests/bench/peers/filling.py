"""Writes the messages of a scenario, as fast as the broker takes them, with the timestamps of a backlog."""

from __future__ import annotations

import time
from dataclasses import replace

from confluent_kafka import Producer

from streamwatch.lab.schedule import ScheduleSpec, schedule
from streamwatch.lab.streams.simulated import DelaySpec, StreamSpec
from tests.bench.peers.scenarios import Scenario

RATE = 1_000.0
BATCH_BYTES = 16_384
"""What most producers send at a time by default."""


def fill(servers: str, topics: tuple[str, str], scenario: Scenario) -> int:
    """Write predictions and labels; how many there are."""
    instances = scenario.messages // (scenario.models + 1)
    stream = StreamSpec(models=scenario.models, delay=DelaySpec(median_s=scenario.delay_seconds))
    stream = replace(stream, drift_every=max(instances // 4, 1))
    start_ms = time.time_ns() // 1_000_000 - round(1_000 * (instances / RATE + stream.delay.limit_s))
    named = {"prediction": topics[0], "label": topics[1]}
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": scenario.compression,
            "batch.size": BATCH_BYTES,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    count = 0
    for due in schedule(ScheduleSpec(stream, RATE, start_ms, scenario.name, instances)):
        value = due.value
        if (missing := scenario.value_bytes - len(value) - len(b',"note":""')) > 0:
            value = value[:-1] + b',"note":"' + b"x" * missing + b'"}'
        stamp = start_ms + round(due.at_s * 1_000)
        producer.produce(named[due.side], value, due.key, timestamp=stamp)
        count += 1
        if count % 1_000 == 0:
            producer.poll(0)
    if left := producer.flush(120):
        raise TimeoutError(f"{left} messages of scenario {scenario.name} were not written within 120 s")
    return count
