"""Metric families and the report that sinks render: the one source of names for metrics and API."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice, repeat
from math import isnan
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import SEPARATOR, Alarm, model_of

if TYPE_CHECKING:
    from streamwatch.core.estimators.past import PastView

PREFIX = "streamwatch_"
_STANDARD = ("process_", "python_")
"""Beginnings of standard metric names, which every exporter gives without a prefix of its own."""


def exposed(name: str) -> str:
    """Name of a metric in a scrape: with `PREFIX`, except for standard metrics of process and interpreter."""
    return name if name.startswith(_STANDARD) else PREFIX + name


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative bucket counts (the last bucket is +Inf) and the sum of observations."""

    counts: tuple[int, ...]
    total: float


Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram]
"""(label values, value)."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """Label values of one series for each of some models, which differ by the model only."""

    models: Sequence[str]
    before: tuple[str, ...] = ()
    """Values of the labels that sort before that of the model."""
    after: tuple[str, ...] = ()
    """Values of the labels that sort after it."""

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return zip(*map(repeat, self.before), self.models, *map(repeat, self.after), strict=False)


class Column(NamedTuple):
    """Values of some series of a metric."""

    keys: ModelKeys
    values: NDArray[np.float64]
    """Value of each series, shape (m,); NaN where undefined."""


class HistogramColumn(NamedTuple):
    """Histograms of some series of a metric."""

    keys: ModelKeys
    counts: NDArray[np.int64]
    """Cumulative counts of each series, shape (m, buckets)."""
    totals: NDArray[np.float64]
    """Sum of observations of each series, shape (m,)."""

    def samples(self) -> Iterator[Sample]:
        """Build the samples."""
        for key, counts, total in zip(self.keys, self.counts.tolist(), self.totals.tolist(), strict=True):
            yield key, Histogram(tuple(counts), total)


class MadeSamples(Sequence[Made]):
    """Sequence of samples that are built during iteration; `_count` is their number."""

    _count = 0

    def __repr__(self) -> str:
        return repr(list(self))

    def __eq__(self, other: object) -> bool:
        """Tell whether another sequence has the same samples in the same order."""
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """Count the defined values."""
        return self._count

    @abstractmethod
    def __iter__(self) -> Iterator[Made]:
        """Build the samples."""

    @overload
    def __getitem__(self, index: int) -> Made: ...
    @overload
    def __getitem__(self, index: slice) -> list[Made]: ...
    def __getitem__(self, index: int | slice) -> Made | list[Made]:
        """Build samples by position; takes time linear in the position, for a slice in the number of all."""
        if isinstance(index, slice):
            return list(self)[index]
        at = index + self._count if index < 0 else index
        for sample in islice(self, max(at, 0), None):
            if at >= 0:
                return sample
            break
        raise IndexError(f"expected a position below {self._count}, got {index}")


class Columns(MadeSamples[Sample]):
    """Samples of a metric, as columns and as lists of single samples, in the order of addition.

    Undefined values (NaN) give no sample. Samples are built during iteration, so that a report of hundreds of
    thousands of samples consists of a few arrays.
    """

    def __init__(self) -> None:
        self.parts: list[Column | HistogramColumn | list[Sample]] = []
        """Columns, and lists of single samples; never modified once added."""
        self._count = 0

    def add(self, keys: ModelKeys, values: NDArray[Any]) -> None:
        """Add a column: one value for each key."""
        self.add_part(Column(keys, np.asarray(values, np.float64)))

    def add_part(self, part: Column | HistogramColumn) -> None:
        """Add a column that exists, unless none of its values is defined."""
        undefined = int(np.count_nonzero(np.isnan(part.values))) if isinstance(part, Column) else 0
        defined = len(part.keys) - undefined
        if defined:  # of 10,000 models, columns without any would take a third of a report's memory
            self.parts.append(part)
            self._count += defined

    def extend(self, samples: Sequence[Sample]) -> None:
        """Add single samples, or all parts of other columns."""
        if isinstance(samples, Columns):
            self.parts += samples.parts
            self._count += len(samples)
        elif samples:
            self.parts.append(list(samples))
            self._count += len(samples)

    def __iter__(self) -> Iterator[Sample]:
        """Build the samples."""
        for part in self.parts:
            if isinstance(part, Column):
                made = zip(part.keys, part.values.tolist(), strict=True)
                yield from compress(made, (~np.isnan(part.values)).tolist())
            elif isinstance(part, HistogramColumn):
                yield from part.samples()
            else:
                yield from part


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one metric.

    `name` is without the prefix and, for counters, ends in `_total`. `labels` are label names in
    alphabetical order; each sample is (label values in that order, value). An undefined value has no
    sample. `bounds` are the upper bounds of a histogram's buckets without +Inf.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    samples: Sequence[Sample]
    bounds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Report of one durable commit; every sink renders the same value.

    `published_ms` is the host's time in milliseconds since the epoch. `details` has, for the API, values of a
    model that are no series (class names, when it was first seen). `alarms` are the latest of all models,
    oldest first. `pasts` has the past of each model over at most `history_days` days: one view, or one for
    each of its folds (`EstimatorSet.pasts`).
    """

    families: Sequence[Family]
    published_ms: int
    details: Mapping[str, Mapping[str, object]]
    alarms: Sequence[Alarm] = ()
    pasts: Mapping[str, Sequence[PastView]] = field(default_factory=dict[str, "Sequence[PastView]"])
    history_days: int = 0


def detail_at(details: Any, *path: str) -> Any:
    """Look up the value at a path of names in nested details or documents; None without one."""
    for name in path:
        if not isinstance(details, dict | Mapping):  # most are dicts, which are told in a tenth of the time
            return None
        details = cast("Mapping[str, Any]", details).get(name)
    return details


# Per-class series of a metric, kept as arrays: a report of a million classes takes some megabytes.
#
# Samples are built during iteration, for all models or only for those asked for.


ClassSample: TypeAlias = tuple[tuple[str, str, str], float]
"""((class, forgetting, model), value)."""


class ClassNames:
    """Names of a model's classes, in order of their first appearance; shared by all metrics of a report.

    Parameters
    ----------
    names
        Names at the time of the report.
    indices
        Index by name; may also have names that were added after the report. By default that of `names`.
    """

    def __init__(self, names: Sequence[str], indices: Mapping[str, int] | None = None) -> None:
        self.names = names
        self._indices = {name: at for at, name in enumerate(names)} if indices is None else indices

    def index_of(self, name: str) -> int | None:
        """Index of a class; None for an unknown one."""
        at = self._indices.get(name)
        if at is None and self.names and self.names[-1] == name:  # `__other__`, which has no index
            return len(self.names) - 1
        return at


class ClassSamples(MadeSamples[ClassSample]):
    """Samples of a metric with the labels class, forgetting and model, under one forgetting.

    Undefined values (NaN) give no sample.

    Parameters
    ----------
    forgetting
        Value of the label.
    """

    def __init__(self, forgetting: str = "") -> None:
        self.forgetting = forgetting
        self._values: dict[str, tuple[ClassNames, NDArray[np.float64]]] = {}
        self._count = 0

    def add(self, model: str, names: ClassNames, values: NDArray[np.float64]) -> None:
        """Add a model: float64 (at most as many as names), one value for each class, NaN where undefined."""
        self._values[model] = (names, values)
        self._count += int(np.count_nonzero(~np.isnan(values)))

    def add_all(
        self, models: Sequence[str], names: Sequence[ClassNames], values: NDArray[np.float64]
    ) -> None:
        """Add models: float64 (m, k), a row for each; values beyond the number of its names are ignored."""
        self._values.update(zip(models, zip(names, values, strict=True), strict=True))
        sizes = np.array(list(map(len, [each.names for each in names])))
        defined = ~np.isnan(values) & (np.arange(values.shape[1]) < sizes[:, None])
        self._count += int(np.count_nonzero(defined))

    def join_folds(self) -> None:
        """Replace the series of folds by those of their models: the mean over the folds that define it."""
        by_model: dict[str, list[str]] = {}
        for name in self._values:
            if SEPARATOR in name:
                by_model.setdefault(model_of(name), []).append(name)
        for model, folds in by_model.items():
            found: dict[str, list[float]] = {}
            for fold in folds:
                for (name, _, _), value in self.of_model(fold):
                    found.setdefault(name, []).append(value)
                self._remove(fold)
            joined = {name: fmean(values) for name, values in found.items()}
            joined |= {name: value for (name, _, _), value in self.of_model(model)}
            self._remove(model)
            self.add(model, ClassNames(list(joined)), np.array(list(joined.values()), np.float64))

    def _remove(self, model: str) -> None:
        if model in self._values:
            names, values = self._values.pop(model)
            self._count -= int(np.count_nonzero(~np.isnan(values[: len(names.names)])))

    @property
    def models(self) -> Iterable[str]:
        """Names of the models."""
        return self._values.keys()

    def columns(self) -> Iterator[tuple[str, Sequence[str], NDArray[np.float64]]]:
        """Yield model, class names and values in the order of names; more or fewer values than names."""
        for model, (names, values) in self._values.items():
            yield model, names.names, values

    def of_model(self, model: str) -> Iterator[ClassSample]:
        """Samples of one model, in the order of its classes; none for an unknown one."""
        if model not in self._values:
            return
        names, values = self._values[model]
        for name, value in zip(names.names, values.tolist(), strict=False):
            if not isnan(value):
                yield (name, self.forgetting, model), value

    def of_classes(self, model: str, classes: Iterable[str]) -> Iterator[ClassSample]:
        """Samples of these classes of a model, in this order; unknown and undefined ones are left out."""
        if model not in self._values:
            return
        names, values = self._values[model]
        for name in classes:
            at = names.index_of(name)
            if (
                at is not None
                and at < min(len(values), len(names.names))
                and not isnan(value := float(values[at]))
            ):
                yield (name, self.forgetting, model), value

    def __iter__(self) -> Iterator[ClassSample]:
        """Build the samples of all models."""
        for model in self._values:
            yield from self.of_model(model)


# Details of models: parts that are built when they are read, and layers that add to them.
#
# A document of a model may take a tenth of a millisecond to build. Who needs little of it for many models
# names the parts that it needs (`with_parts`); a part is the document of a register, the confusion matrix or
# the recoveries. All other fields are there in any case.


Document: TypeAlias = Mapping[str, object]


class DetailsInParts(Mapping[str, Document]):
    """Details by model, of which only the parts that are needed are built."""

    @abstractmethod
    def with_parts(self, model: str, parts: Collection[str] | None) -> Document:
        """Build the details of a model, with these of its parts only; None: all.

        Raises KeyError for a model without details.
        """

    def __getitem__(self, model: str) -> Document:
        return self.with_parts(model, None)

    def __repr__(self) -> str:
        return repr(dict(self))


def with_parts(details: Mapping[str, Document], model: str, parts: Collection[str]) -> Document:
    """Build the details of a model with these of its parts; empty for a model without details.

    Details of any other mapping are returned whole.
    """
    if model not in details:
        return {}
    return details.with_parts(model, parts) if isinstance(details, DetailsInParts) else details[model]


class Layered(DetailsInParts):
    """Mapping of details by model that applies a function to them on each read.

    Parameters
    ----------
    details
        Details by model that the function is applied to.
    further
        Further models to include; the function gets empty details for those that are not in `details`.
    change
        Function from a model's name and details to its new details; it must not modify its argument.
    """

    def __init__(
        self,
        details: Mapping[str, Document],
        further: Iterable[str],
        change: Callable[[str, Document], Document],
    ) -> None:
        self._details = details
        self._further = dict.fromkeys(name for name in further if name not in details)
        self._change = change

    def with_parts(self, model: str, parts: Collection[str] | None) -> Document:
        """Apply the function to the details with these parts."""
        if model in self._further:
            return self._change(model, {})
        below = self._details
        if parts is None or not isinstance(below, DetailsInParts):
            return self._change(model, below[model])
        return self._change(model, below.with_parts(model, parts))

    def __contains__(self, model: object) -> bool:
        return model in self._details or model in self._further

    def __iter__(self) -> Iterator[str]:
        yield from self._details
        yield from self._further

    def __len__(self) -> int:
        return len(self._details) + len(self._further)
