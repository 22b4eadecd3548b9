"""Protocols of registers that explain alarms, and of registers that raise alarms of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from streamwatch.core.estimators.detectors.alarm import AlarmRow
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.segments.estimates import SegmentChange
from streamwatch.core.estimators.trace_chunk import Cell
from streamwatch.core.events import ErrorChange


@runtime_checkable
class ExplainsAlarms(Protocol):
    """Register that can tell where an alarm's change is: since which prediction, in which segment.

    If several registers can tell, the first one counts, in the order of `MonitorsSpec.registers`.
    """

    def change_at(self, batch: Batch, position: int) -> ErrorChange | None:
        """Locate a change of the error among predictions, as of one outcome of a batch not yet observed.

        None if there is none, or if the register does not know when predictions were made.
        """
        ...

    def change_of(self, row: int) -> SegmentChange | None:
        """Find the segment value with most of a model's additional errors, as of the outcomes observed.

        None if none stands out, or if the register has no segments.
        """
        ...

    def only_quick_labels(self, age_ms: int) -> bool:
        """Tell whether a model first seen this long ago can only have labels that came quickly.

        False if the register has no horizon.
        """
        ...


class LateAlarm(NamedTuple):
    """Alarm of a register's detector for an outcome that was released by an outcome of the batch."""

    position: int
    """Position in the batch of the outcome at which the alarm was noticed."""
    found: AlarmRow
    """Alarm as the register's table reports it, except that `row` is the model's own row."""
    predicted_ms: int
    """Time of the prediction whose outcome raised the alarm."""


@runtime_checkable
class RaisesAlarms(Protocol):
    """Register with detectors of its own."""

    @property
    def detectors(self) -> Sequence[str]:
        """Names of the detectors, by the index used in its alarms."""
        ...

    def estimators(self) -> Mapping[str, str]:
        """Descriptions of the detectors, by section name, which changes with their parameters."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns that the register adds to a trace."""
        ...

    def trace(self, batch: Batch) -> Sequence[Sequence[Cell]]:
        """Evaluate a batch as `observe` does.

        Return the value of each column after every outcome, (columns, n).
        """
        ...

    def raised(self) -> Sequence[LateAlarm]:
        """Alarms since the last call, in their order within a model."""
        ...
