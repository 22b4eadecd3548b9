"""Which mutants of a module do the tests of its room find? Prints those that survive.

    python -m tests.mutants streamwatch/core/join/rules.py tests/core/join --mutants 20 --seed 1

Mutants are drawn by chance, written into a checkout of the last commit in a temporary folder, and tested
there in the tier fast, with its heavy ones, until the first failure. A mutant that a test waits for too long
counts as found.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.mutate import Mutant, mutants_of

SECONDS = 300
"""Longest time that tests may take on one mutant."""


def survives(checkout: Path, tests: list[str]) -> bool:
    """Return whether no test fails."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", *tests]
    cache = checkout / ".cache" / "kernels"  # a mutant compiles anew, and nobody needs what it compiled
    environment = os.environ | {
        "STREAMWATCH_TESTS": "fast",
        "STREAMWATCH_HEAVY": "1",
        "NUMBA_CACHE_DIR": str(cache),
    }
    try:
        return not subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, check=False, timeout=SECONDS
        ).returncode
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def try_all(checkout: Path, module: str, tests: list[str], drawn: list[Mutant]) -> list[Mutant]:
    """Test one mutant after the other; return those that survive."""
    path = checkout / module
    original = path.read_text()
    found: list[Mutant] = []
    for number, mutant in enumerate(drawn, 1):
        began = time.monotonic()
        path.write_text(mutant.text)
        lives = survives(checkout, tests)
        found += [mutant] * lives
        result = "SURVIVES" if lives else "found"
        took = time.monotonic() - began
        print(
            f"{number} of {len(drawn)}: {result} after {took:.0f} s: {module}:{mutant.line}: "
            f"{mutant.before} -> {mutant.after}",
            flush=True,
        )
    path.write_text(original)
    return found


def main() -> None:
    """Draw mutants, try them, and print how many were found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="file of the module")
    parser.add_argument("tests", nargs="+", help="files or folders of tests")
    parser.add_argument("--mutants", type=int, default=20, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        subprocess.run(["git", "worktree", "add", "--detach", str(checkout)], check=True, capture_output=True)
        try:
            if not survives(checkout, arguments.tests):
                sys.exit("the tests fail without any change")
            mutants = mutants_of((checkout / arguments.module).read_text())
            drawn = random.Random(arguments.seed).sample(mutants, min(arguments.mutants, len(mutants)))
            living = try_all(checkout, arguments.module, arguments.tests, drawn)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(checkout)], check=True)
    print(f"{len(drawn) - len(living)} of {len(drawn)} were found, of {len(mutants)} that there may be")


if __name__ == "__main__":
    main()
