"""Processes that watch different estimators share one cache of compiled functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import json, sys
import numpy as np
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import FadingSpec, LandmarkSpec, MonitorsSpec, SlidingSpec

LAYOUTS = {
    "small": MonitorsSpec(
        forgetting=(LandmarkSpec(),), detectors=(), drift_weighted=(), opponents=(), shadow_max_classes=0,
        max_models=2, max_classes=4,
    ),
    "large": MonitorsSpec(
        forgetting=(LandmarkSpec(), FadingSpec(), FadingSpec(0.9), SlidingSpec(10)),
        detectors=(), drift_weighted=(), opponents=(), shadow_max_classes=0, max_models=2, max_classes=4,
    ),
}
totals_by_layout = {}
for name in sys.argv[1:]:
    table = ModelTable(LAYOUTS[name])
    rows = np.full(100, table.add_model(), np.int32)
    true_class = (np.arange(100) % 3).astype(np.int32)
    predicted_class = (np.arange(100) % 2).astype(np.int32)
    table.fold(rows, true_class, predicted_class)
    totals = table.totals(np.array([0]), 0)
    by_class = [*totals.true_class[0], *totals.agreed[0]]
    totals_by_layout[name] = [totals.n[0], totals.hits[0], totals.n_eff[0], *by_class]
print(json.dumps(totals_by_layout))
"""


def totals_by_process(cache: Path, *layouts: str) -> dict[str, list[float]]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *layouts], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def test_functions_compiled_in_other_processes_for_other_layouts_are_distinguished(tmp_path: Path) -> None:
    # Each layout is compiled as the first of its process, so numba gives both the same number.
    expected = totals_by_process(tmp_path, "small") | totals_by_process(tmp_path, "large")

    assert expected["small"] == expected["large"], "landmark totals do not depend on what else is kept"
    assert totals_by_process(tmp_path, "small", "large") == expected
    assert totals_by_process(tmp_path, "large", "small") == expected
