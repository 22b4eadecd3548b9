"""What is asked of registers when an alarm is raised: where the change is, and what its labels can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from streamwatch.core.estimators.detectors.alarm import AlarmRow
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.segments.change import SegmentChange
from streamwatch.core.estimators.trace_chunk import Cell
from streamwatch.core.events import ErrorChange


@runtime_checkable
class AnswersAlarms(Protocol):
    """Register that is asked about alarms, and says what it knows of each question.

    Of several registers that are asked, the first answer counts, in the order of `MonitorsSpec.registers`.
    """

    def change_at(self, batch: Batch, position: int) -> ErrorChange | None:
        """Locate a change of the error among predictions, as of one outcome of a batch not yet observed.

        None where none is found, and from registers that do not know when predictions were made.
        """
        ...

    def change_of(self, row: int) -> SegmentChange | None:
        """Find the value in which most of a model's extra errors sit, as of the outcomes observed.

        None where none stands out, and from registers that know no segments.
        """
        ...

    def only_quick_labels(self, age_ms: int) -> bool:
        """Tell whether a model first seen so long ago can only have labels that came quickly.

        False from registers that know of no horizon.
        """
        ...


class LateAlarm(NamedTuple):
    """A detector of a register alarmed at an outcome that an outcome of a batch released."""

    position: int
    """In the batch, of the outcome at which it was noticed."""
    found: AlarmRow
    """As its table says it, but for `row`, which is that of the model."""
    predicted_ms: int
    """Time of the prediction at whose outcome it alarmed."""


@runtime_checkable
class RaisesAlarms(Protocol):
    """Register with detectors of its own."""

    @property
    def detectors(self) -> Sequence[str]:
        """Names of the detectors, by the index that its alarms have."""
        ...

    def estimators(self) -> Mapping[str, str]:
        """Detectors in words, by names that change with their parameters."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns that it adds to a trace."""
        ...

    def trace(self, batch: Batch) -> Sequence[Sequence[Cell]]:
        """Observe a batch as `observe` does; what each column says after every outcome, (columns, n)."""
        ...

    def raised(self) -> Sequence[LateAlarm]:
        """Give the alarms of the outcomes observed since the last call, in their order within a model."""
        ...
