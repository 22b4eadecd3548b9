"""How what is known of one id is written: its whole chain in one value, a row per record.

    waits      [state, model, class, known, stamp, own time − record time, scores, deadline − usual deadline]
    settled    [state, model, predicted, generation, truth]

Trailing defaults are left out; a chain of one is its row, a longer one an array of rows. Models and classes
are numbers of `Names`. `stamp` is the record time shifted by 16 bits, with the low bits of the number of the
expiry entry that names the record. The usual deadline is by the horizons the state began with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from streamwatch.core.expiry import deadline
from streamwatch.core.known import EARLY, PENDING, RESOLVED, Known

MAX_NAMES: Final = 65_536

Row = list[Any]

_ENTRY_BITS: Final = 16
_ENTRY_MASK: Final = 2**_ENTRY_BITS - 1
_DEADLINE_BITS: Final = 40
_DEADLINE_MASK: Final = 2**_DEADLINE_BITS - 1
_CACHED: Final = 4096
_STAMP: Final = 2**63
_STAMP_BYTES: Final = _STAMP.to_bytes(8, "big")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


def tag(deadline_s: int, entry: int) -> int:
    """`generation` of a waiting record that the expiry entry of this number names."""
    return -2 - ((entry & _ENTRY_MASK) << _DEADLINE_BITS | deadline_s)


def deadline_of(generation: int) -> int:
    """The deadline in a `tag`."""
    return (-2 - generation) & _DEADLINE_MASK


class Names:
    """Models and classes by number, in order of first use; never forgotten, and at most so many.

    A name that finds no place is written out wherever it is used.
    """

    __slots__ = ("_numbers", "fresh", "names")

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names) or [""]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self.fresh: list[str] = [] if names else [""]
        """Added since the last commit."""

    def number(self, name: str | None) -> int | str | None:
        """What stands for a name."""
        if name is None:
            return None
        number = self._numbers.get(name)
        if number is not None:
            return number
        if len(self.names) >= MAX_NAMES:
            return name
        number = self._numbers[name] = len(self.names)
        self.names.append(name)
        self.fresh.append(name)
        return number

    def name(self, number: int | str | None) -> Any:
        """What a number stands for."""
        return self.names[number] if type(number) is int else number


class Packing:
    """Chains to bytes and back."""

    __slots__ = ("_cached", "_early_horizon_ms", "_horizon_ms", "floor", "names")

    def __init__(self, names: Names, horizon_ms: int, early_horizon_ms: int, floor: int) -> None:
        self.names = names
        self._horizon_ms = horizon_ms
        self._early_horizon_ms = early_horizon_ms
        self._cached: dict[tuple[int, str | None, str, str, int | str | None], bytes] = {}
        self.floor = floor
        """Tombstones of generations below this are dead: neither written nor read."""

    def pack(self, first: Known) -> bytes | None:
        """The value of a chain; None when nothing of it is alive."""
        floor = self.floor
        if first.next is None:
            return self._row(first) if first.state < RESOLVED or first.generation >= floor else None
        rows: list[bytes] = []
        record: Known | None = first
        while record is not None:
            if record.state < RESOLVED or record.generation >= floor:
                rows.append(self._row(record))
            record = record.next
        if len(rows) < 2:
            return rows[0] if rows else None
        return _header(len(rows)) + b"".join(rows)

    def _row(self, record: Known) -> bytes:
        """One record. Few of a commit differ in anything but their id, their stamp and their own time."""
        state, own_ms = record.state, record.timestamp_ms
        if state >= RESOLVED:
            key = (state, record.model, record.predicted, record.truth, record.generation)
            value = self._cached.get(key)
            return self._remember(key, _encode(self._tombstone(record))) if value is None else value
        at_ms, mark = record.at_ms, -2 - record.generation
        horizon_ms = self._early_horizon_ms if state == EARLY else self._horizon_ms
        if record.scores is not None or mark & _DEADLINE_MASK != -(-(at_ms + horizon_ms) // 1000):
            return _encode(self._waiting(record))
        key = (
            state if own_ms is None else ~state,
            record.model,
            record.predicted,
            record.truth,
            record.known,
        )
        head = self._cached.get(key)
        if head is None:
            row = [*self._waiting(record)[:4], _STAMP, *([] if own_ms is None else [0])]
            head = self._remember(key, _encode(row)[: -len(_STAMP_BYTES) - (own_ms is not None)])
        stamp = (at_ms << _ENTRY_BITS | mark >> _DEADLINE_BITS).to_bytes(len(_STAMP_BYTES), "big")
        return head + stamp if own_ms is None else head + stamp + _encode(own_ms - at_ms)

    def _remember(self, key: tuple[int, str | None, str, str, int | str | None], value: bytes) -> bytes:
        if len(self._cached) >= _CACHED:
            self._cached.clear()
        self._cached[key] = value
        return value

    def _tombstone(self, record: Known) -> Row:
        number = self.names.number
        row: Row = [record.state, number(record.model), number(record.predicted), record.generation]
        if record.truth:
            row.append(number(record.truth))
        return row

    def _usual(self, state: int, at_ms: int) -> int:
        return deadline(at_ms, self._early_horizon_ms if state == EARLY else self._horizon_ms)

    def _waiting(self, record: Known) -> Row:
        number = self.names.number
        state, at_ms, generation = record.state, record.at_ms, record.generation
        own_ms, scores = record.timestamp_ms, record.scores
        row: Row = [
            state,
            number(record.model),
            number(record.predicted or record.truth),
            number(record.known),
            at_ms << _ENTRY_BITS | (-2 - generation) >> _DEADLINE_BITS,
            None if own_ms is None else own_ms - at_ms,
            None if scores is None else {number(name): score for name, score in scores.items()},
            (deadline_of(generation) - self._usual(state, at_ms)) or None,
        ]
        while row[-1] is None:
            del row[-1]
        return row

    def unpack(self, key: str, value: bytes) -> Known | None:
        """The chain of id `key`, without what is dead; None when nothing is left."""
        name = self.names.name
        first: Known | None = None
        for row in reversed(unpack_rows(value)):
            state = row[0]
            if state >= RESOLVED:
                generation = row[3]
                if generation >= self.floor:
                    truth = name(row[4]) if len(row) > 4 else ""
                    first = Known(
                        key, name(row[1]), state, name(row[2]), truth, 0, None, None, generation, first
                    )
            else:
                first = self._waits(key, row, first)
        return first

    def _waits(self, key: str, row: Row, following: Known | None) -> Known:
        name = self.names.name
        state, stamp = row[0], row[4]
        more = len(row)
        own = row[5] if more > 5 else None
        scores = row[6] if more > 6 else None
        late = row[7] if more > 7 else 0
        at_ms, klass = stamp >> _ENTRY_BITS, name(row[2])
        due_s = -(-(at_ms + (self._early_horizon_ms if state == EARLY else self._horizon_ms)) // 1000) + late
        return Known(
            key,
            name(row[1]),
            state,
            klass if state == PENDING else "",
            "" if state == PENDING else klass,
            at_ms,
            None if own is None else at_ms + own,
            None if scores is None else {name(number): score for number, score in scores.items()},
            tag(due_s, stamp & _ENTRY_MASK),
            following,
            name(row[3]),
        )


def unpack_rows(value: bytes) -> list[Row]:
    """The rows of a chain, first record first."""
    rows = _decode(value)
    return rows if type(rows[0]) is list else [rows]


def _header(rows: int) -> bytes:
    """Of an array of so many."""
    return bytes((0x90 | rows,)) if rows < 16 else b"\xdc" + rows.to_bytes(2, "big")


def pack_rows(rows: list[Row]) -> bytes | None:
    """The value with these rows; None without any."""
    if not rows:
        return None
    return _encode(rows if len(rows) > 1 else rows[0])
