"""State of an id bucket in columns as parts of a base: counts first, then its entries, packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from streamwatch.core.buckets.columns.inbox import ColumnInboxState
from streamwatch.core.buckets.columns.prediction_places import PredictionPlacesState
from streamwatch.core.buckets.columns.reported_activity import ColumnReportedModel
from streamwatch.core.buckets.totals import RecordCounts
from streamwatch.core.events import Partition
from streamwatch.core.join.compiled.durable.packed import PackedError
from streamwatch.core.join.compiled.durable.totals import JoinTotals
from streamwatch.core.join.entry import PENDING

if TYPE_CHECKING:
    from streamwatch.core.buckets.columns.id_bucket import ColumnIdBucket

_PART_BYTES: Final = 4_000_000


class ColumnIdState(msgspec.Struct, frozen=True, rename={"reported_activity": "told_models"}):
    """State of an id bucket without its entries."""

    batch: int
    inbox: ColumnInboxState
    records: RecordCounts
    totals: JoinTotals
    places: PredictionPlacesState
    partitions: list[tuple[str, int]]
    reported_activity: list[ColumnReportedModel]


_ENCODER: Final = msgspec.msgpack.Encoder()
_STATE: Final = msgspec.msgpack.Decoder(ColumnIdState)
_ITEMS: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])


def state_of(bucket: ColumnIdBucket) -> list[bytes]:
    """Encode the state as the bodies of a base's parts."""
    own = bucket.join
    join = own.join
    entries = join.arrays.entries[: int(join.arrays.totals["top"][0])]
    pending = entries["state"] == PENDING
    numbers = entries["label_at_prediction"][pending].copy()
    places, _ = own.prediction_places.state(numbers)
    state = ColumnIdState(
        bucket.batch,
        bucket.inbox.state(),
        bucket.records,
        join.totals(),
        places,
        [(topic, number) for topic, number in own.partition_numbers],
        own.reported_activity.state(),
    )
    entries["label_at_prediction"][pending] = -1  # the number of a prediction is not a class
    changes = join.all_entries()
    entries["label_at_prediction"][pending] = numbers
    bodies = [_ENCODER.encode(state)]
    part: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in sorted(changes.items()):
        if value is not None:
            part.append((key, value))
            size += len(value)
        if size > _PART_BYTES:
            bodies.append(_ENCODER.encode(part))
            part, size = [], 0
    if part:
        bodies.append(_ENCODER.encode(part))
    return bodies


class BaseItems:
    """Parts of a base read so far."""

    __slots__ = ("items", "state")

    def __init__(self) -> None:
        self.state: ColumnIdState | None = None
        self.items: list[tuple[bytes, bytes]] = []


def restore_part(bucket: ColumnIdBucket, body: bytes, *, number: int, is_last: bool) -> None:
    """Restore the next body of a base into a new bucket; the last one completes it.

    Raises
    ------
    msgspec.DecodeError
        If it is not of this version.
    PackedError
        If the entries are not what `state_of` writes.
    """
    found = bucket.base_items
    if number == 0:
        found.state = _STATE.decode(body)
    else:
        found.items += _ITEMS.decode(body)
    if is_last and found.state is not None:
        _restore(bucket, found.state, found.items)
        bucket.base_items = BaseItems()


def _restore(bucket: ColumnIdBucket, state: ColumnIdState, items: list[tuple[bytes, bytes]]) -> None:
    own = bucket.join
    start_ms = own.join.start_ms
    bucket.batch, bucket.records = state.batch, state.records
    bucket.inbox.restore(state.inbox)
    own.join.restore(state.totals, items)
    own.join.start_ms = start_ms
    own.partition_numbers = {Partition(*each): number for number, each in enumerate(state.partitions)}
    own.reported_activity.restore(state.reported_activity)
    numbers = own.prediction_places.restore(state.places)
    entries = own.join.arrays.entries[: int(own.join.arrays.totals["top"][0])]
    pending = np.flatnonzero(entries["state"] == PENDING)
    if len(pending) != len(numbers):
        raise PackedError(f"expected places of {len(pending)} predictions that wait, got {len(numbers)}")
    entries["label_at_prediction"][pending] = numbers  # both are in the order of acceptance
