"""Makes topics on a real broker, for trials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

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
            while not set(topics) <= set(await admin.list_topics()):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError as error:
        raise SimulationError(f"topics were made at {bootstrap_servers} but did not appear") from error
    except (KafkaError, AttributeError) as error:
        # aiokafka finds no controller in an embedded broker's metadata and trips over the None.
        raise SimulationError(f"topics were not created at {bootstrap_servers}: {error}") from error
    finally:
        await admin.close()
