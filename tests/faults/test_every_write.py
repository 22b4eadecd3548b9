"""Killed at each single system call that changes the disk: the state is that of one commit, and not torn."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock

import pytest

from streamwatch.edge.stores.kind import StateFailed, StateRefused
from tests.faults.committed import COLD, Committing, commit_all
from tests.faults.forked import forked, let_go
from tests.tiers import by_tier, is_due

CALLS = (
    *("write", "pwrite64", "writev", "pwritev", "ftruncate", "fallocate", "sync_file_range"),
    *("fsync", "fdatasync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link"),
)
"""Everything by which a program changes files, or has them written out."""
COMMITS, IDS = 2, 60
PATIENCE_SECONDS = 600
AT_ONCE = 2

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """What came of a run that was to be killed at the call `call` number `when` of any of its threads."""

    call: str
    when: int
    directory: Path
    killed: bool
    durable: int
    """The last commit it had said to be durable."""


class Tracing:
    """Runs the program on copies of a directory under strace."""

    def __init__(self, strace: str, original: Path, copies: Path, last: int) -> None:
        self._strace = strace
        self._original = original
        self._copies = copies
        self._last = last
        # To start a process asks for the exit codes of others, and each is said once.
        self._starting = Lock()

    def run(self, call: str, when: int) -> Run:
        copy = self._copies / f"{call}-{when}"
        if self._original.exists():
            shutil.copytree(self._original, copy)
        with self._starting:
            process, said = forked(commit_all, copy, self._last, IDS, stops=True)
        command = [self._strace, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
        command += ["-e", f"inject={call}:signal=KILL:when={when}", "-p", str(process.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            let_go(process)
            _, errors = tracer.communicate(timeout=PATIENCE_SECONDS)
        assert wait([process.sentinel], PATIENCE_SECONDS), "it lives though nobody traces it"
        with self._starting:
            process.join()
        assert process.exitcode in (0, -signal.SIGKILL), errors
        with said, os.fdopen(os.dup(said.fileno())) as lines:
            durable = [int(line) for line in lines]
        return Run(call, when, copy, process.exitcode != 0, durable[-1] if durable else 0)

    def every_call(self, call: str) -> Iterator[Run]:
        """Killed at its first call, and at every later one whose turn it is, until it makes no more."""
        for when in count(1):
            if when > 1 and not is_due(when):
                continue
            run = self.run(call, when)
            yield run
            if not run.killed:
                return


def commits_of(directory: Path, last: int) -> dict[int, object]:
    """What there is to be found after each commit, from none to the last."""
    committing = Committing(directory, IDS)
    found: dict[int, object] = {0: committing.found()}
    for number in committing.until(last):
        found[number] = committing.found()
    committing.store.close()
    return found


def examine(run: Run, before: int, expected: Mapping[int, object]) -> int:
    """The commit that a start finds, whole and nothing else; and it goes on from there as if nothing was."""
    committing = Committing(run.directory, IDS)
    try:
        found = committing.commits
        acknowledged = max(before, run.durable)
        assert acknowledged <= found <= acknowledged + 1
        assert committing.found() == expected[found]
        last = max(expected)
        for _ in committing.until(last):
            pass
        assert committing.found() == expected[last]
    finally:
        committing.store.close()
    shutil.rmtree(run.directory)
    return found


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("before", "cold"),
    [(4, "0"), (0, "0"), (4, "1")],
    ids=["at_commits_of_a_state", "at_the_first_commits_of_a_new_state", "at_commits_with_cold_entries"],
)
def test_killed_at_each_write_and_sync_the_state_is_the_one_before_or_the_one_after(
    real_component: Callable[[str], str],
    tmp_path: Path,
    before: int,
    cold: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(COLD, cold)
    last = before + COMMITS
    expected = commits_of(tmp_path / "expected", last + 1)
    original = tmp_path / "original"
    if before:
        committing = Committing(original, IDS)
        assert list(committing.until(before))[-1] == before
        committing.store.close()
    (tmp_path / "copies").mkdir()
    tracing = Tracing(real_component("strace"), original, tmp_path / "copies", last)
    killed: Counter[str] = Counter()
    found: Counter[int] = Counter()
    wrong: list[str] = []

    def every(call: str) -> None:
        for run in tracing.every_call(call):
            killed[call] += run.killed
            try:
                found[examine(run, before, expected)] += 1
            except (AssertionError, StateFailed, StateRefused) as error:
                wrong.append(f"killed at {call} number {run.when}: {error}")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(every, CALLS))
    log.info("killed at %s; found %s", dict(+killed), dict(sorted(found.items())))
    assert wrong == []
    assert {"write", "fsync", "fdatasync", "rename"} <= (+killed).keys()
    every_commit = set(range(before, last + 1))
    assert by_tier(fast=set(), default={before, last}, everything=every_commit) <= found.keys()
