"""Row-wise reader: divides the records of one partition among id buckets, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.pieces import ENCODER, Moment, Piece, Row, row_of
from streamwatch.core.buckets.places import rank_of, ranks_of
from streamwatch.core.buckets.routing import bucket_of_partition, buckets_of_ids
from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.events import Decoded, Event, EventGroup, Partition
from streamwatch.core.join.compiled.rows import Digests
from streamwatch.core.merge.arrivals import Arrivals
from streamwatch.core.merge.timestamps import REASONS, ClockView, judge
from streamwatch.core.records import OBJECT, RecordBatch, rows_of, words_of


class RowReader:
    """Reader (`contract.Reader`) whose pieces contain single events, for any settings of the join.

    Timestamps are judged as in the daemon (`core.merge.timestamps`), but from the range at hand alone,
    without other partitions. A time that the daemon would correct may be corrected to another one here.

    Parameters
    ----------
    spec
        Partitioning of the stream.
    digests
        Function that computes the digests of ids as the decoders spell them.
    """

    def __init__(self, spec: BucketsSpec, digests: Digests) -> None:
        self._spec = spec
        self._digests = digests
        self._ranks = ranks_of(spec.sides)

    def split(self, partition: Partition, arrivals: Arrivals, host_ms: int) -> list[tuple[int, bytes]]:
        """Divide the records of one range of offsets; see `contract.Reader`."""
        rank_of(self._ranks, partition)
        buckets, home = self._spec.id_buckets, bucket_of_partition(partition, self._spec.id_buckets)
        times = judge(
            np.where(arrivals.decodable, arrivals.stamps_ms, -1),
            arrivals.decodable,
            -1,
            ClockView(host_ms, -1, host_is_behind=False),
            self._spec.max_future_ms,
            appended=arrivals.appended,
            at_end=True,
        )
        times_ms: list[int] = times.times_ms.tolist()
        offsets: list[int] = arrivals.offsets.tolist()
        found = _decoded(arrivals.records)
        parts = self._rows(found, times_ms, offsets, home)
        moments = _moments(found, times_ms, times.reasons, arrivals.decodable)
        first, newest_ms = (offsets[0], times_ms[-1]) if offsets else (0, -1)
        return [
            (
                bucket,
                ENCODER.encode(
                    Piece(
                        bucket,
                        *partition,
                        first,
                        newest_ms,
                        parts[bucket],
                        moments if bucket == home else [],
                    )
                ),
            )
            for bucket in range(buckets)
        ]

    def _rows(
        self, found: Sequence[Decoded], times_ms: Sequence[int], offsets: Sequence[int], home: int
    ) -> list[list[Row]]:
        parts: list[list[Row]] = [[] for _ in range(self._spec.id_buckets)]
        rows: list[Row] = []
        for decoded, time_ms, offset in zip(found, times_ms, offsets, strict=True):
            for number, event in enumerate(_events(decoded)):
                row = row_of(event, time_ms, offset, number)
                if row is not None:
                    rows.append(row)
        ids = [row.id for row in rows if row.id is not None]
        chosen = iter(buckets_of_ids(ids, self._digests, len(parts)).tolist() if ids else ())
        for row in rows:
            parts[home if row.id is None else next(chosen)].append(row)
        return parts


def _events(found: Decoded) -> Sequence[Event]:
    return found.events if isinstance(found, EventGroup) else (found,)


def _decoded(records: RecordBatch) -> list[Decoded]:
    """Decoded form of each record of a batch; records in columns become events."""
    is_object = records.rows["side"] == OBJECT
    if not is_object.any():
        return cast("list[Decoded]", records.events())
    plain = np.flatnonzero(~is_object)
    chosen = rows_of(words_of(records.rows).take(plain, axis=0))
    events = RecordBatch(chosen, records.texts, (), records.vocabulary).events()
    found = np.empty(len(records), object)
    for place, event in zip(plain.tolist(), events, strict=True):
        found[place] = event
    for place in np.flatnonzero(is_object).tolist():
        found[place] = records.objects[int(records.rows["object"][place])]
    return found.tolist()


def _moments(
    found: Sequence[Decoded],
    times_ms: Sequence[int],
    reasons: NDArray[np.uint8],
    decodable: NDArray[Any],
) -> list[Moment]:
    moments: list[Moment] = []
    for decoded, time_ms, reason, timed in zip(
        found, times_ms, reasons.tolist(), decodable.tolist(), strict=True
    ):
        if not moments or moments[-1].time_ms != time_ms:
            moments.append(Moment(time_ms, corrected={}))
        moment = moments[-1]
        moment.records += 1
        moment.timed += bool(timed)
        if isinstance(decoded, EventGroup):
            moment.events += len(decoded.events)
            moment.skipped += not decoded.events
            moment.tied += decoded.tied
        else:
            moment.events += 1
        if REASONS[reason]:
            moment.corrected[REASONS[reason]] = moment.corrected.get(REASONS[reason], 0) + 1
    return moments
