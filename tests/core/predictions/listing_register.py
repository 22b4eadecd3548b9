"""A prediction register that keeps all it was given, and its kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from streamwatch.core import predictions
from streamwatch.core.metrics.series import Family
from streamwatch.core.predictions import PredictionRegisterKind
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.kind import ActiveHint, PredictionBatch
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.core.records.events import Outcome

Listed = tuple[int, int, float | None, str, int]
"""Record time, own time, score, class, and sampling of the label."""


class _Model(msgspec.Struct, array_like=True):
    predictions: list[Listed] = msgspec.field(default_factory=list[Listed])
    outcomes: list[tuple[str, str]] = msgspec.field(default_factory=list[tuple[str, str]])


_DECODER = msgspec.msgpack.Decoder(dict[str, _Model])


@dataclass(frozen=True, slots=True)
class ListingSpec:
    """Nothing to choose."""


class Listing:
    """Every prediction and outcome of each model that has not retired."""

    section = "listing"

    def __init__(self, _: ListingSpec) -> None:
        self.models: dict[str, _Model] = {}

    def observe(self, predictions: PredictionBatch) -> None:
        for record_ms, event_ms, score, model, named, carried in predictions.records.tolist():
            kept = self.models.setdefault(predictions.models[model], _Model())
            known = None if math.isnan(score) else score
            kept.predictions.append(
                (record_ms, event_ms, known, predictions.classes[named], *map(int, carried))
            )

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            kept = self.models.setdefault(outcome.model, _Model())
            kept.outcomes.append((outcome.true_class, outcome.predicted_class))

    def forget(self, model: str) -> None:
        self.models.pop(model, None)

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.models, order="deterministic") if self.models else b""

    def restore(self, state: bytes) -> None:
        self.models = _DECODER.decode(state)

    def families(self) -> Sequence[Family]:
        samples = [((name,), float(len(model.predictions))) for name, model in sorted(self.models.items())]
        return [Family("listed", "gauge", "Predictions listed", ("model",), samples)]

    def details(self) -> dict[str, dict[str, object]]:
        return {name: {"listed": len(model.predictions)} for name, model in self.models.items()}

    def unrepresentative(self) -> frozenset[str]:
        return frozenset({"unlike"} & self.models.keys())

    def active_hints(self) -> dict[str, ActiveHint]:
        return {}


REGISTERS = (ListingSpec(), EarlyHintsSpec(max_models=3, bucket_ms=500), LabelDelaysSpec(2_500, 1))
"""What both joins give to in tests that hold one against the other."""
LISTING = PredictionRegisterKind("listing", ListingSpec, Listing)


@contextmanager
def listing_known() -> Iterator[None]:
    """Have the kind among the others."""
    before = predictions.KINDS
    predictions.KINDS = (*before, LISTING)
    try:
        yield
    finally:
        predictions.KINDS = before
