"""Id bucket in columns: merges pieces sent by readers, joins them, and sends outcomes to model buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.columns.id_join import ColumnJoin
from streamwatch.core.buckets.columns.id_state import BaseItems, restore_part, state_of
from streamwatch.core.buckets.columns.inbox import ColumnInbox
from streamwatch.core.buckets.columns.parts import ENCODER, ColumnPart, OutcomeParts
from streamwatch.core.buckets.columns.pieces import PIECES, Moments
from streamwatch.core.buckets.contract import TOTALS, FeedResult
from streamwatch.core.buckets.id_join import share_of
from streamwatch.core.buckets.log import BaseReader, BatchInput, decode_entry, encode_base, encode_entry
from streamwatch.core.buckets.parts import Activity, InvalidOfModel
from streamwatch.core.buckets.routing import ModelRoutes
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.buckets.totals import RecordCounts, Totals, encode_totals
from streamwatch.core.events import Partition

_SECOND_MS: Final = 1_000


class ColumnIdBucket:
    """Id bucket (`contract.Bucket`) in columns, for settings for which the compiled join suffices.

    Equivalent to `id_bucket.IdBucket`, except that neither can read the other's log.

    Parameters
    ----------
    number
        Number of the id bucket, from 0.
    spec
        Partitioning of the stream.

    Raises
    ------
    ValueError
        If the compiled join does not support the settings.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        self._number = number
        self._name = f"ids/{number}"
        self._log_name = f"ids/{number} in columns"
        self._spec = spec
        self._routes = ModelRoutes(spec)
        self._reader = BaseReader(self._log_name)
        self.inbox = ColumnInbox(spec.sides)
        self.join = ColumnJoin(share_of(spec.join, spec.id_buckets), spec.start_ms, self.inbox.rank)
        self.records = RecordCounts()
        self.base_items = BaseItems()
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
        self.join.feed(taken.chunks, before_ms, self.inbox.reached_ms)
        self._count(taken.moments, before_ms)
        parts = self._parts(_ticks(taken.moments, before_ms), ended=end_ms is None)
        results = [(TOTALS, self._name, encode_totals(self.totals()))]
        return FeedResult(parts, results, encode_entry(BatchInput(self._log_name, batch, end_ms, pieces)))

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed or restore a part of a base; see `contract.Bucket`."""
        entry = decode_entry(delta, self._log_name)
        if isinstance(entry, BatchInput):
            self.feed(entry.batch, entry.pieces, entry.end_ms)
            return
        self._reader.take(entry)
        restore_part(self, entry.body, number=entry.number, is_last=entry.number == entry.count - 1)

    def base(self) -> list[bytes]:
        """Encode the whole state; see `contract.Bucket`."""
        return encode_base(self._log_name, state_of(self))

    def totals(self) -> Totals:
        """Counters and gauges, without those that model buckets count."""
        held = self.join.join.holdings()
        return Totals(
            self.inbox.reached_ms,
            self.join.counters,
            self.records,
            pending=held.pending,
            early=held.early,
            unmatched=held.unmatched,
            retained=held.retained,
            dedup_entries=held.dedup_entries,
            held_records=len(self.inbox),
            oldest_ms=held.oldest_ms,
        )

    def _count(self, moments_of_partitions: Sequence[tuple[Partition, Moments]], before_ms: int) -> None:
        counts = self.records
        for partition, moments in moments_of_partitions:
            topic, columns = partition.topic, moments.columns
            late = columns[columns[:, 0] <= before_ms]
            _, records, _, events, skipped, tied = columns.sum(axis=0).tolist()
            timed = int(late[:, 2].sum())
            late_ms = int(((before_ms - late[:, 0]) * late[:, 2]).sum())
            for column, count in (
                (counts.evaluated, records),
                (counts.events, events),
                (counts.skipped, skipped),
                (counts.tied, tied),
                (counts.out_of_order, timed),
            ):
                if count:
                    column[topic] = column.get(topic, 0) + count
            if timed:
                counts.lateness_ms[topic] = counts.lateness_ms.get(topic, 0) + late_ms
            for _, reason, count in moments.corrected:
                counts.corrected[reason] = counts.corrected.get(reason, 0) + count

    def _parts(self, ticks: Sequence[int], *, ended: bool) -> list[tuple[int, bytes]]:
        buckets, routes = range(self._spec.model_buckets), self._routes
        outcomes = OutcomeParts(self.join.outcomes, self.join.ranks)
        activities: list[list[Activity]] = [[] for _ in buckets]
        invalid: list[list[InvalidOfModel]] = [[] for _ in buckets]
        for activity in self.join.reported_activity.take_new():
            for bucket in routes[activity.model]:
                activities[bucket].append(activity)
        for each in self.join.invalid:
            invalid[routes[each.model][0]].append(each)
        models = outcomes.models
        parts: list[tuple[int, bytes]] = []
        for bucket in buckets:
            own = outcomes.of(np.array([bucket in routes[model] for model in models], np.bool_))
            reached_ms = self.inbox.reached_ms
            part = ColumnPart(
                bucket, self._number, reached_ms, ended, ticks, own, activities[bucket], invalid[bucket]
            )
            parts.append((bucket, ENCODER.encode(part)))
        return parts


def _ticks(moments_of_partitions: Sequence[tuple[Partition, Moments]], before_ms: int) -> list[int]:
    """Times to process in model buckets: those of the first record in each second."""
    firsts: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for _, moments in moments_of_partitions:
        times = moments.times_ms[np.searchsorted(moments.times_ms, max(before_ms, -1), "right") :]
        seconds = times // _SECOND_MS
        firsts.append(times[np.concatenate([seconds[:1] >= 0, seconds[1:] != seconds[:-1]])])
    times = np.sort(np.concatenate(firsts))
    _, places = np.unique(times // _SECOND_MS, return_index=True)
    return times[places].tolist()
