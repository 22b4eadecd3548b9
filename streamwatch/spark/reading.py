"""Topics as the job reads them: ends and offsets of moments for the driver, ranges of offsets for the tasks.

Records come through the daemon's own reading of fetch answers, not a second client: the same checksums,
bounds on what a batch may decompress to, reasons of records that cannot be read, and the same settings to
be let in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Partition
from streamwatch.core.records import OFFSET
from streamwatch.edge.sources.kafka.batches.record import KafkaRecords, Piece, gathered
from streamwatch.edge.sources.kafka.connection import Connection, require_topics
from streamwatch.edge.sources.kafka.data_loss import DataLossTracker
from streamwatch.edge.sources.kafka.refusals import ReadDenied
from streamwatch.edge.sources.kafka.spec import At, KafkaSpec

# Where one batch ends and the next begins: at one record time, the same for all partitions.
#
# A batch holds what has a record time up to its end, in every partition. Record time is the running maximum
# of a partition, so "the first offset whose timestamp is above t" (what brokers answer) is exactly where it
# ends. All buckets then stand at one time after each batch, and none waits for another.
#
# A cut is written by Spark before the batch begins; a batch that is taken again has the same one. So
# everything that has to be the same in all runs of a job is in it: its number, what the job is called, how
# many buckets there are, and where reading began.


ENOUGH: Final = 0.7
"""Share of the most records a batch may hold from which on its end is not looked for more closely."""


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
    """What comes later has a larger record time; -1 before the first."""
    host_ms: int = 0
    """The host's clock when the cut was made."""
    positions: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    """Records beyond the batch when the cut was made, by topic."""
    begins: Mapping[Partition, int] = field(default_factory=dict[Partition, int])
    """First offsets of the partitions that are new in the batch; the log of one may begin above 0."""

    def document(self) -> dict[str, Any]:
        """As Spark keeps it."""
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
        }


def cut_of(document: Mapping[str, Any]) -> Cut:
    """Read what `Cut.document` gave."""
    return Cut(
        str(document["life"]),
        int(document["id_buckets"]),
        int(document["model_buckets"]),
        str(document["rules"]),
        int(document["batch"]),
        int(document["end_ms"]),
        int(document["host_ms"]),
        _by_partition(document["positions"]),
        {str(topic): int(records) for topic, records in document.get("waiting", {}).items()},
        _by_partition(document.get("begins", {})),
    )


def _by_topic(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    topics: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(offsets.items()):
        topics.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return topics


def _by_partition(document: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    return {
        Partition(topic, int(number)): int(offset)
        for topic, partitions in document.items()
        for number, offset in partitions.items()
    }


class SettingsChangedError(Exception):
    """The settings are not those with which the job's state began."""


def require_same_settings(began: Cut, now: Cut) -> None:
    """Raise `SettingsChangedError` unless a job goes on with the buckets and rules that it began with.

    Where an id or a model is kept depends on the number of buckets, and what a bucket has read since its
    last base is read again when it moves: under other rules that would give other numbers.
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
    """Topics, as cutting needs them."""

    async def ends(self) -> Mapping[Partition, tuple[int, int]]:
        """Of every partition the first offset its log holds, and the one after the last stable record."""
        ...

    async def offsets_at(self, moment_ms: int) -> Mapping[Partition, int]:
        """Of every partition the first offset whose timestamp is not below a moment; its end if none is."""
        ...


@dataclass(frozen=True, slots=True)
class CutSpec:
    """Limits of a batch."""

    settle_ms: int = 1_000
    """Records younger than this are left to the next batch: others that precede them may be on their way."""
    max_future_ms: int = 300_000
    """A timestamp that lies further ahead of the host's clock is not waited for."""


async def next_cut(log: Log, last: Cut, most: int | None, now_ms: int, spec: CutSpec) -> Cut:
    """End of the batch after `last`; `last` itself if there is nothing to be read.

    Partitions that `last` does not know begin at their first record. A batch holds more than `most` records
    only where more of them have one time.

    Parameters
    ----------
    log
        The topics.
    last
        Where the batch before ended.
    most
        Records in the batch; None for all there are.
    now_ms
        The host's clock.
    spec
        Limits of a batch.
    """
    ends = await log.ends()
    begins = {partition: last.positions.get(partition, first) for partition, (first, _) in ends.items()}
    newest_ms = now_ms - spec.settle_ms
    if newest_ms <= last.end_ms or all(end <= begins[p] for p, (_, end) in ends.items()):
        return last
    future = await log.offsets_at(now_ms + spec.max_future_ms)  # end of the log where nothing is

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
        return high_ms, chosen  # a single moment has more than fits

    end_ms, positions = await cut_within()
    if not _records(begins, positions):
        return last  # buckets take in no batch without records, be there partitions that are new
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
        begins={partition: begins[partition] for partition in ends if partition not in last.positions},
    )


def _end_of(begin: int, end: int, found: int | None, future: int | None) -> int:
    """Where a partition is cut.

    A record from the future stands before all moments: what follows it is taken as far as it goes, and waits
    in the buckets for its time.
    """
    if found is None or (found == future and found < end):
        return max(begin, end)
    return max(begin, min(found, end))


def _records(begins: Mapping[Partition, int], ends: Mapping[Partition, int]) -> int:
    return sum(end - begins[partition] for partition, end in ends.items())


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition that one task reads."""

    partition: Partition
    begin: int
    end: int


def ranges(begin: Cut, end: Cut, topics: Sequence[str]) -> Sequence[Range]:
    """Ranges that a batch reads, in the order of the topics in the settings."""
    rank = {topic: number for number, topic in enumerate(topics)}
    chosen = sorted(end.positions, key=lambda p: (rank.get(p.topic, len(rank)), p))
    begins = {**end.begins, **begin.positions}
    found = (Range(p, begins.get(p, 0), end.positions[p]) for p in chosen)
    return tuple(each for each in found if each.end > each.begin)


_TURN_MS: Final = 200
PATIENCE_SECONDS: Final = 60.0
"""How long a task waits for brokers that bring nothing; then Spark tries it again."""


class RangeUnreadError(Exception):
    """Brokers did not bring the records of a range."""


@dataclass(frozen=True, slots=True)
class TopicLog:
    """Implements `cuts.Log` over one connection."""

    connection: Connection
    spec: KafkaSpec
    topics: Sequence[str]
    until: Mapping[Partition, int] | None = None
    """Ends beyond which nothing is read, be there more by now; partitions without one are not read."""

    async def partitions(self) -> Sequence[Partition]:
        """Every partition of the topics; raises TopicsMissing."""
        listing = await self.connection.listing()
        require_topics(self.topics, listing, self.spec.bootstrap_servers)
        found = [Partition(topic, number) for topic in self.topics for number in listing[topic].partitions]
        return found if self.until is None else [partition for partition in found if partition in self.until]

    async def ends(self) -> Mapping[Partition, tuple[int, int]]:
        """See `cuts.Log`."""
        ends = {partition: await self.connection.ends(partition) for partition in await self.partitions()}
        if self.until is None:
            return ends
        return {p: (min(first, self.until[p]), min(end, self.until[p])) for p, (first, end) in ends.items()}

    async def offsets_at(self, moment_ms: int) -> Mapping[Partition, int]:
        """See `cuts.Log`."""
        return await self.connection.resolve(await self.partitions(), At(moment_ms), moment_ms)


def add_rows(found: list[Piece], rows: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
    """Add rows; those that point into one answer share its bytes, which are copied once."""
    if found and found[-1][1] is data:
        rows = np.concatenate([found.pop()[0], rows])
    found.append((rows, data, 0))


@dataclass(frozen=True, slots=True)
class RangeRead:
    """Records of a range in order, and what of it was not there."""

    records: KafkaRecords
    lost_times: Mapping[str, int]
    lost_records: Mapping[str, int]


async def read_range(
    connection: Connection, spec: KafkaSpec, wanted: Range, patience_seconds: float = PATIENCE_SECONDS
) -> RangeRead:
    """Read a range of offsets.

    Raises
    ------
    ReadingEnded
        The log does not hold all of it, or holds what cannot be read, and `on_data_loss` is `fail`; or this
        user may not read the topic.
    RangeUnreadError
        Brokers brought nothing for `patience_seconds`.
    CodecMissing
        Records are compressed with a codec whose package is not installed.
    """
    partition, end = wanted.partition, wanted.end
    losses = DataLossTracker(spec.on_data_loss, lambda _event: None)
    connection.assign({partition: wanted.begin})
    found: list[Piece] = []
    deadline = time.monotonic() + patience_seconds
    while connection.position(partition) < end:
        taken = await connection.take([partition], _TURN_MS)
        if partition in taken.denied:
            raise ReadDenied([partition.topic], spec)
        if (records := taken.records.get(partition)) is not None:
            inside = records.rows[records.rows[:, OFFSET] < end]
            if len(inside):
                add_rows(found, inside, records.data)
            deadline = time.monotonic() + patience_seconds
        if (damage := taken.damages.get(partition)) is not None:
            losses.unreadable(partition, damage)
            connection.seek(partition, damage.next_offset, damage.asked)
        if partition in taken.out_of_range:
            first, last = await connection.ends(partition)
            position = connection.position(partition)
            if position >= first:  # the log ends before what was there when the batch was cut
                losses.truncated(partition, position, last)
                break
            losses.overtaken(partition, position, min(first, end))
            connection.seek(partition, first)
        if time.monotonic() > deadline:
            raise RangeUnreadError(
                f"{partition.topic}/{partition.partition}: expected records up to offset {end - 1} from "
                f"{spec.bootstrap_servers}, got none after {connection.position(partition) - 1} for "
                f"{patience_seconds:g} s"
            )
    return RangeRead(gathered(partition, found), dict(losses.times), dict(losses.records))
