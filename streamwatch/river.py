"""Estimates of streamwatch as a metric of river's `evaluate.progressive_val_score`, also with delayed labels.

Needs the package river, which this project does not depend on.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from river.metrics.base import ClassificationMetric

from streamwatch.history.columns import name_of
from streamwatch.history.evaluator import DEFAULT_MODEL, Evaluator

_LOSSES: Final = frozenset({"log_loss", "brier_score", "kappa_standard_error", "fold_accuracy_deviation"})
"""Measures that are smaller for better models."""


class Watch(ClassificationMetric):
    """Metric for river whose value is a measure of streamwatch; all other measures are kept in `evaluator`.

    Parameters
    ----------
    measure, forgetting
        Measure that `get` returns, of those of `streamwatch catalogue measures`, and a forgetting of the
        evaluator.
    evaluator
        Evaluator that keeps all estimates, those of this model under the name `model`; None for one with the
        daemon's defaults.
    batch
        Number of outcomes evaluated together, for speed; `get` and `evaluator` include all outcomes so far.

    Raises
    ------
    ValueError
        If `batch` is below 1.
    KeyError
        If the evaluator has no such measure or forgetting.

    Examples
    --------
    >>> from river import datasets, evaluate, naive_bayes
    >>> from streamwatch.river import Watch
    >>> watch = Watch("kappa_persistent", "fading:0.999")
    >>> model = naive_bayes.GaussianNB()
    >>> score = evaluate.progressive_val_score(datasets.Phishing(), model, watch, delay=100)
    >>> watch.evaluator.value("accuracy_ratio") > 0.8
    True
    """

    def __init__(
        self,
        measure: str = "kappa_persistent",
        forgetting: str = "landmark",
        evaluator: Evaluator | None = None,
        batch: int = 256,
    ) -> None:
        super().__init__()
        if batch < 1:
            raise ValueError(f"batch must be at least 1, got {batch}")
        self.measure = measure
        self.forgetting = forgetting
        self.batch = batch
        self._evaluator = Evaluator() if evaluator is None else evaluator
        self._evaluator.require(measure, forgetting)
        self._waiting: list[tuple[str, str]] = []

    @property
    def evaluator(self) -> Evaluator:
        """Evaluator, with all outcomes so far."""
        if self._waiting:
            true, predicted = zip(*self._waiting, strict=True)
            self._waiting.clear()
            self._evaluator.update(true, predicted)
        return self._evaluator

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add one outcome; one without a prediction is ignored, as by river's metrics.

        Raises
        ------
        ValueError
            If a class is no text, whole number or boolean, or `w` is not 1: outcomes are weighted by the
            forgetting.
        """
        if w != 1.0:
            raise ValueError(f"w must be 1, got {w}: how outcomes are weighted is decided by the forgetting")
        if y_pred is None:
            return
        self._waiting.append((name_of(y_true, "y_true"), name_of(y_pred, "y_pred")))
        if len(self._waiting) >= self.batch:
            _ = self.evaluator

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Refuse to remove an outcome: estimates that forget cannot do so.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("estimates that forget cannot revert an outcome")

    def get(self) -> float:
        """Value of the measure under the forgetting; NaN while undefined."""
        evaluator = self.evaluator
        if DEFAULT_MODEL not in evaluator.models:
            return float("nan")
        return evaluator.value(self.measure, self.forgetting)

    @property
    def bigger_is_better(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # inferred as True
        """Tell whether the measure grows with the quality of the model; false for losses and errors."""
        return self.measure.partition(":")[0] not in _LOSSES

    @property
    def requires_labels(self) -> Literal[True]:
        """True: classes are compared, not probabilities."""
        return True

    def __repr__(self) -> str:
        return f"{self.measure} ({self.forgetting}): {self.get():.6f}"
