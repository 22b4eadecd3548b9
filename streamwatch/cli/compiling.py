"""Progress of the compiler on standard error, for commands that may be the first to need some estimators."""

# ruff: noqa: PLC0415  # what is heavy is imported when a command needs it

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import typer

TELL_SECONDS = 10.0
_FIRST = (
    "compiling the estimators for these settings, once on this machine; later starts load them from a cache"
)


@contextmanager
def telling_of_compiling(
    tell: Callable[[str], None] | None = None, every_seconds: float = TELL_SECONDS
) -> Generator[Callable[[], int]]:
    """Say what is compiled and for how long, from the first function that no cache has.

    Gives a function that tells how many were compiled so far.

    Parameters
    ----------
    tell
        Takes a line; standard error if absent.
    every_seconds
        Time from one line to the next while a function is being compiled.
    """
    from streamwatch.core.jit.observers import observers

    teller = _Teller(tell or _to_stderr, every_seconds)
    observers.append(teller.hear)
    try:
        yield teller.compiled
    finally:
        observers.remove(teller.hear)
        teller.leave()


class _Teller:
    """Counts functions and seconds; a thread speaks while the compiler holds the command."""

    def __init__(self, tell: Callable[[str], None], every_seconds: float) -> None:
        self._tell = tell
        self._every_seconds = every_seconds
        self._function = ""
        self._functions = 0
        self._began = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, function: str, done: bool) -> None:  # noqa: FBT001 - as jit calls it
        """Take note that a function begins to be compiled, or is."""
        if done:
            self._functions += 1
            self._function = ""
            return
        self._function = function
        if self._thread is None:
            self._began = time.monotonic()
            self._tell(_FIRST)
            self._thread = threading.Thread(target=self._speak, name="compiling", daemon=True)
            self._thread.start()

    def compiled(self) -> int:
        """Functions compiled so far."""
        return self._functions

    def leave(self) -> None:
        """End the thread, and say what it came to."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            what = "function" if self._functions == 1 else "functions"
            self._tell(f"compiled {self._functions} {what} in {self._seconds():.0f} s")

    def _speak(self) -> None:
        while not self._over.wait(self._every_seconds):
            if self._function:
                self._tell(f"compiling {self._function}: {self._seconds():.0f} s since the first function")

    def _seconds(self) -> float:
        return time.monotonic() - self._began


def _to_stderr(line: str) -> None:
    typer.secho(line, err=True, dim=True)
