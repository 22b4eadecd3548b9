"""Log records of libraries, and exceptions that nobody handles, as internal events."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Final

from streamwatch.telemetry.writer import InternalEvent, Level

MOST_CHARACTERS: Final = 2_000
"""Most characters of a message, and of a traceback, of which the end is kept, as it names the error."""
_MORE_MEMORY: Final = (
    "`streamwatch check` computes what these settings may need; where addresses are limited (ulimit -v), "
    "limit resident memory instead, as most of what is reserved is never touched"
)


class LibraryWarned(InternalEvent, frozen=True):
    """A library logged a warning, or Python did."""

    level: ClassVar[Level] = "warning"
    sampled_by: ClassVar[str | None] = "source"
    source: str
    """Name of the library's log: asyncio, py.warnings …"""
    message: str


class LibraryFailed(InternalEvent, frozen=True):
    """A library logged an error, or an exception was not handled."""

    level: ClassVar[Level] = "error"
    sampled_by: ClassVar[str | None] = "source"
    source: str
    message: str
    traceback: str = ""


class Crashed(InternalEvent, frozen=True):
    """A bug ends the process; the state is safe, and a restart continues from it."""

    level: ClassVar[Level] = "error"
    error: str
    traceback: str


class OutOfMemory(InternalEvent, frozen=True):
    """The system refuses memory, which ends the process; a restart continues from the last commit."""

    level: ClassVar[Level] = "error"
    error: str
    remedy: str
    traceback: str


def capture_libraries(emit: Callable[[InternalEvent], None]) -> Callable[[], None]:
    """Emit internal events for log records of libraries and for exceptions that nobody handles.

    Covers the root logger from level warning (asyncio: tasks destroyed, connections left open), Python
    warnings, exceptions in threads and in finalizers.

    Parameters
    ----------
    emit
        Called with each event.

    Returns
    -------
    Callable
        Restores the previous handlers and hooks.
    """
    handler = _Events(emit)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    before = sys.unraisablehook, threading.excepthook

    def unraisable(seen: sys.UnraisableHookArgs) -> None:
        where = seen.err_msg or "Exception ignored in"
        emit(_failed("python", f"{where}: {seen.object!r}", seen.exc_value, seen.exc_traceback))

    def in_thread(seen: threading.ExceptHookArgs) -> None:
        name = "a thread" if seen.thread is None else f"thread {seen.thread.name}"
        emit(_failed("python", f"exception in {name}", seen.exc_value, seen.exc_traceback))

    sys.unraisablehook, threading.excepthook = unraisable, in_thread

    def undo() -> None:
        sys.unraisablehook, threading.excepthook = before
        logging.captureWarnings(capture=False)
        root.setLevel(level)
        root.removeHandler(handler)

    return undo


def crash_of(error: BaseException) -> Crashed | OutOfMemory:
    """Make the event for an exception that ends the process."""
    if isinstance(error, MemoryError):
        return OutOfMemory(_bounded(str(error)), _MORE_MEMORY, _traced(error, error.__traceback__))
    return Crashed(_bounded(f"{type(error).__name__}: {error}"), _traced(error, error.__traceback__))


def message_of(record: logging.LogRecord) -> str:
    """Return the message of a log record, unformatted if its arguments do not fit or cannot be written."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - else it would be raised where the library logs
        return str(record.msg)


class _Events(logging.Handler):
    """Turns each record of a log into an internal event."""

    def __init__(self, emit: Callable[[InternalEvent], None]) -> None:
        super().__init__(logging.WARNING)
        self._emit = emit

    def emit(self, record: logging.LogRecord) -> None:
        """Emit an event with the message, unformatted if its arguments do not fit."""
        message = message_of(record)
        if record.levelno < logging.ERROR:
            self._emit(LibraryWarned(record.name, _bounded(message)))
            return
        _, error, at = record.exc_info or (None, None, None)
        self._emit(_failed(record.name, message, error, at))


def _failed(
    source: str, message: str, error: BaseException | None, at: TracebackType | None
) -> LibraryFailed:
    return LibraryFailed(source, _bounded(message), "" if error is None else _traced(error, at))


def _traced(error: BaseException, at: TracebackType | None) -> str:
    return "".join(traceback.format_exception(type(error), error, at))[-MOST_CHARACTERS:]


def _bounded(text: str) -> str:
    return text.strip()[:MOST_CHARACTERS]
