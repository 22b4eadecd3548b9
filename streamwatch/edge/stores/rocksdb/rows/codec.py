"""Codec of chains: all entries of an id in one value, a row per entry.

    waits      [state + 16 × topic, model, class, label, stamp, own time − record time, scores,
                deadline − usual deadline, segments, class predicted last]
    settled    [state, model, predicted, generation, truth]

Trailing defaults are left out; a chain of one is its row, a longer one an array of rows. Models, classes and
topics are numbers of `Names`; a topic that is not known is 0. `stamp` is the record time shifted by 16 bits,
with the low bits of the number of the expiry entry that names the record. The usual deadline is by the
horizons the state began with.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamwatch.core.join.entry import EARLY, PENDING, RESOLVED, JoinEntry
from streamwatch.core.join.expiry import deadline
from streamwatch.edge.stores.rocksdb.rows.names import Names

Row = list[Any]
Shared = dict[Any, Any]
"""What rows have in common, in dictionaries of dictionaries: a tuple as key costs more than all of them."""

_ENTRY_BITS: Final = 16
_ENTRY_MASK: Final = 2**_ENTRY_BITS - 1
_DEADLINE_BITS: Final = 40
_DEADLINE_MASK: Final = 2**_DEADLINE_BITS - 1
_STATE_BITS: Final = 4
_STATE_MASK: Final = 2**_STATE_BITS - 1
_CACHED: Final = 4096
_STAMP: Final = 2**63
_STAMP_BYTES: Final = 8

_HEADERS: Final = tuple(bytes((0x90 | rows,)) for rows in range(16))

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


def tag(deadline_s: int, entry: int) -> int:
    """`generation` of a waiting record that the expiry entry of this number names."""
    return -2 - ((entry & _ENTRY_MASK) << _DEADLINE_BITS | deadline_s)


def deadline_of(generation: int) -> int:
    """The deadline in a `tag`."""
    return (-2 - generation) & _DEADLINE_MASK


class ChainCodec:
    """Chains to bytes and back."""

    __slots__ = (
        "_early_horizon_ms",
        "_heads",
        "_horizon_ms",
        "_remembered",
        "_settled",
        "_within",
        "floor",
        "names",
    )

    def __init__(self, names: Names, horizon_ms: int, early_horizon_ms: int, floor: int) -> None:
        self.names = names
        self._horizon_ms = horizon_ms
        self._early_horizon_ms = early_horizon_ms
        self._settled: Shared = {}  # rows, by generation, state, truth, model, prediction
        self._heads: dict[int, Shared] = {place: {} for place in range(~(RESOLVED - 1), RESOLVED)}
        self._within: dict[int, tuple[int, int, int]] = {}
        self._remembered = 0
        self.floor = floor
        """Dedup entries of generations below this are dead: neither written nor read."""

    def pack(self, first: JoinEntry) -> bytes | None:
        """The value of a chain; None when nothing of it is alive.

        Few records of a commit differ in anything but their id, their stamp and their own time, and those of
        one id seldom even in these: the rest of a row is looked up, its tail made once for all that share it.
        """
        floor, settled = self.floor, self._settled
        heads = settled
        rows: list[bytes] = []
        tail = kind = mark = record_ms = own_ms = None  # of the last row that waits
        record: JoinEntry | None = first
        while record is not None:
            state, generation = record.state, record.generation
            if state >= RESOLVED:
                if generation >= floor:
                    try:
                        row = settled[generation][state][record.true_class][record.model][
                            record.predicted_class
                        ]
                    except KeyError:
                        row = self._new_dedup_entry(record)
                    rows.append(row)
            else:
                if (
                    generation is not mark
                    or record.record_ms != record_ms
                    or record.timestamp_ms != own_ms
                    or state != kind
                ):
                    kind, mark, record_ms, own_ms = state, generation, record.record_ms, record.timestamp_ms
                    tail = self._tail(state, generation, record_ms, own_ms)
                    heads = self._heads[state if own_ms is None else ~state]
                if (
                    tail is None
                    or record.scores is not None
                    or record.segments is not None
                    or record.last_class is not None
                ):
                    rows.append(_encode(self._waiting(record)))
                else:
                    try:
                        head = heads[record.topic][record.label_at_prediction][record.model][
                            record.predicted_class or record.true_class
                        ]
                    except KeyError:
                        head = self._new_head(heads, record)
                    rows.append(head + tail)
            record = record.next
        if len(rows) < 2:
            return rows[0] if rows else None
        return _header(len(rows)) + b"".join(rows)

    def _new_dedup_entry(self, record: JoinEntry) -> bytes:
        path = (record.generation, record.state, record.true_class, record.model, record.predicted_class)
        return self._remember(self._settled, path, _encode(self._dedup_entry(record)))

    def _new_head(self, heads: Shared, record: JoinEntry) -> bytes:
        """Of a row that waits: all before its stamp."""
        last = [] if record.timestamp_ms is None else [0]
        row = _encode([*self._waiting(record)[:4], _STAMP, *last])
        named = record.predicted_class or record.true_class
        path = (record.topic, record.label_at_prediction, record.model, named)
        return self._remember(heads, path, row[: -_STAMP_BYTES - len(last)])

    def _remember(self, shared: Shared, path: tuple[int | str | None, ...], value: bytes) -> bytes:
        self._remembered += 1
        if self._remembered > _CACHED:
            self._remembered = 1
            self._settled.clear()
            self._within.clear()
            for heads in self._heads.values():
                heads.clear()
        *places, last = path
        for place in places:
            shared = shared.setdefault(place, {})
        shared[last] = value
        return value

    def _tail(self, state: int, generation: int, record_ms: int, own_ms: int | None) -> bytes | None:
        """Of a row that waits: its stamp and its own time; None if it falls due at an unusual time."""
        usual = self._within.get(~generation if state == EARLY else generation)
        after_ms, until_ms, entry = usual or self._usually(state, generation)
        if not after_ms < record_ms <= until_ms:
            return None
        stamp = (record_ms << _ENTRY_BITS | entry).to_bytes(_STAMP_BYTES, "big")
        return stamp if own_ms is None else stamp + _encode(own_ms - record_ms)

    def _usually(self, state: int, generation: int) -> tuple[int, int, int]:
        """After and until when records of an entry were made by the usual horizon, and its number."""
        horizon_ms = self._early_horizon_ms if state == EARLY else self._horizon_ms
        until_ms = deadline_of(generation) * 1000 - horizon_ms
        usual = until_ms - 1000, until_ms, (-2 - generation) >> _DEADLINE_BITS
        if len(self._within) >= _CACHED:
            self._within.clear()
        self._within[~generation if state == EARLY else generation] = usual
        return usual

    def _dedup_entry(self, record: JoinEntry) -> Row:
        number = self.names.number
        row: Row = [record.state, number(record.model), number(record.predicted_class), record.generation]
        if record.true_class:
            row.append(number(record.true_class))
        return row

    def _usual(self, state: int, record_ms: int) -> int:
        return deadline(record_ms, self._early_horizon_ms if state == EARLY else self._horizon_ms)

    def _waiting(self, record: JoinEntry) -> Row:
        number = self.names.number
        state, record_ms, generation = record.state, record.record_ms, record.generation
        own_ms, scores = record.timestamp_ms, record.scores
        topic = number(record.topic)
        row: Row = [
            state | (topic << _STATE_BITS if isinstance(topic, int) else 0),
            number(record.model),
            number(record.predicted_class or record.true_class),
            number(record.label_at_prediction),
            record_ms << _ENTRY_BITS | (-2 - generation) >> _DEADLINE_BITS,
            None if own_ms is None else own_ms - record_ms,
            None if scores is None else {number(name): score for name, score in scores.items()},
            (deadline_of(generation) - self._usual(state, record_ms)) or None,
            None if record.segments is None else {number(n): number(v) for n, v in record.segments.items()},
            number(record.last_class),
        ]
        while row[-1] is None:
            del row[-1]
        return row

    def unpack(self, key: str, value: bytes) -> JoinEntry | None:
        """The chain of id `key`, without what is dead; None when nothing is left."""
        name = self.names.name
        first: JoinEntry | None = None
        for row in reversed(unpack_rows(value)):
            state = row[0]
            if is_settled(row):
                generation = row[3]
                if generation >= self.floor:
                    true_class = name(row[4]) if len(row) > 4 else ""
                    first = JoinEntry(
                        key, name(row[1]), state, name(row[2]), true_class, 0, None, None, generation, first
                    )
            else:
                first = self._waits(key, row, first)
        return first

    def _waits(self, key: str, row: Row, following: JoinEntry | None) -> JoinEntry:
        name = self.names.name
        state, topic, stamp = row[0] & _STATE_MASK, row[0] >> _STATE_BITS, row[4]
        more = len(row)
        own = row[5] if more > 5 else None
        scores = row[6] if more > 6 else None
        late = (row[7] or 0) if more > 7 else 0
        segments = row[8] if more > 8 else None
        last_class = name(row[9]) if more > 9 else None
        record_ms, klass = stamp >> _ENTRY_BITS, name(row[2])
        due_s = (
            -(-(record_ms + (self._early_horizon_ms if state == EARLY else self._horizon_ms)) // 1000) + late
        )
        return JoinEntry(
            key,
            name(row[1]),
            state,
            klass if state == PENDING else "",
            "" if state == PENDING else klass,
            record_ms,
            None if own is None else record_ms + own,
            None if scores is None else {name(number): score for number, score in scores.items()},
            tag(due_s, stamp & _ENTRY_MASK),
            following,
            name(row[3]),
            None if segments is None else {name(segment): name(value) for segment, value in segments.items()},
            name(topic),
            last_class,
        )


def is_settled(row: Row) -> bool:
    """Tell whether a row is that of a dedup entry."""
    return row[0] & _STATE_MASK >= RESOLVED


def unpack_rows(value: bytes) -> list[Row]:
    """The rows of a chain, first record first."""
    rows = _decode(value)
    return rows if type(rows[0]) is list else [rows]


def _header(rows: int) -> bytes:
    """Of an array of so many."""
    return _HEADERS[rows] if rows < 16 else b"\xdc" + rows.to_bytes(2, "big")


def pack_rows(rows: list[Row]) -> bytes | None:
    """The value with these rows; None without any."""
    if not rows:
        return None
    return _encode(rows if len(rows) > 1 else rows[0])
