"""A producer on topics that exist, for streams that are written to Kafka."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

# Makes topics on a real broker, for trials.


_KNOWN_SECONDS = 15.0
_LOOK_SECONDS = 0.1


class SimulationError(RuntimeError):
    """The stream could not be written; the message says what was expected of the broker."""


async def create_topics(
    bootstrap_servers: str,
    topics: Sequence[str],
    *,
    partitions: int,
    replication_factor: int = 1,
    security: Mapping[str, Any] | None = None,
) -> None:
    """Make the topics that are not there; those that are keep their partitions.

    Raises
    ------
    SimulationError
        If the broker cannot be reached, refuses, or has no admin protocol (an embedded broker: use its own
        `create_topic`).
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
        async with asyncio.timeout(_KNOWN_SECONDS):  # made is not yet known: metadata follows a little later
            while not set(topics) <= set(await admin.list_topics()):  # noqa: ASYNC110  # no event to wait for
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError as error:
        raise SimulationError(f"topics were made at {bootstrap_servers} but did not appear") from error
    except (KafkaError, AttributeError) as error:
        # aiokafka finds no controller in an embedded broker's metadata and trips over the None.
        raise SimulationError(f"topics were not created at {bootstrap_servers}: {error}") from error
    finally:
        await admin.close()


_STOP_SECONDS: Final = 10.0


@contextmanager
def without_retry_warnings() -> Generator[None, None, None]:
    """Keep aiokafka from logging a line per batch it sends again: a topic just made has no leaders yet."""

    def worth_saying(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Got error produce response")

    sender = logging.getLogger("aiokafka.producer.sender")
    sender.addFilter(worth_saying)
    try:
        yield
    finally:
        sender.removeFilter(worth_saying)


@asynccontextmanager
async def producer_of(
    bootstrap_servers: str, topics: Sequence[str], create: int | None, security: Mapping[str, Any]
) -> AsyncGenerator[AIOKafkaProducer, None]:
    """Start a producer; it is stopped in the end, with what it has sent or could not.

    Parameters
    ----------
    topics
        What will be written to.
    create
        Partitions of topics that are made where they are absent; None: they must be there.
    security
        Keyword arguments for aiokafka's clients.

    Raises
    ------
    SimulationError
        If the broker cannot be reached or a topic is absent.
    """
    if create is not None:
        await create_topics(bootstrap_servers, topics, partitions=create, security=security)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=20, **security)
    try:
        try:
            await producer.start()
            # Listing all topics creates none; asking for one by name might.
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
        # With the broker gone, what is still buffered cannot be delivered: leave it after a while.
        with suppress(TimeoutError):
            await asyncio.wait_for(producer.stop(), _STOP_SECONDS)
