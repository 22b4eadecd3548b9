"""Routes of the past: recent points kept in memory for charts, and stretches of time kept in the state.

`GET /api/v1/models/{model}/history?since=1759999990`::

    {"model": "m", "forgetting": "fading:0.999",
     "timestamps": [1759999999.5, 1760000000.5],
     "series": {"accuracy_ratio": {"landmark": [0.9, 0.9], "fading:0.999": [0.91, null]},
                "detector_statistic": {"adwin": [0.0, 0.1]}, "outcomes_total": [1180, 1200]}}

Series nest as in `/api/v1/models`; `null` where a value was undefined. Bounds, baselines and the kappa family
are kept only under `forgetting`; share and recall of true classes (`class_truth_ratio`, `recall_ratio`) only
with `monitors.per_class`, of the first `MAX_CLASSES` class names. Values are rounded to 7 digits. `since`
excludes points up to that time. A restart forgets this past.

Points are kept at three spacings, at most 200 of each: every report (a second), every 15 s, and every 3
minutes, for the last 3 minutes, 50 minutes and 10 hours. Together they hold at most `MAX_VALUES` numbers of 4
bytes (32 MB), so that with many models the past is shorter: about 600 points for up to some 700 models, 40
for 10,000. For a longer past, use Prometheus.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.past import HOUR_S, Stretches, merged, tiers
from streamwatch.core.metrics.series import (
    ClassSamples,
    Column,
    Columns,
    Family,
    Histogram,
    HistogramColumn,
    Report,
    Sample,
)
from streamwatch.core.specs import HEADLINE
from streamwatch.edge.web.documents import ComparedPoints, ComparisonHistory, History, Line, Lines, Past
from streamwatch.edge.web.ports import Asked, Query, Route, encode, named
from streamwatch.edge.web.routes.comparisons import comparisons_of, shown_forgetting
from streamwatch.edge.web.routes.json_api import names_of
from streamwatch.edge.web.routes.overview import LOWER, UPPER, main_forgetting

Chart: TypeAlias = tuple[str, ...]
"""A metric and the values of its labels other than the model."""

TIER_SECONDS = (0.9, 15.0, 180.0)
"""Least time between two points of each tier; the first keeps all reports, a second apart."""
TIER_POINTS = 200
MAX_VALUES = 8_000_000
LINE_SECONDS = 6 * 3_600
LINE_POINTS = 40
"""Time and number of points of a model's line in the page's list."""
MAX_CLASSES = 8
"""Class names, over all models, whose shares are kept; each takes two numbers per model and point."""

_EVERY_FORGETTING = {"accuracy_ratio"}
_MAIN_FORGETTING = {"kappa", "kappa_majority", "kappa_persistent", "kappa_plus"}
_NAMED = {
    "accuracy_bound_ratio": ("bound", {LOWER, UPPER}),
    "baseline_accuracy_ratio": ("baseline", {"persistent", "persistent_at_prediction", "majority"}),
    "lead": ("opponent", {HEADLINE}),
    "lead_lower": ("opponent", {HEADLINE}),
    "lead_upper": ("opponent", {HEADLINE}),
}
_PER_DETECTOR = {"detector_statistic", "detector_threshold", "alarms_total"}
_PER_CLASS = {"class_truth_ratio", "recall_ratio"}
_PLAIN = {"outcomes_total", "pending_predictions", "drift_weighted_accuracy_ratio"}


@dataclass(frozen=True, slots=True)
class Frame:
    """Values of all models at one report."""

    published_ms: int
    rows: Mapping[str, int]
    values: NDArray[np.float32]
    """float32 (models, columns); NaN where undefined. Frames made before a column was first used lack it."""


SINCE = Query(
    "since",
    r"[0-9]{1,12}(\.[0-9]{1,9})?",
    {"type": "number", "minimum": 0},
    "Only points after this time (seconds since 1970)",
)


class HistoryExporter:
    """Exporter of a model's recent past; observes reports, in the rendering thread."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/models/{model:.+}/history",
            "The recent past of one model, as kept in memory: at most 600 points",
            "History",
            "models",
            (SINCE,),
        ),
    )

    def __init__(self, max_values: int = MAX_VALUES, tier_points: int = TIER_POINTS) -> None:
        self._tiers = Tiers(max_values, tier_points)
        self._columns: dict[Chart, int] = {}
        self._forgetting: str | None = None
        self._classes: dict[str, None] = {}

    def observe(self, report: Report) -> None:
        """Keep the report in the tiers that are due."""
        self._tiers.keep(report.published_ms, lambda: self._frame(report))

    def render(self, asked: Asked) -> bytes | None:
        """Render the model's recent past; None for a model without one."""
        since_ms = round(float(asked.values.get("since", 0)) * 1000)
        merged = self._tiers.merged()
        model = named(asked.values["model"], lambda: {name for frame in merged for name in frame.rows})
        frames = [frame for frame in merged if model in frame.rows]
        if not frames:
            return None
        frames = [frame for frame in frames if frame.published_ms > since_ms]
        points = np.full((len(frames), len(self._columns)), np.nan, np.float32)
        for point, frame in zip(points, frames, strict=True):
            row = frame.values[frame.rows[model]]
            point[: len(row)] = row
        series: dict[str, object] = {}
        for (metric, *rest), index in self._columns.items():
            branch = series
            *between, leaf = (metric, *rest)
            for step in between:
                branch = branch.setdefault(step, {})
                assert isinstance(branch, dict)  # noqa: S101 - one metric has one set of labels
            branch[leaf] = [_short(value) for value in points[:, index].tolist()]
        return encode(
            History(model, self._forgetting, [frame.published_ms / 1000 for frame in frames], series)
        )

    def lines(self, models: Mapping[str, str]) -> Lines:
        """Return accuracy and both baselines of models over the last hours, at the ends of equal stretches.

        `models` is model → the baseline that is its no change.
        """
        merged = self._tiers.merged()
        if not merged:
            return Lines([], {})
        newest_ms = merged[-1].published_ms
        oldest_ms = max(merged[0].published_ms, newest_ms - LINE_SECONDS * 1000)
        width_ms = max(1.0, (newest_ms - oldest_ms) / LINE_POINTS)
        last = {
            int((newest_ms - f.published_ms) // width_ms): f for f in merged if f.published_ms >= oldest_ms
        }
        frames = list(dict(sorted(last.items(), reverse=True)).values())
        columns = {
            "accuracy": self._columns.get(("accuracy_ratio", str(self._forgetting))),
            "majority": self._columns.get(("baseline_accuracy_ratio", "majority")),
        }
        by_baseline = {
            baseline: self._columns.get(("baseline_accuracy_ratio", baseline)) for baseline in models.values()
        }
        found = {
            model: {
                name: [_at(frame, model, column) for frame in frames]
                for name, column in {**columns, "no_change": by_baseline[baseline]}.items()
            }
            for model, baseline in models.items()
        }
        return Lines([frame.published_ms / 1000 for frame in frames], cast("dict[str, Line]", found))

    def _frame(self, report: Report) -> Frame:
        families = {family.name: family for family in report.families}
        self._forgetting = main_forgetting(families.get("accuracy_ratio"))
        # Every model of the report, also one without an outcome or with invalid records only.
        of_models = (family.samples for family in report.families if family.labels == ("model",))
        names = dict.fromkeys(chain.from_iterable(map(_models_of, of_models)))
        rows = {name: row for row, name in enumerate(names)}
        single: list[tuple[int, int, float]] = []
        columns: list[tuple[NDArray[np.int64], int, NDArray[np.float64]]] = []
        rows_of: dict[int, NDArray[np.int64]] = {}
        for family in families.values():
            if family.name in _PER_CLASS:
                single += self._of_classes(family, rows)
                continue
            chart_of = _charts(family, self._forgetting)
            if chart_of is None:
                continue
            samples = family.samples
            for part in samples.parts if isinstance(samples, Columns) else [samples]:
                if isinstance(part, Column):
                    chart = chart_of(next(iter(part.keys), ()))
                    if chart is None:
                        continue
                    models = part.keys.models
                    if (at := rows_of.get(id(models))) is None:
                        at = rows_of[id(models)] = np.array([rows.get(name, -1) for name in models], np.int64)
                    columns.append((at, self._number_of(chart), part.values))
                elif not isinstance(part, HistogramColumn):
                    single += self._of_samples(family, part, chart_of, rows)
        values = np.full((len(rows), len(self._columns)), np.nan, np.float32)
        for at, column, numbers in columns:
            values[at[at >= 0], column] = numbers[at >= 0]
        if single:
            at_rows, at_columns, numbers = zip(*single, strict=True)
            values[list(at_rows), list(at_columns)] = numbers
        return Frame(report.published_ms, rows, values)

    def _number_of(self, chart: Chart) -> int:
        """Return the column of a chart in frames, a new one if there is none."""
        return self._columns.setdefault(chart, len(self._columns))

    def _of_samples(
        self,
        family: Family,
        samples: Sequence[Sample],
        chart_of: Callable[[tuple[str, ...]], Chart | None],
        rows: Mapping[str, int],
    ) -> Iterable[tuple[int, int, float]]:
        """Yield (row, column, value) of the samples that charts show."""
        at = family.labels.index("model")
        for key, value in samples:
            row, chart = rows.get(key[at]), chart_of(key)
            if row is not None and chart is not None and not isinstance(value, Histogram):
                yield row, self._number_of(chart), value

    def _of_classes(self, family: Family, rows: Mapping[str, int]) -> Iterable[tuple[int, int, float]]:
        """Yield (row, column, value) of the classes whose shares are kept."""
        of_class, of_model = family.labels.index("class"), family.labels.index("model")
        samples: Iterable[Sample] = family.samples
        if isinstance(family.samples, ClassSamples) and len(self._classes) >= MAX_CLASSES:
            every = family.samples
            samples = (sample for model in every.models for sample in every.of_classes(model, self._classes))
        for values, value in samples:
            name, row = values[of_class], rows.get(values[of_model])
            if row is None or isinstance(value, Histogram):
                continue
            if name not in self._classes:
                if len(self._classes) >= MAX_CLASSES:
                    continue
                self._classes[name] = None
            column = (family.name, name)
            yield row, self._columns.setdefault(column, len(self._columns)), value


def _at(frame: Frame, model: str, column: int | None) -> float | None:
    """Return a model's value, rounded for a picture; None where it is undefined."""
    row = frame.rows.get(model)
    if row is None or column is None or column >= frame.values.shape[1]:
        return None
    value = float(frame.values[row, column])
    return round(value, 3) if math.isfinite(value) else None


class Tier:
    """Frames with a least spacing in time, limited in number and in values."""

    def __init__(self, spacing_seconds: float, max_values: int, max_frames: int) -> None:
        self._spacing_ms = spacing_seconds * 1000
        self._max_values = max_values
        self._max_frames = max_frames
        self.frames: deque[Frame] = deque()
        self.kept_values = 0

    def is_due(self, now_ms: int) -> bool:
        """Tell whether the spacing has passed since the last frame, or the clock was set back."""
        return not self.frames or not 0 <= now_ms - self.frames[-1].published_ms < self._spacing_ms

    def keep(self, frame: Frame) -> None:
        """Add a frame, and drop the oldest beyond the limits."""
        self.frames.append(frame)
        self.kept_values += frame.values.size
        while len(self.frames) > 1 and (
            len(self.frames) > self._max_frames or self.kept_values > self._max_values
        ):
            self.kept_values -= self.frames.popleft().values.size


class Tiers:
    """Frames of all tiers, which share `max_values` equally."""

    def __init__(self, max_values: int, max_frames: int = TIER_POINTS) -> None:
        self._tiers = tuple(Tier(s, max_values // len(TIER_SECONDS), max_frames) for s in TIER_SECONDS)

    def keep(self, now_ms: int, make: Callable[[], Frame | None]) -> None:
        """Make a frame if a tier is due, and keep it there unless it is None."""
        due = [tier for tier in self._tiers if tier.is_due(now_ms)]
        if due and (frame := make()) is not None:
            for tier in due:
                tier.keep(frame)

    @property
    def kept_values(self) -> int:
        """Number of values held, counted in each tier that holds them."""
        return sum(tier.kept_values for tier in self._tiers)

    def merged(self) -> list[Frame]:
        """Return the frames of all tiers in order of time, each once."""
        frames = {frame.published_ms: frame for tier in self._tiers for frame in tier.frames}
        return [frame for _, frame in sorted(frames.items())]


def _models_of(samples: Sequence[Sample]) -> Iterable[str]:
    """Names of the models of samples whose only label is the model."""
    if not isinstance(samples, Columns):
        return (model for (model,), _ in samples)
    return chain.from_iterable(
        (model for (model,), _ in part) if isinstance(part, list) else part.keys.models
        for part in samples.parts
    )


def _charts(family: Family, forgetting: str | None) -> Callable[[tuple[str, ...]], Chart | None] | None:
    """Return a function from label values to the chart that shows a series, None where none does.

    None if charts show no series of the family.
    """
    name = family.name
    label, among = _NAMED.get(name, ("", set[str]()))
    is_exported = name in _EVERY_FORGETTING | _MAIN_FORGETTING | _PER_DETECTOR | _PLAIN or label
    if not is_exported or "model" not in family.labels:
        return None
    of_model = family.labels.index("model")
    of_forgetting = family.labels.index("forgetting") if "forgetting" in family.labels else None
    of_name = family.labels.index(label) if label else None
    one_only = of_forgetting is not None and name not in _EVERY_FORGETTING

    def chart_of(values: tuple[str, ...]) -> Chart | None:
        if not values or (of_name is not None and values[of_name] not in among):
            return None
        if not one_only or of_forgetting is None:
            return (name, *(v for at, v in enumerate(values) if at != of_model))
        if values[of_forgetting] != forgetting:
            return None
        return (name, *(v for at, v in enumerate(values) if at not in {of_model, of_forgetting}))

    return chart_of


def _short(value: float) -> float | None:
    """Round a value to the 7 digits that 4 bytes hold; None for NaN."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.7g}")


# The recent past of comparisons, kept in memory for the status page's charts; a restart forgets it.
#
# `GET /api/v1/comparisons/{champion}/history?since=1759999990`::
#
# {"champion": "fraud-v3", "forgetting": "fading:0.999", "timestamps": [1759999999.5, 1760000000.5],
# "challengers": {"fraud-v4": {"q": [0.3, 0.31], "lead": [null, 0.06]}}}
#
# Q under that forgetting, and the mean lead, in the tiers of `history`; `null` where undefined; 404 for a
# model that nothing is compared with.


MAX_COMPARED_VALUES = 2_000_000
_CHARTED = ("q", "lead")
_BETWEEN = "\x1f"
"""Separator of champion and challenger in the name of a row; no model's name has control characters."""


class ComparisonHistoryExporter:
    """Exporter of the recent past of a champion's comparisons; observes reports, in the rendering thread."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/comparisons/{champion:.+}/history",
            "The recent past of a champion's comparisons, as kept in memory: at most 600 points",
            "ComparisonHistory",
            "models",
            (SINCE,),
        ),
    )

    def __init__(self) -> None:
        self._tiers = Tiers(MAX_COMPARED_VALUES)
        self._forgetting: str | None = None

    def observe(self, report: Report) -> None:
        """Keep the report in the tiers that are due, if it has comparisons."""
        self._tiers.keep(report.published_ms, lambda: self._frame(report))

    def _frame(self, report: Report) -> Frame | None:
        if not (compared := comparisons_of(report.families)):
            return None
        self._forgetting = shown_forgetting(report.families)
        rows = {f"{each['champion']}{_BETWEEN}{each['challenger']}": at for at, each in enumerate(compared)}
        values = np.array([[_value(each, name, self._forgetting) for name in _CHARTED] for each in compared])
        return Frame(report.published_ms, rows, values.astype(np.float32))

    def render(self, asked: Asked) -> bytes | None:
        """Render the past of a champion's comparisons; None for a model without any."""
        since_ms = round(float(asked.values.get("since", 0)) * 1000)
        merged = self._tiers.merged()
        pairs = {
            (champion, challenger)
            for frame in merged
            for champion, _, challenger in (row.partition(_BETWEEN) for row in frame.rows)
        }
        champion = named(asked.values["champion"], lambda: {each for each, _ in pairs})
        challengers = sorted(challenger for each, challenger in pairs if each == champion)
        if not challengers:
            return None
        frames = [frame for frame in merged if frame.published_ms > since_ms]
        return encode(
            ComparisonHistory(
                champion,
                self._forgetting,
                [frame.published_ms / 1000 for frame in frames],
                {
                    challenger: ComparedPoints(
                        q=[_kept(frame, champion, challenger, _CHARTED.index("q")) for frame in frames],
                        lead=[_kept(frame, champion, challenger, _CHARTED.index("lead")) for frame in frames],
                    )
                    for challenger in challengers
                },
            )
        )


def _value(document: Mapping[str, object], name: str, forgetting: str | None) -> float:
    """Return Q or the lead of a comparison; NaN where undefined."""
    found = document.get(name)
    measures = document["measures"]
    if name == "q" and isinstance(measures, dict):
        found = measures.get(forgetting, {}).get("q")
    return float(found) if isinstance(found, int | float) else math.nan


def _kept(frame: Frame, champion: str, challenger: str, column: int) -> float | None:
    row = frame.rows.get(f"{champion}{_BETWEEN}{challenger}")
    return None if row is None else _short(float(frame.values[row, column]))


# The past of one model as it is kept in the state, coarser with age; it survives restarts.
#
# `GET /api/v1/models/{model}/past`::
#
# {"model": "m", "days": 30, "starts": [1759996800, 1759999200, 1760000040], "seconds": [3600, 600, 60],
# "outcomes": [1200, 300, 17], "hits": [1092, 270, 15], "accuracy": [0.91, 0.9, 0.8823529], "persistent":
# [0.85, 0.85, 0.8235294]}
#
# There is one entry for each stretch of event time in which the model had outcomes, the oldest first, without
# overlap: hours of the last `days` (`monitors.history_days`), ten minutes of the last two days, minutes of
# the last four hours, counted back from the model's latest outcome. `hits` is the number of outcomes whose
# class was predicted. `accuracy` and `persistent` (no change: the previous label) are of the stretch alone,
# without fading; `persistent` is null for models that predict in several folds. Outcomes dated more than an
# hour after the report are left out.


class PastExporter:
    """Exporter of `/api/v1/models/{model}/past`: counts of the last report, by stretches of time."""

    routes: Sequence[Route] = (
        Route(
            "/api/v1/models/{model:.+}/past",
            "The past of one model as the state keeps it, coarser as it ages (`monitors.history_days`)",
            "Past",
            "models",
        ),
    )

    def render(self, asked: Asked) -> bytes | None:
        """Render the model's past, empty where none is kept; None for an unknown model."""
        if (report := asked.report) is None:
            return None
        model = named(asked.values["model"], lambda: names_of(report.families))
        views = report.pasts.get(model, ())
        if not views and model not in names_of(report.families):
            return None
        days = report.history_days
        shown = seamless(merged(views, days), days, report.published_ms // 1_000 + HOUR_S)
        outcomes = shown["outcomes"].astype(np.int64)
        return encode(
            Past(
                model=model,
                days=days,
                starts=shown["start_s"].tolist(),
                seconds=shown["seconds"].tolist(),
                outcomes=outcomes.tolist(),
                hits=shown["right"].tolist(),
                accuracy=np.round(shown["right"] / outcomes, 7).tolist(),
                persistent=[None] * len(shown)
                if len(views) > 1
                else np.round(shown["no_change"] / outcomes, 7).tolist(),
            )
        )


def seamless(kept: Stretches, days: int, until_s: int) -> Stretches:
    """Choose the finest stretch kept of every time, without those that start after `until_s`."""
    kept = kept[kept["start_s"] <= until_s]
    if not len(kept):
        return kept
    end_s = int(kept["start_s"].max())
    chosen: list[Stretches] = []
    until_s = end_s + HOUR_S
    lengths = tiers(days)
    for index, (seconds, slots) in enumerate(lengths):
        # A tier begins where a stretch of the next coarser one does, so that none is shown in part.
        coarser = lengths[index + 1][0] if index + 1 < len(lengths) else seconds
        first_s = (end_s // seconds - slots + 1) * seconds
        from_s = -(-first_s // coarser) * coarser
        own = kept[(kept["seconds"] == seconds) & (kept["start_s"] >= from_s) & (kept["start_s"] < until_s)]
        chosen.append(own)
        until_s = from_s
    found = np.concatenate(chosen)
    return found[np.argsort(found["start_s"], kind="stable")]
