"""Protocols of registers that explain alarms, and of registers that raise alarms of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.fleet import WorseList
from streamwatch.core.estimators.registers.segments.estimates import SegmentChange
from streamwatch.core.estimators.trace_chunk import Cell
from streamwatch.core.records.events import Confirmation, DelayKind, ErrorChange


@runtime_checkable
class ExplainsAlarms(Protocol):
    """Register that can locate an alarm's change: since which prediction, in which segment.

    If several registers can, the first one counts, in the order of `MonitorsSpec.registers`.
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


@runtime_checkable
class ComparesDelays(Protocol):
    """Register that compares the delays of labels of neighbouring times."""

    def delays_moved(self, row: int) -> tuple[DelayKind, ...]:
        """Find the kinds of labels of a row whose settled delays differ between neighbouring times."""
        ...


class LateAlarm(NamedTuple):
    """Alarm of a register's detector for an outcome that was released by an outcome of the batch."""

    position: int
    """Position in the batch of the outcome at which the alarm was noticed."""
    found: AlarmRow
    """Alarm as the register's table reports it, except that `row` is the model's own row."""
    predicted_ms: int
    """Time of the prediction whose outcome raised the alarm."""


class HeadlineChange(NamedTuple):
    """Change of the headline of a model at an outcome: of its verdict, its status or its opponent."""

    position: int
    """Position of the outcome in the batch."""
    row: int
    number: int
    """1 for the first of the model."""
    is_first: bool
    """Whether the register had no headline of the model before."""
    before: int
    """Verdict before: 1 better, −1 worse, 0 open; 0 for the first."""
    verdict: int
    opponent: str
    """Opponent that the model is worse than; for another verdict, one of the opponents."""
    status: Literal["early", "confirmed", "retracted", ""]
    """Status of the verdict; for an open one `retracted` if an early claim was retracted, otherwise empty."""
    since_ms: int
    """Prediction time since which the verdict holds; for an open one, clock at which it became open."""
    earliest_ms: int | None
    """Interval of `since_ms`; None for an open verdict, and if it may precede the first judged cohort."""
    latest_ms: int | None
    outcomes: int
    """Number of the outcomes before this one whose predictions were made since `since_ms`."""
    evidence: float
    """Evidence of the claim that set the verdict; 0 if no claim did."""
    threshold: float
    predictions: float
    """Number of predictions judged so far."""


@runtime_checkable
class JudgesModels(Protocol):
    """Register whose verdicts are the headlines of models, instead of the verdict in the order of labels."""

    def gives_headline(self, model: str) -> bool:
        """Tell whether the headline of a model is the register's, once it has one."""
        ...

    def headline_changes(self) -> Sequence[HeadlineChange]:
        """List the changes of headlines at outcomes of the last batch observed, in their order."""
        ...

    def headline_verdicts(self, rows: Sequence[int]) -> Sequence[int | None]:
        """Current verdict of the headline of each row: 1, 0 or −1; None while the register has none."""
        ...

    def headlines(self, rows: Sequence[int]) -> Callable[[int], Mapping[str, object] | None]:
        """Read the headlines of some rows.

        Returns a function from a row's index among these to the document of its headline for the API, None
        while the register has none; as `Register.details` does.
        """
        ...

    def confirmation_expected_ms(self, row: int, at_ms: int) -> int | None:
        """Find the clock from which an alarm at `at_ms` may be confirmed.

        None if it needs no confirmation, or if too few cohorts have been judged to give one.
        """
        ...

    def confirmation(self, row: int, at_ms: int, rise: float) -> Confirmation | None:
        """Judge an alarm at the clock `at_ms` that found a `rise` of the error; None while undecided."""
        ...

    def worse(self, models: Sequence[tuple[str, int]], share: float) -> WorseList:
        """List those of some models, given as (name, row), that are worse than an opponent.

        Of the pairs listed, at most `share` are expected to have never been worse.
        """
        ...


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
