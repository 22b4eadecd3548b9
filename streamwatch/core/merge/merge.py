"""`Merge`: holds records until no earlier one can be delivered any more, and releases them in order.

The smallest record held, by (time, topic, partition, offset), is released once every other partition

(a) was read beyond its key, so that every record yet to be read has a larger one, or
(b) was found at its end by a fetch sent at least `settle_ms` after the record had arrived, and the record's
    own time is `settle_ms` ago by the host's clock, or the record waited `max_future_ms` longer for that
    (a host's clock that is behind is not used).

Topics rank predictions-only, mixed, labels-only, then as in the settings: at equal times a prediction
precedes its label. A record that precedes one released before is released at once, at the clock's time, and
counted. Kafka Streams (KIP-353, KIP-695) merges the partitions of a task likewise, by (a) and a time-out.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.inbox import Arrivals, HostIsBehind, Inbox, KeptBatches
from streamwatch.core.merge.partitions import Bounds, Partitions, bounds_of
from streamwatch.core.merge.queues import HeldRecords
from streamwatch.core.merge.released import Key, MergeProgress, Released, together
from streamwatch.core.merge.timestamps import HostClock
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.batch import MOST_TOPICS, RecordBatch, no_records, rows_of, words_of
from streamwatch.core.records.events import Partition, Side

RANKS: Final[Mapping[Side, int]] = {"prediction": 0, "both": 1, "label": 2}


@dataclass(frozen=True, slots=True)
class MergeSpec:
    """Limits of how long and how many records are held; times in milliseconds.

    `settle_ms`, `max_future_ms`, `max_hold_back_ms` and `max_held_bytes` are the settings of `time`.
    """

    settle_ms: int = 1_000
    max_future_ms: int = 300_000
    max_hold_back_ms: int = 600_000
    max_held_bytes: int = 67_108_864
    max_held_records: int = 400_000
    """Most records of one partition that are held. While another topic is at its end, a backlog is read no
    faster than so many records per `settle_ms` plus the time of a fetch, so it should be more than a
    processor evaluates in that time."""
    records_per_turn: int = 16_384
    """Records that are released at a time; their evaluation takes some milliseconds."""


_LEAST: Final = 10_000
"""Number of records whose texts and objects are kept, beside four times as many as are held."""


class Merge:
    """Merges the records of all partitions into one sequence.

    Parameters
    ----------
    spec
        How long records may wait, and how many may be held.
    sides
        Kind of events of each topic, in the order of the settings.
    progress
        State to continue from after a restart.
    """

    def __init__(self, spec: MergeSpec, sides: Mapping[str, Side], progress: MergeProgress) -> None:
        self._spec = spec
        self._topic_order = {topic: i for i, topic in enumerate(sorted(sides, key=lambda t: RANKS[sides[t]]))}
        self._topics = ("", *self._topic_order)[:MOST_TOPICS]
        self._topic_numbers = np.zeros(0, np.uint8)  # by partition
        self._partitions = Partitions(progress.running_ms, self._rank)
        self._held = HeldRecords()
        self._inbox = Inbox(self._partitions, self._held, spec.max_future_ms)
        self._kept = KeptBatches()
        self.host = HostClock(spec.max_future_ms)
        self._last = progress.last
        self._clock_ms = progress.clock_ms
        self.left_behind: list[Partition] = []
        """Partitions no longer waited for, since this was emptied."""
        self.full_names: list[str] = []
        """Kinds of names whose numbers were used up and released, since this was emptied."""

    def _rank(self, partition: Partition) -> tuple[int, int]:
        return self._topic_order[partition.topic], partition.partition

    @property
    def held_records(self) -> int:
        """Number of records read and not released."""
        return len(self._held) + len(self._inbox)

    @property
    def running_ms(self) -> Mapping[Partition, int]:
        """Newest time read of each partition; -1 before the first record."""
        return self._partitions.by_name(self._partitions.running_ms)

    def holds(self, now_ms: int) -> Mapping[Partition, float]:
        """Return the seconds for which records have waited for each partition that they wait for."""
        since = self._partitions.by_name(self._partitions.holds_since_ms)
        return {name: (now_ms - since_ms) / 1_000 for name, since_ms in since.items() if since_ms >= 0}

    def is_empty(self, partition: Partition) -> bool:
        """Return whether no record of the partition is held."""
        order = self._partitions.order[partition]
        return not self._partitions.held[order] and not self._inbox.waits(order)

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a held record arrived at or before the given time."""
        return self._held.holds_from_before(arrived_ms) or self._inbox.holds_from_before(arrived_ms)

    def set_partitions(self, partitions: Collection[Partition]) -> None:
        """Merge exactly these partitions from now on; no record of a removed one may be held."""
        if self._partitions.order.keys() == set(partitions):
            return
        indices = self._partitions.replace(partitions)
        self._topic_numbers = np.zeros(0, np.uint8)
        self.host.keep(self._partitions.order)
        self._inbox.reorder(indices)
        self._held.reorder(indices, len(partitions))

    def add(self, delivered: Mapping[Partition, Arrivals], now_ms: int) -> None:
        """Add the records that a poll delivered at `now_ms`, of a clock that never goes back."""
        # Polls are small and partitions many: work for each partition costs more than for its records.
        if not all(sizes := [len(arrivals.offsets) for arrivals in delivered.values()]):
            delivered = {name: arrivals for name, arrivals in delivered.items() if len(arrivals)}
            sizes = [size for size in sizes if size]
        if not sizes:
            return
        self._compact()
        order, parts = self._partitions.order, list(delivered.values())
        delivered_of = [order[name] for name in delivered]
        stamps_ms = np.concatenate([arrivals.stamps_ms for arrivals in parts])
        decodable = np.concatenate([arrivals.decodable for arrivals in parts])
        counts, indices = np.array(sizes, np.int64), np.array(delivered_of, np.int64)
        words = self._kept.add([arrivals.records for arrivals in parts])
        ids = self._held.put(words, stamps_ms, decodable, indices.repeat(counts), now_ms)
        self._inbox.add(ids, now_ms, delivered_of, [arrivals.appended for arrivals in parts])
        sizes_bytes = np.array([arrivals.size_bytes for arrivals in parts], np.int64)
        self._partitions.heard(indices, np.maximum(counts, sizes_bytes))
        self.host.look(list(delivered), stamps_ms, decodable, counts, now_ms)
        for vocabulary in {arrivals.records.vocabulary for arrivals in parts}:
            if full := vocabulary.full():
                self.full_names += full
                _, rows = self._waiting_rows()
                if self._kept.numbers_by(vocabulary):
                    elements = words_of(self._kept.rows_of_elements())
                    rows = rows_of(np.concatenate([words_of(rows), elements]))
                    vocabulary.release_all_but(rows, self._kept.classes_of_scores())
                else:
                    vocabulary.release_all_but(rows[:0])

    def found(self, ends_ms: Mapping[Partition, int | None]) -> None:
        """Note when the fetches were sent that found partitions at their end; None where that is unknown."""
        for name, at_end_ms in ends_ms.items():
            self._partitions.found(self._partitions.order[name], at_end_ms)

    def leave_behind(self, partitions: Collection[Partition]) -> None:
        """Stop waiting for these partitions until they deliver or are found at their end."""
        self.left_behind += self._partitions.leave_behind(
            [self._partitions.order[name] for name in partitions]
        )

    def crowded(self) -> frozenset[Partition]:
        """Return the partitions to be paused; no record waits for any of them.

        They have more held records than `max_held_records`, or any while those of all are more than
        `max_held_bytes`.
        """
        partitions, spec = self._partitions, self._spec
        full = partitions.held > spec.max_held_records
        most = spec.max_held_records
        if int(partitions.size_bytes.sum()) > spec.max_held_bytes:
            full, most = partitions.held > 0, 0
        full |= self._inbox.crowded(most)
        return frozenset(partitions.names[order] for order in np.flatnonzero(full).tolist())

    def release(self, now_ms: int, host_ms: int, *, connected: bool = True) -> Released:
        """Release all records that may be released now; parameters as for `in_turns`."""
        return together(list(self.in_turns(now_ms, host_ms, connected=connected)))

    def in_turns(
        self, now_ms: int, host_ms: int, *, connected: bool = True
    ) -> Generator[Released, None, None]:
        """Release records in stretches short enough for other tasks to run between them.

        Nothing may be added until the iterator is exhausted.

        Parameters
        ----------
        now_ms
            Milliseconds of the clock that arrivals were noted by.
        host_ms
            Milliseconds since the epoch by the host's clock.
        connected
            Whether brokers answer: while they do not, no partition is left behind.
        """
        self.host.judge(host_ms, self._unread() if self.host.may_be_behind(host_ms) else ())
        longest_ms = self._spec.max_future_ms

        def host_is_behind(index: int, arrived_ms: int) -> bool | None:
            if self.host.is_behind or now_ms - arrived_ms >= longest_ms:
                return self.host.is_behind
            return self.host.behind_since(self._partitions.names[index], arrived_ms, host_ms, self._unread())

        self._judge(host_ms, (), host_is_behind)
        rest_ms = None if self.host.is_behind else host_ms - self._spec.settle_ms
        waited_ms = now_ms - self._spec.settle_ms - self._spec.max_future_ms
        parts: list[Released] = []
        room = most = self._spec.records_per_turn
        tried: Bounds | None = None  # no record is left within these
        while len(self._held):
            bounds = bounds_of(
                self._partitions,
                self._inbox.waiting,
                settle_ms=self._spec.settle_ms,
                rest_ms=rest_ms,
                waited_ms=waited_ms,
            )
            if bounds != tried and len(part := self._take(bounds, room)):
                parts.append(part)
                room -= len(part)
                tried = bounds
                if room == 0:
                    yield together(parts)
                    parts, room, tried = [], most, None
            elif not self._wait(now_ms, connected=connected):
                break
        if parts:
            yield together(parts)

    def flush(self, partitions: Collection[Partition], host_ms: int) -> Generator[Released, None, None]:
        """Release, in turns, all records up to the last one held of these partitions, whose logs are gone."""
        orders = [self._partitions.order[name] for name in partitions if name in self._partitions.order]
        self._judge(host_ms, orders, self._when_ended)
        last = self._held.last_key(np.array(orders, np.int64))
        if last is not None:
            yield from self._taken(Bounds(read=last))

    def drain(self, host_ms: int) -> Released:
        """Release all held records, as no further record will come."""
        self._judge(host_ms, range(len(self._partitions.names)), self._when_ended)
        return together(list(self._taken(Bounds())))

    def _taken(self, bounds: Bounds) -> Generator[Released, None, None]:
        """Take the records that may be released within bounds that stay as they are."""
        while len(self._held) and len(part := self._take(bounds, self._spec.records_per_turn)):
            yield part

    def _unread(self) -> Collection[Partition]:
        """Name the partitions not known to be at their end."""
        at_end_ms = self._partitions.at_end_ms
        return [name for name, ms in zip(self._partitions.names, at_end_ms.tolist(), strict=True) if ms < 0]

    def _when_ended(self, _index: int, _arrived_ms: int) -> bool | None:
        """Return True if the host's clock is behind, else None; for partitions that have ended."""
        return self.host.is_behind or None

    def _judge(self, host_ms: int, ended: Collection[int], host_is_behind: HostIsBehind) -> None:
        if len(self._inbox):
            self._inbox.judge(host_ms, ended, host_is_behind)

    def _late(self) -> tuple[int, int]:
        """Return the newest position reached, as time and partition index: records before it are late."""
        if (last := self._last) is None:
            return -1, -1
        name = Partition(last.topic, last.partition)
        if (order := self._partitions.order.get(name)) is None:
            rank = (self._topic_order.get(last.topic, -1), last.partition)
            order = sum(self._rank(other) < rank for other in self._partitions.names)
        return last.time_ms, order

    def _take(self, bounds: Bounds, most: int) -> Released:
        taken = self._held.take(bounds, self._late(), self._clock_ms, most)
        if not len(taken.ids):
            return together(())
        self._partitions.note_released(taken.indices)
        rows, of = self._held.rows(taken.ids), self._topics_of(taken.indices)
        records = self._kept.batch(rows, taken.clock_ms, self._topics, of)
        offsets = records.rows["offset"]
        if taken.late < len(taken.ids):
            name = self._partitions.names[int(taken.indices[-1])]
            self._last = Key(int(taken.times_ms[-1]), *name, int(offsets[-1]))
        self._clock_ms = int(taken.clock_ms[-1])
        return Released(
            records,
            self._partitions.names,
            taken.indices,
            offsets,
            taken.times_ms,
            taken.clock_ms,
            taken.lateness_ms,
            taken.reasons,
        )

    def _topics_of(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the numbers of the topics of partitions; 0 for topics beyond `MOST_TOPICS`."""
        names = self._partitions.names
        if len(self._topic_numbers) != len(names):
            numbers = {topic: number for number, topic in enumerate(self._topics)}
            self._topic_numbers = np.array([numbers.get(name.topic, 0) for name in names], np.uint8)
        return self._topic_numbers[indices]

    def compact(self) -> None:
        """Free the texts and objects of released records."""
        ids, rows = self._waiting_rows()
        self._kept.keep(rows)
        self._held.replace_rows(ids, rows)

    def _waiting_rows(self) -> tuple[NDArray[np.int64], NDArray[np.void]]:
        """Ids and rows of all held records."""
        ids = np.concatenate([self._held.ids(), *self._inbox.ids()])
        return ids, self._held.rows(ids)

    def _compact(self) -> None:
        """Free the texts and objects of released records when they are most of what is kept."""
        held = self.held_records
        if held == 0:
            self._kept.clear()
            self._held.clear()
        elif self._kept.count > 4 * held + _LEAST and not self._kept.is_bare:
            self.compact()

    def _wait(self, now_ms: int, *, connected: bool) -> bool:
        """Note the partitions that the smallest record waits for; return whether one was left behind."""
        left = self._partitions.wait(
            self._held.first_key,
            fetched_since_ms=self._held.first_arrived_ms + self._spec.settle_ms,
            now_ms=now_ms,
            longest_ms=self._spec.max_hold_back_ms,
            connected=connected,
        )
        self.left_behind += left
        return bool(left)


# Metrics of the merge: the clock, record times, corrected timestamps, held records.


def progress_families(progress: MergeProgress) -> list[Family]:
    """Series of the evaluated part of the sequence, and of records out of order or corrected."""
    seconds = {topic: late_ms / 1_000 for topic, late_ms in progress.lateness_ms.items()}
    watermarks = [
        ((str(partition.partition), partition.topic), ms / 1_000)
        for partition, ms in sorted(progress.running_ms.items())
        if ms >= 0
    ]
    late = [((topic,), float(count)) for topic, count in sorted(progress.out_of_order.items())]
    corrected = [((reason,), float(count)) for reason, count in sorted(progress.corrected.items())]
    return [
        single("clock_timestamp_seconds", progress.clock_ms / 1_000 if progress.clock_ms >= 0 else None),
        family("watermark_timestamp_seconds", watermarks),
        *(
            family(name, [((topic,), float(count)) for topic, count in sorted(counts.items())])
            for name, counts in (
                ("records_evaluated_total", progress.evaluated),
                ("events_evaluated_total", progress.events),
                ("records_skipped_total", progress.skipped),
                ("predictions_tied_total", progress.tied),
            )
        ),
        family("records_out_of_order_total", late),
        family(
            "records_lateness_seconds_total", [((topic,), sum_) for topic, sum_ in sorted(seconds.items())]
        ),
        family("timestamps_corrected_total", corrected),
        single("partitions_left_behind_total", float(progress.left_behind)),
    ]


def held_families(merge: Merge, now_ms: int) -> list[Family]:
    """Series of records read and not released yet, as of now instead of the last commit."""
    holds = [
        ((str(partition.partition), partition.topic), seconds)
        for partition, seconds in sorted(merge.holds(now_ms).items())
    ]
    return [
        single("merge_held_records", float(merge.held_records)),
        family("merge_hold_seconds", holds),
        single("host_clock_behind", float(merge.host.is_behind)),
    ]


# Compiling the merge before it is needed, or loading what was compiled before.


def warm_up_merge() -> None:
    """Merge records, judged, plain and waiting for a partition, so that every compiled function is called."""
    partition = Partition("warm-up", 0)
    merge = Merge(MergeSpec(), {partition.topic: "both"}, MergeProgress())
    merge.set_partitions([partition])
    nothing = no_records()
    one = RecordBatch(np.zeros(1, nothing.rows.dtype), None, (), nothing.vocabulary)
    stamps_ms, decodable = np.ones(1, np.int64), np.ones(1, np.bool_)
    for _ in range(2):  # the first of a partition is judged, the second is plain
        merge.add({partition: Arrivals(stamps_ms, stamps_ms, decodable, one)}, 0)
        merge.release(0, 0)
    merge.set_partitions([partition, Partition(partition.topic, 1)])  # a silent one is waited for
    merge.add({partition: Arrivals(stamps_ms, stamps_ms, decodable, one)}, 0)
    merge.release(0, 0)
    merge.compact()
    merge.drain(0)
