"""Writes the messages of a scenario, as fast as the broker takes them, with the timestamps of a backlog."""

from __future__ import annotations

import time
from dataclasses import replace

from confluent_kafka import Producer

from streamwatch.demo.simulate import ScheduleSpec, schedule
from streamwatch.demo.simulated import DelaySpec, StreamSpec
from tests.bench.peers.payloads import PAYLOAD, payload_of, records_of
from tests.bench.peers.scenarios import Scenario


def fill(servers: str, topics: tuple[str, str], scenario: Scenario) -> tuple[int, int]:
    """Write predictions and labels; how many records and events there are."""
    instances = scenario.messages // (scenario.models + 1)
    rate = scenario.predictions_per_second / scenario.models
    stream = StreamSpec(models=scenario.models, delay=DelaySpec(median_s=scenario.delay_seconds))
    stream = replace(stream, drift_every=max(instances // 4, 1))
    start_ms = time.time_ns() // 1_000_000 - round(1_000 * (instances / rate + stream.delay.limit_s))
    named = {"prediction": topics[0], "label": topics[1]}
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": scenario.compression,
            "batch.size": scenario.batch_bytes,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    records = events = 0
    plain = schedule(ScheduleSpec(stream, rate, start_ms, scenario.name, instances))
    due = ((each.side, each.at_s, each.key, each.value) for each in plain)
    payload = payload_of({PAYLOAD: scenario.payload})
    if scenario.payload == "plain":
        written = ((*each, 1) for each in due)
    else:
        written = records_of(payload, due, scenario.models)
    for side, at_s, key, short, held in written:
        missing = scenario.value_bytes - len(short) - len(b',"note":""')
        value = short[:-1] + b',"note":"' + b"x" * missing + b'"}' if missing > 0 else short
        producer.produce(named[side], value, key, timestamp=start_ms + round(at_s * 1_000))
        records, events = records + 1, events + held
        if records % 1_000 == 0:
            producer.poll(0)
    if left := producer.flush(120):
        raise TimeoutError(f"{left} messages of scenario {scenario.name} were not written within 120 s")
    return records, events
