"""Destinations of invalid records and of reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamwatch.core.ports.records import Record
from streamwatch.core.series import Family, Report


class DeadLetters(Protocol):
    """Destination of invalid records, which are written as they were read."""

    @property
    def is_full(self) -> bool:
        """Tell whether `flush` has to be called before the next `put`."""
        ...

    @property
    def problem(self) -> str | None:
        """Reason for which queued records cannot be written at the moment, in words; None where they can."""
        ...

    def put(self, record: Record, reason: str) -> None:
        """Queue a record, with the reason why it is invalid, for the next `flush`."""
        ...

    async def flush(self) -> None:
        """Write the queued records within a bounded time; count as dropped those that cannot be written."""
        ...

    async def stop(self) -> None:
        """Close within a bounded time; records still queued are discarded, as no commit has passed them."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics of records written and dropped."""
        ...


class Sink(Protocol):
    """Display of reports."""

    def publish(self, report: Report) -> None:
        """Show `report` instead of the one before."""
        ...
