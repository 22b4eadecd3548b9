"""Compiling before anything is read: in two processes where nothing is compiled yet."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest

from streamwatch.assembly import warming
from streamwatch.core.jit.cache import cache_directory
from streamwatch.core.jit.observers import observers


def test_a_step_that_the_second_process_does_not_finish_is_given_back() -> None:
    waiting, done, functions = deque(["first", "second", "third"]), [], []
    steps, answers = io.StringIO(), io.StringIO('["f", "g"]\n')
    warming._hand_out(waiting, done, functions, steps, answers)  # pyright: ignore[reportPrivateUsage]
    assert (done, functions) == (["first"], ["f", "g"])
    assert sorted(waiting) == ["second", "third"]


def test_a_process_that_is_gone_before_its_first_step_leaves_all_steps() -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            if not self.closed:
                raise BrokenPipeError

    waiting, done = deque(["first", "second"]), []
    warming._hand_out(waiting, done, [], Gone(), io.StringIO())  # pyright: ignore[reportPrivateUsage]
    assert done == []
    assert sorted(waiting) == ["first", "second"]


def test_an_answer_names_what_was_compiled_for_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiling(*functions: str) -> None:
        for function in functions:
            for observer in observers:
                observer(function, False)
                observer(function, True)

    steps = {"one": lambda: compiling("a", "b"), "none": compiling, "two": lambda: compiling("c")}
    monkeypatch.setattr(warming, "STEPS", steps)
    answers: list[str] = []
    before = list(observers)
    warming.compile_steps(["one\n", "none\n", "two\n"], answers.append)
    assert list(map(json.loads, answers)) == [["a", "b"], [], ["c"]]
    assert observers == before


def test_nothing_is_compiled_until_a_function_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    assert warming.nothing_is_compiled()
    directory = cache_directory()
    assert directory is not None
    (Path(directory) / "fold.nbc").touch()
    assert not warming.nothing_is_compiled()


def test_what_came_with_the_installation_counts_as_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    directory = cache_directory()
    assert directory is not None
    monkeypatch.setattr(warming, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped" / Path(directory).name).mkdir(parents=True)
    assert not warming.nothing_is_compiled()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says whether a process is there")
def test_the_second_process_ends_with_the_first_and_leaves_an_interruption_to_it() -> None:
    first = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-P', '-m', 'streamwatch.assembly.warming'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
        "child.stdin.write('merge\\n')\n"
        "child.stdin.flush()\n"
        "print(child.pid, child.stdout.readline().strip(), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", first], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, _, answer = process.stdout.readline().partition(" ")
        assert isinstance(json.loads(answer), list)
        os.kill(int(pid), signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        assert Path(f"/proc/{pid}").exists()
        process.kill()
    deadline = time.monotonic() + 60.0
    while Path(f"/proc/{pid}/exe").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/exe").exists()
