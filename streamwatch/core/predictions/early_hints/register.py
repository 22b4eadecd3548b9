"""Register of early hints: names, rows and states of the watched models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.early_hints.observe import (
    BLOCK,
    CLASSES,
    EARLY,
    LAG,
    SCORE,
    VERSION,
    EarlyHintsSpec,
    learn,
    observe,
)
from streamwatch.core.predictions.early_hints.view import (
    EarlyView,
    active_hint,
    document,
    families_of,
    reach_of,
    view,
)
from streamwatch.core.predictions.kind import (
    ActiveHint,
    PredictionBatch,
    scores_of_classes,
)
from streamwatch.core.ranges import require
from streamwatch.core.records.batch import taken
from streamwatch.core.records.events import Name, Outcome, fold_of
from streamwatch.core.records.outcome_objects import in_columns

# Cache of the codes of (model, class) pairs, by the numbers of their names.


_UNKNOWN: Final = -2
MOST_PAIRS: Final = 1 << 22
"""Largest number of cached pairs; with more, every prediction is looked up by name."""


class NumberTable:
    """Caches the results of a function of two names, by the names' numbers.

    Parameters
    ----------
    code_of
        Function from names of model and class to their code, −1 or more.
    """

    def __init__(self, code_of: Callable[[str, str], int]) -> None:
        self._code_of = code_of
        self._models: Sequence[str] = ()
        self._classes: Sequence[str] = ()
        self._table: NDArray[np.int32] = np.zeros((0, 0), np.int32)

    def clear(self) -> None:
        """Clear the cache."""
        self._table = np.zeros((0, 0), np.int32)

    def codes(
        self,
        models: NDArray[np.int32],
        classes: NDArray[np.int32],
        model_names: Sequence[str],
        class_names: Sequence[str],
    ) -> NDArray[np.int32]:
        """Look up the codes of (model, class) pairs, in order; all arrays (n,)."""
        if self._models is not model_names or self._classes is not class_names:
            self._models, self._classes = model_names, class_names
            self.clear()
        shape = len(model_names), len(class_names)
        if shape[0] * shape[1] > MOST_PAIRS:
            pairs = zip(models.tolist(), classes.tolist(), strict=True)
            return np.array(
                [self._code_of(model_names[int(m)], class_names[int(c)]) for m, c in pairs], np.int32
            )
        if self._table.shape[0] < shape[0] or self._table.shape[1] < shape[1]:
            room = [2 * size for size in shape]
            table = np.full(room, _UNKNOWN, np.int32)
            table[: self._table.shape[0], : self._table.shape[1]] = self._table
            self._table = table
        codes = self._table[models, classes]
        for i in np.flatnonzero(codes == _UNKNOWN).tolist():
            m, c = int(models[i]), int(classes[i])
            if self._table[m, c] == _UNKNOWN:
                self._table[m, c] = self._code_of(model_names[m], class_names[c])
            codes[i] = self._table[m, c]
        return codes


# State of the watched models as bytes, without features of classes that no prediction had.


_BY_FEATURE: Final = ("block", "queue", "capital", "now")
_BY_STRETCH: Final = ("stamp", "counts")
_OTHERS: Final = tuple(name for name in EARLY.names or () if name not in {*_BY_FEATURE, *_BY_STRETCH})


class KeptModel(msgspec.Struct, frozen=True, array_like=True):
    """State of one model: its classes, scalars and bins, and arrays by feature and by stretch."""

    name: Name
    classes: list[Name]
    others: bytes
    by_feature: list[bytes]
    stamps: list[int]
    """Stamps of the stretches by ring position, 0 if unused, up to the last in use."""
    counts: list[int]
    """Counts of the stretches in use, in that order; as a list, since most numbers are small."""

    @classmethod
    def of(cls, name: str, classes: list[str], record: np.void) -> KeptModel:
        """Convert a record `EARLY`; the queue starts from its oldest block."""
        used = _used(len(classes))
        queue = np.roll(record["queue"], -int(record["head"]), axis=0)
        by_feature = [record["block"], queue, record["capital"], record["now"]]
        parts = [(values[:, used] if values is queue else values[used]).tobytes() for values in by_feature]
        stamps = record["stamp"]
        last = int(np.flatnonzero(stamps).max(initial=-1)) + 1
        counts = record["counts"][stamps > 0].ravel().tolist()
        others = b"".join(record[each].tobytes() for each in _OTHERS)
        return cls(name, classes, others, parts, stamps[:last].tolist(), counts)

    def record(self) -> np.void:
        """Convert back to a record `EARLY`; raises ValueError or OverflowError for what does not fit."""
        if len(self.classes) > CLASSES:
            raise ValueError(f"expected at most {CLASSES} classes of a model, got {len(self.classes)}")
        record = np.zeros(1, EARLY)
        at = 0
        for name in _OTHERS:
            kind = EARLY[name]
            record[name][0] = np.frombuffer(self.others, kind.base, int(np.prod(kind.shape)), at).reshape(
                kind.shape
            )
            at += kind.itemsize
        limits = {"filled": BLOCK, "scored": BLOCK, "is_now": 1, "waiting": LAG, "head": LAG - 1}
        for name, most in limits.items():
            require(f"early hints of {self.name!r}", name, record[name][0], 0, most)
        # Bets on classes that never occurred have neither won nor lost.
        record["capital"] = float(record["rounds"][0])
        used = _used(len(self.classes))
        for name, body in zip(_BY_FEATURE, self.by_feature, strict=True):
            own: Any = record[name][0]
            values = np.frombuffer(body, own.dtype)
            if name == "queue":
                own[:, used] = np.roll(values.reshape(LAG, len(used)), int(record["head"][0]), axis=0)
            else:
                own[used] = values.reshape(len(used), *own.shape[1:])
        record["stamp"][0, : len(self.stamps)] = self.stamps
        slots = np.flatnonzero(record["stamp"][0])
        shape = EARLY["counts"].shape[1:]
        record["counts"][0, slots] = np.array(self.counts, np.int32).reshape(len(slots), *shape)
        return record[0]


def _used(classes: int) -> list[int]:
    """Features of a model with this many classes: these, all others as one, and the score."""
    return [*range(classes), *range(CLASSES, SCORE + 1)]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[KeptModel])


def encode(models: list[KeptModel]) -> bytes:
    """Encode models."""
    return _ENCODER.encode(models)


def decode(snapshot: bytes) -> list[KeptModel]:
    """Decode models; raises ValueError if the bytes are not a snapshot."""
    return _DECODER.decode(snapshot)


_NOBODY: Final = -1


@dataclass(slots=True)
class WatchedModel:
    """Model whose predictions are watched."""

    row: int
    classes: dict[str, int] = field(default_factory=dict[str, int])
    """Local indices of the classes predicted first."""


class EarlyHints:
    """Register of early hints for up to `max_models` models, those that predict first.

    Folds of a model are left out.
    """

    def __init__(self, spec: EarlyHintsSpec) -> None:
        self._spec = spec
        self._watched: dict[str, WatchedModel] = {}
        self._models: NDArray[np.void] = np.zeros(spec.max_models, EARLY)
        self._free = list(range(spec.max_models - 1, -1, -1))
        self._numbers = NumberTable(self._code_of)

    @property
    def section(self) -> str:
        """Name of the register's state: kind, parameters that change the state's meaning, and version."""
        return f"early_hints:{self._spec.stride}:{self._spec.bucket_ms}:{VERSION}"

    def observe(self, predictions: PredictionBatch) -> None:
        """Count predictions, in order."""
        records = predictions.records
        codes = self._numbers.codes(
            records["model"], records["class"], predictions.models, predictions.classes
        )
        spec = self._spec
        observe(self._models, codes, records, spec.stride, spec.bucket_ms, spec.threshold)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Count how often scores of watched models were right; assumed outcomes are left out."""
        batch = in_columns(outcomes)
        scored = batch.scored
        records = taken(batch.records, scored[batch.records["assumed"][scored] == 0])
        rows = np.full(len(batch.models), _NOBODY, np.int32)
        numbers: list[int] = np.unique(records["model"]).tolist()
        for number in numbers:
            watched = self._watched.get(batch.models[number])
            if watched is not None:
                rows[number] = watched.row
        of, predicted = rows[records["model"]], records["predicted_class"]
        scores = scores_of_classes(batch.scores, records["scores"], predicted)
        known = (of >= 0) & (scores >= 0.0)  # false for NaN
        if known.any():
            hits = (predicted == records["true_class"]).astype(np.float64)
            made_ms = records["event_ms"] - records["delay_ms"]
            learn(
                self._models,
                of[known],
                scores[known],
                hits[known],
                made_ms[known],
                records["resolved_ms"][known],
                self._spec.bucket_ms,
            )

    def forget(self, model: str) -> None:
        """Remove a model that has retired, and free its row."""
        watched = self._watched.pop(model, None)
        if watched is not None:
            self._models[watched.row] = 0
            self._free.append(watched.row)
            self._free.sort(reverse=True)
        self._numbers.clear()

    def views(self) -> dict[str, EarlyView]:
        """View of every watched model, by name."""
        return {
            name: view(self._models[watched.row], list(watched.classes), self._spec)
            for name, watched in sorted(self._watched.items())
        }

    def snapshot(self) -> bytes:
        """Encode the whole state; equal states give equal bytes; empty before the first model."""
        models = [
            KeptModel.of(name, list(watched.classes), self._models[watched.row])
            for name, watched in sorted(self._watched.items())
        ]
        return encode(models) if models else b""

    def restore(self, state: bytes) -> None:
        """Continue from a snapshot; models beyond `max_models` are left out.

        Raises
        ------
        ValueError, OverflowError
            If the bytes are not a snapshot, or a number is out of range.
        """
        for name in list(self._watched):
            self.forget(name)
        for kept in decode(state) if state else ():
            if not self._free:
                return
            row = self._free.pop()
            self._watched[kept.name] = WatchedModel(row, {name: i for i, name in enumerate(kept.classes)})
            self._models[row] = kept.record()

    def families(self) -> Sequence[Family]:
        """Series of the watched models."""
        return families_of(self.views(), reach_of(self._spec))

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Document of each watched model, under the key `early_hints`."""
        return {name: {"early_hints": document(each, self._spec)} for name, each in self.views().items()}

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Active hints by model, with the values that its document has."""
        given = self._models
        new = (given["hints"] > 0) & (given["seen"] - given["hint_seen"] < reach_of(self._spec))
        rows = set(np.flatnonzero(new).tolist())
        found: dict[str, ActiveHint] = {}
        for name, watched in sorted(self._watched.items()):
            if watched.row in rows:
                seen = view(given[watched.row], list(watched.classes), self._spec)
                if seen.hint is not None:
                    found[name] = active_hint(seen.hints, seen.hint, seen)
        return found

    def unrepresentative(self) -> AbstractSet[str]:
        """Return the empty set: nothing is known here of how likely predictions are to be labelled."""
        return frozenset()

    def _code_of(self, model: str, predicted_class: str) -> int:
        """Encode row and local class as row·(CLASSES + 1) + class; −1 for a model that is not watched.

        Watches a new model while there are rows, and gives its first classes numbers of their own.
        """
        watched = self._watched.get(model)
        if watched is None:
            if not self._free or fold_of(model) is not None:
                return _NOBODY
            watched = self._watched[model] = WatchedModel(self._free.pop())
        index = watched.classes.get(predicted_class)
        if index is None:
            index = len(watched.classes)
            if index >= CLASSES:
                index = CLASSES
            else:
                watched.classes[predicted_class] = index
        return watched.row * (CLASSES + 1) + index
