"""Elec2 with labels that come late: predictions of three models every half hour, delays simulated."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import DAY_MS

PREDICTIONS = Path(__file__).parent / "elec2_three_models.csv.gz"
BEGAN_MS = 831_600_000_000
"""7 May 1996, when Elec2 begins, UTC."""
STEP_MS = 1_800_000
HORIZON_MS = 14 * DAY_MS


@dataclass(frozen=True)
class LateElec2:
    """One model's predictions, in order, and when their labels came; shape (n,)."""

    predicted_ms: NDArray[np.int64]
    delay_ms: NDArray[np.int64]
    hit: NDArray[np.bool_]
    true_class: tuple[str, ...]
    predicted_class: tuple[str, ...]

    @property
    def known_ms(self) -> NDArray[np.int64]:
        """When the labels came."""
        return self.predicted_ms + self.delay_ms

    def by_label(self) -> NDArray[np.int64]:
        """Positions in the order in which labels came, of those within the horizon."""
        order = np.argsort(self.known_ms, kind="stable")
        return order[self.delay_ms[order] <= HORIZON_MS]

    def outcomes(self) -> list[Outcome]:
        """Outcomes in the order in which labels came."""
        return [
            Outcome(
                "m",
                self.true_class[i],
                self.predicted_class[i],
                int(self.known_ms[i]),
                int(self.delay_ms[i]),
            )
            for i in self.by_label().tolist()
        ]


def late_elec2(model: str, *, hits_days: float = 4.0, errors_days: float = 0.8, seed: int = 1) -> LateElec2:
    """Read one model; its errors are labelled after `errors_days` on average, hits after `hits_days`."""
    with gzip.open(PREDICTIONS, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    true_class = tuple(row["y_true"] for row in rows)
    predicted_class = tuple(row[model] for row in rows)
    hit = np.array([y == p for y, p in zip(true_class, predicted_class, strict=True)])
    delay = np.random.default_rng(seed).exponential(np.where(hit, hits_days, errors_days)) * DAY_MS
    predicted = BEGAN_MS + STEP_MS * np.arange(len(rows), dtype=np.int64)
    return LateElec2(predicted, np.rint(delay).astype(np.int64), hit, true_class, predicted_class)
