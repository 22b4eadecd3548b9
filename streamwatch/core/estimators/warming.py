"""Compiling the estimators before they are needed: nobody who waits for an answer waits for the compiler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from streamwatch.core.estimators.comparisons.observe import observe
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.forgetting.adwin import SMALL_OUTCOMES
from streamwatch.core.estimators.kernel import admission, fold, numbering
from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.registers.late_labels import observe as late_labels
from streamwatch.core.estimators.registers.late_labels.partition import last_boundary
from streamwatch.core.estimators.registers.probabilities.observe import observe as observe_scores
from streamwatch.core.estimators.registers.revisions.observe import observe as observe_revisions
from streamwatch.core.estimators.registers.segments import places
from streamwatch.core.estimators.registers.segments.observe import observe as observe_segments
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Outcome, PairedAnswer
from streamwatch.core.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.specs import ComparisonSpec, MonitorsSpec

ENTRIES: tuple[Any, ...] = (
    fold.fold,
    fold.trace,
    fold.collect,
    fold.show,
    fold.prepare_snapshot,
    fold.prepare_verdicts,
    admission.make_room,
    admission.claim_rows,
    admission.release,
    admission.claim_block,
    numbering.number,
    numbering.remember,
    observe,
    late_labels.observe,
    last_boundary,
    observe_scores,
    observe_segments,
    places.remember,
    places.forget,
    observe_revisions,
)
"""All compiled functions that Python calls."""


@dataclass(frozen=True, slots=True)
class WarmUpResult:
    """Result of warming up."""

    compiled: int
    """Functions compiled now."""
    loaded: int
    """Functions found in the cache."""
    cache_directory: str | None
    """Where compiled functions are kept; None when there is no such place, so every start compiles."""


def warm_up(spec: MonitorsSpec, *, tracing: bool = False) -> WarmUpResult:
    """Compile (seconds), or load (tenths of a second), whatever these estimators will ever call.

    One model lives a whole life: outcomes, a report, a snapshot, retirement, a return. The compiled code
    depends on how many estimators of each kind there are, and on the types of arrays: with many classes,
    entries of rings are wider. So nothing of the specification may differ here but the number of models.

    `tracing` also prepares `EstimatorSet.trace`.
    """
    before = _counts()
    monitors = EstimatorSet(replace(spec, max_models=1))
    outcome = Outcome("warm-up", "a", "a", event_ms=0, delay_ms=0)
    monitors.fold([outcome] * _enough(spec))
    monitors.fold(OutcomeBatch(np.zeros(1, OUTCOME), ["warm-up"], ["a"], {}))
    monitors.fold([msgspec.structs.replace(outcome, scores={"a": 0.9, "b": 0.1}, segments={"warm": "up"})])
    # Long after all the others, which detectors in prediction time see then.
    monitors.fold([msgspec.structs.replace(outcome, event_ms=2**42)])
    if spec.comparisons:
        warm_up_comparisons(spec)
    if tracing:
        monitors.trace([outcome])
    monitors.families()
    monitors.details()
    monitors.restore(monitors.snapshot("warm-up"))  # in place of the model, which retires
    from streamwatch.core.jit_cache import cache_directory  # noqa: PLC0415  (it loads the compiler)

    compiled, loaded = (now - then for now, then in zip(_counts(), before, strict=True))
    return WarmUpResult(compiled, loaded, cache_directory())


def warm_up_comparisons(spec: MonitorsSpec) -> None:
    """Compile or load what comparisons call, which is the same for all specifications."""
    comparisons = ComparisonSet(replace(spec, comparisons=(ComparisonSpec("a", ("b",)),), max_comparisons=1))
    comparisons.fold([Outcome("b", "x", "x", event_ms=0, delay_ms=0, pairs=(PairedAnswer("a", "y"),))])


def _enough(spec: MonitorsSpec) -> int:
    """Outcomes after which every ADWIN window that never shrinks owns a block, which a snapshot then has."""
    return max((SMALL_OUTCOMES + window.clock for window in layout_of(spec).windows), default=1)


def _counts() -> tuple[int, int]:
    """(compiled, loaded from the cache) so far; without a cache numba counts no misses."""
    loaded = sum(entry.loaded for entry in ENTRIES)
    return sum(len(entry.signatures) for entry in ENTRIES) - loaded, loaded
