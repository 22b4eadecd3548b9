"""Outcomes as JSON lines (`OutcomeDocument`), with the ids of the records that resolved them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from streamwatch.core.publishing.documents import SCHEMA_VERSION
from streamwatch.core.publishing.kept_outcomes import KeptOutcomes
from streamwatch.core.publishing.line_writer import (
    Keys,
    LineParts,
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
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch

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
            f'{{"schema_version":{SCHEMA_VERSION},"life":{_json(life).decode()},"number":'
        )

    def of(self, kept: KeptOutcomes, first: int) -> Written:
        """Write outcomes in order, numbered from `first` on."""
        records = np.frombuffer(kept.records, OUTCOME)
        different, sampled = np.unique(records["carried"][:, SAMPLING], return_inverse=True)
        return LineParts(
            records,
            TextTable.of(list(map(_model, kept.models))),
            TextTable.of([b"null", *map(_json, kept.classes)]),
            kept.record_keys(),
            TextTable.of([b"null", *(_json(segments_of(text)) for text in kept.segments)]),
            TextTable.of(list(map(_sampled, different.tolist()))),
            sampled.astype(np.int32),
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


def _model(name: str) -> bytes:
    fold = fold_of(name)
    return b'"model":%b,"fold":%b' % (_json(model_of(name)), b"null" if fold is None else b"%d" % fold)


def _sampled(number: int) -> bytes:
    return b'%b,"label_requested":%b' % (_json(probability_of(number)), _json(requested_of(number)))
