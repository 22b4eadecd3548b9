"""Register of probabilities: measures of every model that predicts with scores; cheap for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers.probabilities.measures import (
    areas,
    losses,
    mean_area,
    reliability,
    threshold_curve,
)
from streamwatch.core.estimators.registers.probabilities.observe import (
    ALPHA,
    BINS,
    SUMS,
    THRESHOLDS,
    VERSION,
    Floats,
    ModelState,
    empty,
    observe,
)
from streamwatch.core.estimators.registers.probabilities.snapshot import decode, encode
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Sample

# JSON document of a model's probabilities for the API: both diagrams, and areas by class.


_DIGITS = 6


def document(kept: ModelState, classes: Sequence[str]) -> Mapping[str, object]:
    """Build the document of a state; undefined values are null.

    `classes` are the names of the model's classes by local index.
    """
    state = kept.state[0]
    diagram = reliability(kept)
    known = classes[: int(state["classes"])]
    by_class = areas(kept).tolist()
    curves = {name: threshold_curve(kept, k) for k, name in enumerate(known)}
    return {
        "scored_outcomes": int(state["scored"]),
        "alpha": ALPHA,
        "calibration_error": _number(diagram.error),
        "reliability": [
            {"from": j / BINS, "to": (j + 1) / BINS, "outcomes": w, "mean_score": s, "hit_share": h}
            for j, (w, s, h) in enumerate(
                zip(
                    _numbers(diagram.weight),
                    _numbers(diagram.mean_score),
                    _numbers(diagram.hit_share),
                    strict=True,
                )
            )
        ],
        "auc": _number(mean_area(kept)),
        "auc_outcomes": int(state["auc_held"]),
        "auc_by_class": {name: _number(area) for name, area in zip(known, by_class, strict=True)},
        "thresholds": [j / THRESHOLDS for j in range(THRESHOLDS)],
        "curves": {
            name: {"precision": _numbers(curve.precision), "recall": _numbers(curve.recall)}
            for name, curve in curves.items()
        },
    }


def _number(value: float) -> float | None:
    return round(value, _DIGITS) if value == value else None  # noqa: PLR0124 - false for NaN


def _numbers(values: Floats) -> list[float | None]:
    return [_number(value) for value in np.asarray(values).tolist()]


_DECAY: Final = "decay is per outcome, not per second"
_PER_FORGETTING: Final = ("forgetting", "model")
_UNUSABLE: Final = ("invalid", "label_absent")
METRICS: Final = (
    Metric("scored_outcomes_total", "counter", "Outcomes with usable class scores", ("model",)),
    Metric("log_loss", "gauge", f"Mean of −ln of the true class's score ({_DECAY})", _PER_FORGETTING),
    Metric(
        "auc_ratio",
        "gauge",
        "Area under the ROC curve over the latest scored outcomes; ties count half",
        ("model",),
    ),
    Metric(
        "calibration_error_ratio",
        "gauge",
        "Expected calibration error of the predicted class's score, in ten bins, faded by 0.999",
        ("model",),
    ),
    Metric(
        "brier_score",
        "gauge",
        f"Mean of Σ(score − 1[true class])²; for two classes, twice scikit-learn's value ({_DECAY})",
        _PER_FORGETTING,
    ),
    Metric(
        "scored_effective_sample_size",
        "gauge",
        "Effective number of outcomes of log loss and Brier score, (Σw)²/Σw² of those with usable "
        f"scores ({_DECAY})",
        _PER_FORGETTING,
    ),
    Metric(
        "scores_unusable_total",
        "counter",
        "Outcomes whose scores were unusable: not probabilities (invalid), or without the true class",
        ("model", "reason"),
    ),
    Metric(
        "scores_unnormalized_total",
        "counter",
        "Outcomes with valid scores that did not sum to 1 within 0.001; scores are divided by their sum",
        ("model",),
    ),
)
"""Metrics, the most important first."""


class Probabilities:
    """Measures of probabilities of up to `capacity` models; memory is used by models with scores only."""

    __slots__ = ("_adwins", "_alphas", "_kept", "_losses", "_scored", "_spec")

    def __init__(self, spec: ProbabilitiesSpec, capacity: int) -> None:
        self._spec = spec
        self._kept: dict[int, ModelState] = {}
        self._scored = np.zeros(capacity, np.bool_)
        self._alphas = np.array(spec.alphas, np.float64)
        adwins = [(*numbers, dependence == "followed") for *numbers, dependence in spec.windows]
        self._adwins = np.array(adwins, np.float64).reshape(-1, 4)
        self._losses = np.zeros(SUMS)

    @property
    def section(self) -> str:
        """Name of the register's section in a model's snapshot."""
        return fingerprint("probabilities", self._spec, None, VERSION)

    @property
    def title(self) -> str:
        """Description of the section."""
        return "log loss, Brier score, calibration, area under the curve and threshold curves"

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes of several models, in order."""
        scores = batch.scores
        if not len(scores.offsets) and not self._kept:
            return
        if len(scores.offsets):
            self._scored[batch.rows[np.diff(scores.offsets) > 0]] = True
        chosen = np.flatnonzero(self._scored[batch.rows])
        if not len(chosen):
            return
        offsets = scores.offsets if len(scores.offsets) else np.zeros(len(batch.rows) + 1, np.int64)
        chosen = chosen[np.argsort(batch.rows[chosen], kind="stable")]
        rows = batch.rows[chosen]
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        highest = _highest(batch)
        for positions in np.split(chosen, begins[1:]):
            kept = self._kept_of(int(batch.rows[positions[0]]))
            kept.make_room(int(highest[positions].max()) + 1, self._spec.max_auc_classes)
            observe(
                kept.state,
                kept.landmark,
                kept.fading,
                kept.windows,
                kept.ring,
                kept.labels,
                kept.scores,
                kept.reliability,
                kept.curve,
                self._alphas,
                self._adwins,
                self._losses,
                positions,
                batch.true_class,
                batch.predicted_class,
                offsets,
                scores.classes,
                scores.values,
            )

    def clear(self, row: int) -> None:
        """Reset a row."""
        self._kept.pop(row, None)
        self._scored[row] = False

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows, empty for a model without scores.

        The same outcomes give the same bytes.
        """
        return [encode(self._kept[row]) if row in self._kept else b"" for row in rows.tolist()]

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one."""
        if state:
            self._kept[row] = decode(state, self._spec)
            self._scored[row] = True

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Samples of some models."""
        samples: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}
        for each in chosen:
            kept = self._kept.get(each.row)
            if kept is None:
                continue
            model, state = each.model, kept.state[0]
            samples["scored_outcomes_total"].append(((model,), float(state["scored"])))
            samples["scores_unnormalized_total"].append(((model,), float(state["unnormalised"])))
            for reason in _UNUSABLE:
                samples["scores_unusable_total"].append(((model, reason), float(state[reason])))
            for name, found in zip(self._spec.mechanisms, losses(kept, self._spec), strict=True):
                key = (name, model)
                _put(samples["log_loss"], key, found.log_loss)
                _put(samples["brier_score"], key, found.brier)
                _put(samples["scored_effective_sample_size"], key, found.n_eff)
            _put(samples["calibration_error_ratio"], (model,), reliability(kept).error)
            _put(samples["auc_ratio"], (model,), mean_area(kept))
        return samples

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Diagrams of models under the key `probabilities`; empty for a model without scores."""
        return [self._details(one) for one in chosen].__getitem__

    def _details(self, one: Slice) -> Mapping[str, object]:
        kept = self._kept.get(one.row)
        return {} if kept is None else {"probabilities": document(kept, list(one.classes))}

    def _kept_of(self, row: int) -> ModelState:
        kept = self._kept.get(row)
        if kept is None:
            kept = self._kept[row] = empty(self._spec)
        return kept


def _highest(batch: Batch) -> NDArray[np.int32]:
    """Highest local class among label and scores of each outcome with scores; −1 for the others."""
    highest = np.full(len(batch.rows), -1, np.int32)
    offsets, classes, _ = batch.scores
    if len(offsets):
        scored = np.flatnonzero(np.diff(offsets))
        named = np.maximum.reduceat(classes, offsets[scored]) if len(scored) else classes[:0]
        highest[scored] = np.maximum(named, batch.true_class[scored])
    return highest


def _put(samples: list[Sample], key: tuple[str, ...], value: float) -> None:
    if value == value:  # noqa: PLR0124 - false for NaN
        samples.append((key, value))
