"""The tests in several plain processes, each of which takes the next file that no other has taken.

    STREAMWATCH_TESTS=fast python -m tests.parts 2

Workers that a starting process hands tests to each collect all of them, and tell it of every step of each.
Here a process collects a file when it is that file's turn, those first of which more is known to take long.
What the first process writes is seen at once, what another writes when it and the first have ended; which
tests fail is said at once and again at the end. One process runs what is asked for by files, or by options
that are about one process (`ALONE`).
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Final, NoReturn, cast

import pytest

from tests.tiers import REPRODUCED, SECONDS, TIER, expected

ROOT = Path(__file__).parents[1]
BYTES_A_SECOND = 30_000
"""Of a file of which nothing is known, about."""
OUTCOMES = ("failed", "error", "passed", "skipped", "xfailed", "xpassed")
ALONE: Final = frozenset(
    {
        *("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first"),
        *("--sw", "--stepwise", "--sw-skip", "--stepwise-skip", "--sw-reset", "--stepwise-reset"),
        *("--cache-show", "--cache-clear", "--pdb", "--trace", "--junitxml", "--junit-xml"),
    }
)
"""Options that ask, stop or write for one process: with them there is one."""
LOOK_S = 0.2
"""How often the process that started the others looks which tests failed and which of them ended."""
ENDING_S = 5.0
"""Processes that are told to end write what they found by then, or it is written as far as it came."""
CACHE = Path(".pytest_cache")
REMEMBERED = "v/cache/lastfailed"
"""Where pytest keeps, in a folder of a cache, which tests failed last."""
ENDS: Final = {signal.SIGINT, signal.SIGTERM}
_NO_FAILURE = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


class Part:
    """Plugin of one of the processes: `STREAMWATCH_PART` says where files are taken, and which it is."""

    def __init__(self, folder: Path, number: int) -> None:
        self.seconds = folder / f"seconds-{number}"
        """Where it writes how long tests took."""
        self.counts = folder / f"counts-{number}"
        """Where it writes how many tests had each outcome."""
        self._folder = folder
        self._failed = (folder / f"failed-{number}").open("a", encoding="utf-8")
        self._begun = (folder / f"begun-{number}").open("a", encoding="utf-8")
        self._enough = folder / "enough"
        """Is there once so many tests failed, of all processes, that all of them shall end."""
        self._most = 0
        self._process = os.getpid()
        self._found: dict[Path, pytest.File] = {}
        self._taken: set[Path] = set()

    @pytest.hookimpl
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """End as at an interruption, with what was found by then, where a time limit ends all."""
        self._most = session.config.option.maxfail
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # forked by a test
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.pytest_keyboard_interrupt()
        raise KeyboardInterrupt

    @pytest.hookimpl
    def pytest_keyboard_interrupt(self) -> None:
        """Be interrupted once only."""
        signal.signal(signal.SIGTERM, _once)

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test is begun."""
        self._begun.write(f"{nodeid}\n")
        self._begun.flush()

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Say which test failed, or which file could not be read."""
        if not report.failed:
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        why = str(crash.message if crash else report.longrepr).strip().splitlines() or [""]
        when = getattr(report, "when", "collect")
        word = {"call": "FAILED", "collect": "ERROR in"}.get(when, f"ERROR at {when} of")
        message = why[0] if crash else why[-1].removeprefix("E ").strip()
        print(json.dumps([report.nodeid, f"{word} {report.nodeid} - {message[:200]}"]), file=self._failed)
        self._failed.flush()
        if self._most and len(failures(self._folder)) >= self._most:
            self._enough.touch()

    pytest_collectreport = pytest_runtest_logreport

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

    def _items(self, session: pytest.Session) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
        """Tests, each with what comes next, for which pytest keeps what it has set up.

        After the last of a file that is the session: the next file is collected when the fixtures of this one
        are gone, as what they change for their tests could be found by who imports the other; and it may turn
        out to have no tests that this tier runs.
        """
        hook = session.config.hook
        files = self._files()
        file = next(files, None)
        while file is not None:
            gc.disable()  # of what is collected nothing goes before the file is done
            try:
                session.items = items = list(session.genitems(file))
                hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
                hook.pytest_collection_finish(session=session)
            finally:
                gc.enable()
            yield from pairwise(items)
            file = next(files, None)
            if items:
                yield items[-1], None if file is None else cast("pytest.Item", session)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """As pytest does it, except that tests come file by file."""
        ran = 0
        for item, following in self._items(session):
            ran += 1
            if not session.config.option.collectonly:
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if not session.shouldfail and self._enough.exists():
                session.shouldfail = f"stopping after {self._most} failures of all processes"
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        session.testscollected = ran
        return True

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Leave the number of tests by outcome to the process that started this one."""
        stats = terminalreporter.stats
        counts = {outcome: len(stats.get(outcome, ())) for outcome in OUTCOMES}
        self.counts.write_text(json.dumps(counts), encoding="utf-8")


def _once(_number: int, _frame: FrameType | None) -> None:
    """Take no notice of a signal that came already; programs that are started do, as they would."""


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
    """What all of them together end with: a failure of any, and no tests only where none had any.

    A signal is 128 more than its number, as a shell has it.
    """
    failed = [code if code > 0 else 128 - code for code in codes if code not in _NO_FAILURE]
    return failed[0] if failed else min(codes)


def in_all(folder: Path) -> str:
    """Numbers of tests by outcome, of all processes together."""
    counts: Counter[str] = Counter()
    for each in folder.glob("counts-*"):
        counts.update(json.loads(each.read_text(encoding="utf-8")))
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]) or "no tests"


def failures(folder: Path) -> list[tuple[str, str]]:
    """Tests that failed so far, or files that could not be read, each with the line that says so."""
    found: list[tuple[str, str]] = []
    for path in sorted(folder.glob("failed-*")):
        *lines, _ = path.read_text(encoding="utf-8").split("\n")  # the last may not be written to its end
        found += [(name, said) for name, said in map(json.loads, lines)]
    return found


def still_failing(before: set[str], caches: Iterable[set[str]], now: Iterable[str]) -> set[str]:
    """What `--lf` runs next: what failed, and what failed before and passed in no process."""
    return before.intersection(*caches) | set(now)


def last_failed(cache: Path) -> set[str]:
    """Tests that pytest remembers as failed there."""
    path = cache / REMEMBERED
    return set(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else set()


def remember(cache: Path, failed: set[str]) -> None:
    """Let pytest remember them as failed there."""
    path = cache / REMEMBERED
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict.fromkeys(sorted(failed), True)), encoding="utf-8")


class Run:
    """Several processes that run tests side by side, and what is said of them."""

    def __init__(self, folder: Path, parts: int, command: list[str]) -> None:
        self._folder = folder
        self._before = last_failed(CACHE)
        self._caches = [folder / f"cache-{number}" for number in range(1, parts + 1)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._said: set[str] = set()
        self._told = False
        self._unwritten = dict(enumerate((folder / f"output-{number}" for number in range(1, parts + 1)), 1))
        for (number, path), cache in zip(self._unwritten.items(), self._caches, strict=True):
            remember(cache, self._before)
            own = [*command, "-o", f"cache_dir={cache}"]
            environment = os.environ | {"STREAMWATCH_PART": f"{folder}/{number}"}
            with path.open("wb") as output:
                written = None if number == 1 else output
                self._processes.append(subprocess.Popen(own, env=environment, stdout=written, stderr=written))

    def wait(self, seconds: float = math.inf) -> list[int | None]:
        """Wait until all have ended, or so long; the codes that they ended with, None of those that run."""
        until = time.monotonic() + seconds
        codes = [process.poll() for process in self._processes]
        while None in codes and time.monotonic() < until:
            self._say(codes)
            time.sleep(LOOK_S)
            codes = [process.poll() for process in self._processes]
        self._say(codes)
        return codes

    def _say(self, codes: list[int | None]) -> None:
        """Say which tests failed since, and write what those wrote that have ended, once the first has."""
        for _, line in failures(self._folder):
            if line not in self._said:
                self._said.add(line)
                sys.stderr.write(f"\n{line}\n")
        sys.stderr.flush()
        if codes[0] is not None:
            self._write(number for number, code in enumerate(codes, 1) if code is not None)

    def _write(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._unwritten:
                text = self._unwritten.pop(number).read_text(encoding="utf-8", errors="replace")
                sys.stdout.write(text)
        sys.stdout.flush()

    def end(self, number: int) -> None:
        """Say where each is that runs, let it end as this signal ends it, and write what came of it."""
        for part, code in enumerate(self.wait(0), 1):
            if code is None:
                sys.stderr.write(f"\nprocess {part} is told to end {self._where(part)}\n")
        if number == signal.SIGINT:  # a terminal tells all of them, and twice is once too often
            self.wait(ENDING_S)
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        self._told = True
        self.wait(ENDING_S)
        self._write(list(self._unwritten))
        self.wait()

    def _begun(self, number: int) -> str:
        """Test that a process has begun and not ended with all others; else an empty string."""
        begun = self._folder / f"begun-{number}"
        if (self._folder / f"counts-{number}").exists() or not begun.exists():
            return ""
        return begun.read_text(encoding="utf-8").rpartition("\n")[0].rpartition("\n")[2]

    def _where(self, number: int) -> str:
        test = self._begun(number)
        return f"at {test}" if test else "before its first test or after its last"

    def close(self, codes: list[int | None]) -> None:
        """Say which tests failed, and keep what is known of them and of how long tests took."""
        failed = failures(self._folder)
        for number, code in enumerate(codes, 1):
            if code is not None and code < 0 and not (self._told and -code in ENDS):
                by = f"signal {-code} ended process {number}, what else it had taken was not run"
                failed.append((self._begun(number), f"ENDED {self._where(number)} - {by}"))
        now = (name for name, _ in failed if name)
        remember(CACHE, still_failing(self._before, map(last_failed, self._caches), now))
        if written_seconds := sorted(self._folder.glob("seconds-*")):
            lines = "".join(path.read_text(encoding="utf-8") for path in written_seconds).splitlines(True)
            SECONDS.write_text("".join(sorted(lines, key=lambda line: line.split()[1])), encoding="utf-8")
        if failed:
            sys.stdout.write("==== failed in all processes ====\n")
            sys.stdout.write("".join(f"{line}\n" for _, line in sorted(failed)))


def main(parts: int, arguments: list[str]) -> int:
    """Run the parts side by side, or in one process what concerns one."""
    names = [argument.partition("=")[0] for argument in arguments]
    if ALONE.intersection(names) or any(name.partition("::")[0].endswith(".py") for name in names):
        return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode
    if TIER not in REPRODUCED and not any(argument.startswith("--hypothesis-seed") for argument in arguments):
        arguments = [*arguments, f"--hypothesis-seed={random.SystemRandom().randrange(2**32)}"]
    again = shlex.join(["python", "-m", "tests.parts", str(parts), *arguments])
    sys.stdout.write(f"STREAMWATCH_TESTS={TIER} {again}\n")
    sys.stdout.flush()
    quietly = ["-q", "-o", "console_output_style=classic"]  # how many tests there are is known at the end
    command = [sys.executable, "-m", "pytest", *quietly, *arguments]
    began = time.monotonic()
    signal.signal(signal.SIGTERM, _end)
    with TemporaryDirectory(prefix="streamwatch-tests-") as folder:
        run = Run(Path(folder), parts, command)
        try:
            codes = run.wait()
            code = ended([code for code in codes if code is not None])
        except (KeyboardInterrupt, SystemExit) as end:
            number = signal.SIGTERM if isinstance(end, SystemExit) else signal.SIGINT
            code = 128 + number
            run.end(number)
            codes = run.wait()
        run.close(codes)
        seconds = time.monotonic() - began
        sys.stdout.write(f"==== {in_all(Path(folder))} in {parts} processes, {seconds:.0f} s ====\n")
    return code


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, _once)
    raise SystemExit


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
