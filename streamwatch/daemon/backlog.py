"""Whether records are evaluated as they come, or a backlog of them is being caught up with."""

from __future__ import annotations

from collections.abc import Callable

from streamwatch.daemon.processing.processor import Processor
from streamwatch.daemon.status import DaemonStatus
from streamwatch.telemetry import CatchUpCompleted, Telemetry


class Backlog:
    """Tells when what there was at the start has been evaluated.

    Parameters
    ----------
    status
        Knows whether every partition was read to its end.
    telemetry
        Told once of the end of the backlog at the start.
    monotonic
        Seconds that never go back.
    """

    def __init__(self, status: DaemonStatus, telemetry: Telemetry, monotonic: Callable[[], float]) -> None:
        self._status = status
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._began = monotonic()
        self._read_ms: int | None = None
        """When every partition was read to its end; None before."""
        self.passed = False
        """Whether that of the start is over."""

    def begin(self) -> None:
        """Count seconds from now."""
        self._began = self._monotonic()

    def lasts(self, processor: Processor | None) -> bool:
        """Tell whether a backlog is being read, or what was read of one waits for its turn."""
        if not self._status.caught_up:
            self._read_ms = None
            return True
        if self._read_ms is None:
            self._read_ms = int(self._monotonic() * 1_000)
        return processor is not None and processor.holds_from_before(self._read_ms)

    def look(self, processor: Processor, records: int) -> None:
        """Tell, if it is over, in which time how many records were evaluated."""
        if not self.passed and not self.lasts(processor):
            self.passed = True
            self._telemetry.emit(CatchUpCompleted(records, round(self._monotonic() - self._began, 3)))
