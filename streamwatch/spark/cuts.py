"""Where one batch ends and the next begins: at one record time, the same for all partitions.

A batch holds what has a record time up to its end, in every partition. Record time is the running maximum
of a partition, so "the first offset whose timestamp is above t" (what brokers answer) is exactly where it
ends. All buckets then stand at one time after each batch, and none waits for another.

A cut is written by Spark before the batch begins; a batch that is taken again has the same one. So everything
that has to be the same in all runs of a job is in it: its number, what the job is called, how many buckets
there are, and where reading began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from streamwatch.core.events import Partition

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
    rank = {topic: place for place, topic in enumerate(topics)}
    chosen = sorted(end.positions, key=lambda p: (rank.get(p.topic, len(rank)), p))
    begins = {**end.begins, **begin.positions}
    found = (Range(p, begins.get(p, 0), end.positions[p]) for p in chosen)
    return tuple(each for each in found if each.end > each.begin)
