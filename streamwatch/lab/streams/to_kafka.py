"""A stream of the testbed into two topics of Kafka, dated as a backlog that ends now."""

from __future__ import annotations

import time
from dataclasses import dataclass

from aiokafka.errors import KafkaError

from streamwatch.lab.producing import producer_of, retries_unsaid
from streamwatch.lab.streams.gaussians import Mixture
from streamwatch.lab.streams.writing import STEP_MS, lines
from streamwatch.lab.topics import SimulationError


@dataclass(frozen=True, slots=True)
class Destination:
    """Topics and brokers a stream is written to."""

    bootstrap_servers: str
    predictions_topic: str
    labels_topic: str
    create: int | None = None
    """Partitions of topics that are made where they are absent; None: they must be there."""


async def write_to_kafka(mixture: Mixture, instances: int, seed: int, to: Destination) -> None:
    """Write the JSON lines of a stream as records, predictions and labels by turns, keyed by their id.

    Records have the time of their event; instances are a second apart and the last one is of now, so that a
    daemon takes the rest for a backlog.

    Raises
    ------
    SimulationError
        If the broker cannot be reached, a topic is absent, or records are not taken.
    """
    start_ms = time.time_ns() // 1_000_000 - instances * STEP_MS
    topics = (to.predictions_topic, to.labels_topic)
    async with producer_of(to.bootstrap_servers, topics, to.create, {}) as producer:
        try:
            with retries_unsaid():
                written = lines(mixture, "jsonl", instances, seed, start_ms=start_ms)
                for number, line in enumerate(written):
                    instance, side = divmod(number, 2)
                    await producer.send(
                        topics[side],
                        line.rstrip("\n").encode(),
                        key=str(instance).encode(),
                        timestamp_ms=start_ms + instance * STEP_MS,
                    )
                await producer.flush()
        except KafkaError as error:
            raise SimulationError(f"writing to {to.bootstrap_servers} failed: {error}") from error
