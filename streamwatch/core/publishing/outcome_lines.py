"""Outcomes as JSON lines (`OutcomeDocument`), with the ids of the records that resolved them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from streamwatch.core.publishing.documents import SCHEMA_VERSION
from streamwatch.core.publishing.line_writer import (
    ClassTexts,
    Keys,
    LineParts,
    NumberedTexts,
    TextTable,
    Written,
    pieces_of,
)
from streamwatch.core.records.batch import OBJECT, RecordBatch
from streamwatch.core.records.events import (
    SAMPLING,
    Label,
    Prediction,
    fold_of,
    model_of,
    probability_of,
    requested_of,
    segments_of,
)
from streamwatch.core.records.outcomes import OutcomeBatch

_json = msgspec.json.Encoder().encode

# Ids by digest, from records: the join keeps digests only.


class IdTexts:
    """Finds the keys (namespace and id) of the records of one stretch of the sequence by their digests.

    Parameters
    ----------
    records
        Records with the texts of their keys. The stretch holds the record that resolves an outcome: its
        label, or its prediction where the label came first.
    """

    def __init__(self, records: RecordBatch) -> None:
        self._records = records
        rows = records.rows
        with_text = (
            np.flatnonzero(rows["side"] != OBJECT) if records.texts is not None else np.empty(0, np.intp)
        )
        low = rows["id_low"][with_text]
        order = np.argsort(low)
        self._indices = with_text[order]
        self._low = low[order]
        self._high = rows["id_high"][self._indices]
        self._of_objects: dict[tuple[int, int], str] = {}
        for event in records.objects_at(records.object_rows()):
            if isinstance(event, Prediction | Label):
                digest = xxhash.xxh3_128_intdigest(event.id.encode())
                self._of_objects[digest >> 64, digest & 0xFFFF_FFFF_FFFF_FFFF] = event.id

    def keys(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> Keys:
        """Return the key of each digest, shape (n,).

        Raises
        ------
        KeyError
            If no record of the stretch has this digest.
        """
        texts = self._records.texts if self._records.texts is not None else np.zeros(0, np.uint8)
        starts, sizes = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
        found = np.zeros(len(low), np.bool_)
        if len(self._low):
            at = np.minimum(np.searchsorted(self._low, low), len(self._low) - 1)
            found = (self._low[at] == low) & (self._high[at] == high)
            rows, indices = self._records.rows, self._indices[at[found]]
            starts[found], sizes[found] = rows["id_at"][indices], rows["id_bytes"][indices]
        if found.all():
            return Keys(texts, starts, sizes)
        others: list[bytes] = []
        end = len(texts)
        for i in np.flatnonzero(~found).tolist():
            text = self._other(int(high[i]), int(low[i]))
            starts[i], sizes[i] = end, len(text)
            others.append(text + b"\n")
            end += len(text) + 1
        return Keys(np.concatenate([texts, np.frombuffer(b"".join(others), np.uint8)]), starts, sizes)

    def _other(self, high: int, low: int) -> bytes:
        """Find the key of an event object, or of a row whose lower half other rows have as well."""
        if (high, low) in self._of_objects:
            return self._of_objects[high, low].encode()
        same = np.flatnonzero((self._low == low) & (self._high == high))
        if not len(same) or self._records.texts is None:
            raise KeyError(f"no record of the stretch has the digest {high:016x}{low:016x}")
        row = self._records.rows[self._indices[same[0]]]
        return self._records.texts[row["id_at"] : row["id_at"] + row["id_bytes"]].tobytes()


# Lines of a batch.


class OutcomeLines:
    """Writes outcomes as lines of JSON.

    Parameters
    ----------
    life
        Name of the sequence in which outcomes are numbered (`OutcomeDocument.life`).
    """

    def __init__(self, life: str) -> None:
        self._pieces = pieces_of(
            f'{{"schema_version":{SCHEMA_VERSION},"life":{_text(life).decode()},"number":'
        )

    def of(self, batch: OutcomeBatch, keys: Keys, first: int) -> Written:
        """Write outcomes in order, numbered from `first` on."""
        records = batch.records
        [(model, models)] = _named([records["model"]], batch.models, _model)
        columns = [
            records["predicted_class"],
            records["last_class"] - 1,
            records["true_class"],
            records["label_at_prediction"],
        ]
        classes = _named(columns, batch.classes, _text)
        segments = batch.segment_numbers()
        if segments is None:
            segments = np.full(len(records), -1, np.int32)
        [(values, of_values)] = _named([segments], batch.segments, _segments)
        return LineParts(
            records,
            NumberedTexts(models, model),
            ClassTexts(classes[0][1], *[numbers for numbers, _ in classes]),
            keys,
            NumberedTexts(of_values, values),
            _sampling(records["carried"][:, SAMPLING]),
            self._pieces,
        ).written(first)


def keys_of(batch: OutcomeBatch, ids: Callable[[], IdTexts] | None) -> Keys:
    """Find the keys of outcomes; assumed ones have none, as no record resolves them.

    Parameters
    ----------
    batch
        The outcomes.
    ids
        Function that returns the keys of the records that resolved them; None: no outcome gets a key.
    """
    records = batch.records
    starts, sizes = np.zeros(len(records), np.int64), np.full(len(records), -1, np.int64)
    resolved = records["assumed"] == 0
    if ids is None or not resolved.any():
        return Keys(np.zeros(0, np.uint8), starts, sizes)
    found = ids().keys(records["high"][resolved], records["low"][resolved])
    starts[resolved], sizes[resolved] = found.starts, found.sizes
    return Keys(found.texts, starts, sizes)


def _named(
    columns: Sequence[NDArray[Any]], names: Sequence[str], write: Callable[[str], bytes]
) -> list[tuple[NDArray[np.int32], TextTable]]:
    """Convert columns of numbers of names to numbers of texts, with their table; negative ones are null."""
    used = np.zeros(max([int(column.max(initial=-1)) for column in columns]) + 2, np.bool_)
    used[0] = True
    for column in columns:
        used[column + 1] = True
    numbers = np.cumsum(used, dtype=np.int32) - 1
    chosen: list[int] = np.flatnonzero(used).tolist()
    table = TextTable.of([b"null", *(write(names[number - 1]) for number in chosen[1:])])
    return [(numbers[column + 1].astype(np.int32), table) for column in columns]


def _text(text: str) -> bytes:
    return _json(text)


def _model(name: str) -> bytes:
    fold = fold_of(name)
    return b'"model":%b,"fold":%b' % (_json(model_of(name)), b"null" if fold is None else b"%d" % fold)


def _segments(text: str) -> bytes:
    return _json(segments_of(text))


def _sampling(numbers: NDArray[Any]) -> NumberedTexts:
    """Texts of the probability of each outcome's label, and of whether it was asked for."""
    if not numbers.any():
        return NumberedTexts(TextTable.of([_sampled(0)]), np.zeros(len(numbers), np.int32))
    different, indices = np.unique(numbers, return_inverse=True)
    table = TextTable.of([_sampled(number) for number in different.tolist()])
    return NumberedTexts(table, indices.astype(np.int32))


def _sampled(number: int) -> bytes:
    return b'%b,"label_requested":%b' % (_json(probability_of(number)), _json(requested_of(number)))
