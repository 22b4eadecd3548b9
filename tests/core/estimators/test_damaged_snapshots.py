"""A snapshot with a damaged number is refused by name, or the model goes on; memory is never left."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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

    def damage(model: np.void) -> None:
        model[field] = value

    with pytest.raises(ValueError, match="of section cohorts must be"):
        register.restore(0, damaged(section, damage))
    assert not register.snapshots(np.array([0]))[0]


def damaged(section: bytes, damage: Callable[[np.void], None]) -> bytes:
    """A section of cohorts in which the record of the model is another."""
    filled, body, labels = msgspec.msgpack.decode(section)
    bits = np.unpackbits(np.frombuffer(filled, np.uint8)).astype(np.bool_)
    words = np.zeros(len(bits), np.uint64)
    words[bits] = np.frombuffer(body, np.uint64)
    damage(words[: MODEL.itemsize // 8].view(MODEL)[0])
    bits = words != 0
    return msgspec.msgpack.encode([np.packbits(bits).tobytes(), words[bits].tobytes(), labels])


FAR, COHORTS, CLASSES_SEEN = 2**62, 5, 3
"""Largest time and number; cohorts of the model (none is judged, the last is open); its classes."""


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("observed", 1, FAR),
        ("clock_ms", -FAR, FAR),
        ("bucket_ms", -FAR, FAR),
        ("made", 0, FAR),
        ("last_made", 0, 2**32 - 1),
        ("leader", 0, CLASSES_SEEN),
        ("noted", 0, CLASSES_SEEN),
        ("notes", 0, FAR),
        ("bucket_slot", 0, LIVE - 1),
        ("first_cohort", 0, FAR),
        ("next_cohort", 0, SLOTS - 1),
        ("first_slot", 0, 0),
        ("is_open", 0, 1),
        ("bounds", COHORTS, BOUNDS),
        ("settled_age", 0, AGES),
        ("fast_age", 0, AGES - 1),
    ],
)
def test_each_number_of_cohorts_has_its_limits(
    cohorts: tuple[Register, bytes], field: str, least: int, most: int
) -> None:
    register, section = cohorts
    for value in (least - 1, most + 1):

        def damage(model: np.void, value: int = value) -> None:
            model[field] = value

        said = f"{field} of section cohorts must be in [{least}, {most}], got {value}"
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            register.restore(0, damaged(section, damage))


@pytest.mark.parametrize(
    ("number", "field", "other", "step", "said"),
    [
        (0, "rule", None, 0, "rule of a cohort"),
        (4, "rule", None, 4, "rule of section"),
        (0, "age_ms", None, -1, "age of a cohort"),
        (4, "age_ms", None, 14 * 86_400_000 + 1, "age of a cohort"),
        (0, "opened_ms", None, -FAR - 1, "opening of a cohort"),
        (2, "opened_ms", (1, "ended_ms"), -1, "opening of a cohort"),
        (4, "opened_ms", (None, "clock_ms"), 1, "opening of a cohort"),
        (3, "ended_ms", (3, "opened_ms"), 14 * 86_400_000 // 16 - 1, "end of a cohort"),
        (3, "ended_ms", (None, "clock_ms"), 1, "end of a cohort"),
        (None, "closes_ms", (4, "opened_ms"), 14 * 86_400_000 // 16 - 1, "end of the open cohort"),
        (None, "closes_ms", None, FAR + 1, "end of the open cohort"),
    ],
)
def test_cohorts_follow_each_other_and_are_not_too_narrow(
    cohorts: tuple[Register, bytes],
    number: int | None,
    field: str,
    other: tuple[int | None, str] | None,
    step: int,
    said: str,
) -> None:
    """A field is set to a step from another one, or from 0; cohorts have the age of the horizon, 14 days."""
    register, section = cohorts

    def damage(model: np.void) -> None:
        def of(cohort: int | None) -> np.void:
            return model if cohort is None else model["cohorts"][cohort]

        of(number)[field] = step + (0 if other is None else int(of(other[0])[other[1]]))

    with pytest.raises(ValueError, match=f"^{said}.* must be"):
        register.restore(0, damaged(section, damage))


def test_a_bucket_of_late_labels_in_the_slot_of_another() -> None:
    register, section = section_of(LateLabelsSpec())
    buckets, newest_ms, cells = msgspec.msgpack.decode(section)
    other = msgspec.msgpack.encode([[*buckets[1:], buckets[0]], newest_ms, cells])
    with pytest.raises(ValueError, match="slot of a bucket of section late labels must be"):
        register.restore(0, other)
