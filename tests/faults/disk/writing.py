"""The writer as a child process: what it has said, and what must be found after it."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.faults.committed import Committing
from tests.faults.disk.volume import Volume
from tests.faults.disk.writer import write
from tests.faults.forked import forked, let_go

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 600.0
IDS = 40
"""Per commit."""
STARTING = threading.Lock()
"""To start a process asks for the exit codes of others, and each is said once."""


class Writing:
    """One run of the writer; it reads what the writer says as fast as that is said."""

    def __init__(self, process: BaseProcess, heard: Connection) -> None:
        self.said: list[tuple[str, str]] = []
        self._before_cut: int | None = None
        self._process = process
        self._heard = heard
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
        """End it; what it said until then counts."""
        self._process.kill()
        self._close()

    def wait(self) -> int:
        """Its exit code."""
        self._close()
        assert self._process.exitcode is not None
        return self._process.exitcode

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
        with self._heard, os.fdopen(os.dup(self._heard.fileno())) as lines:
            for line in lines:
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
        assert wait([self._process.sentinel], PATIENCE_SECONDS), "it does not end"
        with STARTING:
            self._process.join()
        self._listener.join(PATIENCE_SECONDS)
        while line := self._lines.get(timeout=PATIENCE_SECONDS):
            self._note(line)


@contextmanager
def writing(
    directory: Path, last: int = 100_000, *, flush: bool = True, under: Sequence[str] = ()
) -> Iterator[Writing]:
    """A writer, traced by the command `under` if there is one; killed at the end if it is still there."""
    with running(write, directory, last, IDS, flush, under=under) as writer:
        yield writer


@contextmanager
def running(program: Callable[..., None], *arguments: object, under: Sequence[str] = ()) -> Iterator[Writing]:
    """A process that says `durable <n>` after each commit; killed at the end if it is still there."""
    with STARTING:
        process, heard = forked(program, *arguments, stops=bool(under))
    tracer = subprocess.Popen([*under, "-p", str(process.pid)]) if under else None
    try:
        if tracer is not None:
            let_go(process)
        yield Writing(process, heard)
    finally:
        process.kill()
        assert wait([process.sentinel], PATIENCE_SECONDS), "it does not end"
        with STARTING:
            process.join()
        if tracer is not None:
            tracer.wait(PATIENCE_SECONDS)


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
