"""A snapshot with a damaged number is refused by name, or the model goes on; memory is never left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from streamwatch.core.estimators.registers import KINDS, Register, RegisterKind, registers_of
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import AGES, BOUNDS, LIVE, MODEL, SLOTS
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.set import EstimatorSet, decode
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec, RegisterSpec
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


def section_of(spec: RegisterSpec) -> tuple[Register, bytes]:
    """An empty register of one model, and the section of a model that had outcomes."""
    monitored = replace(TINY, max_models=4, registers=(spec,))
    (register,) = registers_of(monitored)
    before = EstimatorSet(monitored)
    before.fold(GIVEN[:KEPT])
    return register, decode(before.snapshot("m")).sections[register.section]


@pytest.fixture(scope="module")
def cohorts() -> tuple[Register, bytes]:
    return section_of(CohortsSpec())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("leader", 4),
        ("noted", 4),
        ("note_class", 3),
        ("classes", 2),
        ("bucket_slot", LIVE),
        ("first_slot", SLOTS),
        ("next_cohort", 2**40),
        ("bounds", BOUNDS + 1),
        ("bounds_ms", 0),
        ("settled_age", AGES + 1),
        ("fast_age", AGES),
        ("bucket_ms", 0),
        ("settles_ms", 2**61),
        ("due_ms", 2**61),
        ("clock_ms", 2**63 - 1),
    ],
)
def test_a_number_of_cohorts_that_leads_out_of_memory(
    cohorts: tuple[Register, bytes], field: str, value: int
) -> None:
    register, section = cohorts
    register.restore(0, section)
    register.clear(0)
    filled, body, labels = msgspec.msgpack.decode(section)
    bits = np.unpackbits(np.frombuffer(filled, np.uint8)).astype(np.bool_)
    words = np.zeros(len(bits), np.uint64)
    words[bits] = np.frombuffer(body, np.uint64)
    words[: MODEL.itemsize // 8].view(MODEL)[field] = value
    bits = words != 0
    other = msgspec.msgpack.encode([np.packbits(bits).tobytes(), words[bits].tobytes(), labels])
    with pytest.raises(ValueError, match="of section cohorts must be"):
        register.restore(0, other)


def test_a_bucket_of_late_labels_in_the_slot_of_another() -> None:
    register, section = section_of(LateLabelsSpec())
    buckets, newest_ms, cells = msgspec.msgpack.decode(section)
    other = msgspec.msgpack.encode([[*buckets[1:], buckets[0]], newest_ms, cells])
    with pytest.raises(ValueError, match="slot of a bucket of section late labels must be"):
        register.restore(0, other)
