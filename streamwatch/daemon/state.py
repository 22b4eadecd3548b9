"""The store and what lives in memory beside it, opened, restored and dropped together."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.commit.checkpoint import RestoreReport
from streamwatch.core.ports import Store
from streamwatch.daemon.alerting import Alerting
from streamwatch.daemon.processing.processor import Checkpointing, Processor
from streamwatch.daemon.source_positions import SourcePositions


@dataclass(frozen=True, slots=True)
class State:
    """State from an opening to a failure or the end."""

    store: Store
    checkpoint: Checkpointing
    processor: Processor
    source_positions: SourcePositions
    """Positions at which reading goes on."""
    resumed: RestoreReport
    """Models and estimators found at the opening."""
    alerting: Alerting | None = None
    """Decides on notifications; None: there are none."""
