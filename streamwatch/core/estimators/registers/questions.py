"""What is asked of registers when an alarm is raised: where the change is, and what its labels can tell."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.segments.change import SegmentChange
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
