"""Outcomes that a commit keeps for their topic: as columns with names and ids, a fifth as large as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.publishing.line_writer import Keys
from streamwatch.core.records.batch import gather_texts
from streamwatch.core.records.events import Name, model_of
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch


class KeptOutcomes(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive outcomes of a commit."""

    models: list[Name]
    """Names by number, folds included."""
    classes: list[Name]
    segments: list[Name]
    """Values of segments, as `core.records.events.segments_text` writes them."""
    records: bytes
    """Rows of dtype `OUTCOME` with numbers of these names; `scores` has numbers of segments only."""
    keys: bytes
    """Keys of the outcomes that have one, each followed by one byte."""
    key_sizes: bytes
    """int32 for each outcome: number of bytes of its key; -1 without a key."""

    @classmethod
    def of(cls, batch: OutcomeBatch, keys: Keys) -> Self:
        """Convert outcomes, and the keys of their records."""
        records = batch.records.copy()
        [model], models = _renumbered([records["model"]], batch.models)
        columns = [records[name] for name in _CLASSES]
        columns.append(records["last_class"] - 1)
        numbers, classes = _renumbered(columns, batch.classes)
        of_segments = batch.segment_numbers()
        records["model"] = model
        for name, column in zip(_CLASSES, numbers, strict=False):
            records[name] = column
        records["last_class"] = numbers[-1] + 1
        segments: list[str] = []
        records["scores"] = -1
        if of_segments is not None:
            [values], segments = _renumbered([of_segments], batch.segments)
            records["scores"] = np.where(values < 0, -1, SEGMENTS_FROM + values)
        return cls(models, classes, segments, records.tobytes(), *_gathered(keys))

    @property
    def count(self) -> int:
        """Number of outcomes."""
        return len(self.key_sizes) // 4

    @property
    def size_bytes(self) -> int:
        """Number of bytes of records and keys."""
        return len(self.records) + len(self.keys) + len(self.key_sizes)

    def after(self, count: int) -> KeptOutcomes:
        """Return the outcomes without the first `count`."""
        sizes = np.frombuffer(self.key_sizes, np.int32)
        cut = int(np.maximum(sizes[:count] + 1, 0).sum())
        return msgspec.structs.replace(
            self,
            records=self.records[OUTCOME.itemsize * count :],
            keys=self.keys[cut:],
            key_sizes=self.key_sizes[4 * count :],
        )

    def record_keys(self) -> Keys:
        """Return the keys of the outcomes' records."""
        sizes = np.frombuffer(self.key_sizes, np.int32).astype(np.int64)
        taken = np.maximum(sizes + 1, 0)
        return Keys(np.frombuffer(self.keys, np.uint8).copy(), np.cumsum(taken) - taken, sizes)

    def topic_keys(self) -> tuple[list[str], NDArray[np.int32]]:
        """Return the keys in the topic (models without folds), and the index of each outcome's key."""
        models = [model_of(name) for name in self.models]
        different = {model: number for number, model in enumerate(dict.fromkeys(models))}
        of_each = np.array([different[model] for model in models], np.int32)
        return list(different), of_each[np.frombuffer(self.records, OUTCOME)["model"]]


_CLASSES = ("true_class", "predicted_class", "label_at_prediction")


def _renumbered(
    columns: Sequence[NDArray[Any]], names: Sequence[str]
) -> tuple[list[NDArray[np.int32]], list[str]]:
    """Renumber columns so that only names in use are left; negative numbers become -1."""
    used = np.zeros(max([int(column.max(initial=-1)) for column in columns]) + 2, np.bool_)
    used[0] = True
    for column in columns:
        used[np.maximum(column, -1) + 1] = True
    renumbered = np.cumsum(used, dtype=np.int32) - 2
    chosen: list[int] = (np.flatnonzero(used)[1:] - 1).tolist()
    return [renumbered[np.maximum(column, -1) + 1] for column in columns], [
        names[number] for number in chosen
    ]


def _gathered(keys: Keys) -> tuple[bytes, bytes]:
    """Concatenate the keys, each followed by a byte, and encode their sizes."""
    sizes = keys.sizes.astype(np.int32).tobytes()
    chosen = keys.sizes >= 0
    if not chosen.any():
        return b"", sizes
    own = keys.sizes[chosen]
    gathered = np.empty(int(own.sum()) + len(own), np.uint8)
    gather_texts(keys.texts, keys.starts[chosen], own, gathered)
    return gathered.tobytes(), sizes
