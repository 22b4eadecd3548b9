"""Definition of a metric: its name, type, help text and label names; and histograms of durations."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal

from streamwatch.core.metrics.series import Histogram

# Histograms of durations of the daemon's own work, since its start.


DURATION_BOUNDS: Final[tuple[float, ...]] = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
"""Upper bounds of the buckets, in seconds: a millisecond to half a minute."""


class Durations:
    """Counts durations by bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(DURATION_BOUNDS) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration in seconds; a negative one, of a clock that was set, counts as 0."""
        seconds = max(0.0, seconds)
        self._counts[bisect_left(DURATION_BOUNDS, seconds)] += 1
        self._total += seconds

    def histogram(self) -> Histogram:
        """Return the cumulative counts and the sum."""
        return Histogram(tuple(accumulate(self._counts)), self._total)


# Definition of a metric: its name, type, help text and label names.


DECAY: Final = "decay is per outcome, not per second"
"""Clause in the help of every estimate that forgets."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Definition of a metric: name without the prefix, label names in alphabetical order."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...] = ()
    """Of a histogram: upper bounds of its buckets, without +Inf."""


def gauge(name: str, text: str, *labels: str) -> Metric:
    """Make a gauge; labels in alphabetical order."""
    return Metric(name, "gauge", text, labels)


def durations(name: str, text: str, *labels: str) -> Metric:
    """Make a histogram of durations in seconds; labels in alphabetical order."""
    return Metric(name, "histogram", text, labels, DURATION_BOUNDS)


def counter(name: str, text: str, *labels: str) -> Metric:
    """Make a counter; its name ends in `_total`."""
    return Metric(name, "counter", text, labels)
