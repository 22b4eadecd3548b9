"""Writing of a stream, with its optimal classifier as the model, as lines or to Kafka."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec
from aiokafka.errors import KafkaError

from streamwatch.demo.simulate import SimulationError, producer_of, without_retry_warnings
from streamwatch.papers.streams.gaussians import Drawn, Mixture, blocks

LineLayout: TypeAlias = Literal["csv", "jsonl"]
MODEL = "optimal"
"""Name of the model whose predictions are written."""
STEP_MS = 1_000
"""Milliseconds from one instance to the next."""


def lines(
    mixture: Mixture, layout: LineLayout, outcomes: int | None, seed: int, *, start_ms: int = 0
) -> Iterator[str]:
    """Yield the lines of a stream with line ends; endless if `outcomes` is None.

    CSV has a header and the columns `id,timestamp,model,prediction,label,x1,…`. JSON lines are in turn a
    prediction, with `scores` (class probabilities of the optimal classifier) and `x`, and its label.
    """
    if layout == "csv":
        attributes = ",".join(f"x{i + 1}" for i in range(mixture.dimensions))
        yield f"id,timestamp,model,prediction,label,{attributes}\n"
    left = outcomes
    for block in blocks(mixture, seed):
        written = _csv(block, mixture, start_ms) if layout == "csv" else _json(block, mixture, start_ms)
        per_instance = 1 if layout == "csv" else 2
        yield from written if left is None else itertools.islice(written, left * per_instance)
        if left is not None:
            left -= len(block.x)
            if left <= 0:
                return


def _csv(block: Drawn, mixture: Mixture, start_ms: int) -> Iterator[str]:
    labels = mixture.labels
    columns = (block.instances, block.optimal_class, block.true_class, block.x)
    for instance, answer, truth, x in zip(*(column.tolist() for column in columns), strict=True):
        attributes = ",".join(f"{value:.6g}" for value in x)
        at_ms = start_ms + instance * STEP_MS
        yield f"{instance},{at_ms},{MODEL},{labels[answer]},{labels[truth]},{attributes}\n"


def _json(block: Drawn, mixture: Mixture, start_ms: int) -> Iterator[str]:
    labels, encode = mixture.labels, msgspec.json.Encoder().encode
    columns = (block.instances, block.optimal_class, block.true_class, block.posterior, block.x)
    for instance, answer, truth, shares, x in zip(*(column.tolist() for column in columns), strict=True):
        name, at_ms = str(instance), start_ms + instance * STEP_MS
        prediction = {
            "id": name,
            "timestamp": at_ms,
            "model": MODEL,
            "prediction": labels[answer],
            "scores": {label: round(share, 6) for label, share in zip(labels, shares, strict=True)},
            "x": [float(f"{value:.6g}") for value in x],
        }
        yield encode(prediction).decode() + "\n"
        yield encode({"id": name, "timestamp": at_ms, "label": labels[truth]}).decode() + "\n"


# Writing of a stream to two topics of Kafka, with times of a backlog that ends now.


async def write_to_kafka(  # a stream, and where to
    mixture: Mixture,
    instances: int,
    seed: int,
    bootstrap_servers: str,
    topics: tuple[str, str],
    create: int | None,
) -> None:
    """Write the JSON lines of a stream as records, predictions and labels in turn, keyed by id.

    Records have the times of their events; instances are a second apart up to now, so that a daemon reads
    them as a backlog. `topics` are those of predictions and of labels; missing ones are created with `create`
    partitions, unless that is None.

    Raises
    ------
    SimulationError
        If the broker cannot be reached, a topic is missing, or records are refused.
    """
    start_ms = time.time_ns() // 1_000_000 - instances * STEP_MS
    async with producer_of(bootstrap_servers, topics, create, {}) as producer:
        try:
            with without_retry_warnings():
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
            raise SimulationError(f"writing to {bootstrap_servers} failed: {error}") from error
