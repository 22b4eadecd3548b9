"""Can Kafka be reached with these settings, and are the topics there? Asked once, by `streamwatch check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch.edge.sources.kafka.connection import (
    CONNECTION_ERRORS,
    Complaints,
    Connection,
    require_topics,
)
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import Listed


class KafkaUnreachable(Exception):  # noqa: N818 - it names what is the case
    """No broker answered, or none let the client in."""


async def list_topics(spec: KafkaSpec) -> Mapping[str, int]:
    """Every topic this user may see, with its number of partitions.

    Raises
    ------
    KafkaUnreachable
        With what the client complained of.
    """
    complaints = Complaints()
    complaints.attach()
    connection = Connection(spec)
    try:
        await connection.open()
        listing = await connection.listing()
    except CONNECTION_ERRORS as error:
        reason = complaints.last or str(error) or type(error).__name__
        raise KafkaUnreachable(f"Kafka at {spec.bootstrap_servers}: {reason}") from error
    finally:
        await connection.close(spec.stop_timeout_ms / 1_000)
        complaints.detach()
    return {name: len(listed.partitions) for name, listed in sorted(listing.items())}


async def probe(spec: KafkaSpec, topics: Sequence[str]) -> Mapping[str, int]:
    """Number of partitions of each of these topics.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    TopicsMissing
        Some do not exist; the nearest existing names are told.
    """
    found = await list_topics(spec)
    listing = {name: Listed(dict.fromkeys(range(count), 0)) for name, count in found.items()}
    require_topics(topics, listing, spec.bootstrap_servers)
    return {topic: found[topic] for topic in topics}
