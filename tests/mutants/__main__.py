"""Which mutants of a module do the tests of its room find? Prints those that survive.

    python -m tests.mutants streamwatch/core/join/rules.py tests/core/join --mutants 20 --seed 1

Mutants are drawn by chance, written into a checkout of the last commit in a temporary folder, and tested
there until the first failure: in the tier fast, with its heavy ones, or in that of `STREAMWATCH_TESTS`. A
mutant that tests wait for too long has timed out, which is neither found nor survived. Mutants of a module
that has compiled functions compile anew; others use those that are compiled. With `--interpreted`, Python
runs the functions of the module, and those that call them, which takes seconds for tests of small inputs;
tests of the cache, or of large inputs, are left out by words of their names (`--without`). The exit code is 1
if any mutant survives, 2 if tests fail without any change.
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
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tests.mutants.interpreted import VARIABLE as INTERPRETED
from tests.mutants.mutate import Mutant, mutants_of
from tests.mutants.pinned import VARIABLE

Result: TypeAlias = Literal["found", "timed out", "SURVIVES"]
COMPILING_S: Final = 300.0
"""Longest time that tests may take on a mutant that compiles."""
TIMES: Final = 10.0
"""Longest time that tests may take on another mutant: so many times what they take without any change."""
TIMES_INTERPRETED: Final = 3.0
"""The same where Python runs compiled functions."""
LEAST_S: Final = 60.0
"""Time that tests may take on any mutant."""


class Room:
    """A module in a checkout, and tests that are run there.

    Parameters
    ----------
    checkout
        Folder of the checkout.
    module, tests
        Paths below it.
    interpreted
        Whether Python runs the compiled functions of the module.
    without
        Words of the names of tests that are left out.
    """

    def __init__(
        self,
        checkout: Path,
        module: str,
        tests: list[str],
        *,
        interpreted: bool = False,
        without: Sequence[str] = (),
    ) -> None:
        self.module = module
        self.path = checkout / module
        self.original = self.path.read_text()
        self.compiles = "core.jit" in self.original and not interpreted
        self._checkout = checkout
        self._interpreted = interpreted
        self._tests = [*tests, "-k", " and ".join(f"not {word}" for word in without)] if without else tests
        self._limit_s = COMPILING_S

    def try_unchanged(self) -> Result:
        """Run the tests without any change, which also measures them."""
        began = time.monotonic()
        result = self._run({})
        if not self.compiles:
            times = TIMES_INTERPRETED if self._interpreted else TIMES
            self._limit_s = max(LEAST_S, times * (time.monotonic() - began))
        return result

    def try_mutant(self, mutant: Mutant) -> Result:
        """Run the tests on a mutant."""
        original = self._checkout / "original.py"
        original.write_text(self.original)
        self.path.write_text(mutant.text)
        try:
            return self._run(
                {"PYTHONDONTWRITEBYTECODE": "1", VARIABLE: f"{self.path}{os.pathsep}{original}"}
                if not self.compiles
                else {"PYTHONDONTWRITEBYTECODE": "1"}
            )
        finally:
            self.path.write_text(self.original)

    def _run(self, variables: dict[str, str]) -> Result:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.pinned", *self._tests]
        if self._interpreted:
            command += ["-p", "tests.mutants.interpreted"]
            variables = variables | {INTERPRETED: self.module.removesuffix(".py").replace("/", ".")}
        environment = os.environ | {"STREAMWATCH_HEAVY": "1"} | variables
        environment.setdefault("STREAMWATCH_TESTS", "fast")
        cache = self._checkout / ".cache" / "kernels"  # what a mutant compiled nobody needs
        if self.compiles:
            environment["NUMBA_CACHE_DIR"] = str(cache)
        try:
            code = subprocess.run(
                command,
                cwd=self._checkout,
                env=environment,
                capture_output=True,
                check=False,
                timeout=self._limit_s,
            ).returncode
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            shutil.rmtree(cache, ignore_errors=True)
        return "found" if code else "SURVIVES"


def try_all(module: str, drawn: list[Mutant], attempt: Callable[[Mutant], Result]) -> Counter[Result]:
    """Try one mutant after the other and print what becomes of each; count results."""
    results: Counter[Result] = Counter()
    for number, mutant in enumerate(drawn, 1):
        began = time.monotonic()
        result = attempt(mutant)
        results[result] += 1
        print(
            f"{number} of {len(drawn)}: {result} after {time.monotonic() - began:.0f} s: "
            f"{module}:{mutant.line}: {mutant.before} -> {mutant.after}",
            flush=True,
        )
    return results


def summary(results: Counter[Result], possible: int) -> str:
    """Say how many mutants were tried, were found, timed out and survive, of how many that there may be."""
    return (
        f"tried {results.total()} of {possible}: {results['found']} found, {results['timed out']} timed out, "
        f"{results['SURVIVES']} survived"
    )


def exit_code(results: Counter[Result]) -> int:
    """Report survivors, and nothing else."""
    return 1 if results["SURVIVES"] else 0


def main() -> int:
    """Draw mutants, try them, and print how many were found; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="file of the module")
    parser.add_argument("tests", nargs="+", help="files or folders of tests")
    parser.add_argument("--mutants", type=int, default=20, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interpreted", action="store_true", help="run compiled functions by Python")
    parser.add_argument("--without", nargs="*", default=[], help="words in names of tests to leave out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        subprocess.run(["git", "worktree", "add", "--detach", str(checkout)], check=True, capture_output=True)
        try:
            room = Room(
                checkout,
                arguments.module,
                arguments.tests,
                interpreted=arguments.interpreted,
                without=arguments.without,
            )
            if room.try_unchanged() != "SURVIVES":
                print("the tests fail without any change", file=sys.stderr)
                return 2
            mutants = mutants_of(room.original)
            drawn = random.Random(arguments.seed).sample(mutants, min(arguments.mutants, len(mutants)))
            results = try_all(arguments.module, drawn, room.try_mutant)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(checkout)], check=True)
    print(summary(results, len(mutants)))
    return exit_code(results)


if __name__ == "__main__":
    sys.exit(main())
