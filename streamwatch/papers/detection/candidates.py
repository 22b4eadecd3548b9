"""Detectors that are scored: the daemon's and those of other libraries, with one interface."""

from __future__ import annotations

from collections import deque
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
    """Detector of the daemon or of another library."""

    name: str
    library: str
    alarms: Callable[[Losses], Alarms]
    """Losses (runs, outcomes) → alarms of each run; it restarts with every run, and after every alarm."""


class Together:
    """Detectors that one call asks together; keeps their alarms on the last few arrays of losses.

    Parameters
    ----------
    ask
        Function from losses (runs, outcomes) to the alarms of each detector.
    remembered
        Number of arrays whose alarms are kept.
    """

    def __init__(self, ask: Callable[[Losses], list[Alarms]], remembered: int) -> None:
        self._ask = ask
        self._answers: deque[tuple[Losses, list[Alarms]]] = deque(maxlen=remembered)

    def alarms(self, index: int, losses: Losses) -> Alarms:
        """Return the alarms of detector `index` on each run; `losses` is (runs, outcomes)."""
        for given, alarms in self._answers:
            if given is losses:
                return alarms[index]
        self._answers.append((losses, self._ask(losses)))
        return self._answers[-1][1][index]


def defaults() -> tuple[DetectorSpec, ...]:
    """Return every kind of detector with its default parameters."""
    return tuple(kind.spec() for kind in KINDS)


def published() -> tuple[DetectorSpec, ...]:
    """Return every kind of detector as published: without correction for dependent losses."""
    as_printed: dict[str, DetectorSpec] = {
        "page_hinkley": PageHinkleySpec(threshold=50.0, dependence="ignored"),
        "adwin": AdwinDriftSpec(delta=0.002, dependence="ignored"),
    }
    return tuple(as_printed.get(spec.name, spec) for spec in defaults())


def own_alarms(specs: Sequence[DetectorSpec], losses: Losses) -> list[Alarms]:
    """Run the daemon's detectors on losses (runs, outcomes); return alarms by detector and run.

    Calls with the same kinds of detectors share one compiled loop, whatever the parameters.
    """
    runs, outcomes = losses.shape
    table = table_of(specs, runs)
    predicted = losses.reshape(-1).astype(np.int32)
    rows = np.repeat(np.arange(runs, dtype=np.int32), outcomes)
    found: list[Alarms] = [[[] for _ in range(runs)] for _ in specs]
    for alarm in table.fold(rows, np.zeros_like(predicted), predicted):
        found[alarm.detector][alarm.row].append(alarm.outcome)
    return found
