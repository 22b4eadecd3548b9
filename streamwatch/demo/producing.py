"""Topics and a producer for simulated streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

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
