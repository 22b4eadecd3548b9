"""Encoding of outcomes as one packed value: columns, and the names that numbers in them stand for.

0xC1, length of the names       1, 4 bytes; msgpack never begins so
names                           msgpack: models, classes, texts of segments, packed columns of pairs;
                                the last two only if there are any
columns                         `packed.pack_columns`
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome
from streamwatch.core.join.compiled.durable.packed import PackedError, pack_columns, unpack_columns
from streamwatch.core.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch, Pairs
from streamwatch.core.segments import segments_of
from streamwatch.core.words import joined

_HEAD: Final = Struct("<BI")
_MARK: Final = 0xC1
_COLUMNS: Final = (
    "event_ms",
    "delay_ms",
    "model",
    "true_class",
    "predicted_class",
    "label_at_prediction",
    "assumed",
)
_CLASSES: Final = ("true_class", "predicted_class", "label_at_prediction")
_ENCODER = msgspec.msgpack.Encoder()
_ROWS = msgspec.msgpack.Decoder(list[Outcome])
_OF_PAIRS: Final = 3
"""Number of columns of `outcomes.Pairs`."""


class _Names(msgspec.Struct, array_like=True, omit_defaults=True):
    """Names by number, and the pairs."""

    models: list[str]
    classes: list[str]
    segments: list[str] = []
    pairs: bytes = b""


_NAMES = msgspec.msgpack.Decoder(_Names)


def written(parts: Sequence[Sequence[Outcome]]) -> bytes:
    """Encode outcomes: as columns if they are an `OutcomeBatch` without scores, else one by one."""
    batches = [part for part in parts if isinstance(part, OutcomeBatch) and not part.scores]
    if len(batches) < len(parts):
        return _ENCODER.encode([outcome for part in parts for outcome in part])
    models, classes, segments = _Numbers(), _Numbers(), _Numbers()
    records = joined([batch.records for batch in batches])
    start = 0
    for batch in batches:
        some = records[start : start + len(batch)]
        start += len(batch)
        some["model"] = models.of(some["model"], batch.models)
        for name in _CLASSES:
            some[name] = classes.of(some[name], batch.classes)
        numbers = batch.segment_numbers()
        some["scores"] = -1 if numbers is None else segments.of(numbers, batch.segments)
    pairs = _packed_pairs(batches, models, classes)
    named = [list(models.numbers), list(classes.numbers), list(segments.numbers), pairs]
    names = _ENCODER.encode(named if pairs else named[:3] if segments.numbers else named[:2])
    columns = [records[name].astype(np.int64) for name in _COLUMNS]
    if segments.numbers:
        columns.append(records["scores"].astype(np.int64))
    return _HEAD.pack(_MARK, len(names)) + names + pack_columns(columns)


def read(value: bytes) -> OutcomeBatch | list[Outcome]:
    """Decode a value that `written` gave; outcomes in columns have no ids.

    Raises
    ------
    ValueError
        If the value is not of this format.
    """
    if value[:1] != bytes((_MARK,)):
        return _ROWS.decode(value)
    if len(value) < _HEAD.size:
        raise PackedError(f"expected at least {_HEAD.size} bytes of outcomes, got {len(value)}")
    _, length = _HEAD.unpack_from(value)
    start = _HEAD.size + length
    named = _NAMES.decode(value[_HEAD.size : start])
    models, classes, segments = named.models, named.classes, named.segments
    for text in segments:
        segments_of(text)  # refused here, not where somebody looks
    *columns, last = unpack_columns(value[start:], len(_COLUMNS) + bool(segments))
    if not segments:
        columns.append(last)
    records = np.zeros(len(columns[0]), OUTCOME)
    for name, column in zip(_COLUMNS, columns, strict=True):
        least, most = (0, len(models)) if name == "model" else (-1, len(classes))
        if (name == "model" or name in _CLASSES) and not _within(column, least, most):
            raise PackedError(f"expected numbers of {most} names, got {column.max()} as {name}")
        records[name] = column
    records["scores"] = -1
    if segments:
        if not _within(last, -1, len(segments)):
            raise PackedError(f"expected numbers of {len(segments)} segments, got {last.max()}")
        records["scores"] = np.where(last < 0, -1, last + SEGMENTS_FROM)
    pairs = _unpacked_pairs(named, len(records)) if named.pairs else None
    return OutcomeBatch(records, models, classes, {}, segments, pairs=pairs)


def _packed_pairs(batches: Sequence[OutcomeBatch], models: _Numbers, classes: _Numbers) -> bytes:
    """Pack the pairs of consecutive batches with numbers here; empty without any."""
    found: list[Pairs] = []
    start = 0
    for batch in batches:
        if batch.pairs is not None:
            own = np.empty_like(batch.pairs)
            own[:, 0] = batch.pairs[:, 0] + start
            own[:, 1] = models.of(batch.pairs[:, 1], batch.models)
            own[:, 2] = classes.of(batch.pairs[:, 2], batch.classes)
            found.append(own)
        start += len(batch)
    if not found:
        return b""
    pairs = np.concatenate(found).astype(np.int64)
    pairs[:, 0] = np.diff(pairs[:, 0], prepend=0)
    return pack_columns(list(np.ascontiguousarray(pairs.T)))


def _unpacked_pairs(named: _Names, outcomes: int) -> Pairs:
    """Unpack what `_packed_pairs` gave; raises PackedError if a number is out of range."""
    columns = np.stack(unpack_columns(named.pairs, _OF_PAIRS), axis=1).astype(np.int64)
    if not _within(columns[:, 0], 0, outcomes):
        raise PackedError(f"expected pairs in the order of {outcomes} outcomes, got others")
    columns[:, 0] = np.cumsum(columns[:, 0])
    for number, most in enumerate((outcomes, len(named.models), len(named.classes))):
        if not _within(columns[:, number], 0, most):
            raise PackedError(f"expected pairs with numbers below {most}, got {columns[:, number].max()}")
    return columns.astype(np.int32)


def models_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Names of the models of outcomes, in the order in which they first appear."""
    if not isinstance(outcomes, OutcomeBatch):
        return list({outcome.model: None for outcome in outcomes})
    column = outcomes.records["model"]
    first = np.full(len(outcomes.models), len(column))
    np.minimum.at(first, column, np.arange(len(column)))
    numbers = np.flatnonzero(first < len(column))
    ordered: list[int] = numbers[np.argsort(first[numbers])].tolist()
    return [outcomes.models[number] for number in ordered]


class _Numbers:
    """Numbers of the names that occur, in the order in which they are asked for."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, column: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
        """Numbers here of numbers there; -1 stays what it is."""
        here = np.full(len(names) + 1, -1, np.int32)
        for number in np.flatnonzero(np.bincount(column + 1, minlength=1)[1:]).tolist():
            here[number] = self.numbers.setdefault(names[number], len(self.numbers))
        return here[column]


def _within(column: NDArray[np.int64] | NDArray[np.uint64], least: int, most: int) -> bool:
    return not len(column) or (least <= int(column.min()) and int(column.max()) < most)
