"""Id bucket: merges the pieces sent by readers, joins them, and sends outcomes to model buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from streamwatch.core.buckets.contract import TOTALS, FeedResult
from streamwatch.core.buckets.id_join import IdJoin, share_of
from streamwatch.core.buckets.id_state import restore_part, state_of
from streamwatch.core.buckets.inbox import Inbox
from streamwatch.core.buckets.log import BaseReader, BatchInput, decode_entry, encode_base, encode_entry
from streamwatch.core.buckets.parts import ENCODER, Activity, InvalidOfModel, Part, Resolved, Windows
from streamwatch.core.buckets.pieces import PIECES, Moment
from streamwatch.core.buckets.places import BEHIND, DUE, RECORD
from streamwatch.core.buckets.routing import ModelRoutes
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.buckets.totals import RecordCounts, Totals, encode_totals
from streamwatch.core.events import Partition
from streamwatch.core.join.counters import JoinCounters

_SECOND_MS: Final = 1_000


class IdBucket:
    """Id bucket (`contract.Bucket`) that processes event by event, for any settings of the join.

    It merges events by (time, topic, partition, offset) up to the time of the batch, and holds later ones.

    Parameters
    ----------
    number
        Number of the id bucket, from 0.
    spec
        Partitioning of the stream.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        self._number = number
        self._name = f"ids/{number}"
        self._spec = spec
        self._ordered = spec.join.order == "prediction_time"
        self._routes = ModelRoutes(spec)
        self._reader = BaseReader(self._name)
        self.inbox = Inbox(spec.sides)
        self.join = IdJoin(share_of(spec.join, spec.id_buckets), spec.start_ms)
        self.records = RecordCounts()
        self.batch = -1
        """Number of the last batch."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        """Process one batch; see `contract.Bucket`."""
        self._reader.check()
        if batch <= self.batch:
            raise ValueError(f"expected a batch after {self.batch} in bucket {self._name}, got {batch}")
        found = [PIECES.decode(piece) for piece in pieces]
        for piece in found:
            if piece.bucket != self._number:
                raise ValueError(f"expected pieces for bucket {self._name}, got one for ids/{piece.bucket}")
        self.batch = batch
        before_ms = self.inbox.reached_ms
        taken = self.inbox.take(found, end_ms)
        join = self.join
        join.begin()
        partitions = self.inbox.partitions
        for time_ms, rank, offset, number, row in taken.rows:
            record_ms = max(before_ms, time_ms)
            if record_ms >= join.next_pass_ms:
                join.pass_time(record_ms)
            join.take(row.event_at(partitions[rank], record_ms), (record_ms, RECORD, rank, offset, number))
        join.pass_time(self.inbox.reached_ms)
        join.end()
        self._count(taken.moments, before_ms)
        parts = self._parts(self._ticks(taken.moments, before_ms), ended=end_ms is None)
        results = [(TOTALS, self._name, encode_totals(self.totals()))]
        return FeedResult(parts, results, encode_entry(BatchInput(self._name, batch, end_ms, pieces)))

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed or restore a part of a base; see `contract.Bucket`."""
        entry = decode_entry(delta, self._name)
        if isinstance(entry, BatchInput):
            self.feed(entry.batch, entry.pieces, entry.end_ms)
            return
        self._reader.take(entry)
        restore_part(self, entry.body, is_first=entry.number == 0)

    def base(self) -> list[bytes]:
        """Encode the whole state; see `contract.Bucket`."""
        return encode_base(self._name, state_of(self))

    def totals(self) -> Totals:
        """Counters and gauges, without those that model buckets count."""
        join = self.join
        predictions, labels, counters = join.predictions, join.labels, join.counters
        if self._ordered:
            counters = _without_resolved(counters)
        return Totals(
            self.inbox.reached_ms,
            counters,
            self.records,
            pending=predictions.pending,
            early=labels.early,
            unmatched=labels.unmatched,
            retained=labels.retained,
            dedup_entries=len(predictions.dedup),
            held_records=len(self.inbox),
            oldest_ms=predictions.oldest_ms,
        )

    def _count(self, moments: Sequence[tuple[Partition, Moment]], before_ms: int) -> None:
        counts = self.records
        for partition, moment in moments:
            topic = partition.topic
            for column, count in (
                (counts.evaluated, moment.records),
                (counts.events, moment.events),
                (counts.skipped, moment.skipped),
                (counts.tied, moment.tied),
            ):
                if count:
                    column[topic] = column.get(topic, 0) + count
            for reason, count in moment.corrected.items():
                counts.corrected[reason] = counts.corrected.get(reason, 0) + count
            if moment.time_ms <= before_ms and moment.timed:
                late_ms = (before_ms - moment.time_ms) * moment.timed
                counts.out_of_order[topic] = counts.out_of_order.get(topic, 0) + moment.timed
                counts.lateness_ms[topic] = counts.lateness_ms.get(topic, 0) + late_ms

    def _ticks(self, moments: Sequence[tuple[Partition, Moment]], before_ms: int) -> list[int]:
        """Times to process in model buckets: those of all records, or of the first in each second."""
        times = sorted({moment.time_ms for _, moment in moments if moment.time_ms > max(before_ms, -1)})
        if self._ordered:
            return times
        firsts: dict[int, int] = {}
        for time_ms in times:
            firsts.setdefault(time_ms // _SECOND_MS, time_ms)
        return list(firsts.values())

    def _parts(self, ticks: list[int], *, ended: bool) -> list[tuple[int, bytes]]:
        buckets = range(self._spec.model_buckets)
        outcomes: list[list[Resolved]] = [[] for _ in buckets]
        activities: list[list[Activity]] = [[] for _ in buckets]
        invalid: list[list[InvalidOfModel]] = [[] for _ in buckets]
        routes = self._routes
        for outcome in self.join.outcomes:
            for bucket in routes[outcome.outcome.model]:
                outcomes[bucket].append(outcome)
        for activity in self.join.reported_activity.take_new():
            for bucket in routes[activity.model]:
                activities[bucket].append(activity)
        for each in self.join.invalid:
            invalid[routes[each.model][0]].append(each)
        windows = _windows(self.join.outcomes) if self._ordered else []
        return [
            (
                bucket,
                ENCODER.encode(
                    Part(
                        bucket,
                        self._number,
                        self.inbox.reached_ms,
                        ended,
                        ticks,
                        outcomes[bucket],
                        activities[bucket],
                        invalid[bucket],
                        windows,
                    )
                ),
            )
            for bucket in buckets
        ]


def _without_resolved(counters: JoinCounters) -> JoinCounters:
    """Drop `predictions_resolved`, since with held outcomes the model's bucket counts it."""
    return replace(counters, predictions_resolved=0)


def _windows(outcomes: Sequence[Resolved]) -> list[Windows]:
    newest: dict[tuple[int, int], Windows] = {}
    for each in outcomes:
        kind = DUE if each.place[1] == DUE else BEHIND
        place = (each.place[0], kind)
        so_far = newest.get(place)
        _, own_ms = each.accepted
        if so_far is None or (so_far.own_ms, so_far.resolved) < (own_ms, each.place):
            newest[place] = Windows(place, own_ms, each.place)
    return list(newest.values())
