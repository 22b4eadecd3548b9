"""The tests in several plain processes, each of which takes the next file that no other has taken.

    STREAMWATCH_TESTS=fast python -m tests.parts 2

A worker of pytest-xdist collects all tests, and the process that started it is told of every step of each.
Here a process collects a file when it is that file's turn, those first of which more is known to take long.
What the first process writes is seen at once, what others write when all have ended. Where files are named,
one process runs them.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.tiers import REPRODUCED, SECONDS, TIER, expected

ROOT = Path(__file__).parents[1]
BYTES_A_SECOND = 30_000
"""Of a file of which nothing is known, about."""
OUTCOMES = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
_NO_FAILURE = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


class Part:
    """Plugin of one of the processes: `STREAMWATCH_PART` says where files are taken, and which it is."""

    def __init__(self, folder: Path, number: int) -> None:
        self.seconds = folder / f"seconds-{number}"
        """Where it writes how long tests took."""
        self.counts = folder / f"counts-{number}"
        """Where it writes how many tests had each outcome."""
        self._folder = folder
        self._found: dict[Path, pytest.File] = {}
        self._taken: set[Path] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Leave what a file has in it until the file is taken; folders are collected as ever."""
        if not isinstance(collector, pytest.File) or collector.path in self._taken:
            return None
        self._found[collector.path] = collector
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    def _files(self) -> Iterator[pytest.File]:
        """Files that this process is the first to take."""
        for path in long_first(self._found):
            try:
                (self._folder / str(path).replace("/", "+")).touch(exist_ok=False)
            except FileExistsError:
                continue
            self._taken.add(path)
            yield self._found[path]

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        """Tests, each file of them collected when the one before was read to its end."""
        hook = session.config.hook
        for file in self._files():
            gc.disable()  # of what is collected nothing goes before the file is done
            try:
                session.items = items = list(session.genitems(file))
                hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
                hook.pytest_collection_finish(session=session)
            finally:
                gc.enable()
            yield from items

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """As pytest does it, except that tests come file by file."""
        items = self._items(session)
        item, ran = next(items, None), 0
        while item is not None:
            following = next(items, None)
            ran += 1
            if not session.config.option.collectonly:
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        session.testscollected = ran
        return True

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Leave the number of tests by outcome to the process that started this one."""
        stats = terminalreporter.stats
        counts = {outcome: len(stats.get(outcome, ())) for outcome in OUTCOMES}
        self.counts.write_text(json.dumps(counts), encoding="utf-8")


def part() -> Part | None:
    """What this process is where `python -m tests.parts` started it as one of several."""
    folder, _, number = os.environ.get("STREAMWATCH_PART", "").rpartition("/")
    return Part(Path(folder), int(number)) if folder else None


def long_first(files: Iterable[Path]) -> list[Path]:
    """Files by how long they are expected to take, the same in every process; so no long one is last."""
    known: dict[Path, float] = defaultdict(float)
    for name, seconds in expected().items():
        known[ROOT / name.partition("::")[0]] += seconds
    return sorted(files, key=lambda file: (-known[file] - file.stat().st_size / BYTES_A_SECOND, str(file)))


def ended(codes: list[int]) -> int:
    """What all of them together end with: a failure of any, and no tests only where none had any."""
    failed = [code for code in codes if code not in _NO_FAILURE]
    return failed[0] if failed else min(codes)


def in_all(folder: Path) -> str:
    """Numbers of tests by outcome, of all processes together."""
    counts: Counter[str] = Counter()
    for each in folder.glob("counts-*"):
        counts.update(json.loads(each.read_text(encoding="utf-8")))
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]) or "no tests"


def main(parts: int, arguments: list[str]) -> int:
    """Run the parts side by side."""
    if any(argument.partition("::")[0].endswith(".py") for argument in arguments):
        return subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *arguments], check=False).returncode
    if TIER not in REPRODUCED and not any(argument.startswith("--hypothesis-seed") for argument in arguments):
        arguments = [*arguments, f"--hypothesis-seed={random.SystemRandom().randrange(2**32)}"]
    again = shlex.join(["python", "-m", "tests.parts", str(parts), *arguments])
    sys.stdout.write(f"STREAMWATCH_TESTS={TIER} {again}\n")
    sys.stdout.flush()
    quietly = ["-q", "-o", "console_output_style=classic"]  # how many tests there are is known at the end
    command = [sys.executable, "-m", "pytest", "-n", "0", *quietly, *arguments]
    began = time.monotonic()
    with TemporaryDirectory(prefix="streamwatch-tests-") as folder:
        outputs = [Path(folder, f"output-{number}") for number in range(1, parts + 1)]
        processes: list[subprocess.Popen[bytes]] = []
        for number, path in enumerate(outputs, 1):
            # Tests that failed last, `--lf`, are remembered by each for itself.
            own = ["-o", f"cache_dir=.pytest_cache/part-{number}-of-{parts}"]
            environment = os.environ | {"STREAMWATCH_PART": f"{folder}/{number}"}
            with path.open("wb") as output:
                written = None if number == 1 else output
                processes.append(
                    subprocess.Popen([*command, *own], env=environment, stdout=written, stderr=written)
                )
        try:
            codes = [process.wait() for process in processes]
        finally:
            for process in processes:
                process.wait()
            for path in outputs:
                sys.stdout.write(path.read_text(encoding="utf-8", errors="replace"))
        for number, code in enumerate(codes, 1):
            if code < 0:
                sys.stdout.write(f"process {number} of {parts} ended by signal {-code}, amid a file\n")
        if written_seconds := sorted(Path(folder).glob("seconds-*")):
            lines = "".join(path.read_text(encoding="utf-8") for path in written_seconds).splitlines(True)
            SECONDS.write_text("".join(sorted(lines, key=lambda line: line.split()[1])), encoding="utf-8")
        seconds = time.monotonic() - began
        sys.stdout.write(f"==== {in_all(Path(folder))} in {parts} processes, {seconds:.0f} s ====\n")
    return ended(codes)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
