"""The script that `spark-submit` is given leaves the names of other packages to these."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import streamwatch

HOME = Path(streamwatch.__file__).parent
ASK = """
import importlib.util, os, runpy, sys
script = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(script))
sys.argv[:] = [script, "--version"]
try:
    runpy.run_path(script, run_name="__main__")
except SystemExit:
    pass
for name in ("river", "settings", "telemetry"):
    found = importlib.util.find_spec(name)
    print(name, found and found.origin)
"""


def test_a_script_does_not_stand_in_the_way_of_packages_named_as_its_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(HOME / "__main__.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    version, _, *found = done.stdout.splitlines()
    assert version.startswith("streamwatch ")
    assert [line.split()[0] for line in found] == ["river", "settings", "telemetry"]
    assert not [line for line in found if str(HOME) in line]
