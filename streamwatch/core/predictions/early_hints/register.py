"""Register of early hints: names, rows and states of the watched models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Outcome
from streamwatch.core.fold_names import fold_of
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.batch import PredictionBatch, score_of
from streamwatch.core.predictions.early_hints.document import document
from streamwatch.core.predictions.early_hints.numbers import NumberTable
from streamwatch.core.predictions.early_hints.observe import learn, observe
from streamwatch.core.predictions.early_hints.snapshot import KeptModel, decode, encode
from streamwatch.core.predictions.early_hints.spec import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.state import CLASSES, EARLY, VERSION
from streamwatch.core.predictions.early_hints.view import EarlyView, active_hint, families_of, view
from streamwatch.core.series import Family

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
        self._numbers = NumberTable(self._place)

    @property
    def section(self) -> str:
        """Name of its state: kind, parameters that change the state's meaning, and version."""
        return f"early_hints:{self._spec.stride}:{self._spec.bucket_ms}:{VERSION}"

    def observe(self, predictions: PredictionBatch) -> None:
        """Count predictions, in order."""
        records = predictions.records
        places = self._numbers.places(
            records["model"], records["class"], predictions.models, predictions.classes
        )
        spec = self._spec
        observe(self._models, places, records, spec.stride, spec.bucket_ms, spec.threshold)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Count how often scores of watched models were right; assumed outcomes are left out."""
        found: list[tuple[int, float, bool, int]] = []
        for model, predicted, hit, predicted_ms, scores in _scored(outcomes):
            watched = self._watched.get(model)
            if watched is None:
                continue
            score = score_of(predicted, scores)
            if score >= 0.0:  # false for NaN
                found.append((watched.row, score, hit, predicted_ms))
        if found:
            rows, scores, hits, times = zip(*found, strict=True)
            columns = np.array(rows, np.int32), np.array(scores), np.array(hits, np.float64), np.array(times)
            learn(self._models, *columns, self._spec.bucket_ms)

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
        """Continue from a snapshot; models for which there is no room any more are left out.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
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
        return families_of(self.views(), self._spec.reach)

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Document of each watched model, under the key `early_hints`."""
        return {name: {"early_hints": document(each, self._spec)} for name, each in self.views().items()}

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Active hints by model, the same as in its document."""
        given = self._models
        new = (given["hints"] > 0) & (given["seen"] - given["hint_seen"] < self._spec.reach)
        rows = set(np.flatnonzero(new).tolist())
        found: dict[str, ActiveHint] = {}
        for name, watched in sorted(self._watched.items()):
            if watched.row in rows:
                seen = view(given[watched.row], list(watched.classes), self._spec)
                if seen.hint is not None:
                    found[name] = active_hint(seen.hints, seen.hint, seen)
        return found

    def _place(self, model: str, predicted_class: str) -> int:
        """Row and local class as one number, row·(CLASSES + 1) + class.

        −1 for a model that is not watched.
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


_Scored: TypeAlias = tuple[str, str, bool, int, Mapping[str, float]]
"""Model, predicted class, whether it was right, the prediction's own time, and its scores."""


def _scored(outcomes: Sequence[Outcome]) -> Iterator[_Scored]:
    """Iterate over the outcomes that have scores and a label, in order."""
    if not isinstance(outcomes, OutcomeBatch):
        for each in outcomes:
            if each.scores and not each.assumed:
                hit = each.true_class == each.predicted_class
                yield each.model, each.predicted_class, hit, each.event_ms - each.delay_ms, each.scores
    elif outcomes.scores:
        models, classes = outcomes.models, outcomes.classes
        records, scores = outcomes.records, outcomes.scores
        chosen = records[(records["scores"] >= 0) & (records["assumed"] == 0)]
        predicted: list[int] = chosen["predicted_class"].tolist()
        numbers: list[int] = chosen["model"].tolist()
        hits: list[bool] = (chosen["predicted_class"] == chosen["true_class"]).tolist()
        times: list[int] = (chosen["event_ms"] - chosen["delay_ms"]).tolist()
        given: list[int] = chosen["scores"].tolist()
        for model, named, hit, at, number in zip(numbers, predicted, hits, times, given, strict=True):
            yield models[model], classes[named], hit, at, scores[number]
