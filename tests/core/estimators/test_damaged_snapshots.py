"""A snapshot with a damaged number is refused by name, or the model goes on; memory is never left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from streamwatch.core.estimators.registers import KINDS, RegisterKind, registers_of
from streamwatch.core.estimators.set import EstimatorSet, decode
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec
from tests.contracts.register_rules import stream
from tests.damage import damaged_tree, gone_on
from tests.layouts import EVERYTHING, TINY
from tests.tiers import by_tier

GIVEN = stream(900)
KEPT = 600
TRIES = by_tier(fast=20, default=40, everything=1_000)


def accepted(spec: MonitorsSpec, sections: Sequence[str] | None = None, seed: int = 1) -> int:
    """Damage sections of a model's snapshot many times, and return how often the model went on."""
    chance = np.random.default_rng(seed)
    before = EstimatorSet(spec)
    before.fold(GIVEN[:KEPT])
    kept = decode(before.snapshot("m"))
    number = 0
    for _ in range(TRIES):
        own = {name: kept.sections[name] for name in sections or kept.sections}
        other = msgspec.structs.replace(kept, sections=kept.sections | damaged_tree(own, chance))
        number += tried(EstimatorSet(spec), msgspec.msgpack.encode(other))
    return number


def tried(estimators: EstimatorSet, snapshot: bytes) -> bool:
    """Restore a snapshot and go on; whether it was accepted."""
    return gone_on(lambda: estimators.restore(snapshot), lambda: go_on(estimators))


def go_on(estimators: EstimatorSet) -> None:
    """Evaluate further outcomes, report, and leave the model."""
    further: list[Outcome] = GIVEN[KEPT:]
    estimators.fold(further[:100])
    estimators.families()
    for model, details in estimators.details().items():
        assert model, details
    estimators.snapshot("m")
    estimators.fold(further[100:])
    estimators.retire("m")
    estimators.fold(further[:100])


def test_of_the_kernel() -> None:
    assert 0 < accepted(EVERYTHING) < TRIES


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_of_a_register(kind: RegisterKind) -> None:
    spec = replace(TINY, max_models=4, registers=(kind.spec(),))
    (register,) = registers_of(spec)
    accepted(spec, [register.section])
