"""The daemon's estimators over arrays: for notebooks, scripts and tests of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Alarm
from streamwatch.core.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.series import Histogram
from streamwatch.core.specs import MonitorsSpec
from streamwatch.lab.columns import Numbers, column_of

_MODEL: Final = "model"


class Evaluator:
    """Every estimate that the daemon keeps, of outcomes given as columns in the order to evaluate them.

    Parameters
    ----------
    spec
        Forgettings, detectors, opponents and limits; those of a daemon without settings if absent.

    Examples
    --------
    The confusion [[40, 30], [5, 25]], rows true, columns predicted:

    >>> from streamwatch import Evaluator
    >>> evaluator = Evaluator()
    >>> alarms = evaluator.update(["a"] * 70 + ["b"] * 30, ["a"] * 40 + ["b"] * 30 + ["a"] * 5 + ["b"] * 25)
    >>> round(evaluator.value("kappa"), 6)
    0.326923
    >>> round(evaluator.value("kappa_majority"), 6)
    -0.166667
    """

    def __init__(self, spec: MonitorsSpec | None = None) -> None:
        self._estimators = EstimatorSet(MonitorsSpec() if spec is None else spec)
        self._models = Numbers()
        self._classes = Numbers()
        self._outcomes = 0

    @property
    def models(self) -> list[str]:
        """Models evaluated so far, in the order in which they came."""
        return self._estimators.models()

    def update(
        self,
        y_true: Iterable[Any],
        y_pred: Iterable[Any],
        *,
        model: str | Iterable[Any] = _MODEL,
        event_ms: Iterable[Any] | None = None,
    ) -> list[Alarm]:
        """Evaluate outcomes in order, after all those before.

        Parameters
        ----------
        y_true, y_pred
            True and predicted classes, shape (n,): texts, integers, booleans; arrays, lists, or columns of a
            pandas or polars frame.
        model
            Name of the model, or one per outcome.
        event_ms
            Event times, shape (n,), as numpy datetimes or milliseconds since 1970; the number of the outcome
            if absent. They are told (alarms, since when), never sorted by.

        Returns
        -------
        list of Alarm
            Alarms that were raised, in order.

        Raises
        ------
        ValueError
            If lengths differ, or a class or model is no text, whole number or boolean.
        """
        true, predicted = self._classes.of(y_true, "y_true"), self._classes.of(y_pred, "y_pred")
        count = len(true)
        if len(predicted) != count:
            raise ValueError(f"y_true and y_pred must be equally long, got {count} and {len(predicted)}")
        names = [model] if isinstance(model, str) else model
        models = self._models.of(names, "model")
        if not isinstance(model, str) and len(models) != count:
            raise ValueError(f"model must be a name, or one per outcome ({count}), got {len(models)}")
        records = np.zeros(count, OUTCOME)
        records["true_class"], records["predicted_class"], records["model"] = true, predicted, models
        records["label_at_prediction"] = records["scores"] = -1
        records["event_ms"] = self._times(event_ms, count)
        self._outcomes += count
        batch = OutcomeBatch(records, self._models.names, self._classes.names, {})
        return self._estimators.fold(batch)

    def curve(
        self,
        y_true: Iterable[Any],
        y_pred: Iterable[Any],
        *,
        every: int = 100,
        model: str = _MODEL,
        event_ms: Iterable[Any] | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Evaluate outcomes of one model as `update` does, and look every so many.

        Returns
        -------
        dict of str to ndarray
            `outcome`, and per estimate (named as in `values`) what it was then; NaN while undefined. A frame
            of pandas or polars takes it as it is.

        Raises
        ------
        ValueError
            As `update` does, and if `every` is below 1.
        """
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        true, predicted = column_of(y_true), column_of(y_pred)
        times = None if event_ms is None else column_of(event_ms)
        stops = [*range(0, len(true), every), len(true)] if len(true) else [0]
        looks: list[dict[str, float]] = []
        outcomes: list[int] = []
        for start, stop in pairwise(stops):
            part = None if times is None else times[start:stop]
            self.update(true[start:stop], predicted[start:stop], model=model, event_ms=part)
            looks.append(self.values(model))
            outcomes.append(stop)
        names = list(dict.fromkeys(name for look in looks for name in look))
        nan = float("nan")
        columns = {name: np.array([look.get(name, nan) for look in looks]) for name in names}
        return {"outcome": np.array(outcomes, np.float64), **columns}

    def value(self, measure: str, forgetting: str = "landmark", model: str = _MODEL) -> float:
        """Look up one measure of a model under a forgetting; NaN while undefined.

        Raises
        ------
        KeyError
            If there is no such model.
        """
        self._known(model)
        return self.values(model).get(f"{measure}:{forgetting}", float("nan"))

    def values(self, model: str = _MODEL) -> dict[str, float]:
        """Every estimate of a model that is defined: `accuracy_ratio:fading:0.999` → number.

        A name is the metric's, then the values of its labels but for `model`, in the order of their names.

        Raises
        ------
        KeyError
            If there is no such model.
        """
        self._known(model)
        return {
            ":".join((row.pop("metric"), *(str(row[label]) for label in sorted(row)))): value
            for row, value in self._samples(model)
        }

    def rows(self) -> list[dict[str, str | float]]:
        """Every estimate of every model as rows `metric`, its labels, `value`: for a frame."""
        return [{**row, "value": value} for row, value in self._samples(None)]

    def verdicts(self, model: str = _MODEL) -> dict[str, dict[str, float]]:
        """By opponent: `verdict`, `since_outcome`, `lead`, `lead_lower` and `lead_upper`, as far as defined.

        Raises
        ------
        KeyError
            If there is no such model.
        """
        self._known(model)
        found: dict[str, dict[str, float]] = {}
        wanted = {"verdict", "verdict_since_outcome", "lead", "lead_lower", "lead_upper"}
        for row, value in self._samples(model):
            if row["metric"] in wanted:
                name = row["metric"].removeprefix("verdict_")
                found.setdefault(row["opponent"], {})[name] = value
        return found

    def _known(self, model: str) -> None:
        if model not in self._estimators.models():
            raise KeyError(f"model {model!r}: none of {', '.join(map(repr, self.models)) or 'none so far'}")

    def _samples(self, model: str | None) -> Iterator[tuple[dict[str, str], float]]:
        for family in self._estimators.families():
            for labels, value in family.samples:
                row = dict(zip(family.labels, labels, strict=True))
                if isinstance(value, Histogram) or "model" not in row:
                    continue
                if model is None or row.pop("model") == model:
                    yield {"metric": family.name, **row}, value

    def _times(self, event_ms: Iterable[Any] | None, count: int) -> NDArray[np.int64]:
        if event_ms is None:
            return np.arange(self._outcomes, self._outcomes + count)
        times = np.asarray(event_ms)
        if times.dtype.kind == "O":  # a list's numbers
            times = np.asarray(times.tolist())
        if times.dtype.kind == "M":
            times = times.astype("datetime64[ms]").astype(np.int64)
        if times.shape != (count,):
            raise ValueError(f"event_ms must be one time per outcome ({count}), got shape {times.shape}")
        if times.dtype.kind not in "iu":
            raise ValueError(f"event_ms must be datetimes or whole milliseconds, got {times.dtype}")
        return times.astype(np.int64)
