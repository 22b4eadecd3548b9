"""`streamwatch simulate`: writes a synthetic stream of predictions and delayed labels to Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from rich.console import Console

from streamwatch.lab.producing import producer_of, retries_unsaid
from streamwatch.lab.progress import Meter, SimulationSummary
from streamwatch.lab.schedule import Due, ScheduleSpec, schedule
from streamwatch.lab.streams.simulated import StreamSpec
from streamwatch.lab.topics import SimulationError

_TICK_SECONDS = 0.02
_TURN = 500  # records handed to the producer before the loop turns


@dataclass(frozen=True, slots=True)
class SimulationSpec:
    """Stream to write, where to, and how fast.

    `rate` is instances per second: each is one prediction per model and, mostly, one label. Live (the
    default), the wall clock rules, and delays are divided by `time_scale` (60: a delay of a minute takes
    a second). With `flat_out` records go as fast as the broker takes them, with the timestamps of a
    backlog written at `rate` whose last label could fall due now. `outcomes` is the number of instances,
    None for no end.
    """

    bootstrap_servers: str
    predictions_topic: str = "predictions"
    labels_topic: str = "labels"
    stream: StreamSpec = field(default_factory=StreamSpec)
    rate: float = 100.0
    outcomes: int | None = None
    flat_out: bool = False
    time_scale: float = 1.0
    scores: bool = False
    create_topics: bool = False
    partitions: int = 4
    head_start: int = 0
    """Instances that are written at once with timestamps in the past, before the rest comes live."""
    run: str | None = None
    """Prefix of the ids; None takes the start time, so runs never share ids."""

    def __post_init__(self) -> None:
        if not self.rate > 0.0:
            raise ValueError(f"rate must be above 0 instances per second, got {self.rate}")
        if not self.time_scale > 0.0:
            raise ValueError(f"time scale must be above 0, got {self.time_scale}")
        if self.flat_out and self.outcomes is None:
            raise ValueError("a flat-out run needs a number of outcomes: its backlog ends now")


async def run_simulation(
    spec: SimulationSpec,
    *,
    security: Mapping[str, Any] | None = None,
    stop: asyncio.Event | None = None,
    console: Console | None = None,
) -> SimulationSummary:
    """Write the stream until it ends, `stop` is set or the task is cancelled (Ctrl-C); say what was sent.

    Parameters
    ----------
    spec
        What, where, how fast.
    security
        Keyword arguments for aiokafka's clients (`security_protocol`, `sasl_mechanism`, `ssl_context`, …).
    stop
        Set it to end early; what is buffered is still flushed.
    console
        Where progress is drawn when it is a terminal; None for silence.

    Raises
    ------
    SimulationError
        If the broker cannot be reached or a topic is absent and `create_topics` is off.
    """
    wanted = stop or asyncio.Event()
    summary = SimulationSummary(models=spec.stream.model_names)
    topics = (spec.predictions_topic, spec.labels_topic)
    create = spec.partitions if spec.create_topics else None
    async with producer_of(spec.bootstrap_servers, topics, create, security or {}) as producer:
        began = time.monotonic()
        try:
            with (
                retries_unsaid(),
                Meter(f"{spec.predictions_topic}, {spec.labels_topic}", spec.outcomes, console) as meter,
            ):
                await _send(spec, producer, summary, wanted, meter)
        except KafkaError as error:
            raise SimulationError(f"writing to {spec.bootstrap_servers} failed: {error}") from error
        finally:
            summary.seconds = time.monotonic() - began
            summary.drifts = spec.stream.drifts(summary.instances)
    return summary


async def _send(
    spec: SimulationSpec,
    producer: AIOKafkaProducer,
    summary: SimulationSummary,
    stop: asyncio.Event,
    meter: Meter,
) -> None:
    """Hand every record to the producer when it is due."""
    now_ms = time.time_ns() // 1_000_000
    ahead_s = spec.head_start / spec.rate
    start_ms = now_ms - round(1000.0 * ahead_s)
    if spec.flat_out and spec.outcomes is not None:
        longest_s = spec.stream.delay.limit_s / spec.time_scale
        start_ms = now_ms - round(1000.0 * (spec.outcomes / spec.rate + longest_s))
    layout = ScheduleSpec(
        stream=spec.stream,
        rate=spec.rate,
        start_ms=start_ms,
        run=spec.run if spec.run is not None else _base36(now_ms),
        instances=spec.outcomes,
        scores=spec.scores,
        time_scale=spec.time_scale,
    )
    topics = {"prediction": spec.predictions_topic, "label": spec.labels_topic}
    began = time.monotonic() - ahead_s
    for number, due in enumerate(schedule(layout)):
        if not spec.flat_out:
            await _wait_until(began + due.at_s, stop)
        if stop.is_set():
            summary.interrupted = True
            break
        await producer.send(
            topics[due.side], due.value, key=due.key, timestamp_ms=start_ms + round(due.at_s * 1000.0)
        )
        _count(summary, due)
        if number % _TURN == 0:
            meter.show(summary)
            await asyncio.sleep(0)
    meter.show(summary)
    await producer.flush()


def _count(summary: SimulationSummary, due: Due) -> None:
    summary.bytes += len(due.value) + len(due.key)
    if due.side == "prediction":
        summary.predictions += 1
        summary.instances = due.instance + 1
    else:
        summary.labels += 1


async def _wait_until(deadline: float, stop: asyncio.Event) -> None:
    """Sleep until the monotonic clock shows `deadline`, or `stop` is set."""
    while (left := deadline - time.monotonic()) > 0.0 and not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), max(left, _TICK_SECONDS))
        except TimeoutError:
            continue


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = digits[digit] + text
    return text or "0"
