"""Everything that is opened, restored and dropped together: the store, and what lives in memory beside it."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.checkpoint import Checkpoint, Resumed
from streamwatch.core.ports import Store
from streamwatch.daemon.alerting import Alerting
from streamwatch.daemon.intake import Intake
from streamwatch.daemon.places import Places


@dataclass(frozen=True, slots=True)
class State:
    """One life of the state, from an opening to a failure or the end."""

    store: Store
    checkpoint: Checkpoint
    intake: Intake
    places: Places
    """Where reading goes on."""
    resumed: Resumed
    """What was found at the opening."""
    alerting: Alerting | None = None
    """Who is told of alarms; nobody without."""
