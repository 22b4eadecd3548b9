"""Every kind of detector keeps the contract, and one that is added is held to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamwatch.core.estimators.detectors import KINDS, DetectorKind
from tests.contracts.detector_rules import faults

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_keeps_the_contract(kind: DetectorKind) -> None:
    assert faults(kind) == []


def test_a_kind_is_one_file_and_one_line_and_is_held_to_the_contract_at_once(tmp_path: Path) -> None:
    """In a process of its own, for the kernel is compiled for the kinds there are."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.contracts.toy_detector"],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    assert list(found) == [*(kind.name for kind in KINDS), "run", "silent"]
    assert found.pop("silent") == [
        "it does not alarm when every outcome turns wrong",
        "it shows no statistic or no threshold",
    ]
    assert not any(found.values())
