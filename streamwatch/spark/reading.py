"""Reading of topics by the job: ends of logs and offsets by time for the driver, ranges of offsets for tasks.

Records are read with the daemon's own code, not with a second client: with the same checksums, bounds on
decompressed sizes, reasons for unreadable records, and settings for access.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import Partition
from streamwatch.core.records.fetched import OFFSET
from streamwatch.edge.sources.kafka.batches.record import KafkaRecords, Piece, gathered
from streamwatch.edge.sources.kafka.connection import Connection, require_topics
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker
from streamwatch.edge.sources.kafka.refusals import ReadDenied
from streamwatch.edge.sources.kafka.spec import At, KafkaSpec

# Where one batch ends and the next begins: at one record time, the same for all partitions.
#
# A batch has the records of every partition whose record time is at most its end t. Record time is the
# running maximum in a partition, so a batch ends at the first offset whose timestamp is above t, which
# brokers can look up. After each batch all buckets have reached the same time, and none waits for another.
#
# Spark stores a cut before its batch begins, and repeats a batch with the same cut. So a cut has everything
# that must be the same in all runs of a job: the number of the batch, the name of the job's state, the
# numbers of buckets, and the offsets at which reading began.


Replacement: TypeAlias = Literal["recreated", "truncation"]
"""Cause of a data loss: a topic was deleted and created again, or a log lost its end."""
_Value = TypeVar("_Value")
ENOUGH: Final = 0.7
"""Share of the most records of a batch from which on the search for its end stops."""


@dataclass(frozen=True, slots=True)
class Cut:
    """End of a batch."""

    life: str
    """Name of the job's state, drawn at its first start."""
    id_buckets: int
    model_buckets: int
    rules: str = ""
    """Hash of the settings of join and estimators at the first start."""
    batch: int = 0
    """Number of the batch; 0 before the first."""
    end_ms: int = -1
    """Record time up to which the batch is complete, in milliseconds; -1 before the first."""
    host_ms: int = 0
    """The host's clock when the cut was made, in milliseconds."""
    positions: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    """Offset after the last record of the batch, by partition."""
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    """Records beyond the batch when the cut was made, by topic."""
    begins: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    """Offset at which reading begins of each partition that is new in the batch or in `replaced`."""
    topic_ids: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Ids that brokers gave each topic, the present one last; no topic if they give none."""
    replaced: Mapping[Partition, Replacement] = field(default_factory=dict[Partition, "Replacement"])
    """Partitions whose logs are found not to be those read before, and how."""

    def document(self) -> dict[str, Any]:
        """Convert to JSON values, as which Spark stores it."""
        return {
            "life": self.life,
            "id_buckets": self.id_buckets,
            "model_buckets": self.model_buckets,
            "rules": self.rules,
            "batch": self.batch,
            "end_ms": self.end_ms,
            "host_ms": self.host_ms,
            "positions": _by_topic(self.positions),
            "waiting": dict(self.waiting),
            "begins": _by_topic(self.begins),
            "topic_ids": {topic: list(ids) for topic, ids in self.topic_ids.items()},
            "replaced": _by_topic(self.replaced),
        }


def cut_of(document: Mapping[str, Any]) -> Cut:
    """Convert the result of `Cut.document` back."""
    return Cut(
        str(document["life"]),
        int(document["id_buckets"]),
        int(document["model_buckets"]),
        str(document["rules"]),
        int(document["batch"]),
        int(document["end_ms"]),
        int(document["host_ms"]),
        _offsets(document["positions"]),
        {str(topic): int(records) for topic, records in document.get("waiting", {}).items()},
        _offsets(document.get("begins", {})),
        {str(topic): tuple(map(str, ids)) for topic, ids in document.get("topic_ids", {}).items()},
        _by_partition(document.get("replaced", {})),
    )


def _by_topic(values: Mapping[Partition, _Value]) -> dict[str, dict[str, _Value]]:
    topics: dict[str, dict[str, _Value]] = {}
    for partition, value in sorted(values.items()):
        topics.setdefault(partition.topic, {})[str(partition.partition)] = value
    return topics


def _by_partition(document: Mapping[str, Mapping[str, _Value]]) -> dict[Partition, _Value]:
    return {
        Partition(topic, int(number)): value
        for topic, partitions in document.items()
        for number, value in partitions.items()
    }


def _offsets(document: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    return {partition: int(offset) for partition, offset in _by_partition(document).items()}


class SettingsChangedError(Exception):
    """Settings differ from those with which the job's state began."""


def require_same_settings(began: Cut, now: Cut) -> None:
    """Raise SettingsChangedError unless a job continues with the buckets and rules that it began with.

    The number of buckets determines in which one an id or a model is. And when the object of a bucket is
    rebuilt, its feeds since the last base are repeated, which under other rules would give other results.
    """
    remedy = "set another spark.checkpoint and spark.results_topic, to start afresh"
    for name, before, after in (
        ("spark.id_buckets", began.id_buckets, now.id_buckets),
        ("spark.model_buckets", began.model_buckets, now.model_buckets),
    ):
        if before != after:
            raise SettingsChangedError(
                f"{name}: expected {before} as at the first start, got {after}: {remedy}"
            )
    if began.rules != now.rules:
        raise SettingsChangedError(
            f"join, folds and monitors: expected the settings of the first start, got others: {remedy}"
        )


class Log(Protocol):
    """Offsets of topics, which `next_cut` needs."""

    async def ends(self) -> Mapping[Partition, tuple[int, int]]:
        """Return the first offset of every partition's log, and the one after its last stable record."""
        ...

    async def offsets_at(self, moment_ms: int) -> Mapping[Partition, int]:
        """Return each partition's first offset with a timestamp of `moment_ms` or later; else its end."""
        ...

    async def topic_ids(self) -> Mapping[str, str | None]:
        """Return the id of each topic; None of brokers that give none."""
        ...


@dataclass(frozen=True, slots=True)
class CutSpec:
    """Limits of a batch."""

    settle_ms: int = 1_000
    """Age below which records are left to the next batch, as earlier records may still arrive."""
    max_future_ms: int = 300_000
    """Largest plausible advance of a timestamp over the host's clock; batches do not wait for later ones."""


async def next_cut(log: Log, last: Cut, most: int | None, now_ms: int, spec: CutSpec) -> Cut:
    """Choose the end of the batch after `last`; returns `last` itself if there is nothing to read.

    Partitions that are not in `last` begin at their first record, and so do those of a topic with another id
    than in `last`. A log that ends before the position of `last` was truncated, or of a recreated topic where
    brokers give no ids: it is read from the first record that is later than `last`. A batch has more than
    `most` records only if more of them have the same time.

    Parameters
    ----------
    log
        The topics.
    last
        End of the previous batch.
    most
        Most records of the batch; None: no limit.
    now_ms
        The host's clock, in milliseconds.
    spec
        Limits of a batch.
    """
    ends = await log.ends()
    listed = await log.topic_ids()
    if any(listed.get(topic) in ids[:-1] for topic, ids in last.topic_ids.items()):
        return last  # a broker behind the others still lists the former topic
    replaced = _replaced(last, ends, listed)
    begins = await _begins(log, last, ends, replaced)
    newest_ms = now_ms - spec.settle_ms
    if newest_ms <= last.end_ms or all(end <= begins[p] for p, (_, end) in ends.items()):
        return last
    future = await log.offsets_at(now_ms + spec.max_future_ms)  # the end of the log if nothing is that late

    async def cut_at(moment_ms: int) -> dict[Partition, int]:
        found = await log.offsets_at(moment_ms + 1)
        return {p: _end_of(begins[p], ends[p][1], found.get(p), future.get(p)) for p in ends}

    async def cut_within() -> tuple[int, dict[Partition, int]]:
        whole = await cut_at(newest_ms)
        if most is None or _records(begins, whole) <= most:
            return newest_ms, whole
        low_ms, high_ms = last.end_ms, newest_ms
        chosen = whole
        while high_ms - low_ms > 1:
            middle_ms = (low_ms + high_ms) // 2
            tried = await cut_at(middle_ms)
            records = _records(begins, tried)
            if records <= most:
                low_ms = middle_ms
                if records >= ENOUGH * most:
                    return middle_ms, tried
            else:
                high_ms, chosen = middle_ms, tried
        at_low = await cut_at(low_ms)
        if low_ms > last.end_ms and _records(begins, at_low):
            return low_ms, at_low
        return high_ms, chosen  # more than `most` records have one time

    end_ms, positions = await cut_within()
    if not _records(begins, positions):
        return last  # a batch needs records, even if partitions are new
    waiting: dict[str, int] = {}
    for partition, (_, end) in ends.items():
        waiting[partition.topic] = waiting.get(partition.topic, 0) + end - positions[partition]
    return replace(
        last,
        batch=last.batch + 1,
        end_ms=end_ms,
        host_ms=now_ms,
        positions=positions,
        waiting=waiting,
        begins={p: begins[p] for p in ends if p not in last.positions or p in replaced},
        topic_ids=with_listed(last.topic_ids, listed),
        replaced=replaced,
    )


def with_listed(
    known: Mapping[str, Sequence[str]], listed: Mapping[str, str | None]
) -> Mapping[str, Sequence[str]]:
    """Add the listed ids of topics to those known (`Cut.topic_ids`)."""
    found = dict(known)
    for topic, now in listed.items():
        before = found.get(topic, ())
        if now is not None and now not in before:
            found[topic] = (*before, now)
    return found


def _replaced(
    last: Cut, ends: Mapping[Partition, tuple[int, int]], listed: Mapping[str, str | None]
) -> dict[Partition, Replacement]:
    """Find the logs that are not those read up to `last`."""
    found: dict[Partition, Replacement] = {}
    for partition, position in last.positions.items():
        known, now = last.topic_ids.get(partition.topic), listed.get(partition.topic)
        if partition not in ends:
            continue
        if known and now is not None and known[-1] != now:
            found[partition] = "recreated"
        elif ends[partition][1] < position:
            found[partition] = "truncation"
    return found


async def _begins(
    log: Log,
    last: Cut,
    ends: Mapping[Partition, tuple[int, int]],
    replaced: Mapping[Partition, Replacement],
) -> dict[Partition, int]:
    """Find the offset at which the batch after `last` begins in each partition."""
    begins = {partition: last.positions.get(partition, first) for partition, (first, _) in ends.items()}
    begins |= {partition: ends[partition][0] for partition in replaced}
    if "truncation" in replaced.values():
        later = await log.offsets_at(last.end_ms + 1)
        cut_short = [partition for partition, how in replaced.items() if how == "truncation"]
        begins |= {p: min(max(later.get(p, 0), ends[p][0]), ends[p][1]) for p in cut_short}
    return begins


def require_no_loss(last: Cut, cut: Cut, on_data_loss: Literal["continue", "fail"]) -> None:
    """Raise LogLost for logs that a cut found replaced if `on_data_loss` is `fail`."""
    losses = DataLossTracker(on_data_loss, lambda _event: None)
    for partition, how in sorted(cut.replaced.items()):
        lost = losses.recreated if how == "recreated" else losses.truncated
        lost(partition, last.positions[partition], cut.begins[partition])


def _end_of(begin: int, end: int, found: int | None, future: int | None) -> int:
    """Choose the end offset of a partition: `found`, the first offset after the batch's time, if plausible.

    If `found` is the first record with a time in the future, `future`, this hides the times of all records
    behind it; then everything up to `end` is read, and later records wait in the buckets.
    """
    if found is None or (found == future and found < end):
        return max(begin, end)
    return max(begin, min(found, end))


def _records(begins: Mapping[Partition, int], ends: Mapping[Partition, int]) -> int:
    return sum(end - begins[partition] for partition, end in ends.items())


@dataclass(frozen=True, slots=True)
class Range:
    """Range of offsets of one partition, from `begin` up to before `end`, which one task reads."""

    partition: Partition
    begin: int
    end: int


def ranges(begin: Cut, end: Cut, topics: Sequence[str]) -> Sequence[Range]:
    """Return the ranges of the batch between two cuts, in the order of `topics`, without empty ones."""
    rank = {topic: number for number, topic in enumerate(topics)}
    chosen = sorted(end.positions, key=lambda p: (rank.get(p.topic, len(rank)), p))
    begins = {**begin.positions, **end.begins}
    found = (Range(p, begins.get(p, 0), end.positions[p]) for p in chosen)
    return tuple(each for each in found if each.end > each.begin)


_TURN_MS: Final = 200
PATIENCE_SECONDS: Final = 60.0
"""Seconds for which a task waits for brokers that return nothing; then it fails, and Spark repeats it."""


class RangeUnreadError(Exception):
    """Brokers did not return the records of a range in time."""


@dataclass(frozen=True, slots=True)
class TopicLog:
    """Implementation of `Log` over one connection."""

    connection: Connection
    spec: KafkaSpec
    topics: Sequence[str]
    until: Mapping[Partition, int] | None = None
    """Offsets beyond which nothing is read; partitions without one are ignored. None: read all."""

    async def partitions(self) -> Sequence[Partition]:
        """Return every partition of the topics; raises TopicsMissing."""
        listing = await self.connection.listing()
        require_topics(self.topics, listing, self.spec.bootstrap_servers)
        found = [Partition(topic, number) for topic in self.topics for number in listing[topic].partitions]
        return found if self.until is None else [partition for partition in found if partition in self.until]

    async def ends(self) -> Mapping[Partition, tuple[int, int]]:
        """See `Log`."""
        ends = {partition: await self.connection.ends(partition) for partition in await self.partitions()}
        if self.until is None:
            return ends
        return {p: (min(first, self.until[p]), min(end, self.until[p])) for p, (first, end) in ends.items()}

    async def offsets_at(self, moment_ms: int) -> Mapping[Partition, int]:
        """See `Log`."""
        return await self.connection.resolve(await self.partitions(), At(moment_ms), moment_ms)

    async def topic_ids(self) -> Mapping[str, str | None]:
        """See `Log`."""
        listing = await self.connection.listing()
        require_topics(self.topics, listing, self.spec.bootstrap_servers)
        return {topic: listing[topic].topic_id for topic in self.topics}


def add_rows(found: list[Piece], rows: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
    """Append rows of fetched records; rows of one answer are merged, so that its bytes are copied once."""
    if found and found[-1][1] is data:
        rows = np.concatenate([found.pop()[0], rows])
    found.append((rows, data, 0))


@dataclass(frozen=True, slots=True)
class RangeRead:
    """Records of a range in order, and its data loss by cause: how often, and how many records."""

    records: KafkaRecords
    lost_times: Mapping[str, int]
    lost_records: Mapping[str, int]


async def read_range(connection: Connection, spec: KafkaSpec, wanted: Range) -> RangeRead:
    """Read a range of offsets.

    Raises
    ------
    ReadingEnded
        If records are missing or unreadable and `on_data_loss` is `fail`.
    ReadDenied
        If the user may not read the topic.
    RangeUnreadError
        If brokers returned nothing for `PATIENCE_SECONDS`.
    CodecMissing
        If records are compressed with a codec whose package is not installed.
    """
    partition, end = wanted.partition, wanted.end
    losses = DataLossTracker(spec.on_data_loss, lambda _event: None)
    connection.assign({partition: wanted.begin})
    found: list[Piece] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while connection.position(partition) < end:
        taken = await connection.take([partition], _TURN_MS)
        if partition in taken.denied:
            raise ReadDenied([partition.topic], spec)
        if (records := taken.records.get(partition)) is not None:
            inside = records.rows[records.rows[:, OFFSET] < end]
            if len(inside):
                add_rows(found, inside, records.data)
            deadline = time.monotonic() + PATIENCE_SECONDS
        if (damage := taken.damages.get(partition)) is not None:
            losses.unreadable(partition, damage)
            connection.seek(partition, damage.next_offset, damage.asked)
        if partition in taken.out_of_range:
            first, last = await connection.ends(partition)
            position = connection.position(partition)
            if position >= first:  # the log was truncated since the batch was cut
                losses.truncated(partition, position, last)
                break
            losses.overtaken(partition, position, min(first, end))
            connection.seek(partition, first)
        if time.monotonic() > deadline:
            raise RangeUnreadError(
                f"{partition.topic}/{partition.partition}: expected records up to offset {end - 1} from "
                f"{spec.bootstrap_servers}, got none after {connection.position(partition) - 1} for "
                f"{PATIENCE_SECONDS:g} s"
            )
    return RangeRead(gathered(partition, found), dict(losses.times), dict(losses.records))
