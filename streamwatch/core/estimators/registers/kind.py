"""Protocols of registers and of what some of them can do besides, and the kind of a register."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.names import Batch, Cell, Details, Slice
from streamwatch.core.estimators.registers.fleet import WorseList
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Sample
from streamwatch.core.records.events import Confirmation, DelayKind, ErrorChange

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.segments import SegmentChange

# Protocol of a register, and its kind: specification, series and constructor.


class Register(Protocol):
    """State of every model, by row, outside the kernel's table.

    The state of a row must depend only on that model's outcomes and their order: not on how they were cut
    into batches, nor on when the state was saved and restored.
    """

    @property
    def section(self) -> str:
        """Name of its section in a model's snapshot: kind, parameters and version (see `fingerprint`).

        If a snapshot has no section of this name, the register starts empty.
        """
        ...

    @property
    def title(self) -> str:
        """Description of the section, used to report which estimators continue and which start empty."""
        ...

    def observe(self, batch: Batch) -> None:
        """Evaluate outcomes of several models, in order, with scores if given.

        Assumed outcomes are included.
        """
        ...

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        ...

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows, one of each; the same outcomes give the same bytes."""
        ...

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one."""
        ...

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Samples of some models, by name of a metric of this kind; undefined values give no sample."""
        ...

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Read the details of some models for the API that are not single numbers.

        Returns a function from a model's index among these to JSON values under the kind's name, or none. It
        is called on request, from any thread, after later outcomes, which must not change what it returns.
        """
        ...


@dataclass(frozen=True, slots=True)
class RegisterKind:
    """Kind of register; everything else about registers is derived from the list `registers.KINDS`."""

    name: str
    """Unique among kinds."""
    spec: type[Any]
    """Frozen dataclass of the parameters, all with valid defaults.

    An instance in `MonitorsSpec.registers` requests a register.
    """
    metrics: tuple[Metric, ...]
    """Metrics of its series, each with a `model` label.

    To stay within `monitors.max_series`, a scrape leaves the last ones out first, except for those in
    `metrics.NEEDED`.
    """
    build: Callable[[Any, int], Register]
    """Build an empty register: (specification, capacity in rows) → register."""


# Protocols of registers that explain alarms, and of registers that raise alarms of their own.


@runtime_checkable
class ExplainsAlarms(Protocol):
    """Register that can locate an alarm's change: since which prediction, in which segment.

    If several registers can, the first one counts, in the order of `MonitorsSpec.registers`.
    """

    def changes_at(self, batch: Batch, positions: Sequence[int]) -> Sequence[ErrorChange | None]:
        """Locate changes of the error among predictions, as of some outcomes of a batch not yet observed.

        One for each position; None if there is none, or if the register does not know when predictions were
        made.
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
class FollowsLabels(Protocol):
    """Register in which an outcome depends on the previous label of its model's stream."""

    def begin_after(self, row: int, label: int) -> None:
        """Begin empty in a cleared row of a model that has outcomes, whose last label is of this class."""
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
