"""Compiling the kernel before it is needed: the first outcome must not wait for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamwatch.core.kernel import admission
from streamwatch.core.kernel import fold as kernel
from streamwatch.core.kernel.compiled import CACHE_DIRECTORY
from streamwatch.core.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

ENTRIES: tuple[Any, ...] = (
    kernel.fold,
    kernel.trace,
    kernel.collect,
    kernel.show,
    kernel.prepare_snapshot,
    admission.make_room,
    admission.release,
    admission.claim_block,
)


@dataclass(frozen=True, slots=True)
class Warmth:
    """What warming up came to."""

    compiled: int
    """Functions compiled now."""
    loaded: int
    """Functions found in the cache."""
    cache_directory: str | None
    """Where compiled functions are kept; None when there is no such place, so every start compiles."""


def warm_up(spec: MonitorsSpec, *, tracing: bool = False) -> Warmth:
    """Compile (seconds), or load (tenths of a second), what folding under this configuration needs.

    `tracing` also prepares `ModelTable.trace`. The compiled code depends on how many estimators of each kind
    are configured, not on their parameters.
    """
    before = _counts()
    table = ModelTable(replace(spec, max_models=1, max_classes=2))
    row = table.add_model()
    rows, classes = np.array([row], np.int32), np.array([0], np.int32)
    table.fold(rows, classes, classes)
    if tracing:
        table.trace(rows, classes, classes)
    if spec.forgetting:
        table.totals(rows.astype(np.int64), 0)
    if spec.detectors:
        table.detector_state(rows.astype(np.int64), 0)
    sections = table.snapshot(row)
    table.retire(row)
    table.restore(table.add_model(), sections)
    compiled, loaded = (now - then for now, then in zip(_counts(), before, strict=True))
    return Warmth(compiled, loaded, CACHE_DIRECTORY)


def _counts() -> tuple[int, int]:
    """(compiled, loaded from the cache) so far; without a cache numba counts no misses."""
    loaded = sum(sum(entry.stats.cache_hits.values()) for entry in ENTRIES)
    return sum(len(entry.signatures) for entry in ENTRIES) - loaded, loaded
