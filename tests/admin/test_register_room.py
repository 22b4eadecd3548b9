"""Registers in what `check` says of memory: counted by their limits, and no smaller than what they hold."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from streamwatch.admin.capacity import (
    EARLY_HINTS_BYTES,
    DiskSpec,
    label_delays_bytes,
    model_bytes,
    probabilities_bytes,
    reachable,
    register_parts,
    worst_case,
    worst_case_disk,
)
from streamwatch.core import predictions
from streamwatch.core.estimators import registers
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.registers.probabilities.observe import empty
from streamwatch.core.estimators.registers.probabilities.register import encode as probabilities_snapshot
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.estimators.registers.segments.observe import CANDIDATES
from streamwatch.core.estimators.registers.segments.register import Segments
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.observe import CLASSES, EARLY
from streamwatch.core.predictions.early_hints.register import KeptModel, encode
from streamwatch.core.predictions.label_delays import (
    BUCKETS,
    LabelDelays,
    LabelDelaysSpec,
    _KeptClass,
    _RegisterState,
)
from streamwatch.core.records.events import Outcome
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.specs import JoinSpec, MonitorsSpec, RegisterSpec
from streamwatch.edge.stores.rocksdb import RocksSpec

TEN = MonitorsSpec(max_models=10, max_classes=20)


def shown(of_models: tuple[RegisterSpec, ...] = (), of_predictions: tuple[RegisterSpec, ...] = ()):
    """Bytes of each part, by its words."""
    join = JoinSpec(max_models=10, prediction_registers=of_predictions)
    return {part.what: part.bytes for part in register_parts(join, replace(TEN, registers=of_models))}


@pytest.mark.parametrize("kind", registers.KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_register_of_models_is_counted(kind) -> None:
    assert min(shown((kind.spec(),)).values()) > 0


@pytest.mark.parametrize("kind", predictions.KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_register_of_predictions_is_counted(kind) -> None:
    assert min(shown((), (kind.spec(),)).values()) > 0


def test_without_registers_nothing_is_counted() -> None:
    assert shown() == {}


def test_they_are_in_the_worst_case_in_memory_and_on_disk(tmp_path) -> None:
    monitors = replace(TEN, registers=(ProbabilitiesSpec(), SegmentsSpec()))
    join = JoinSpec(max_models=10, prediction_registers=(EarlyHintsSpec(), LabelDelaysSpec()))
    parts = list(register_parts(join, monitors))
    assert len(parts) == 6
    disk = DiskSpec(RocksSpec(tmp_path), journal_outcomes=200_000, table_entries=1_000_000)
    for found in (worst_case(join, monitors), worst_case(join, monitors, disk)):
        assert all(part in found for part in parts)
    assert all(part in worst_case_disk(join, monitors, disk) for part in parts)


def test_limits_of_registers_are_what_they_grow_with() -> None:
    ten, twenty = (shown((), (EarlyHintsSpec(max_models=count),)) for count in (10, 20))
    assert sum(twenty.values()) == 2 * sum(ten.values())
    few, many = (
        sum(
            part.bytes for part in register_parts(JoinSpec(), replace(TEN, max_models=count, registers=given))
        )
        for count, given in ((10, (ProbabilitiesSpec(),)), (30, (ProbabilitiesSpec(),)))
    )
    assert many == 3 * few


def test_segments_wait_as_combinations() -> None:
    parts = list(register_parts(JoinSpec(), replace(TEN, registers=(SegmentsSpec(),))))
    assert [part.what[:9] for part in parts] == ["20,000 va", "400,000 v", "262,144 c"]


def test_segments_count_no_more_values_than_models_and_segments_can_reach() -> None:
    few = reachable(SegmentsSpec(max_values=50), segments=2, models=3)
    assert few.max_total == table_spec(few).max_models == 3 * 2 * 51
    assert reachable(SegmentsSpec(), segments=2, models=1_000) == SegmentsSpec()


def customers_of(model: int, customers: int) -> Batch:
    """9,000 outcomes of a model, by customers with long names."""
    classes = np.arange(9_000, dtype=np.int32) % 20
    zeros = np.zeros(9_000, np.int64)
    return Batch(
        in_columns(
            [
                Outcome("m", "x", "x", 0, 0, segments={"customer": f"{model:20}{i % customers:80}"})
                for i in range(9_000)
            ]
        ),
        np.full(9_000, model, np.int32),
        classes,
        classes,
        classes,
        event_ms=zeros,
        delay_ms=zeros,
        assumed=zeros != 0,
        made=zeros.astype(np.uint32),
        resolved_ms=zeros,
        waited_ms=zeros,
    )


@pytest.mark.slow
def test_segments_with_all_their_values_and_counted_others_are_within_those_bytes() -> None:
    spec = SegmentsSpec(max_values=4, max_classes=20, max_total=40)
    assert len(shown((spec,))) == 3
    allowed = sum(size for what, size in shown((spec,)).items() if "combinations" not in what)
    for register in (Segments(spec, 10), Segments(spec, 10)):  # the first one loads what is compiled
        gc.collect()
        tracemalloc.start()
        for model in range(8):
            register.observe(customers_of(model, 1_004))
        gc.collect()
        took, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    states = [register.snapshots(np.array([row]))[0] for row in range(8)]
    assert all(len(msgspec.msgpack.decode(state)[1][0][2]) == CANDIDATES for state in states)
    estimates = spec.max_total * model_bytes(table_spec(spec))  # in arrays that were made before
    assert took <= allowed - estimates
    assert sum(map(len, states)) <= allowed


def test_probabilities_of_a_model_with_all_its_classes_and_their_snapshot_are_within_those_bytes() -> None:
    spec = ProbabilitiesSpec()
    kept = empty(spec)
    for classes in (2, 3, 9, 20):
        kept.make_room(classes, spec.max_auc_classes)
    kept.state["held"] = kept.state["scored"] = len(kept.ring)
    kept.state["auc_held"], kept.state["classes"] = spec.auc_outcomes, spec.max_auc_classes
    kept.labels[:] = 3
    for array in (kept.ring, kept.scores, kept.curve, kept.reliability, kept.landmark, kept.fading):
        array[:] = 1 / 3
    bytes_of_model = probabilities_bytes(spec, 20)
    assert kept.ring.nbytes + kept.scores.nbytes + kept.curve.nbytes < bytes_of_model
    assert len(probabilities_snapshot(kept)) <= 1.1 * bytes_of_model


def test_early_hints_of_a_model_with_all_its_classes_and_their_snapshot_are_within_those_bytes() -> None:
    record = np.zeros(1, EARLY)
    record["stamp"] = 1_760_000_000
    record["counts"] = 60_000
    state = encode([KeptModel.of("m" * 100, ["c" * 100] * CLASSES, record[0])])
    assert EARLY.itemsize < EARLY_HINTS_BYTES
    assert len(state) <= EARLY_HINTS_BYTES


def test_label_delays_of_a_model_with_all_its_classes_and_their_snapshot_are_within_those_bytes() -> None:
    spec = LabelDelaysSpec()
    counts = [1_000_000, *([40_000] * 46)]
    classes = [
        _KeptClass("c" * 50 + str(number), [(stretch, counts) for stretch in range(2 * BUCKETS - 1)])
        for number in range(spec.max_classes + 1)
    ]
    register = LabelDelays(spec)
    state = msgspec.msgpack.encode(_RegisterState(0, 1, [("m", classes)]))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    register.restore(state)
    took = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert took <= label_delays_bytes(spec)
    assert len(register.snapshot()) <= label_delays_bytes(spec)
