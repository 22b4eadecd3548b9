"""Opening and closing of the state: opened in a thread, closed once no thread uses it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from streamwatch.core.records.events import shown_name
from streamwatch.daemon.commits import Commits, OffsetMetadata, State
from streamwatch.daemon.source_positions import DataLossTotals
from streamwatch.daemon.status import DaemonStatus
from streamwatch.edge.stores.kind import StateFailed, StateForbidden, StateGone
from streamwatch.telemetry import (
    EstimatesBegun,
    EstimatorsChanged,
    ModelStateDiscarded,
    StateLost,
    StateOpened,
    Telemetry,
)

STATE_GONE = "state_gone"
"""Cause under which the removal of an open state directory is counted as data loss."""
RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0, 15.0)
"""Delays before the state is opened again after consecutive failures; the last one repeats."""


class StateHolder:
    """Opens and closes the state, and counts records and losses over all states since the start.

    Parameters
    ----------
    open_state
        Opens and restores state, in a thread; raises StateRefused or StateFailed.
    offset_metadata
        Updated with the identity of the opened state.
    status
        Updated with the stage and with whether the state is durable.
    telemetry
        Receives internal events.
    monotonic
        Monotonic clock in seconds.
    """

    def __init__(
        self,
        open_state: Callable[[], State],
        offset_metadata: OffsetMetadata,
        status: DaemonStatus,
        telemetry: Telemetry,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state: State | None = None
        """The open state; None while none is open."""
        self.was_open = False
        """Whether a state has been opened since the start."""
        self._open_state = open_state
        self._offset_metadata = offset_metadata
        self._status = status
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._failures = 0
        self._gone = 0
        self._records_before = 0

    @property
    def records(self) -> int:
        """Records read since the start, over all states."""
        return self._records_before + (self.state.processor.records if self.state else 0)

    @property
    def opened(self) -> State:
        """The open state; to be called between `open` and `leave` only."""
        assert self.state is not None  # noqa: S101 - see above
        return self.state

    async def open(self) -> State:
        """Open the state and emit events on what was found; if cancelled, the opened store is closed."""
        self._status.stage = "state is being opened"
        began = self._monotonic()
        opening = _Opening(self._open_state)
        try:
            state = await asyncio.to_thread(opening.run)
        except asyncio.CancelledError:
            opening.give_up()
            raise
        self.state, self.was_open = state, True
        self._status.durable = state.store.durable
        resumed = state.resumed
        if state.store.durable:
            seconds = round(self._monotonic() - began, 3)
            self._telemetry.emit(
                StateOpened(state.checkpoint.commits, resumed.models, resumed.refolded, seconds)
            )
        for event in state.events:
            self._telemetry.emit(event)
        if resumed.begun:
            models = sorted({shown_name(name) for name in resumed.begun})
            self._telemetry.emit(EstimatesBegun(tuple(models)))
        if resumed.restarted or resumed.dropped:
            self._telemetry.emit(EstimatorsChanged(resumed.continued, resumed.restarted, resumed.dropped))
        for model, reason in resumed.refused.items():
            self._telemetry.emit(ModelStateDiscarded(shown_name(model), reason))
        if state.store.durable:
            self._offset_metadata.opened(state.store.identity, state.checkpoint.commits)
        self._offset_metadata.topics_since_ms = state.topics_since_ms
        return state

    def counts(self) -> DataLossTotals:
        """Return the data loss as of the opening, plus the state directories removed since the start."""
        counts = self.opened.source_positions.counts
        if not self._gone:
            return counts
        losses = {**counts.losses, STATE_GONE: counts.losses.get(STATE_GONE, 0) + self._gone}
        return DataLossTotals(losses, counts.records_lost, counts.position_unverified)

    def worked(self) -> None:
        """Note a durable commit: the next failure counts as the first again."""
        self._failures = 0

    def failed(self, error: StateFailed | StateForbidden) -> float:
        """Emit `StateLost`; return the seconds to wait before the state is opened again."""
        if isinstance(error, StateGone):
            self._gone += 1
        delay = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._status.durable = False
        self._status.stage = "state could not be written or read, and is being opened again"
        self._telemetry.emit(StateLost(str(error), delay))
        return delay

    async def leave(self, commits: Commits | None, seconds: float | None, *, unused: bool = True) -> None:
        """Close the store once no thread uses it; if one still does after `seconds`, it is left open.

        Parameters
        ----------
        commits
            Commits of the state, whose flush is waited for.
        seconds
            Longest wait for a flush, and for a merge; None: without limit.
        unused
            Whether nothing else, such as a backup, uses the store.
        """
        self._status.commits = None  # a closed store has no metrics
        unused = (commits is None or await commits.abandon(seconds)) and unused
        if self.state is not None and self.state.processor.maintenance is not None:
            unused = await self.state.processor.maintenance.stop(seconds) and unused
        if self.state is not None:
            self._records_before = self.records
            if unused:
                self.state.store.close()
            self.state = None


class _Opening:
    """Opening of state in a thread that cannot be stopped; after `give_up` its store is closed."""

    def __init__(self, open_state: Callable[[], State]) -> None:
        self._open_state = open_state
        self._lock = threading.Lock()
        self._given_up = False
        self._state: State | None = None

    def run(self) -> State:
        """Open the state; called in a thread."""
        state = self._open_state()
        with self._lock:
            self._state = state
            unwanted = self._given_up
        if unwanted:
            state.store.close()
        return state

    def give_up(self) -> None:
        """Close the store now if it is open, else as soon as it is opened."""
        with self._lock:
            self._given_up = True
            state = self._state
        if state is not None:
            state.store.close()
