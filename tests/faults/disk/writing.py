"""The writer as a child process: what it has said, and what must be found after it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults.committed import Committing
from tests.faults.disk.volume import Volume

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 600.0
IDS = 40
"""Per commit."""


class Writing:
    """One run of the writer; it reads what the writer says as fast as that is said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.said: list[tuple[str, str]] = []
        self._before_cut: int | None = None
        self._process = process
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def until(self, word: str, number: int = 1) -> None:
        """Until it has said this word so often."""
        while self.times(word) < number:
            self._next()

    def times(self, word: str) -> int:
        return sum(said == word for said, _ in self.said)

    def lose_power(self, disk: Volume) -> None:
        """Cut the power of the disk it writes to, and end it: it promised what it had said before."""
        while not self._lines.empty():
            self._next()
        self._before_cut = self.last
        disk.cut_power()
        self.kill()

    def kill(self) -> None:
        """End it and all that runs it; what it said until then counts."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._close()

    def wait(self) -> int:
        """Its exit code."""
        code = self._process.wait(PATIENCE_SECONDS)
        self._close()
        return code

    @property
    def promised(self) -> int:
        """The last commit that must be found: of those it said before the power was cut, if that was."""
        return self.last if self._before_cut is None else self._before_cut

    @property
    def last(self) -> int:
        """The last commit it held for durable, or found at an opening and might have shown."""
        return max((int(value) for word, value in self.said if word in ("found", "durable")), default=0)

    def kept(self, found: int) -> bool:
        """Whether a commit found afterwards is one that it may have left behind."""
        return max(self.promised, self.last - 1) <= found <= self.last + 1

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _next(self) -> None:
        line = self._lines.get(timeout=PATIENCE_SECONDS)
        assert line, f"it ended: {self.said[-3:]}"
        self._note(line)

    def _note(self, line: str) -> None:
        word, _, value = line.strip().partition(" ")
        self.said.append((word, value))

    def _close(self) -> None:
        self._process.wait(PATIENCE_SECONDS)
        self._listener.join(PATIENCE_SECONDS)
        while line := self._lines.get(timeout=PATIENCE_SECONDS):
            self._note(line)


@contextmanager
def writing(
    directory: Path, last: int = 100_000, *arguments: str, under: Sequence[str] = ()
) -> Iterator[Writing]:
    """A writer, run by the command `under` if there is one; killed at the end if it is still there."""
    command = [*under, sys.executable, "-m", "tests.faults.disk.writer", str(directory), str(last), str(IDS)]
    with running([*command, *arguments]) as writer:
        yield writer


@contextmanager
def running(command: Sequence[str]) -> Iterator[Writing]:
    """A process that says `durable <n>` after each commit; killed at the end if it is still there."""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield Writing(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


class Expected(Mapping[int, object]):
    """What there is to be found after each commit, worked out as far as it is asked for."""

    def __init__(self, directory: Path) -> None:
        self._committing = Committing(directory, IDS)
        self._found: dict[int, object] = {0: self._committing.found()}

    def __getitem__(self, commit: int) -> object:
        for number in self._committing.until(commit):
            self._found[number] = self._committing.found()
        return self._found[commit]

    def __iter__(self) -> Iterator[int]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def close(self) -> None:
        self._committing.store.close()


@contextmanager
def expectations(directory: Path) -> Iterator[Expected]:
    """Expected of a state that is worked out in a directory of its own."""
    expected = Expected(directory)
    try:
        yield expected
    finally:
        expected.close()


def found_in(directory: Path, expected: Expected) -> int:
    """The commit that an opening finds: whole, and nothing else."""
    committing = Committing(directory, IDS)
    try:
        assert committing.found() == expected[committing.commits]
    finally:
        committing.store.close()
    return committing.commits


def until(condition, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
