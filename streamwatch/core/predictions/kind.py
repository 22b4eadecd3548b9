"""Kind of prediction register: its specification, and how one is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamwatch.core.events import Outcome
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.predictions.batch import PredictionBatch
from streamwatch.core.series import Family


class PredictionRegister(Protocol):
    """Something kept of models from their predictions as the join accepts them, and from their outcomes.

    What it keeps must depend on the predictions of a model in their order, on its outcomes in theirs, and on
    which of both came before it retired; not on how the two are cut into batches or interleave otherwise, as
    outcomes are told in stretches.
    """

    @property
    def section(self) -> str:
        """Name of its state: kind, parameters that change what the state means, and version.

        State under another name is not resumed: the register then begins empty.
        """
        ...

    def observe(self, predictions: PredictionBatch) -> None:
        """Take in predictions of several models, in order."""
        ...

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Take in outcomes of several models, in order; assumed ones are among them."""
        ...

    def forget(self, model: str) -> None:
        """Forget a model that has retired, or of which nothing may ever have been seen."""
        ...

    def snapshot(self) -> bytes:
        """State of all models, canonical: equal states give equal bytes; empty where nothing is kept."""
        ...

    def restore(self, state: bytes) -> None:
        """Set an empty register to a snapshot; raises ValueError for bytes that are none."""
        ...

    def families(self) -> Sequence[Family]:
        """Series, each of a metric of the table (`core.metrics`); what is undefined has no sample."""
        ...

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Give what is no single number, by model, for the API: JSON values under keys of its own."""
        ...

    def active_hints(self) -> Mapping[str, ActiveHint]:
        """Active hints, by model; empty for a register that gives none."""
        ...


@dataclass(frozen=True, slots=True)
class PredictionRegisterKind:
    """One kind of prediction register; everything else follows from its line in `predictions.KINDS`."""

    name: str
    """Unique among kinds."""
    spec: type[Any]
    """Frozen dataclass of what an operator may choose; one in `JoinSpec.prediction_registers` asks for it."""
    build: Callable[[Any], PredictionRegister]
    """Specification → an empty register."""
