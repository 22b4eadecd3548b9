"""Revisions: a model's first and last predictions of an id, both against the label (`join.conflicts: both`).

Grzenda, Gomes and Bifet (2020) evaluate the initial and the final prediction of an instance whose label is
delayed, and those between in bins of waiting time. Here the waiting time is the time from the first
prediction to the label, which is the outcome's delay and the time a model had to revise its prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.estimators.registers.revisions.measures import MEASURES
from streamwatch.core.metrics import Metric
from streamwatch.core.specs import DAY_MS

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.revisions.register import Revisions

METRICS: Final = tuple(Metric(m.name, "gauge", f"{m.help} ({m.formula})", ("model",)) for m in MEASURES)

REVISIONS_BYTES: Final = 1_500
"""Largest number of bytes of one model: its sums and counts, 1.1 kB; its snapshot is no larger."""


@dataclass(frozen=True, slots=True)
class RevisionsSpec:
    """Parameters of the comparison of first and last predictions.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take, at least a second (`JoinSpec.horizon_ms`).
    alpha
        Fading factor in (0, 1] of all sums, per outcome of the model.
    """

    horizon_ms: int = 14 * DAY_MS
    alpha: float = 0.999


def _build(spec: RevisionsSpec, capacity: int) -> Revisions:
    """Build an empty register; compiled code is imported only here."""
    from streamwatch.core.estimators.registers.revisions.register import Revisions  # noqa: PLC0415

    return Revisions(spec, capacity)


REVISIONS: Final = RegisterKind("revisions", RevisionsSpec, METRICS, _build)
