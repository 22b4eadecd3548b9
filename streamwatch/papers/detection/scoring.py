"""Attribution of alarms to known changes.

A change may be found from its first outcome to the end of its span, or to the next change if that is sooner.
The first alarm within the span of a rise of the error finds it, with a delay counted from the first outcome
after the change; further alarms in the span are repeats, counted separately. A rise without an alarm is
missed. Alarms outside all spans are false. A fall of the error need not be found: alarms within its span are
not counted, as some detectors look in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a model's error."""

    at: int
    """First instance (0-based) after the change, or first of a ramp."""
    span: int
    """Outcomes within which an alarm is attributed to the change."""
    rises: bool = True


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one detector on one stream."""

    delays: tuple[int, ...]
    """Delay of each rise found, in outcomes; 1 for an alarm at the first outcome after it."""
    missed: int
    false: int
    repeats: int
    calm: int
    """Number of outcomes outside all spans, where alarms are false."""
    spans: tuple[int, ...]
    """Length of the span of each missed rise."""

    @property
    def rises(self) -> int:
        """Number of rises, found or missed."""
        return len(self.delays) + self.missed


def score(alarms: Sequence[int], changes: Sequence[Change], outcomes: int) -> Score:
    """Attribute the alarms of a stream to its changes.

    Parameters
    ----------
    alarms
        Outcomes (1-based), ascending.
    changes
        Changes in order of their instances.
    outcomes
        Length of the stream.

    Raises
    ------
    ValueError
        If changes are not in order, or not within the stream.
    """
    starts = [change.at for change in changes]
    if starts != sorted(set(starts)) or (starts and not 0 <= starts[0] <= starts[-1] < outcomes):
        raise ValueError(f"changes must be in order within {outcomes} outcomes, got {starts}")
    delays: list[int] = []
    missed: list[int] = []
    repeats, excused, calm = 0, 0, outcomes
    for index, change in enumerate(changes):
        end = min(change.at + change.span, *starts[index + 1 : index + 2], outcomes)
        within = [alarm for alarm in alarms if change.at < alarm <= end]
        calm -= end - change.at
        excused += len(within)
        if not change.rises:
            continue
        if within:
            delays.append(within[0] - change.at)
            repeats += len(within) - 1
        else:
            missed.append(end - change.at)
    return Score(tuple(delays), len(missed), len(alarms) - excused, repeats, calm, tuple(missed))
