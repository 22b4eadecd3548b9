"""A log of five models, one of which falls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from confluent_kafka import Producer

from tests.integration.conftest import Broker

MODELS = ("copycat", "fallen", "poor", "fair", "good")
Event = tuple[int, str, dict[str, str]]
"""Record time in milliseconds, side, document."""


def events_of(chance: Random, began_ms: int, numbers: Sequence[int], step_ms: int = 80) -> list[Event]:
    """What happens, in order of time, in as many steps as there are numbers of ids.

    With duplicates, corrections, labels before their predictions, late ones, and some that never come;
    nothing is earlier than the beginning.
    """
    events: list[Event] = []
    truth = "a"
    for step, number in enumerate(numbers):
        at_ms = began_ms + 50 + step_ms * step
        truth = truth if chance.random() < 0.8 else chance.choice("abc")
        right = (0.9, 0.9 if step < 0.6 * len(numbers) else 0.4, 0.4, 0.7, 0.95)
        for model, share in zip(MODELS, right, strict=True):
            predicted = truth if chance.random() < share else chance.choice("abc")
            events.append(
                (at_ms, "predictions", {"id": str(number), "model": model, "prediction": predicted})
            )
            if chance.random() < 0.02:
                again = {"id": str(number), "model": model, "prediction": chance.choice("abc")}
                events.append((at_ms + 5, "predictions", again))
        if chance.random() < 0.95:
            delay_ms = chance.choice([-50, 100, 300, 1_000, 3_000, 30_000])
            events.append((at_ms + delay_ms, "labels", {"id": str(number), "label": truth}))
            if chance.random() < 0.03:
                corrected = {"id": str(number), "label": chance.choice("abc")}
                events.append((at_ms + delay_ms + 700, "labels", corrected))
    return sorted(events, key=lambda event: event[0])


def write(
    broker: Broker,
    topics: dict[str, str],
    partitions: int,
    events: Sequence[tuple[int, str, Mapping[str, Any]]],
    chance: Random,
) -> None:
    """Write events into partitions drawn by chance."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    for at_ms, side, document in events:
        where = chance.randrange(partitions)
        producer.produce(topics[side], json.dumps(document), partition=where, timestamp=at_ms)
        producer.poll(0)
    assert producer.flush(60) == 0
