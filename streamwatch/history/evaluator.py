"""The daemon's estimators for outcomes in arrays: for notebooks, scripts and tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Alarm
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.specs import MonitorsSpec
from streamwatch.history.columns import (
    Numbers,
    column_of,
    columns_of,
    default_spec,
    part_of,
    scores_of,
    segments_of,
    times_of,
)
from streamwatch.history.samples import counted, name_of, rows_of, samples_of

# `Outcome.made` of outcomes without a join: as many predictions were made as there are outcomes.


_MADE_BITS: Final = 2**32 - 1


class OutcomeCounts:
    """Counts the outcomes of each model."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next(self, model: str) -> int:
        """Count a model's next outcome, and return its number, from 1, modulo 2³²."""
        self._counts[model] = number = self._counts.get(model, 0) + 1
        return number & _MADE_BITS

    def following(self, models: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.uint32]:
        """Count the next outcomes, whose models are indices in `names`; return their numbers, shape (n,)."""
        numbers = np.empty(len(models), np.uint32)
        order = np.argsort(models, kind="stable")
        counts = np.bincount(models, minlength=1)
        start = 0
        for model in np.flatnonzero(counts).tolist():
            before, count = self._counts.get(names[model], 0), int(counts[model])
            running = before + 1 + np.arange(count)
            numbers[order[start : start + count]] = running & _MADE_BITS
            self._counts[names[model]] = before + count
            start += count
        return numbers


class OutcomeArrays:
    """Builds consecutive batches, in which models and classes keep their numbers.

    Parameters
    ----------
    by_segment
        Whether outcomes may have segments.
    """

    def __init__(self, *, by_segment: bool) -> None:
        self._by_segment = by_segment
        self._models = Numbers()
        self._classes = Numbers()
        self._counts = OutcomeCounts()
        self._clock_ms = 0
        self.outcomes = 0
        """Number of outcomes in all batches so far."""

    def batch(
        self,
        y_true: Iterable[Any],
        y_pred: Iterable[Any],
        *,
        model: str | Iterable[Any],
        event_ms: Iterable[Any] | None,
        scores: Any,
        segments: Any,
    ) -> OutcomeBatch:
        """Build the next batch; arguments are those of `Evaluator.update`.

        Raises
        ------
        ValueError
            If lengths differ, a class or model is no text, whole number or boolean, a score is no
            probability, or outcomes have segments although `by_segment` is false.
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
        records["label_at_prediction"] = -1
        records["event_ms"] = times_of(event_ms, count, self.outcomes)
        batch = self._with_scores(records, scores, segments)
        # Counted last, so that a batch that is refused leaves no trace in later ones.
        records["made"] = self._counts.following(records["model"], self._models.names)
        if count:
            clock_ms = np.maximum.accumulate(np.maximum(records["event_ms"], self._clock_ms))
            records["resolved_ms"], self._clock_ms = clock_ms, int(clock_ms[-1])
        self.outcomes += count
        return batch

    def _with_scores(self, records: NDArray[np.void], scores: Any, segments: Any) -> OutcomeBatch:
        """Add scores and segments to outcomes."""
        numbers, texts = segments_of(segments, len(records))
        if texts and not self._by_segment:
            raise ValueError("segments need a SegmentsSpec in spec.registers, got a spec without")
        scored, lists = scores_of(scores, len(records), numbers, self._classes)
        records["scores"] = np.where(numbers < 0, -1, SEGMENTS_FROM + numbers)
        records["scores"][scored] = np.arange(len(scored))
        return OutcomeBatch(records, self._models.names, self._classes.names, lists, texts)


# The daemon's estimators for outcomes in arrays: for notebooks, scripts and tests.


DEFAULT_MODEL: Final = "model"
"""Name of the model where none is given."""


class Evaluator:
    """Computes every estimate of the daemon from outcomes given as columns, in their order.

    Parameters
    ----------
    spec
        Forgettings, detectors, opponents and limits; those of a daemon without settings if absent, with
        measures of probabilities and by segment for outcomes that have scores and segments.

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
        chosen = default_spec() if spec is None else spec
        self._estimators = EstimatorSet(chosen)
        self._forgettings = [each.name for each in chosen.forgetting]
        by_segment = any(isinstance(register, SegmentsSpec) for register in chosen.registers)
        self._arrays = OutcomeArrays(by_segment=by_segment)

    def __repr__(self) -> str:
        """Show one line, for notebooks."""
        return (
            f"<Evaluator: {counted(len(self.models), 'model')}, {counted(self._arrays.outcomes, 'outcome')}>"
        )

    @property
    def models(self) -> list[str]:
        """Names of the models evaluated so far, in order of first occurrence."""
        return self._estimators.models()

    def update(
        self,
        y_true: Iterable[Any],
        y_pred: Iterable[Any],
        *,
        model: str | Iterable[Any] = DEFAULT_MODEL,
        event_ms: Iterable[Any] | None = None,
        scores: Any = None,
        segments: Any = None,
    ) -> list[Alarm]:
        """Evaluate further outcomes, in order.

        Parameters
        ----------
        y_true, y_pred
            True and predicted classes, shape (n,): texts, integers, booleans; arrays, lists, or columns of a
            pandas or polars frame.
        model
            Name of the model, or one per outcome.
        event_ms
            Event times, shape (n,), as numpy datetimes or milliseconds since 1970; the number of the outcome
            if absent. They are reported (alarms, since when), never sorted by.
        scores
            Probabilities of the predicted classes: a column for each class, in a mapping or a frame, such as
            `pandas.DataFrame(model.predict_proba(x), columns=model.classes_)`; NaN where there is none. They
            are ignored for a model with more classes than `spec.shadow_max_classes` (16).
        segments
            Values of segments: a column for each, in a mapping or a frame, such as `frame[["country"]]`;
            None or NaN where a prediction does not have the field.

        Returns
        -------
        list of Alarm
            Alarms that these outcomes raised, in order.

        Raises
        ------
        ValueError
            If lengths differ, a class or model is no text, whole number or boolean, a score is no
            probability, or segments are given and `spec` has no `SegmentsSpec` among its registers.
        """
        batch = self._arrays.batch(
            y_true, y_pred, model=model, event_ms=event_ms, scores=scores, segments=segments
        )
        return self._estimators.fold(batch)

    def curve(
        self,
        y_true: Iterable[Any],
        y_pred: Iterable[Any],
        *,
        every: int = 100,
        model: str = DEFAULT_MODEL,
        event_ms: Iterable[Any] | None = None,
        scores: Any = None,
        segments: Any = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Evaluate outcomes of one model as `update` does, and return the estimates after every `every` ones.

        Returns
        -------
        dict of str to ndarray
            Columns of equal length for a frame: `outcome`, the number of outcomes of this call so far, and
            each estimate then, named as in `values`; NaN while undefined.

        Raises
        ------
        ValueError
            As `update` does, and if `every` is below 1.
        """
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        true, predicted = column_of(y_true), column_of(y_pred)
        times = None if event_ms is None else column_of(event_ms)
        scored, segmented = columns_of(scores, "scores"), columns_of(segments, "segments")
        stops = [*range(0, len(true), every), len(true)] if len(true) else [0]
        looks: list[tuple[int, dict[str, float]]] = []
        for start, stop in pairwise(stops):
            part = slice(start, stop)
            self.update(
                true[part],
                predicted[part],
                model=model,
                event_ms=None if times is None else times[part],
                scores=part_of(scored, part),
                segments=part_of(segmented, part),
            )
            looks.append((stop, self.values(model)))
        return curve_of(looks)

    def value(self, measure: str, forgetting: str = "landmark", model: str = DEFAULT_MODEL) -> float:
        """Look up one measure of a model under a forgetting; NaN while undefined.

        `measure` may have the values of further labels: `baseline_accuracy_ratio:persistent`.

        Raises
        ------
        KeyError
            If there is no such model, measure or forgetting.
        """
        self._known(model)
        found = self.values(model).get(f"{measure}:{forgetting}")
        if found is None:
            self.require(measure, forgetting)
            return float("nan")
        return found

    def require(self, measure: str, forgetting: str = "landmark") -> None:
        """Check the names of a measure and a forgetting.

        Raises
        ------
        KeyError
            If one is unknown; the message has similar names.
        """
        name = measure.partition(":")[0]
        measured = [family.name for family in self._estimators.families() if "forgetting" in family.labels]
        if name not in measured:
            near = ", ".join(get_close_matches(name, measured)) or "see `streamwatch catalogue measures`"
            raise KeyError(f"measure {name!r} is not known under a forgetting; near: {near}")
        if forgetting not in self._forgettings:
            raise KeyError(f"forgetting: expected one of {', '.join(self._forgettings)}, got {forgetting!r}")

    def values(self, model: str = DEFAULT_MODEL) -> dict[str, float]:
        """Return every defined estimate of a model by name, such as `accuracy_ratio:fading:0.999`.

        A name has the metric and the values of its labels except `model`, in the order of the labels' names.

        Raises
        ------
        KeyError
            If there is no such model.
        """
        self._known(model)
        return {name_of(row): value for row, value in samples_of(self._estimators.families(), model)}

    def values_by_model(self) -> dict[str, dict[str, float]]:
        """Return the `values` of every model, by model."""
        found: dict[str, dict[str, float]] = {}
        for row, value in samples_of(self._estimators.families()):
            found.setdefault(row.pop("model"), {})[name_of(row)] = value
        return found

    def details(self, model: str = DEFAULT_MODEL) -> dict[str, object]:
        """Return the details of a model, as in the API: confusion, reliability, values of segments.

        Raises
        ------
        KeyError
            If there is no such model.
        """
        self._known(model)
        return dict(self._estimators.details()[model])

    def families(self) -> Sequence[Family]:
        """Return every estimate as families of series, as in `/metrics`."""
        return list(self._estimators.families())

    def rows(self) -> list[dict[str, str | float]]:
        """Return every estimate of every model as rows for a frame: `metric`, its labels, `value`.

        The label `value` of segments is called `segment_value`.
        """
        return rows_of(self._estimators.families())

    def verdicts(self, model: str = DEFAULT_MODEL) -> dict[str, dict[str, float]]:
        """Return by opponent `verdict`, `since_outcome`, `lead`, `lead_lower` and `lead_upper` if defined.

        Raises
        ------
        KeyError
            If there is no such model.
        """
        self._known(model)
        found: dict[str, dict[str, float]] = {}
        wanted = {"verdict", "verdict_since_outcome", "lead", "lead_lower", "lead_upper"}
        for row, value in samples_of(self._estimators.families(), model):
            if row["metric"] in wanted:
                name = row["metric"].removeprefix("verdict_")
                found.setdefault(row["opponent"], {})[name] = value
        return found

    def _known(self, model: str) -> None:
        if model not in self._estimators.models():
            raise unknown(model, self.models)


def curve_of(looks: Sequence[tuple[int, Mapping[str, float]]]) -> dict[str, NDArray[np.float64]]:
    """Convert the estimates after numbers of outcomes to columns: `outcome`, and each estimate."""
    names = dict.fromkeys(name for _, values in looks for name in values)
    columns = {name: np.array([values.get(name, np.nan) for _, values in looks]) for name in names}
    return {"outcome": np.array([outcome for outcome, _ in looks], np.float64), **columns}


def unknown(model: str | None, models: Sequence[str]) -> KeyError:
    """Build the error for a model that is none of those with outcomes, or that is not named."""
    known = ", ".join(map(repr, models))
    expected = f"expected one of {known}" if known else "no model has outcomes so far"
    return KeyError(f"model: {expected}, got {model!r}")
