"""Reader: divides the records of one partition among id buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.contract import BucketsSpec, bucket_of_partition, rank_of, ranks_of
from streamwatch.core.buckets.pieces import (
    ARRIVED,
    ENCODER,
    MOMENT,
    NO_MOMENTS,
    Chunk,
    ColumnPiece,
    Moments,
    NameNumbers,
    Row,
    pack_chunk,
    pack_moments,
    row_of,
)
from streamwatch.core.join.rows import Digests
from streamwatch.core.merge.inbox import Arrivals
from streamwatch.core.merge.timestamps import BELIEVED, REASONS, ClockView, Judged, judge
from streamwatch.core.records.batch import (
    LABEL,
    OBJECT,
    PREDICTION,
    RecordBatch,
    Records,
    joined,
    rows_of,
    taken,
    words_of,
)
from streamwatch.core.records.events import Event, Label, Partition, Prediction, segments_text

_EMPTY: Final = np.zeros(0, ARRIVED)


class ColumnReader:
    """Reader (`contract.Reader`) whose pieces are columns.

    Timestamps are judged as in the daemon (`core.merge.timestamps`), but from the range at hand alone,
    without other partitions. A time that the daemon would correct may be corrected to another one here.

    Parameters
    ----------
    spec
        Partitioning of the stream.
    digests
        Function that computes the digests of ids, given as the decoders return them.
    """

    def __init__(self, spec: BucketsSpec, digests: Digests) -> None:
        self._spec = spec
        self._digests = digests
        self._ranks = ranks_of(spec.sides)

    def split(self, partition: Partition, arrivals: Arrivals, host_ms: int) -> list[tuple[int, bytes]]:
        """Divide the records of one range of offsets; see `contract.Reader`."""
        rank_of(self._ranks, partition)
        buckets, home = self._spec.id_buckets, bucket_of_partition(partition, self._spec.id_buckets)
        times = _judge(arrivals, host_ms, self._spec.max_future_ms)
        chunk, has_id = self._chunk(arrivals, times.times_ms)
        chosen = np.where(has_id, chunk.rows["high"] % np.uint64(buckets), np.uint64(home)).astype(np.uint16)
        order = np.argsort(chosen, kind="stable")
        ends = np.cumsum(np.bincount(chosen, minlength=buckets)).tolist()
        moments = _moments(arrivals, times)
        first, newest_ms = (int(arrivals.offsets[0]), int(times.times_ms[-1])) if len(arrivals) else (0, -1)
        pieces: list[tuple[int, bytes]] = []
        for bucket in range(buckets):
            own = chunk.only(order[ends[bucket - 1] if bucket else 0 : ends[bucket]])
            counted = pack_moments(moments if bucket == home else NO_MOMENTS)
            piece = ColumnPiece(bucket, *partition, first, newest_ms, pack_chunk(own), counted)
            pieces.append((bucket, ENCODER.encode(piece)))
        return pieces

    def _chunk(self, arrivals: Arrivals, times_ms: NDArray[np.int64]) -> tuple[Chunk, NDArray[np.bool_]]:
        """Events of a range, and a mask of those with an id."""
        spread = arrivals.records.spread()
        records, of = _with_scored_objects(spread.batch), spread.of
        rows, names, times_ms, offsets = records.rows, records.vocabulary, times_ms[of], arrivals.offsets[of]
        numbers = np.arange(len(of)) - np.searchsorted(of, of)
        is_plain = rows["side"] != OBJECT
        all_plain = bool(is_plain.all())
        plain = rows if all_plain else taken(rows, is_plain)
        found = np.zeros(len(plain), ARRIVED)
        found["low"], found["high"] = plain["id_low"], plain["id_high"]
        found["time_ms"] = times_ms if all_plain else times_ms[is_plain]
        found["offset"] = offsets if all_plain else offsets[is_plain]
        found["event"] = numbers if all_plain else numbers[is_plain]
        found["timestamp_ms"], found["side"], found["object"] = plain["timestamp_ms"], plain["side"], -1
        models, classes, segments = NameNumbers(), NameNumbers(), NameNumbers()
        found["model"] = models.of(plain["model"], names.models.names)
        found["class"] = classes.of(plain["class"], names.classes.names)
        found["segments"] = segments.of(plain["segments"].astype(np.int32) - 1, names.segments.names)
        has_id = np.ones(len(found), np.bool_)
        objects: list[Row] = []
        if not all_plain:
            others = _Others(models, classes, segments)
            for row in np.flatnonzero(~is_plain).tolist():
                event = records.objects[int(rows["object"][row])]
                others.add(event, int(times_ms[row]), int(offsets[row]), int(numbers[row]))
            further, identified = others.rows(self._digests)
            found = joined([found, further])
            order = np.lexsort((found["event"], found["offset"]))
            found = taken(found, order)
            has_id = np.concatenate([has_id, identified])[order]
            objects = others.objects
        return Chunk(
            found, list(models.by_name), list(classes.by_name), list(segments.by_name), objects
        ), has_id


def _with_scored_objects(records: RecordBatch) -> RecordBatch:
    """Turn predictions with scores into event objects, as pieces have no columns for scores."""
    at = records.scored_rows()
    if not len(at):
        return records
    rows = rows_of(words_of(records.rows).copy())
    chosen = replace(records, rows=taken(rows, at), objects=())
    rows["side"][at] = OBJECT
    rows["object"][at] = len(records.objects) + np.arange(len(at))
    return replace(records, rows=rows, objects=[*records.objects, *chosen.events()])


class _Others:
    """Converts event objects to rows; an event that does not fit into columns is kept as an object."""

    def __init__(self, models: NameNumbers, classes: NameNumbers, segments: NameNumbers) -> None:
        self.objects: list[Row] = []
        self._models, self._classes, self._segments = models, classes, segments
        self._rows: list[tuple[int, ...]] = []
        self._ids: list[str] = []
        self._identified: list[bool] = []

    def add(self, event: Event, time_ms: int, offset: int, number: int) -> None:
        """Add an event; `number` is its number within its record."""
        row = row_of(event, time_ms, offset, number)
        if row is None:
            return
        self._identified.append(row.id is not None)
        if row.id is not None:
            self._ids.append(row.id)
        self._rows.append((0, 0, time_ms, *self._row_values(event, row, offset, number)))

    def _row_values(self, event: Event, row: Row, offset: int, number: int) -> tuple[int, ...]:
        own_ms = -1 if row.timestamp_ms is None else row.timestamp_ms
        is_prediction = isinstance(event, Prediction) and event.scores is None and not any(row.carried)
        if (is_prediction or isinstance(event, Label)) and (row.timestamp_ms is None or own_ms >= 0):
            model = -1 if row.model is None else self._models[row.model]
            values = -1 if not row.segments else self._segments[segments_text(row.segments)]
            side = PREDICTION if is_prediction else LABEL
            return own_ms, offset, number, model, self._classes[row.name], values, side, -1
        self.objects.append(row)
        return -1, offset, number, -1, -1, -1, OBJECT, len(self.objects) - 1

    def rows(self, digests: Digests) -> tuple[Records, NDArray[np.bool_]]:
        """Rows of all events, and a mask of those with an id.

        Ids of objects are replaced by their digests.
        """
        rows = np.array(self._rows, ARRIVED) if self._rows else _EMPTY
        identified = np.array(self._identified, np.bool_)
        if self._ids:
            packed = digests(self._ids)
            halves = np.frombuffer(packed, ">u8").reshape(-1, 2)
            rows["high"][identified], rows["low"][identified] = halves[:, 0], halves[:, 1]
            text = packed.decode("latin-1")
            known = iter(range(0, len(text), 16))
            for has_id, number in zip(self._identified, rows["object"].tolist(), strict=True):
                at = next(known) if has_id else 0
                if has_id and number >= 0:
                    row = self.objects[number]
                    self.objects[number] = msgspec.structs.replace(row, id=text[at : at + 16])
        return rows, identified


def _judge(arrivals: Arrivals, host_ms: int, max_future_ms: int) -> Judged:
    """Judge timestamps, with a fast path for ranges in which all are believed."""
    stamps = arrivals.stamps_ms
    if len(stamps) and not arrivals.appended and bool(arrivals.decodable.all()):
        running = np.maximum.accumulate(stamps)
        is_past = int(stamps.min()) > 0 and int(stamps.max()) <= host_ms + max_future_ms
        if is_past and bool((stamps[1:] <= running[:-1] + max_future_ms).all()):
            return Judged(running, np.full(len(stamps), BELIEVED, np.uint8))
    return judge(
        np.where(arrivals.decodable, stamps, -1),
        arrivals.decodable,
        -1,
        ClockView(host_ms, -1, host_is_behind=False),
        max_future_ms,
        appended=arrivals.appended,
        at_end=True,
    )


def _moments(arrivals: Arrivals, times: Judged) -> Moments:
    if not len(arrivals):
        return NO_MOMENTS
    times_ms = times.times_ms
    starts = np.flatnonzero(np.concatenate([[True], np.diff(times_ms) > 0]))
    counted = np.zeros((len(times_ms), len(MOMENT)), np.int64)
    spread = arrivals.records.spread()
    counted[:, 1], counted[:, 2], counted[:, 3] = 1, arrivals.decodable, spread.events
    counted[:, 4], counted[:, 5] = spread.events == 0, spread.tied
    columns = np.add.reduceat(counted, starts)
    columns[:, 0] = times_ms[starts]
    corrected: dict[tuple[int, str], int] = {}
    for row in np.flatnonzero(times.reasons).tolist():
        if reason := REASONS[times.reasons[row]]:
            key = int(times_ms[row]), reason
            corrected[key] = corrected.get(key, 0) + 1
    return Moments(columns, _listed(corrected))


def _listed(corrected: Mapping[tuple[int, str], int]) -> Sequence[tuple[int, str, int]]:
    return [(time_ms, reason, count) for (time_ms, reason), count in corrected.items()]
