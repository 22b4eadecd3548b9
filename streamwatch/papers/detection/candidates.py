"""Detectors that are scored: the daemon's, and other libraries', called the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.specs import AdwinDriftSpec, DetectorSpec, PageHinkleySpec
from streamwatch.history.tuning.promise import table_of
from streamwatch.papers.detection.streams import Losses

Alarms: TypeAlias = list[list[int]]
"""Outcomes (1-based) of the alarms of each run."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A detector of another library, at that library's defaults."""

    name: str
    library: str
    alarms: Callable[[Losses], Alarms]
    """Losses (runs, outcomes) → alarms of each run; it begins anew with every run, and after every alarm."""


def defaults() -> tuple[DetectorSpec, ...]:
    """Every kind of detector as settings have it that name it alone."""
    return tuple(kind.spec() for kind in KINDS)


def published() -> tuple[DetectorSpec, ...]:
    """Every kind as it was published: made for independent losses, whatever it is given."""
    as_printed: dict[str, DetectorSpec] = {
        "page_hinkley": PageHinkleySpec(threshold=50.0, dependence="ignored"),
        "adwin": AdwinDriftSpec(delta=0.002, dependence="ignored"),
    }
    return tuple(as_printed.get(spec.name, spec) for spec in defaults())


def own_alarms(specs: Sequence[DetectorSpec], losses: Losses) -> list[Alarms]:
    """Alarms of the daemon's detectors on losses (runs, outcomes), by detector and run.

    Whoever asks for one of every kind shares one compiled loop, whatever the parameters.
    """
    runs, outcomes = losses.shape
    table = table_of(specs, runs)
    predicted = losses.reshape(-1).astype(np.int32)
    rows = np.repeat(np.arange(runs, dtype=np.int32), outcomes)
    found: list[Alarms] = [[[] for _ in range(runs)] for _ in specs]
    for alarm in table.fold(rows, np.zeros_like(predicted), predicted):
        found[alarm.detector][alarm.row].append(alarm.outcome)
    return found
