"""Evaluation of outcomes, as pipelines need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from streamwatch.core.events import Alarm, Outcome
from streamwatch.core.series import Family


class Evaluation(Protocol):
    """Evaluation of outcomes as pipelines need it (`EstimatorSet`)."""

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order and return the alarms they raised, in that order."""
        ...

    def retire(self, model: str) -> None:
        """Drop all state of a model that is being evaluated."""
        ...

    def models(self) -> Sequence[str]:
        """Names of the models evaluated and not retired since."""
        ...

    def families(self) -> list[Family]:
        """Every series of every model."""
        ...

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """Number of records that a limit kept from being evaluated fully, by the name of the limit."""
        ...
