"""`Holdings`: what a join holds, in a form common to the row-wise and the compiled join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamwatch.core.join.models import ModelActivity


@dataclass(frozen=True, slots=True)
class Holdings:
    """Numbers of what waits, by kind, and the activity of every model by name."""

    models: Mapping[str, ModelActivity]
    pending: int
    early: int
    """Labels with a model, waiting."""
    unmatched: int
    """Labels without a model that have met nobody."""
    retained: int
    """All labels without a model that are kept."""
    dedup_entries: int
    held: int = 0
    """Outcomes in the order buffer."""
    held_assumed: int = 0
    """Of those, the ones that were assumed at expiry."""
    oldest_ms: int | None = None
    """Record time of the pending prediction that would expire first."""
    places: Mapping[str, int] = field(default_factory=dict[str, int])
    """Entries by where they lie (`memory`, `disk`); empty of a join that leaves that to its store."""
