"""`streamwatch compile`: compiles the estimators ahead of the first start."""

# ruff: noqa: PLC0415  # slow imports are made when a command needs them
from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from streamwatch.cli.options import NO_KAFKA, ConfigFile, Overrides, read_settings, refuse
from streamwatch.core.jit.shipped import SHIPPED

if TYPE_CHECKING:
    from streamwatch.core.estimators.warming import WarmUpResult


REPORT_SECONDS = 10.0
_FIRST = (
    "compiling the estimators for these settings, once on this machine; later starts load them from a cache"
)


@contextmanager
def reporting_compilation(
    report: Callable[[str], None] | None = None, every_seconds: float = REPORT_SECONDS
) -> Generator[Callable[[], int]]:
    """Report progress of compiling in the block, from the first function that is not in the cache.

    Yields a function that returns the number of functions compiled so far.

    Parameters
    ----------
    report
        Called with each line; None: lines go to stderr.
    every_seconds
        Interval of lines while a function is being compiled.
    """
    from streamwatch.core.jit.observers import observers

    reporter = _Reporter(report or _to_stderr, every_seconds)
    observers.append(reporter.hear)
    try:
        yield reporter.compiled
    finally:
        observers.remove(reporter.hear)
        reporter.leave()


class _Reporter:
    """Counts compiled functions; a thread reports while the compiler blocks the command."""

    def __init__(self, report: Callable[[str], None], every_seconds: float) -> None:
        self._report = report
        self._every_seconds = every_seconds
        self._function = ""
        self._functions = 0
        self._began = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, function: str, done: bool) -> None:  # noqa: FBT001 - as jit calls it
        """Note that compiling of a function begins, or is `done`."""
        if done:
            self._functions += 1
            self._function = ""
            return
        self._function = function
        if self._thread is None:
            self._began = time.monotonic()
            self._report(_FIRST)
            self._thread = threading.Thread(target=self._speak, name="compiling", daemon=True)
            self._thread.start()

    def compiled(self) -> int:
        """Return the number of functions compiled so far."""
        return self._functions

    def leave(self) -> None:
        """End the thread, and report the number of functions and the time."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            what = "function" if self._functions == 1 else "functions"
            self._report(f"compiled {self._functions} {what} in {self._seconds():.0f} s")

    def _speak(self) -> None:
        while not self._over.wait(self._every_seconds):
            if self._function:
                self._report(f"compiling {self._function}: {self._seconds():.0f} s since the first function")

    def _seconds(self) -> float:
        return time.monotonic() - self._began


def _to_stderr(line: str) -> None:
    typer.secho(line, err=True, dim=True)


def compile_estimators(config: ConfigFile = None, overrides: Overrides = None) -> None:
    r"""Compile the estimators ahead of time, so that the next start takes tenths of a second.

    Compile into a container image whose file system will be read-only:

        NUMBA_CACHE_DIR=/opt/streamwatch/kernel NUMBA_CPU_NAME=generic \
            streamwatch compile -c prod.yaml

    The compiled estimators depend on how many of each kind the section
    monitors names, on the processor and on NUMBA_CPU_NAME; the rest serves any
    settings. The command needs neither Kafka nor the state.

    Exit codes: 0 if the result is kept for the next start, 2 if there is no
    directory to keep it in or settings must be changed.
    """
    settings = read_settings(config, overrides, otherwise=NO_KAFKA)

    from streamwatch.assembly.warming import nothing_is_compiled, warm_up_run
    from streamwatch.core.jit.cache import loaded_files
    from streamwatch.settings import SettingsError

    began = time.monotonic()
    fresh = nothing_is_compiled()  # then loaded functions were compiled by the second process
    try:
        with reporting_compilation() as compiled:
            warmth = warm_up_run(settings, everything=True)
    except SettingsError as error:
        refuse(str(error))
    warmth = replace(warmth, compiled=compiled(), loaded=0 if fresh else len(loaded_files))
    text = described(warmth, time.monotonic() - began)
    if warmth.compiled and not kept(warmth):
        refuse(text)
    typer.echo(text)


def kept(warmth: WarmUpResult) -> bool:
    """Return whether the compiled functions are kept in a cache for the next start."""
    return warmth.cache_directory is not None and os.access(warmth.cache_directory, os.W_OK)


def described(warmth: WarmUpResult, seconds: float) -> str:
    """Describe how many functions were compiled, and where they are kept."""
    where, processor = warmth.cache_directory, os.environ.get("NUMBA_CPU_NAME", "this processor")
    if not warmth.compiled:
        folders = " or ".join(str(each) for each in (where, SHIPPED if SHIPPED.is_dir() else None) if each)
        return f"nothing to compile: {warmth.loaded} functions for {processor} are in {folders}"
    done = (
        f"compiled {warmth.compiled} functions for {processor} in {seconds:.1f} s, {warmth.loaded} were there"
    )
    if where is None:
        return f"{done}\nnot kept, every start compiles them: set NUMBA_CACHE_DIR to a writable directory"
    if not kept(warmth):
        return f"{done}\nnot kept, every start compiles them: {where} is not writable"
    return f"{done}\nkept in {where}"
