"""Compilation of the estimators at start, so that no request has to wait for the compiler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from streamwatch.core.estimators.comparisons.cohorts import lay_out_pairs
from streamwatch.core.estimators.comparisons.observe import lay_out, observe
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.forgetting.adwin import SMALL_OUTCOMES
from streamwatch.core.estimators.kernel import admission, fold
from streamwatch.core.estimators.kernel import readout as reading
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers import counting
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts import observe as cohorts
from streamwatch.core.estimators.registers.cohorts.life import read_headlines
from streamwatch.core.estimators.registers.cohorts.register import Cohorts
from streamwatch.core.estimators.registers.late_labels import observe as late_labels
from streamwatch.core.estimators.registers.probabilities.observe import observe as observe_scores
from streamwatch.core.estimators.registers.revisions.register import observe as observe_revisions
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.registers.segments import observe as segments
from streamwatch.core.estimators.registers.segments.observe import observe as observe_segments
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.records.outcomes import NO_OUTCOMES, OUTCOME, OutcomeBatch
from streamwatch.core.specs import ComparisonSpec, MonitorsSpec

ENTRIES: tuple[Any, ...] = (
    fold.fold,
    fold.trace,
    reading.collect,
    reading.show,
    reading.prepare,
    admission.make_room,
    admission.claim_rows,
    admission.release,
    admission.claim_block,
    admission.number,
    admission.remember,
    counting.count_minutes,
    counting.count_delays,
    lay_out,
    lay_out_pairs,
    observe,
    late_labels.observe,
    late_labels.add_up,
    late_labels.mean_bins,
    late_labels.last_boundary,
    observe_scores,
    observe_segments,
    segments.remember,
    segments.forget,
    observe_revisions,
    cohorts.observe,
    read_headlines,
)
"""All compiled functions called from Python."""


@dataclass(frozen=True, slots=True)
class WarmUpResult:
    """Result of warming up."""

    compiled: int
    """Number of functions compiled now."""
    loaded: int
    """Number of functions loaded from the cache."""
    cache_directory: str | None
    """Directory of compiled functions; None if there is none, in which case every start compiles."""


def warm_up(spec: MonitorsSpec, *, tracing: bool = False) -> WarmUpResult:
    """Compile (seconds) or load (tenths of a second) every compiled function these estimators will call.

    A single model goes through its whole life: outcomes, a report, a snapshot, retirement, a restore. The
    compiled code depends on the number of estimators of each kind and on array types (with many classes, ring
    entries are wider). So the specification used here differs from `spec` in the number of models only.

    `tracing` also prepares `EstimatorSet.trace`.
    """
    before = _counts()
    monitors = EstimatorSet(replace(spec, max_models=1))
    outcome = Outcome("warm-up", "a", "a", event_ms=0, delay_ms=0)
    monitors.fold([outcome] * _enough(spec))
    monitors.fold(OutcomeBatch(np.zeros(1, OUTCOME), ["warm-up"], ["a"]))
    scored = msgspec.structs.replace(outcome, scores={"a": 0.9, "b": 0.1})
    monitors.fold([msgspec.structs.replace(scored, segments={_segment_of(spec): "up"})])
    # Much later than the others, so that detectors in prediction time take in all of them; their clock is
    # what three in succession have reached.
    monitors.fold([msgspec.structs.replace(outcome, event_ms=2**42)] * 3)
    if spec.comparisons:
        warm_up_comparisons(spec)
    if tracing:
        monitors.trace([msgspec.structs.replace(outcome, event_ms=2**43)] * 3)
    monitors.families()
    monitors.details()
    if spec.registers:  # changes among the predictions of a model with many outcomes
        wrong, weight, best, lost = np.zeros((4, 2))
        late_labels.last_boundary(wrong, weight, 1.0, best, np.zeros(2, np.int64), lost)
    monitors.restore(monitors.snapshot("warm-up"))  # replaces the present model, which retires
    from streamwatch.core.jit.cache import cache_directory  # noqa: PLC0415  (importing it loads the compiler)

    compiled, loaded = (now - then for now, then in zip(_counts(), before, strict=True))
    return WarmUpResult(compiled, loaded, cache_directory())


def _segment_of(spec: MonitorsSpec) -> str:
    """Return the name of a segment that these estimators count; any, if they count all or none."""
    named = (each.names for each in spec.registers if isinstance(each, SegmentsSpec) and each.names)
    return next((min(names) for names in named), "warm")


def warm_up_comparisons(spec: MonitorsSpec) -> None:
    """Compile or load the functions that comparisons call; they are the same for all specifications."""
    comparisons = ComparisonSet(replace(spec, comparisons=(ComparisonSpec("a", ("b",)),), max_comparisons=1))
    comparisons.fold([Outcome("b", "x", "x", event_ms=0, delay_ms=0, pairs=(PairedAnswer("a", "y"),))])


def warm_up_cohorts() -> None:
    """Compile or load the functions of verdicts by cohorts; they are the same for all specifications."""
    register = Cohorts(CohortsSpec(), 1)
    indices, times = np.zeros(1, np.int32), np.zeros(1, np.int64)
    assumed, made = np.zeros(1, np.bool_), np.zeros(1, np.uint32)
    register.observe(
        Batch(NO_OUTCOMES, indices, indices, indices, indices, times, times, assumed, made, times, times)
    )
    register.read([0])


def _enough(spec: MonitorsSpec) -> int:
    """Number of outcomes after which ADWIN windows own a block, so that the snapshot contains one."""
    return max((SMALL_OUTCOMES + window.clock for window in layout_of(spec).windows), default=1)


def _counts() -> tuple[int, int]:
    """Numbers of functions compiled and loaded from the cache so far.

    Without a cache, numba reports no misses.
    """
    loaded = sum(entry.loaded for entry in ENTRIES)
    return sum(len(entry.signatures) for entry in ENTRIES) - loaded, loaded
