"""Processes that take file after file run every test once, and say what failed whatever ends them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from tests import parts


def test_files_that_take_long_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / f"test_{name}.py" for name in ("small", "large", "short", "long", "longest")]
    for file, size in zip(files, (10, 60_000, 10, 10, 10), strict=True):
        file.write_text("#" * size, encoding="utf-8")
    names = [f"{file}::test_it[{number}]" for file in files for number in range(2)]
    monkeypatch.setattr(parts, "expected", lambda: dict(zip(names[4:], (0.2, 0.3, 9, 1, 6, 6), strict=True)))
    assert [file.stem[5:] for file in parts.long_first(files)] == [
        "longest",
        "long",
        "large",
        "short",
        "small",
    ]


@pytest.mark.slow
def test_every_test_runs_in_one_part_with_the_fixtures_of_its_folder() -> None:
    tests = ["-k", "refused", "tests/history/replay"]
    environment = os.environ | {"STREAMWATCH_TESTS": "default"}
    environment.pop("STREAMWATCH_PART", None)

    def ran(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *command, *tests],
            cwd=parts.ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
        return done.stdout

    passed = re.findall(r"^PASSED (.+)", ran("tests.parts", "2", "-rA"), re.MULTILINE)
    collected = re.findall(r"^tests/.+", ran("pytest", "-q", "--collect-only"), re.MULTILINE)
    assert sorted(passed) == sorted(collected)
    assert len({name.partition("::")[0] for name in passed}) > 1


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0, 0], 0), ([0, 5], 0), ([5, 0], 0), ([5, 5], 5), ([0, 1], 1), ([2, 5], 2), ([-9, 0], 137)],
)
def test_parts_fail_where_one_does_and_have_no_tests_where_none_has(codes: list[int], code: int) -> None:
    assert parts.ended(codes) == code


FILES = {
    "pytest.ini": """
        [pytest]
        addopts = -ra --import-mode=importlib
        asyncio_default_fixture_loop_scope = function
    """,
    "conftest.py": """
        from tests import parts

        def pytest_configure(config):
            if (part := parts.part()) is not None:
                config.pluginmanager.register(part)
    """,
}
FAILING = """
    import pytest

    @pytest.fixture(scope="module")
    def broken():
        raise ValueError("broken fixture")

    def test_sound(): pass
    def test_wrong(): assert 1 == 2, "wrong"
    def test_without_a_fixture(broken): pass
"""
WAITS = """
    import pathlib, time
    import pytest

    @pytest.fixture
    def told():
        yield
        print("torn down", file=open("ended", "w"))

    def test_waits(told):
        while not pathlib.Path("failed").exists():
            time.sleep(0.05)
        pathlib.Path("begun").touch()
        time.sleep(600)

    def test_that_keeps_the_next_file_from_being_taken_meanwhile(): pass
"""
FAILS = """
    import pathlib

    def test_wrong(): assert 1 == 2, "wrong"
    def test_after(): pathlib.Path("failed").touch()
"""


class Start(Protocol):
    def __call__(
        self, files: dict[str, str], *arguments: str, processes: int = 2
    ) -> subprocess.Popen[str]: ...


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    """The tests of these files, run by so many processes, none of which outlives the test."""
    runs: list[subprocess.Popen[str]] = []

    def start(files: dict[str, str], *arguments: str, processes: int = 2) -> subprocess.Popen[str]:
        for name, text in (FILES | files).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(parts.ROOT), "STREAMWATCH_TESTS": "rotating"}
        environment.pop("STREAMWATCH_PART", None)
        runs.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.parts", str(processes), *arguments],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return runs[-1]

    yield start
    for run in runs:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


def test_a_file_is_read_when_the_fixtures_of_the_one_before_are_gone(started: Start) -> None:
    changes = """
        import os
        import pytest

        @pytest.fixture(scope="module", autouse=True)
        def changed():
            os.environ["CHANGED"] = "yes"
            yield
            del os.environ["CHANGED"]

        def test_changed(): assert os.environ["CHANGED"]
        def test_still_changed(): assert os.environ["CHANGED"]
    """
    reads = """
        import os

        FOUND = os.environ.get("CHANGED")

        def test_nothing_is_changed_here(): assert FOUND is None
    """
    files = {"test_changes.py": changes, "test_reads.py": reads}
    run = started(files, processes=1)
    output, said = run.communicate(timeout=120)
    assert "==== 3 passed in 1 processes" in output, output + said


def test_after_a_file_without_tests_comes_one_of_another_folder(started: Start) -> None:
    sound = "def test_sound(): pass\n"
    files = {
        "first/test_a.py": sound + "# taken first, as it is longest",
        "first/test_b.py": "# none of its tests runs",
        "second/test_c.py": sound,
    }
    run = started(files, processes=1)
    output, said = run.communicate(timeout=120)
    assert "==== 2 passed in 1 processes" in output, output + said


def remembered(folder: Path) -> set[str]:
    return parts.last_failed(folder / parts.CACHE)


@pytest.mark.slow
def test_what_fails_in_any_process_is_said_at_once_and_at_the_end(started: Start, tmp_path: Path) -> None:
    files = {
        "test_failing.py": FAILING,
        "test_unreadable.py": "import nothing_of_this_name\n",
        "test_crashing.py": """
            import os

            def test_crash(): os.kill(os.getpid(), 9)
            def test_after(): pass
        """,
    }
    run = started(files)
    output, said = run.communicate(timeout=120)
    failed = [
        "ENDED at test_crashing.py::test_crash - signal 9 ended process ",
        "ERROR at setup of test_failing.py::test_without_a_fixture - ValueError: broken fixture",
        "ERROR in test_unreadable.py - ModuleNotFoundError: No module named 'nothing_of_this_name'",
        "FAILED test_failing.py::test_wrong - AssertionError: wrong",
    ]
    *_, last = output.partition("==== failed in all processes ====\n")
    lines = last.splitlines()
    assert [line[: len(text)] for line, text in zip(sorted(lines[:-1]), failed, strict=True)] == failed
    assert lines[-1].startswith("==== ")
    assert set(failed[1:]) <= set(said.splitlines())
    assert run.returncode in {1, 128 + signal.SIGKILL}
    assert remembered(tmp_path) == {
        "test_crashing.py::test_crash",
        "test_failing.py::test_without_a_fixture",
        "test_failing.py::test_wrong",
        "test_unreadable.py",
    }


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_where_all_are_told_to_end_it_is_said_what_failed_and_where_each_was(
    started: Start, tmp_path: Path, number: signal.Signals
) -> None:
    run = started({"test_a_waiting.py": WAITS, "test_b_failing.py": FAILS})
    while not (tmp_path / "begun").exists():
        assert run.poll() is None
        time.sleep(0.05)
    os.killpg(run.pid, number)
    output, said = run.communicate(timeout=120)
    assert run.returncode == 128 + number, said
    wrong = "FAILED test_b_failing.py::test_wrong - AssertionError: wrong"
    assert wrong in said.splitlines()
    assert re.search(r"^process \d is told to end at test_a_waiting.py::test_waits$", said, re.MULTILINE)
    assert f"{wrong}\n==== 1 failed, 1 passed in 2 processes" in output
    assert "assert 1 == 2" in output  # as the process wrote it
    assert (tmp_path / "ended").exists()
    assert remembered(tmp_path) == {"test_b_failing.py::test_wrong"}


@pytest.mark.slow
def test_no_process_goes_on_after_as_many_failures_as_are_asked_for(started: Start) -> None:
    waits = """
        import pathlib, time

        def test_one():
            while not pathlib.Path("failed").exists():
                time.sleep(0.05)
            time.sleep(1)

        def test_two(): pass
    """
    fails = """
        import pathlib

        def test_wrong():
            pathlib.Path("failed").touch()
            assert 1 == 2
    """
    run = started({"test_a_waiting.py": waits, "test_b_failing.py": fails}, "-x")
    output, _ = run.communicate(timeout=120)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures of all processes" in output
    assert "==== 1 failed, 1 passed in 2 processes" in output


def test_what_failed_is_remembered_until_it_passes_in_some_process() -> None:
    still = parts.still_failing({"a", "b", "c"}, [{"a", "b", "c", "d"}, {"a", "c", "e"}], ["c", "f"])
    assert still == {"a", "c", "f"}


def test_a_line_that_is_not_written_to_its_end_is_left_for_later(tmp_path: Path) -> None:
    (tmp_path / "failed-1").write_text(json.dumps(["a", "FAILED a"]) + '\n["b", "FAI', encoding="utf-8")
    (tmp_path / "failed-2").touch()
    assert parts.failures(tmp_path) == [("a", "FAILED a")]


@pytest.mark.parametrize("argument", ["--lf", "--junitxml=a.xml", "tests/test_a.py", "tests/test_a.py::b"])
def test_one_process_runs_what_concerns_one(monkeypatch: pytest.MonkeyPatch, argument: str) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(parts.subprocess, "run", run)
    assert parts.main(4, ["-k", "this", argument]) == 3
    assert ran == [[sys.executable, "-m", "pytest", "-k", "this", argument]]
