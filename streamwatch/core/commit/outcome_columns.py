"""Encoding of outcomes as one packed value: columns, and the names that numbers in them stand for.

0xC1, length of the names       1, 4 bytes; msgpack never begins so
names                           msgpack: models, classes, and texts of segments if there are any
columns                         `packed.pack_columns`
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Annotated, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome
from streamwatch.core.join.compiled.durable.packed import PackedError, pack_columns, unpack_columns
from streamwatch.core.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
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
_NAMES = msgspec.msgpack.Decoder(Annotated[list[list[str]], msgspec.Meta(min_length=2, max_length=3)])


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
    named = (models, classes, segments) if segments.numbers else (models, classes)
    names = _ENCODER.encode([list(each.numbers) for each in named])
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
    models, classes, *rest = _NAMES.decode(value[_HEAD.size : start])
    segments = rest[0] if rest else []
    for text in segments:
        segments_of(text)  # refused here, not where somebody looks
    *columns, last = unpack_columns(value[start:], len(_COLUMNS) + len(rest))
    if not rest:
        columns.append(last)
    records = np.zeros(len(columns[0]), OUTCOME)
    for name, column in zip(_COLUMNS, columns, strict=True):
        least, most = (0, len(models)) if name == "model" else (-1, len(classes))
        if (name == "model" or name in _CLASSES) and not _within(column, least, most):
            raise PackedError(f"expected numbers of {most} names, got {column.max()} as {name}")
        records[name] = column
    records["scores"] = -1
    if rest:
        if not _within(last, -1, len(segments)):
            raise PackedError(f"expected numbers of {len(segments)} segments, got {last.max()}")
        records["scores"] = np.where(last < 0, -1, last + SEGMENTS_FROM)
    return OutcomeBatch(records, models, classes, {}, segments)


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
