"""One-off requests to Kafka: checks of the settings, and a bounded sample of records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import aiokafka.errors as kafka_errors
from aiokafka.errors import (
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from streamwatch.core.ports import Record
from streamwatch.core.records.events import Partition
from streamwatch.core.specs import DAY_MS, HOUR_MS, MINUTE_MS
from streamwatch.edge.sources.kafka.background_tasks import Foreign, foreign, of_members, shared
from streamwatch.edge.sources.kafka.client import ClientLogCapture, administration
from streamwatch.edge.sources.kafka.connection import Connection, require_topics
from streamwatch.edge.sources.kafka.dead_letters import require_writable
from streamwatch.edge.sources.kafka.refusals import ReadDenied, explanation, of_token
from streamwatch.edge.sources.kafka.spec import At, KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, Listed, ask

# Checks, for `streamwatch check`: whether Kafka is reachable, topics exist and may be read or written.


_Answer = TypeVar("_Answer")


class KafkaUnreachable(Exception):  # noqa: N818 - it names what is the case
    """No broker answered, or all refused the client."""


@dataclass(frozen=True, slots=True)
class Probed:
    """Result for a topic that may be read."""

    partitions: int
    has_records: bool
    """Whether one of its partitions returned a record; a topic that may be read can be empty."""


async def list_topics(spec: KafkaSpec) -> Mapping[str, int]:
    """List every topic that this user may see, with its number of partitions.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or all refused the client; the message has the client's error.
    """
    listing = await asked(spec, Connection.listing)
    return {name: len(listed.partitions) for name, listed in sorted(listing.items())}


async def probe(spec: KafkaSpec, topics: Sequence[str]) -> Mapping[str, Probed]:
    """Read one batch from each topic, without decoding it.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    TopicsMissing
        Some do not exist; the error names the nearest existing ones.
    ReadDenied
        Some may be seen and not read.
    """

    async def read(connection: Connection) -> Mapping[str, Probed]:
        listing = await connection.listing()
        require_topics(topics, listing, spec.bootstrap_servers)
        found: dict[str, Probed] = {}
        denied: list[str] = []
        for topic in topics:
            try:
                has_records = await _has_records(connection, topic, listing[topic])
            except TopicAuthorizationFailedError:
                denied.append(topic)
            else:
                found[topic] = Probed(len(listing[topic].partitions), has_records)
        if denied:
            raise ReadDenied(denied, spec)
        return found

    return await asked(spec, read)


async def probe_writing(spec: KafkaSpec, setting: str, topic: str) -> None:
    """Check that a topic exists and may be written, without writing to it; `setting` names it in errors.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    TopicsMissing
        The topic does not exist.
    WriteDenied
        This user may not write it.
    """
    await asked(spec, lambda connection: require_writable(connection, setting, topic, spec))


COMMITS_SECONDS: Final = 6.0
"""Time between two looks at the group, longer than a daemon's `KafkaSpec.commit_interval_ms`."""


async def probe_group(
    spec: KafkaSpec, topics: Sequence[str], own: Callable[[], tuple[str, bool]]
) -> Foreign | None:
    """Find out whether another state or consumer uses the consumer group; None if none does, or without one.

    Where another state was the last to commit to the group, its offsets are read twice, to find out whether a
    daemon still uses it.

    Parameters
    ----------
    spec
        Settings, with the name of the group.
    topics
        Topics that are read.
    own
        Returns the state's mark (empty without a state), and whether the state has positions; called after
        the group was read, as a running daemon may be committing to both.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    """
    group = spec.group_id
    if group is None:
        return None

    async def look(connection: Connection) -> tuple[list[str], tuple[str, ...]]:
        listing = await connection.listing()
        partitions = [Partition(t, n) for t in topics if t in listing for n in listing[t].partitions]
        return await connection.texts(partitions), await members(spec, group)

    texts, joined = await asked(spec, look)
    if joined:
        return of_members(group, joined)
    mark, begun = own()
    found = foreign(group, mark, texts, begun=begun)
    if found is None:
        return None
    await asyncio.sleep(COMMITS_SECONDS)
    later, _ = await asked(spec, look)
    return (shared(group, own()[0], later) or found) if sorted(later) != sorted(texts) else found


async def members(spec: KafkaSpec, group: str) -> tuple[str, ...]:
    """List the consumers that subscribe with this group, by client id and host.

    Raises
    ------
    KafkaError
        If a broker refuses to answer.
    """
    async with administration(spec) as admin:
        described = await admin.describe_consumer_groups([group])
    found: list[str] = []
    for answer in described:
        for code, _, _, _, _, those, *_ in answer.groups:
            if code:
                raise kafka_errors.for_code(code)(group)
            found += [f"{member[1]} on {member[2].lstrip('/')}" for member in those]
    return tuple(found)


async def asked(spec: KafkaSpec, ask: Callable[[Connection], Awaitable[_Answer]]) -> _Answer:
    """Open a connection, call `ask` with it, and close it.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or all refused the client; the message has the client's error.
    """
    client_log = ClientLogCapture()
    client_log.attach()
    connection = Connection(spec)
    try:
        await connection.open()
        return await ask(connection)
    except CONNECTION_ERRORS as error:
        reason = client_log.last or str(error) or type(error).__name__
        words = explanation(reason, spec)
        explained = reason if words is None else f"{words} ({reason.rstrip(' :')})"
        reason = of_token(reason) or explained
        raise KafkaUnreachable(f"Kafka at {spec.bootstrap_servers}: {reason}") from error
    finally:
        await connection.close(spec.stop_timeout_ms / 1_000)
        client_log.detach()


async def _has_records(connection: Connection, topic: str, listed: Listed) -> bool:
    """Tell whether any partition that has a leader returns a record."""
    for number, leader in listed.leaders.items():
        if leader < 0:
            continue
        partition = Partition(topic, number)
        first, end = await connection.ends(partition)
        client: Any = connection._client  # noqa: SLF001 - one request without the consumer  # pyright: ignore[reportPrivateUsage]
        for answer in await ask(client, leader, [(partition, first)], 1):
            error = kafka_errors.for_code(answer.error)
            if answer.error and error is not OffsetOutOfRangeError:
                raise error(partition)
            if not answer.error and answer.data and end > first:
                return True
    return False


# A bounded sample of topics: the newest records, and older ones, among which are predictions of late labels.
#
# Nothing is committed, and no group is joined.


LAGS_MS: Final = (
    10 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
    DAY_MS,
    3 * DAY_MS,
    7 * DAY_MS,
    14 * DAY_MS,
    30 * DAY_MS,
)
"""Times before the newest record at which the older windows begin."""
_TURN_MS: Final = 200
_PATIENCE_SECONDS: Final = 10.0
"""Time without any record after which the reading of a window ends."""


@dataclass(frozen=True, slots=True)
class TopicSample:
    """Records of a topic, sorted by record time, and the number of offsets in its log."""

    records: Sequence[Record]
    in_log: int


async def sample(
    spec: KafkaSpec,
    topics: Sequence[str],
    most: int,
    progress: Callable[[int], None] = lambda _count: None,
) -> Mapping[str, TopicSample]:
    """Read up to `most` records of each topic: half of them the newest, the others from earlier windows.

    They are divided among the partitions, each of which has at least one; so there may be more than `most` of
    a topic with many partitions.

    Raises
    ------
    KafkaUnreachable
        No broker answered, or none let the client in.
    TopicsMissing
        Some do not exist; the error names the nearest existing ones.
    ReadDenied
        Some may be seen and not read.
    """
    alone = replace(spec, group_id=None)
    return await asked(alone, lambda connection: _Sampler(connection, alone, most, progress).read(topics))


class _Sampler:
    """Reads windows of all partitions together, each record once."""

    def __init__(
        self, connection: Connection, spec: KafkaSpec, most: int, progress: Callable[[int], None]
    ) -> None:
        self._connection = connection
        self._spec = spec
        self._most = most
        self._progress = progress
        self._found: dict[Partition, dict[int, Record]] = {}
        self._logs: dict[Partition, tuple[int, int]] = {}

    async def read(self, topics: Sequence[str]) -> Mapping[str, TopicSample]:
        listing = await self._connection.listing()
        require_topics(topics, listing, self._spec.bootstrap_servers)
        shares: dict[Partition, int] = {}
        for topic in topics:
            try:
                await self._look(topic, listing[topic].leaders)
            except TopicAuthorizationFailedError:
                raise ReadDenied([topic], self._spec) from None
            filled = [p for p, (first, end) in self._logs.items() if p.topic == topic and end > first]
            shares |= {p: max(1, self._most // len(filled)) for p in filled}
        whole = {p for p, share in shares.items() if self._held(p) <= share}
        newest = {
            p: self._logs[p][0] if p in whole else self._logs[p][1] - (share + 1) // 2
            for p, share in shares.items()
        }
        await self._window({p: (start, self._logs[p][1]) for p, start in newest.items()})
        older = {p: max(1, share // 2 // len(LAGS_MS)) for p, share in shares.items() if p not in whole}
        newest_ms = max((r.timestamp for found in self._found.values() for r in found.values()), default=0)
        for lag_ms in LAGS_MS:
            if not older or newest_ms <= lag_ms:
                break
            starts = await self._connection.resolve(list(older), At(newest_ms - lag_ms), newest_ms)
            await self._window(
                {
                    p: (start, min(start + older[p], newest[p]))
                    for p, start in starts.items()
                    if start < newest[p]
                }
            )
        return {topic: self._sample(topic) for topic in topics}

    def _held(self, partition: Partition) -> int:
        first, end = self._logs[partition]
        return end - first

    async def _look(self, topic: str, leaders: Mapping[int, int]) -> None:
        for number, leader in leaders.items():
            if leader >= 0:
                partition = Partition(topic, number)
                self._logs[partition] = await self._connection.ends(partition)
                self._found[partition] = {}

    def _sample(self, topic: str) -> TopicSample:
        mine = [p for p in self._found if p.topic == topic]
        records = [record for p in mine for record in self._found[p].values()]
        records.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
        return TopicSample(records, sum(self._held(p) for p in mine))

    async def _window(self, bounds: Mapping[Partition, tuple[int, int]]) -> None:
        """Read each partition from start up to, not including, stop, as far as records arrive."""
        open_ = {p: stop for p, (start, stop) in bounds.items() if start < stop}
        if not open_:
            return
        self._connection.assign({p: bounds[p][0] for p in open_})
        patience = time.monotonic() + _PATIENCE_SECONDS
        while open_ and time.monotonic() < patience:
            taken = await self._connection.take(list(open_), _TURN_MS)
            if taken.denied:
                raise ReadDenied(sorted({p.topic for p in taken.denied}), self._spec)
            for partition, records in taken.records.items():
                patience = time.monotonic() + _PATIENCE_SECONDS
                stop = open_[partition]
                kept = {record.offset: record for record in records if record.offset < stop}
                self._found[partition] |= kept
                self._progress(len(kept))
            for partition in (*taken.damages, *taken.out_of_range):
                open_.pop(partition, None)
            open_ = {p: stop for p, stop in open_.items() if self._connection.position(p) < stop}
