"""Alarms of several detectors on streams like a history, and delays after its error rose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import DetectorSpec, MonitorsSpec
from streamwatch.lab.tuning.resampling import Losses, resampled

CHUNK = 1 << 20
"""Outcomes that are drawn and evaluated at once."""


def table_of(detectors: Sequence[DetectorSpec], models: int) -> ModelTable:
    """Models of two classes that these detectors watch, and nothing else."""
    table = ModelTable(
        MonitorsSpec(
            (), tuple(detectors), (), max_models=models, max_classes=2, shadow_max_classes=0, opponents=()
        )
    )
    for _ in range(models):
        table.add_model()
    return table


def count_alarms(
    detectors: Sequence[DetectorSpec],
    histories: Sequence[Losses],
    block: float,
    length: int,
    rng: np.random.Generator,
    before: int = 0,
) -> NDArray[np.int64]:
    """Count alarms on one stream like each history; shape (detectors, histories).

    A stream has `before` outcomes whose alarms do not count, and `length` whose alarms do.
    """
    table = table_of(detectors, len(histories))
    counts = np.zeros((len(detectors), len(histories)), np.int64)
    for row, history in enumerate(histories):
        for start in range(0, before + length, CHUNK):
            part = resampled(history, block, min(CHUNK, before + length - start), rng).astype(np.int32)
            rows = np.full(len(part), row, np.int32)
            for alarm in table.fold(rows, np.zeros_like(part), part):
                counts[alarm.detector, row] += alarm.outcome > before
    return counts


def worsened(losses: Losses, rise: float, rng: np.random.Generator) -> Losses:
    """Losses whose error is higher by `rise`: of the hits so many turn into errors, each by itself."""
    hits = 1.0 - losses.mean()
    return np.where((losses == 0) & (rng.random(losses.shape) < rise / hits), 1, losses).astype(np.int8)


def delays(  # noqa: PLR0913, PLR0917  (an experiment is described by as many)
    detectors: Sequence[DetectorSpec],
    losses: Losses,
    block: float,
    rise: float,
    runs: int,
    before: int,
    after: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Outcomes from a rise of the error to the first alarm after it; shape (detectors, runs).

    inf where none came within `after` outcomes. Detectors have seen `before` outcomes without a change, and
    alarms among those do not count.
    """
    table = table_of(detectors, runs)
    found = np.full((len(detectors), runs), np.inf)
    for row in range(runs):
        calm = resampled(losses, block, before, rng)
        risen = worsened(resampled(losses, block, after, rng), rise, rng)
        stream = np.concatenate([calm, risen]).astype(np.int32)
        rows = np.full(len(stream), row, np.int32)
        for alarm in table.fold(rows, np.zeros_like(stream), stream):
            late = alarm.outcome - before
            if late > 0:
                found[alarm.detector, row] = min(found[alarm.detector, row], late)
    return found
