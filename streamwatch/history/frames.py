"""Evaluation of frames of outcomes as the daemon would: for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import Alarm
from streamwatch.core.specs import MonitorsSpec
from streamwatch.history.answers import answers, documents_of, first_answers, worst_first
from streamwatch.history.columns import column_of, part_of
from streamwatch.history.evaluator import Evaluator, curve_of, unknown
from streamwatch.history.samples import counted

CHUNK: Final = 100_000
"""Most outcomes between two steps of the progress bar."""
_COLOURS: Final = ("#1f77b4", "#c02020", "#207020", "#7a4fa0")
_BESIDE: Final = (("persistent", "no change"), ("majority", "always the majority"))
_MODEL: Final = "model"


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of replaying a frame of outcomes."""

    evaluator: Evaluator
    """Evaluator with all estimates at the end; `update` can continue it."""
    alarms: tuple[Alarm, ...]
    """Alarms in order."""
    curves: Mapping[str, Mapping[str, NDArray[np.float64]]]
    """Columns by model: `outcome`, the number of rows so far, and each estimate then, NaN while undefined."""

    def __repr__(self) -> str:
        """Summarise in one line."""
        return f"<Replayed: {self.evaluator!r}, {counted(len(self.alarms), 'alarm')}>"

    def verdicts(self) -> dict[str, str]:
        """Return a sentence for each model: whether it is better than no change; worse models first.

        `evaluator.verdicts` has the numbers, by opponent.
        """
        details = {name: self.evaluator.details(name) for name in self.evaluator.models}
        documents = documents_of(self.evaluator.families(), details)
        return dict(zip(worst_first(documents), answers(documents), strict=True))

    def _repr_html_(self) -> str:
        """Build the HTML that notebooks show: a sentence for each model, and the number of alarms."""
        alarms = counted(len(self.alarms), "alarm")
        items = "".join(f"<li>{escape(line)}</li>" for line in first_answers(self.verdicts().values()))
        more = f"{alarms}; .plot(), .estimates() and .alarm_columns() show more"
        return f"<div><ul>{items}</ul><p>{more}</p></div>"

    def estimates(self) -> dict[str, list[Any]]:
        """Return every estimate at the end as columns for a frame: `metric`, its labels, `value`."""
        rows = self.evaluator.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: [row.get(name) for row in rows] for name in names}

    def alarm_columns(self) -> dict[str, list[Any]]:
        """Return the alarms as columns for a frame, with errors before and after, statistic and threshold."""
        names = ("model", "detector", "outcome", "event_ms", "before", "after", "statistic", "threshold")
        return {name: [getattr(alarm, name) for alarm in self.alarms] for name in names}

    def plot(self, model: str | None = None, forgetting: str = "fading:0.999") -> Any:
        """Draw the accuracy of a model and of the baselines, with alarms as lines, as a matplotlib figure.

        Raises
        ------
        KeyError
            If there is no such model, or several and none is named.
        ValueError
            If the frame was replayed with `points=0`.
        ImportError
            If matplotlib is not installed (`streamwatchd[lab]`).
        """
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

        if model is None and len(self.evaluator.models) == 1:
            model = self.evaluator.models[0]
        if model is None or model not in self.evaluator.models:
            raise unknown(model, self.evaluator.models)
        if model not in self.curves:
            raise ValueError("there are no curves: the frame was replayed with points=0")
        curve = self.curves[model]
        canvas = Figure(figsize=(9.0, 3.6), layout="constrained")
        axes = canvas.subplots()
        shown = [(f"accuracy_ratio:{forgetting}", f"accuracy, {forgetting}")]
        shown += [(f"baseline_accuracy_ratio:{name}:{forgetting}", label) for name, label in _BESIDE]
        at = curve["outcomes_total"]
        for (name, label), colour in zip(shown, _COLOURS, strict=False):
            if name in curve:
                axes.plot(at, curve[name], label=label, color=colour, linewidth=1.3)
        for alarm in self.alarms:
            if alarm.model == model:
                axes.axvline(alarm.outcome, color="#666666", linewidth=0.8, linestyle=":")
        axes.set(title=model, xlabel="outcomes of the model", ylabel="accuracy")
        axes.legend(fontsize=8)
        return canvas


def replay(  # noqa: PLR0913  # most name a column
    frame: Any,
    *,
    y_true: str = "label",
    y_pred: str = "prediction",
    model: str | None = None,
    event_ms: str | None = None,
    scores: Mapping[Any, str] | None = None,
    segments: Iterable[str] | Mapping[str, str] = (),
    spec: MonitorsSpec | None = None,
    points: int = 100,
    progress: bool | None = None,
) -> Replayed:
    """Evaluate a frame of outcomes in its order, as the daemon would; no Kafka, no join.

    Parameters
    ----------
    frame
        A pandas or polars frame, a structured array of numpy, or a mapping of arrays: any object from which
        `frame[name]` returns a column.
    y_true, y_pred, model, event_ms
        Names of its columns: true and predicted classes, the model (None: one model), event times (None:
        the number of the row). Their values are as for `Evaluator.update`.
    scores
        Name of the column with the probability of each class, by class: `{"fraud": "p_fraud", …}`.
    segments
        Names of columns whose values are segments: `["country"]`, or by segment, `{"country": "ship_to"}`.
    spec
        Forgettings, detectors, opponents and limits; a daemon's defaults if absent, as `Evaluator` has them.
    points
        Number of points of the curves, evenly over the rows; 0: no curves.
    progress
        Whether to show a progress bar; None: on a terminal and in a notebook.

    Raises
    ------
    KeyError
        If the frame has no such column.
    ValueError
        If columns differ in length, or a value is no class, model or time.
    TypeError
        If `scores` is no mapping, or `segments` a single name.
    """
    if points < 0:
        raise ValueError(f"points must be at least 0, got {points}")
    true, predicted = _taken(frame, y_true), _taken(frame, y_pred)
    names = None if model is None else _taken(frame, model)
    times = None if event_ms is None else _taken(frame, event_ms)
    rows = len(true)
    if isinstance(segments, str):
        raise TypeError(f"segments must be a list of columns, or a mapping, got the text {segments!r}")
    of_classes = {} if scores is None else scores
    if not isinstance(cast("object", of_classes), Mapping):
        raise TypeError(f"scores must be a mapping of class to column, got {type(scores).__name__}")
    scored = {shown: _taken(frame, column) for shown, column in of_classes.items()}
    named = segments if isinstance(segments, Mapping) else {name: name for name in segments}
    segmented = {shown: _taken(frame, column) for shown, column in named.items()}
    beside = [(f"column of {shown}", column) for shown, column in (*scored.items(), *segmented.items())]
    for name, given in ((y_pred, predicted), (model, names), (event_ms, times), *beside):
        if given is not None and len(given) != rows:
            raise ValueError(f"{name!r} must be as long as {y_true!r} ({rows}), got {len(given)}")
    from rich.console import Console  # noqa: PLC0415 - only where a bar may be shown
    from rich.progress import Progress  # noqa: PLC0415

    evaluator, alarms = Evaluator(spec), list[Alarm]()
    looks: list[tuple[int, dict[str, dict[str, float]]]] = []
    console = Console(stderr=True)
    shown = (console.is_terminal or console.is_jupyter) if progress is None else progress
    with Progress(console=console, disable=not shown) as bar:
        task, done = bar.add_task("outcomes", total=rows), 0
        for stop, look in _stops(rows, points):
            part = slice(done, stop)
            alarms += evaluator.update(
                true[part],
                predicted[part],
                model=_MODEL if names is None else names[part],
                event_ms=None if times is None else times[part],
                scores={shown: column[part] for shown, column in scored.items()},
                segments=part_of(segmented, part),
            )
            done = stop
            if look:
                looks.append((stop, evaluator.values_by_model()))
            bar.update(task, completed=stop)
    return Replayed(evaluator, tuple(alarms), _curves(looks))


def _taken(frame: Any, name: str) -> NDArray[Any]:
    """Return a column as an array.

    Raises
    ------
    KeyError
        If the frame has no such column; with one message for all kinds of frames.
    """
    try:
        return column_of(frame[name])
    except (KeyError, ValueError, LookupError) as error:
        raise KeyError(f"the frame has no column {name!r}") from error


def _stops(rows: int, points: int) -> list[tuple[int, bool]]:
    """Return the numbers of rows after which to stop, each with whether it is a point of the curves."""
    looks = set() if not points else {round(rows * (k + 1) / points) for k in range(points)} - {0}
    stops = looks | set(range(CHUNK, rows, CHUNK)) | ({rows} if rows else set())
    return [(stop, stop in looks) for stop in sorted(stops)]


def _curves(
    looks: list[tuple[int, dict[str, dict[str, float]]]],
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Convert points to columns by model, from the first point at which the model was known."""
    return {
        model: curve_of([(row, seen[model]) for row, seen in looks if model in seen])
        for model in dict.fromkeys(name for _, seen in looks for name in seen)
    }
