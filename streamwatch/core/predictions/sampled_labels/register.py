"""Register of sampled labels: names, rows and states of the models whose predictions carry a probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.metrics import family
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions.kind import (
    ActiveHint,
    PredictionBatch,
    scores_of_classes,
)
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.core.predictions.sampled_labels.estimate import (
    SampledEstimate,
    accuracy_of,
    document_of,
    estimate,
)
from streamwatch.core.predictions.sampled_labels.observe import (
    CLASSES,
    NOTES,
    OPPONENTS,
    SAMPLED,
    VERSION,
    ages_of,
    count,
    learn,
    width_of,
)
from streamwatch.core.records.events import (
    SAMPLING,
    Name,
    Outcome,
    fold_of,
    probabilities_of,
    requests_of,
)
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.records.outcomes import SEGMENTS_FROM, OutcomeBatch

WORDS: Final = SAMPLED.itemsize // 8
_MASK_BYTES: Final = -(-WORDS // 8)


@dataclass(slots=True)
class SampledModel:
    """Model whose predictions carry probabilities."""

    row: int
    classes: dict[str, int] = field(default_factory=dict[str, int])
    """Local indices of the classes labelled first."""
    found: SampledEstimate | None = None
    """Estimate from the present state; None until it is computed."""


class _KeptModel(msgspec.Struct, frozen=True, array_like=True):
    name: Name
    classes: list[Name]
    filled: bytes
    """One bit per word of the record: whether it is not 0."""
    words: bytes


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[_KeptModel])


class SampledLabels:
    """Sampled labels of up to `max_models` models; takes O(1) per prediction and label.

    A model is kept from its first prediction with a probability on. Folds of a model are left out.
    """

    def __init__(self, spec: SampledLabelsSpec) -> None:
        self._spec = spec
        self._watched: dict[str, SampledModel] = {}
        self._models: NDArray[Any] = np.zeros(0, SAMPLED)
        self._free: list[int] = []
        self._width_ms = width_of(spec.horizon_ms)
        self._note_ms = -(-spec.horizon_ms // (NOTES - 1))
        self._ages_ms = ages_of(spec.horizon_ms)

    @property
    def section(self) -> str:
        """Name of the register's state: kind, parameters that change the state's meaning, and version."""
        return f"sampled_labels(horizon={self._spec.horizon_ms}) v{VERSION}"

    def observe(self, predictions: PredictionBatch) -> None:
        """Count predictions, in order."""
        records = predictions.records
        sampling = records["carried"][:, SAMPLING]
        if not self._watched and not sampling.any():
            return
        sampled = set(np.unique(records["model"][sampling != 0]).tolist())
        row_of_model = np.full(len(predictions.models), -1, np.int32)
        numbers: list[int] = np.unique(records["model"]).tolist()
        for number in numbers:
            row_of_model[number] = self._row_of(predictions.models[number], begins=number in sampled)
        rows = row_of_model[records["model"]]
        count(self._models, rows, records, probabilities_of(sampling), requests_of(sampling), self._width_ms)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Count the labels of predictions with a probability, in order; assumed outcomes are left out."""
        if not self._watched or not len(outcomes):
            return
        batch = in_columns(outcomes)
        chosen = (batch.records["carried"][:, SAMPLING] != 0) & (batch.records["assumed"] == 0)
        if not chosen.any():
            return
        records = batch.records[chosen]
        row_of_model = np.full(len(batch.models), -1, np.int32)
        numbers: list[int] = np.unique(records["model"]).tolist()
        for number in numbers:
            watched = self._watched.get(batch.models[number])
            if watched is not None:
                row_of_model[number] = watched.row
                watched.found = None
        true_class, predicted_class = self._local_classes(records, batch)
        known, predicted = records["label_at_prediction"], records["predicted_class"]
        answers = np.select(
            [known < 0, known == predicted, known == records["true_class"]], [-1, 1, 2], 0
        ).astype(np.int8)
        sampling = records["carried"][:, SAMPLING]
        learn(
            self._models,
            row_of_model[records["model"]],
            true_class,
            predicted_class,
            np.ascontiguousarray(records["true_class"] == predicted),
            answers,
            _scores(records, batch),
            probabilities_of(sampling),
            requests_of(sampling),
            np.ascontiguousarray(records["resolved_ms"]),
            np.ascontiguousarray(records["waited_ms"]),
            self._width_ms,
            self._note_ms,
            self._ages_ms,
        )

    def forget(self, model: str) -> None:
        """Remove a model that has retired, and free its row."""
        watched = self._watched.pop(model, None)
        if watched is not None:
            self._models[watched.row] = 0
            self._free.append(watched.row)

    def estimates(self) -> dict[str, SampledEstimate]:
        """Estimates of all models, by name."""
        found: dict[str, SampledEstimate] = {}
        for name, watched in sorted(self._watched.items()):
            if not self._models["seen"][watched.row]:
                continue
            if watched.found is None:
                watched.found = estimate(self._models[watched.row], self._spec.horizon_ms, self._spec.delta)
            found[name] = watched.found
        return found

    def snapshot(self) -> bytes:
        """Encode the state of all models; equal states give equal bytes; empty without any."""
        kept: list[_KeptModel] = []
        for name, watched in sorted(self._watched.items()):
            words = self._models[watched.row : watched.row + 1].view(np.uint64)
            filled = words != 0
            kept.append(
                _KeptModel(
                    name, list(watched.classes), np.packbits(filled).tobytes(), words[filled].tobytes()
                )
            )
        return _ENCODER.encode(kept) if kept else b""

    def restore(self, state: bytes) -> None:
        """Set an empty register to a snapshot; models beyond `max_models` are left out.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot.
        """
        for kept in _DECODER.decode(state):
            if len(kept.filled) != _MASK_BYTES or len(kept.classes) > CLASSES:
                raise ValueError(
                    f"expected {_MASK_BYTES} bytes of bits and up to {CLASSES} classes of sampled labels, "
                    f"got {len(kept.filled)} and {len(kept.classes)}"
                )
            filled = np.unpackbits(np.frombuffer(kept.filled, np.uint8), count=WORDS).astype(np.bool_)
            if len(kept.words) != 8 * int(filled.sum()):
                raise ValueError(
                    f"expected {int(filled.sum())} words of sampled labels, got {len(kept.words)} bytes"
                )
            row = self._row_of(kept.name, begins=True)
            if row < 0:  # there was room for more models under other settings
                continue
            self._watched[kept.name].classes.update({name: k for k, name in enumerate(kept.classes)})
            self._models[row : row + 1].view(np.uint64)[filled] = np.frombuffer(kept.words, np.uint64)

    def families(self) -> Sequence[Family]:
        """Series of all models; undefined values give no sample."""
        found = self.estimates()
        rows = {name: self._models[self._watched[name].row] for name in found}

        def of_models(name: str, values: Mapping[str, float]) -> Family:
            return family(name, [((model,), value) for model, value in values.items() if isfinite(value)])

        def of_opponents(name: str, value_of: str) -> Family:
            samples: list[tuple[tuple[str, ...], float]] = []
            for model, each in found.items():
                for opponent, lead in zip(OPPONENTS, each.leads, strict=True):
                    if isfinite(value := getattr(lead, value_of)):
                        samples.append(((model, opponent), value))
            return family(name, samples)

        accuracy = {name: accuracy_of(each.loss) for name, each in found.items()}
        return [
            of_models("sampled_accuracy_ratio", {name: each.value for name, each in accuracy.items()}),
            of_models("sampled_accuracy_lower_ratio", {name: each.lower for name, each in accuracy.items()}),
            of_models("sampled_accuracy_upper_ratio", {name: each.upper for name, each in accuracy.items()}),
            of_models("sampled_effective_labels", {name: each.labels for name, each in accuracy.items()}),
            of_opponents("sampled_lead", "value"),
            of_opponents("sampled_lead_lower", "lower"),
            of_opponents("sampled_lead_upper", "upper"),
            of_models("sampled_predictions_total", {name: float(row["seen"]) for name, row in rows.items()}),
            of_models(
                "sampled_predictions_without_probability_total",
                {name: float(row["without"]) for name, row in rows.items()},
            ),
            of_models(
                "sampled_labels_expected_total", {name: float(row["expected"]) for name, row in rows.items()}
            ),
            of_models("sampled_labels_total", {name: float(row["labels"]) for name, row in rows.items()}),
            of_models(
                "sampled_labels_unasked_total", {name: float(row["unasked"]) for name, row in rows.items()}
            ),
            of_models(
                "sampled_labels_arrived_ratio", {name: each.arrived_ratio for name, each in found.items()}
            ),
        ]

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Document of each model, under the key `sampled_labels`."""
        return {
            name: {"sampled_labels": document_of(self._models[self._watched[name].row], each)}
            for name, each in self.estimates().items()
        }

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Return no hints, as this register gives none."""
        return {}

    def unrepresentative(self) -> AbstractSet[str]:
        """Models with some predictions more likely to be labelled than others."""
        return {
            name for name, watched in self._watched.items() if is_unrepresentative(self._models[watched.row])
        }

    def _row_of(self, model: str, *, begins: bool) -> int:
        """Row of a model; with `begins`, assigns one to a new model. −1 without one."""
        watched = self._watched.get(model)
        if watched is None:
            if not begins or len(self._watched) >= self._spec.max_models or fold_of(model) is not None:
                return -1
            if not self._free:
                rows = len(self._models)
                grown = np.zeros(min(max(1, 2 * rows), self._spec.max_models), SAMPLED)
                grown[:rows] = self._models
                self._models = grown
                self._free = list(range(len(grown) - 1, rows - 1, -1))
            watched = self._watched[model] = SampledModel(self._free.pop())
        watched.found = None
        return watched.row

    def _local_classes(
        self, records: NDArray[Any], batch: OutcomeBatch
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Look up the local indices of true and predicted classes; new true classes get one, in order."""
        true_class, predicted = np.full(len(records), -1, np.int32), np.full(len(records), -1, np.int32)
        models: list[int] = records["model"].tolist()
        labels: list[int] = records["true_class"].tolist()
        answers: list[int] = records["predicted_class"].tolist()
        for i, (model, labelled, answered) in enumerate(zip(models, labels, answers, strict=True)):
            watched = self._watched.get(batch.models[model])
            if watched is None:
                continue
            classes, name = watched.classes, batch.classes[labelled]
            if name not in classes and len(classes) < CLASSES:
                classes[name] = len(classes)
            true_class[i] = classes.get(name, -1)
            predicted[i] = classes.get(batch.classes[answered], -1)
        return true_class, predicted


def is_unrepresentative(record: Any) -> bool:
    """Tell whether probabilities differ, predictions lack one, or labels came that were not asked for."""
    return bool(record["least"] < record["most"] or record["without"] or record["unasked"])


def _scores(records: NDArray[Any], batch: OutcomeBatch) -> NDArray[np.float64]:
    """Score of each predicted class as `score_of` gives it, (n,); NaN without one."""
    found, scored = np.full(len(records), nan), _scored(records, batch)
    if len(scored):
        numbers, classes = records["scores"][scored], records["predicted_class"][scored]
        found[scored] = scores_of_classes(batch.scores, numbers, classes)
    return found


def _scored(records: NDArray[Any], batch: OutcomeBatch) -> NDArray[np.intp]:
    """Indices of those of these records of a batch that have scores."""
    if not len(batch.scores):
        return np.empty(0, np.intp)
    numbers = records["scores"]
    return np.flatnonzero((numbers >= 0) & (numbers < SEGMENTS_FROM))
