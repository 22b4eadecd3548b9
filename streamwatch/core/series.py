"""Metric families and the report that sinks render: the one source of names for metrics and API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from streamwatch.core.events import Alarm

if TYPE_CHECKING:  # names of series need no arrays
    from streamwatch.core.past import PastView

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

    `published_ms` is the host's time in milliseconds since the epoch. `details` has, for the API, what is no
    series of a model (class names, when it was first seen). `alarms` are the latest of all models, oldest
    first. `pasts` has the past of each model over at most `history_days` days: one view, or one for each of
    its folds (`EstimatorSet.pasts`).
    """

    families: Sequence[Family]
    published_ms: int
    details: Mapping[str, Mapping[str, object]]
    alarms: Sequence[Alarm] = ()
    pasts: Mapping[str, Sequence[PastView]] = field(default_factory=dict[str, "Sequence[PastView]"])
    history_days: int = 0


def detail_at(details: object, *path: str) -> object:
    """Look up what stands at a path of a model's details, which nest; None where there is nothing."""
    for name in path:
        if not isinstance(details, Mapping):
            return None
        details = cast("Mapping[str, object]", details).get(name)
    return details
