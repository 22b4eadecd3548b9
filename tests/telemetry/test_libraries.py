"""Nothing writes plain text into the log: what libraries and Python say are internal events too."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from streamwatch.core.join.layout import lazy_zeros
from streamwatch.telemetry import (
    Crashed,
    LibraryFailed,
    LibraryWarned,
    OutOfMemory,
    Telemetry,
    capture_libraries,
    crash_of,
)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    undo = capture_libraries(Telemetry(form="json", stream=stream).emit)
    yield stream
    undo()


def events(log: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


async def test_a_task_that_is_destroyed_while_pending_is_reported_as_an_event(log: io.StringIO) -> None:
    loop = asyncio.get_running_loop()

    async def never() -> None:
        await loop.create_future()

    task = asyncio.create_task(never())
    await asyncio.sleep(0)
    context = {"task": task, "message": "Task was destroyed but it is pending!"}
    loop.call_exception_handler(context)
    task.cancel()
    [event] = events(log)
    assert (event["event"], event["source"], event["level"]) == ("library_failed", "asyncio", "error")
    assert "Task was destroyed but it is pending!" in event["message"]


def test_warnings_and_logs_of_libraries_are_events(log: io.StringIO) -> None:
    logging.getLogger("some.library").warning("disk at %d %%", 97)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("unclosed thing", ResourceWarning, stacklevel=1)
    first, second = events(log)
    assert (first["event"], first["source"], first["message"]) == (
        "library_warned",
        "some.library",
        "disk at 97 %",
    )
    assert second["source"] == "py.warnings"
    assert "ResourceWarning: unclosed thing" in second["message"]


def test_a_message_that_does_not_fit_its_arguments_is_reported_as_it_stands(log: io.StringIO) -> None:
    record = logging.LogRecord("some.library", logging.WARNING, __file__, 1, "%d of %d", (1,), None)
    for handler in logging.getLogger().handlers:
        if "telemetry" in type(handler).__module__:
            handler.handle(record)
    [event] = events(log)
    assert event["message"] == "%d of %d"


class _Silent:
    def __str__(self) -> str:
        raise RuntimeError("a text that cannot be made")


@pytest.mark.parametrize(("message", "argument"), [("%(topic)s", {"other": 1}), ("%s", _Silent())])
def test_a_message_that_cannot_be_made_is_not_raised_where_the_library_logs(
    log: io.StringIO, message: str, argument: object
) -> None:
    record = logging.LogRecord("some.library", logging.WARNING, __file__, 1, message, (argument,), None)
    for handler in logging.getLogger().handlers:
        if "telemetry" in type(handler).__module__:
            handler.handle(record)
    [event] = events(log)
    assert event["message"] == message


def test_exceptions_in_threads_and_finalizers_are_events_with_their_traceback(log: io.StringIO) -> None:
    class Brittle:
        def __del__(self) -> None:
            raise ValueError("in a finalizer")

    def work() -> None:
        raise KeyError("in a thread")

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    Brittle()
    gc.collect()
    in_thread, in_finalizer = events(log)
    assert in_thread["message"] == "exception in thread worker"
    assert in_thread["traceback"].endswith("KeyError: 'in a thread'\n")
    assert in_finalizer["traceback"].endswith("ValueError: in a finalizer\n")


def test_one_library_that_says_much_is_limited_and_long_texts_are_cut(log: io.StringIO) -> None:
    for _ in range(100):
        logging.getLogger("chatty").error("x" * 10_000)
    found = events(log)
    assert len(found) == 5
    assert all(len(event["message"]) == 2_000 for event in found)


def test_nothing_is_left_of_it_once_undone() -> None:
    reported: list[LibraryWarned | LibraryFailed] = []
    before = sys.unraisablehook, threading.excepthook, logging.getLogger().level
    undo = capture_libraries(reported.append)  # type: ignore[arg-type]
    undo()
    logging.getLogger("some.library").error("to whoever listens")
    assert reported == []
    assert (sys.unraisablehook, threading.excepthook, logging.getLogger().level) == before


def test_a_crash_names_the_error_and_where_it_was_raised() -> None:
    try:
        int("a bug")
    except ValueError as error:
        crash = crash_of(error)
    assert isinstance(crash, Crashed)
    assert crash.error == "ValueError: invalid literal for int() with base 10: 'a bug'"
    assert "test_libraries.py" in crash.traceback


def test_memory_that_is_refused_is_no_bug_and_has_a_remedy() -> None:
    try:
        lazy_zeros(1 << 58, np.dtype(np.int64))
    except MemoryError as error:
        end = crash_of(error)
    assert isinstance(end, OutOfMemory)
    assert end.error == "unable to map 2,305,843,009,213,693,952 bytes for 288,230,376,151,711,744 entries"
    assert "streamwatch check" in end.remedy
    assert "test_libraries.py" in end.traceback


BUG = """
import streamwatch.assembly.build as build
from streamwatch.cli.run import run
class Daemon:
    async def run(self):
        import asyncio
        self.left = asyncio.get_running_loop().create_task(asyncio.Event().wait())
        raise RuntimeError("a bug")
build.build_daemon = lambda *_, **__: Daemon()
from streamwatch.cli.options import read_settings
run(None, ["kafka.bootstrap_servers=127.0.0.1:1", "topics.predictions=p", "topics.labels=l"])
"""


@pytest.mark.slow
def test_a_daemon_that_crashes_leaves_lines_of_json_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUG], capture_output=True, text=True, timeout=120, check=False
    )
    [line] = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert (line["event"], line["error"]) == ("crashed", "RuntimeError: a bug")
