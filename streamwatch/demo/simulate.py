"""`streamwatch simulate`: writes a synthetic stream of predictions and delayed labels to Kafka."""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

from streamwatch.demo.simulated import Drift, StreamSpec, blocks
from streamwatch.history.progress import meter

_KNOWN_SECONDS = 15.0
_LOOK_SECONDS = 0.1


class SimulationError(RuntimeError):
    """The stream could not be written; the message names the cause at the broker."""


async def create_topics(
    bootstrap_servers: str,
    topics: Sequence[str],
    *,
    partitions: int,
    replication_factor: int = 1,
    security: Mapping[str, Any] | None = None,
) -> None:
    """Create the topics that do not exist; existing ones keep their partitions.

    Raises
    ------
    SimulationError
        If the broker cannot be reached, refuses, or has no admin protocol (an embedded broker: use its own
        `create_topic`), or if topics do not appear within `_KNOWN_SECONDS`.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers, **(security or {}))
    try:
        await admin.start()
        response = await admin.create_topics(
            [NewTopic(name, partitions, replication_factor) for name in topics]
        )
        answers: list[tuple[Any, ...]] = response.topic_errors  # pyright: ignore[reportAttributeAccessIssue]
        for name, code, *message in answers:
            if code not in (0, TopicAlreadyExistsError.errno):
                raise SimulationError(f"topic {name} was not created: {for_code(code).__name__} {message}")
        async with asyncio.timeout(_KNOWN_SECONDS):  # created topics appear in metadata a little later
            while not set(topics) <= set(await admin.list_topics()):  # noqa: ASYNC110  # no event to wait for
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError as error:
        raise SimulationError(f"topics were made at {bootstrap_servers} but did not appear") from error
    except (KafkaError, AttributeError) as error:
        # An embedded broker has no controller, at which aiokafka raises AttributeError.
        raise SimulationError(f"topics were not created at {bootstrap_servers}: {error}") from error
    finally:
        await admin.close()


_STOP_SECONDS: Final = 10.0


@contextmanager
def without_retry_warnings() -> Generator[None, None, None]:
    """Suppress aiokafka's log line for each batch that it sends again, as new topics have no leaders yet."""

    def is_other(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Got error produce response")

    sender = logging.getLogger("aiokafka.producer.sender")
    sender.addFilter(is_other)
    try:
        yield
    finally:
        sender.removeFilter(is_other)


@asynccontextmanager
async def producer_of(
    bootstrap_servers: str, topics: Sequence[str], create: int | None, security: Mapping[str, Any]
) -> AsyncGenerator[AIOKafkaProducer, None]:
    """Yield a started producer; at the end its buffered records are sent, for at most ten seconds.

    Parameters
    ----------
    bootstrap_servers
        Addresses of brokers.
    topics
        Topics that will be written.
    create
        Number of partitions with which missing topics are created; None: all must exist.
    security
        Keyword arguments for aiokafka's clients.

    Raises
    ------
    SimulationError
        If the broker cannot be reached, a topic is missing, or it cannot be created (see `create_topics`).
    """
    if create is not None:
        await create_topics(bootstrap_servers, topics, partitions=create, security=security)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=20, **security)
    try:
        try:
            await producer.start()
            # Listing all topics creates none, unlike a request for one by name.
            existing = (await producer.client.fetch_all_metadata()).topics()
        except KafkaError as error:
            raise SimulationError(f"no Kafka broker at {bootstrap_servers}: {error}") from error
        if absent := [name for name in topics if name not in existing]:
            raise SimulationError(
                f"expected topics {', '.join(topics)} at {bootstrap_servers}; "
                f"absent: {', '.join(absent)} (--create-topics makes them)"
            )
        yield producer
    finally:
        # If the broker is gone, buffered records cannot be sent and are dropped after a while.
        with suppress(TimeoutError):
            await asyncio.wait_for(producer.stop(), _STOP_SECONDS)


# `streamwatch simulate`: writes a synthetic stream of predictions and delayed labels to Kafka.


@dataclass(frozen=True, slots=True)
class Due:
    """A record that is to be written `at_s` seconds of stream time after the start."""

    at_s: float
    side: Literal["prediction", "label"]
    instance: int
    key: bytes
    value: bytes


class _Event(msgspec.Struct, omit_defaults=True):
    """Value of a prediction or a label, with default field names; `timestamp` in ms since the epoch."""

    id: str
    timestamp: int
    model: str | None = None
    prediction: str | None = None
    label: str | None = None
    scores: dict[str, float] | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """Times and ids of a stream's records.

    `rate` is in instances per second of stream time. `start_ms` is the time of the first instance since the
    epoch. `run` is a prefix of the ids, so that those of two runs differ. `instances` is their number; None:
    endless. Delays are divided by `time_scale`.
    """

    stream: StreamSpec
    rate: float
    start_ms: int
    run: str
    instances: int | None = None
    scores: bool = False
    time_scale: float = 1.0


def schedule(spec: ScheduleSpec) -> Iterator[Due]:
    """Yield all records in the order of `at_s`."""
    encoder = msgspec.json.Encoder()
    names, classes = spec.stream.model_names, spec.stream.classes
    waiting: list[tuple[float, int, str]] = []  # (due, instance, class): labels to come
    for block in blocks(spec.stream):
        for row in range(len(block.true_class)):
            instance = block.first + row
            if spec.instances is not None and instance >= spec.instances:
                while waiting:
                    yield _label(encoder, spec, heapq.heappop(waiting))
                return
            at_s = instance / spec.rate
            while waiting and waiting[0][0] <= at_s:
                yield _label(encoder, spec, heapq.heappop(waiting))
            name = f"{spec.run}-{instance}"
            record_ms = spec.start_ms + round(at_s * 1000.0)
            channel = None if block.channel is None else spec.stream.channels[int(block.channel[row])][0]
            for model, predicted_class in enumerate(block.predicted_class[:, row].tolist()):
                scores = None
                if spec.scores:
                    shares = block.scores[model, row].tolist()
                    scores = {c: round(s, 4) for c, s in zip(classes, shares, strict=True)}
                value = _Event(
                    id=name,
                    timestamp=record_ms,
                    model=names[model],
                    prediction=classes[predicted_class],
                    scores=scores,
                    channel=channel,
                )
                yield Due(at_s, "prediction", instance, name.encode(), encoder.encode(value))
            delay_s = float(block.delay_s[row]) / spec.time_scale
            if not math.isnan(delay_s):
                heapq.heappush(waiting, (at_s + delay_s, instance, classes[int(block.true_class[row])]))


def _label(encoder: msgspec.json.Encoder, spec: ScheduleSpec, waiting: tuple[float, int, str]) -> Due:
    at_s, instance, label = waiting
    name = f"{spec.run}-{instance}"
    value = _Event(id=name, timestamp=spec.start_ms + round(at_s * 1000.0), label=label)
    return Due(at_s, "label", instance, name.encode(), encoder.encode(value))


_TICK_SECONDS = 0.02
_TURN = 500  # records passed to the producer between two turns of the event loop


@dataclass(slots=True)
class SimulationSummary:
    """Counts of what was sent."""

    models: tuple[str, ...]
    instances: int = 0
    predictions: int = 0
    labels: int = 0
    bytes: int = 0
    seconds: float = 0.0
    drifts: list[Drift] = field(default_factory=list[Drift])
    interrupted: bool = False

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        sent = (
            f"sent {self.predictions:,} predictions of {len(self.models)} models ({', '.join(self.models)}) "
            f"on {self.instances:,} instances, and {self.labels:,} labels: {self.bytes / 1e6:,.1f} MB "
            f"in {self.seconds:,.1f} s"
        )
        late = self.instances - self.labels
        rest = f"{late:,} labels never come" if not self.interrupted else f"{late:,} labels were not sent"
        if not self.drifts:
            return [sent, rest, "no drift so far"]
        drifts = [
            f"drift at instance {d.at:,}: {d.kind}"
            + (f" over {d.width:,} instances" if d.width > 1 else "")
            + (": drifting-v2 gets worse" if d.concept else ": back to the first concept")
            for d in self.drifts
        ]
        return [sent, rest, *drifts]


LONGEST_SECONDS = 30.0 * 365.25 * 86_400.0
"""Longest time from the first record to the last of a backlog, and from a prediction to its label."""


@dataclass(frozen=True, slots=True)
class SimulationSpec:
    """Stream to write, its topics, and its pace.

    `rate` is in instances per second; an instance is one prediction of each model and, mostly, one label. By
    default, records are written live, at the times of the stream, with delays divided by `time_scale` (60: a
    delay of a minute takes a second). With `flat_out`, they are written as fast as possible, with timestamps
    of a backlog that ends now. `outcomes` is the number of instances; None: endless.

    Raises
    ------
    ValueError
        If `rate` or `time_scale` is not above 0, `outcomes` is None with `flat_out`, or records would lie
        more than `LONGEST_SECONDS` apart.
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
    """Prefix of the ids; None: made from the start time, so that runs do not share ids."""

    def __post_init__(self) -> None:
        if not self.rate > 0.0:
            raise ValueError(f"rate must be above 0 instances per second, got {self.rate}")
        if not self.time_scale > 0.0:
            raise ValueError(f"time scale must be above 0, got {self.time_scale}")
        if self.flat_out and self.outcomes is None:
            raise ValueError("a flat-out run needs a number of outcomes: its backlog ends now")
        written = self.outcomes if self.flat_out and self.outcomes is not None else max(1, self.head_start)
        if written / self.rate > LONGEST_SECONDS:
            raise ValueError(
                f"rate must be at least {written / LONGEST_SECONDS:g} instances per second, so that "
                f"{written:,} instances take 30 years at most, got {self.rate}"
            )
        if self.longest_delay_s > LONGEST_SECONDS:
            raise ValueError(
                f"label delays must be 30 years at most, got up to {self.longest_delay_s:g} s, with a median "
                f"of {self.stream.delay.median_s:g} s and a time scale of {self.time_scale}"
            )

    @property
    def longest_delay_s(self) -> float:
        """Longest delay of a label in seconds, as it is written."""
        return self.stream.delay.limit_s * max(self.stream.slowness) / self.time_scale


async def run_simulation(
    spec: SimulationSpec,
    *,
    security: Mapping[str, Any] | None = None,
    stop: asyncio.Event | None = None,
    console: Console | None = None,
) -> SimulationSummary:
    """Write the stream until it ends or `stop` is set; return what was sent.

    Parameters
    ----------
    spec
        Stream, topics and pace.
    security
        Keyword arguments for aiokafka's clients (`security_protocol`, `sasl_mechanism`, `ssl_context`, …).
    stop
        Ends the stream when it is set; buffered records are still flushed.
    console
        Console for a progress bar, drawn on a terminal only; None: no bar.

    Raises
    ------
    SimulationError
        If the broker cannot be reached, or a topic is missing without `create_topics`.
    """
    wanted = stop or asyncio.Event()
    summary = SimulationSummary(models=spec.stream.model_names)
    topics = (spec.predictions_topic, spec.labels_topic)
    create = spec.partitions if spec.create_topics else None
    sent = TextColumn("instances · {task.fields[labels]:,} labels")
    columns = (MofNCompleteColumn(), sent, TimeElapsedColumn())
    async with producer_of(spec.bootstrap_servers, topics, create, security or {}) as producer:
        began = time.monotonic()
        try:
            with (
                without_retry_warnings(),
                meter(", ".join(topics), spec.outcomes, console, *columns, labels=0) as redraw,
            ):
                await _send(spec, producer, summary, wanted, redraw)
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
    redraw: Callable[..., None],
) -> None:
    """Pass every record to the producer at its time."""
    now_ms = time.time_ns() // 1_000_000
    ahead_s = spec.head_start / spec.rate
    start_ms = now_ms - round(1000.0 * ahead_s)
    if spec.flat_out and spec.outcomes is not None:
        start_ms = now_ms - round(1000.0 * (spec.outcomes / spec.rate + spec.longest_delay_s))
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
            redraw(completed=summary.instances, labels=summary.labels)
            await asyncio.sleep(0)
    redraw(completed=summary.instances, labels=summary.labels)
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
