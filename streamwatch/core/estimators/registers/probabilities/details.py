"""JSON document of a model's probabilities for the API: both diagrams, and areas by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streamwatch.core.estimators.registers.probabilities.measures import (
    areas,
    mean_area,
    reliability,
    threshold_curve,
)
from streamwatch.core.estimators.registers.probabilities.state import (
    ALPHA,
    BINS,
    THRESHOLDS,
    Floats,
    ModelState,
)

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
