"""Registers in what `check` says of memory: counted by their limits, and no smaller than what they hold."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from streamwatch.admin.capacity import DiskSpec, worst_case, worst_case_disk
from streamwatch.admin.register_room import (
    EARLY_HINTS_BYTES,
    label_delays_bytes,
    probabilities_bytes,
    register_parts,
)
from streamwatch.core import predictions
from streamwatch.core.estimators import registers
from streamwatch.core.estimators.registers.probabilities.snapshot import encode as probabilities_snapshot
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.estimators.registers.probabilities.state import empty
from streamwatch.core.estimators.registers.segments import SegmentsSpec, table_spec
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.snapshot import KeptModel, encode
from streamwatch.core.predictions.early_hints.state import CLASSES, EARLY
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.core.predictions.label_delays.register import BUCKETS, LabelDelays, _Kept, _KeptClass
from streamwatch.core.specs import ComparisonSpec, JoinSpec, MonitorsSpec, RegisterSpec
from streamwatch.edge.stores.rocksdb import RocksSpec

TEN = MonitorsSpec(max_models=10, max_classes=20)


def said(of_models: tuple[RegisterSpec, ...] = (), of_predictions: tuple[RegisterSpec, ...] = ()):
    """Bytes of each part, by its words."""
    join = JoinSpec(max_models=10, prediction_registers=of_predictions)
    return {part.what: part.bytes for part in register_parts(join, replace(TEN, registers=of_models))}


@pytest.mark.parametrize("kind", registers.KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_register_of_models_is_counted(kind) -> None:
    assert min(said((kind.spec(),)).values()) > 0


@pytest.mark.parametrize("kind", predictions.KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_register_of_predictions_is_counted(kind) -> None:
    assert min(said((), (kind.spec(),)).values()) > 0


def test_without_registers_nothing_is_counted() -> None:
    assert said() == {}


def test_they_are_in_the_worst_case_in_memory_and_on_disk(tmp_path) -> None:
    monitors = replace(TEN, registers=(ProbabilitiesSpec(), SegmentsSpec()))
    join = JoinSpec(max_models=10, prediction_registers=(EarlyHintsSpec(), LabelDelaysSpec()))
    parts = list(register_parts(join, monitors))
    assert len(parts) == 5
    disk = DiskSpec(RocksSpec(tmp_path, 1, 1), commit_events=20_000, journal_outcomes=200_000)
    for found in (worst_case(join, monitors), worst_case(join, monitors, disk)):
        assert all(part in found for part in parts)
    assert all(part in worst_case_disk(join, monitors, disk) for part in parts)


def test_limits_of_registers_are_what_they_grow_with() -> None:
    ten, twenty = (said((), (EarlyHintsSpec(max_models=count),)) for count in (10, 20))
    assert sum(twenty.values()) == 2 * sum(ten.values())
    few, many = (
        sum(
            part.bytes for part in register_parts(JoinSpec(), replace(TEN, max_models=count, registers=given))
        )
        for count, given in ((10, (ProbabilitiesSpec(),)), (30, (ProbabilitiesSpec(),)))
    )
    assert many == 3 * few


def test_segments_wait_as_combinations_only_where_they_are_joined_in_columns() -> None:
    rows = JoinSpec(comparisons=(ComparisonSpec("a", ("b",)),))
    monitors = replace(TEN, registers=(SegmentsSpec(),))
    assert [part.what[:9] for part in register_parts(rows, monitors)] == ["2,000 val"]
    assert len(list(register_parts(JoinSpec(), monitors))) == 2


def test_the_table_of_segments_has_as_many_rows_as_are_said() -> None:
    assert table_spec(SegmentsSpec(), 10).max_models == 2_000
    assert table_spec(SegmentsSpec(), 10_000).max_models == 200_000


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
    state = msgspec.msgpack.encode(_Kept(0, 1, [("m", classes)]))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    register.restore(state)
    took = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert took <= label_delays_bytes(spec)
    assert len(register.snapshot()) <= label_delays_bytes(spec)
