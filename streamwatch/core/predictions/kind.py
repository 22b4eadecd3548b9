"""Protocol of a prediction register, and its kind: specification and constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamwatch.core.events import Outcome
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.batch import PredictionBatch
from streamwatch.core.series import Family


class PredictionRegister(Protocol):
    """State of models from their predictions as the join accepts them, and from their outcomes.

    It must depend only on the predictions of a model in their order, on its outcomes in theirs, and on which
    of both came before it retired. It must not depend on how the two are cut into batches or interleaved
    otherwise, as outcomes arrive in batches of their own.
    """

    @property
    def section(self) -> str:
        """Name of its state: kind, parameters that change the state's meaning, and version.

        If there is no state of this name, the register starts empty.
        """
        ...

    def observe(self, predictions: PredictionBatch) -> None:
        """Process predictions of several models, in order."""
        ...

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Process outcomes of several models, in order; assumed ones are included."""
        ...

    def forget(self, model: str) -> None:
        """Remove a model that has retired; it may never have been seen here."""
        ...

    def snapshot(self) -> bytes:
        """Encode the state of all models; equal states give equal bytes; empty if there is none."""
        ...

    def restore(self, state: bytes) -> None:
        """Set an empty register to a snapshot; raises ValueError for bytes that are not one."""
        ...

    def families(self) -> Sequence[Family]:
        """Series, each of a metric in `core.metrics`; undefined values have no sample."""
        ...

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Details by model for the API that are not single numbers: JSON values by key."""
        ...

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Active hints by model; empty for a register without hints."""
        ...


@dataclass(frozen=True, slots=True)
class PredictionRegisterKind:
    """Kind of prediction register; everything else is derived from its line in `predictions.KINDS`."""

    name: str
    """Unique among kinds."""
    spec: type[Any]
    """Frozen dataclass of the parameters.

    An instance in `JoinSpec.prediction_registers` requests a register.
    """
    build: Callable[[Any], PredictionRegister]
    """Build an empty register from a specification."""
