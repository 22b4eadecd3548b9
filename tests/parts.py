"""The tests in several plain processes, each of which collects and runs files of its own.

    STREAMWATCH_TESTS=fast python -m tests.parts 2 -q

A worker of pytest-xdist collects all tests, and the process that started it is told of every step of each.
What the first process writes is seen at once, what others write when all have ended. Where files are named,
one process runs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from tempfile import TemporaryFile

import pytest

_NO_FAILURE = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def ended(codes: list[int]) -> int:
    """What all of them together end with: a failure of any, and no tests only where none had any."""
    failed = [code for code in codes if code not in _NO_FAILURE]
    return failed[0] if failed else min(codes)


def main(parts: int, arguments: list[str]) -> int:
    """Run the parts side by side."""
    if any(argument.partition("::")[0].endswith(".py") for argument in arguments):
        parts = 1
    command = [sys.executable, "-m", "pytest", "-n", "0", *arguments]
    outputs = [TemporaryFile("w+", encoding="utf-8") for _ in range(parts - 1)]  # noqa: SIM115 - closed below
    processes: list[subprocess.Popen[bytes]] = []
    for number, output in enumerate([None, *outputs], 1):
        # Tests that failed last, `--lf`, are remembered by each for itself.
        own = ["-o", f"cache_dir=.pytest_cache/part-{number}-of-{parts}"]
        environment = os.environ | {"STREAMWATCH_PART": f"{number}/{parts}"}
        processes.append(subprocess.Popen([*command, *own], env=environment, stdout=output, stderr=output))
    try:
        codes = [process.wait() for process in processes]
    finally:
        for process in processes:
            process.wait()
        for output in outputs:
            with output:
                output.seek(0)
                sys.stdout.write(output.read())
    return ended(codes)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
