"""Definition of a metric: its name, type, help text and label names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from streamwatch.core.metrics.durations import DURATION_BOUNDS

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
