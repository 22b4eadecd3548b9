"""All prediction registers of a pipeline, updated and saved together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from streamwatch.core import predictions as kinds
from streamwatch.core.metrics.series import Family, Layered
from streamwatch.core.predictions.kind import (
    ActiveHint,
    PredictionBatch,
    PredictionRegister,
    batch_of,
    scores_of_classes,
)
from streamwatch.core.records.events import Outcome, Prediction
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.records.scores import lists_of
from streamwatch.core.specs import RegisterSpec


class PredictionRegisters:
    """One register for each specification, in order; false as a bool if there are none.

    Raises
    ------
    ValueError
        If two specifications are of the same kind.
    """

    __slots__ = ("_registers",)

    def __init__(self, specs: Sequence[RegisterSpec]) -> None:
        by_spec = {kind.spec: kind for kind in kinds.KINDS}
        chosen = [by_spec[type(spec)] for spec in specs]
        if len({kind.name for kind in chosen}) < len(chosen):
            names = [kind.name for kind in chosen]
            raise ValueError(f"prediction registers must be of different kinds, got {names}")
        self._registers: list[PredictionRegister] = [
            kind.build(spec) for kind, spec in zip(chosen, specs, strict=True)
        ]

    def __bool__(self) -> bool:
        return bool(self._registers)

    def observe(self, predictions: PredictionBatch) -> None:
        """Process predictions, in the order in which they were accepted."""
        if len(predictions):
            for register in self._registers:
                register.observe(predictions)

    def observe_events(self, events: Sequence[Prediction]) -> None:
        """Process predictions given as events."""
        if events:
            self.observe(batch_of(events))

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Process outcomes, in order."""
        if self._registers:
            batch = in_columns(outcomes)
            for register in self._registers:
                register.learn(batch)

    def forget(self, model: str) -> None:
        """Remove a model that has retired."""
        for register in self._registers:
            register.forget(model)

    def snapshot(self) -> dict[str, bytes]:
        """Return the state of each register by section, without empty ones."""
        states = {register.section: register.snapshot() for register in self._registers}
        return {section: state for section, state in states.items() if state}

    def restore(self, states: Mapping[str, bytes]) -> None:
        """Restore empty registers; those whose section is missing start empty.

        Raises
        ------
        ValueError
            If the bytes are not a state of their register.
        """
        for register in self._registers:
            if register.section in states:
                register.restore(states[register.section])

    def families(self) -> list[Family]:
        """Series of all registers."""
        return [family for register in self._registers for family in register.families()]

    def details(self) -> dict[str, dict[str, object]]:
        """Details of all registers, by model."""
        found: dict[str, dict[str, object]] = {}
        for register in self._registers:
            for model, details in register.details().items():
                found.setdefault(model, {}).update(details)
        return found

    def unrepresentative(self) -> AbstractSet[str]:
        """Models whose outcomes are no fair sample of their predictions."""
        return {name for register in self._registers for name in register.unrepresentative()}

    def active_hints(self) -> dict[str, ActiveHint]:
        """Active hints by model."""
        return {name: hint for register in self._registers for name, hint in register.active_hints().items()}


def details_with_predictions(
    details: Mapping[str, Mapping[str, object]], found: Mapping[str, Mapping[str, object]]
) -> Mapping[str, Mapping[str, object]]:
    """Add the registers' details `found` to the details of models, also for models without outcomes."""
    return Layered(details, found, lambda model, shown: {**shown, **found.get(model, {})})


# Compilation of the prediction registers' functions, or loading them from the cache.


def warm_up_predictions(specs: Sequence[RegisterSpec]) -> None:
    """Compile or load the functions of these registers, by processing a prediction and its outcome."""
    registers = PredictionRegisters(specs)
    scores = {"a": 0.9, "b": 0.1}
    registers.observe_events([Prediction("0", "warm-up", "a", 0, scores=scores)])
    registers.learn([Outcome("warm-up", "a", "a", 0, 0, scores=scores)])
    zero = np.zeros(1, np.int64)
    scores_of_classes(lists_of([{0: 1.0}], [-1]), zero, zero)
