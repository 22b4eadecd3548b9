"""Progress of a replay for a person: what is being waited for, and how many bytes have been read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Timer
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def waiting(what: str, console: Console | None, after_seconds: float = 1.0) -> Generator[None]:
    """Show the text `what` during the context: with a clock on a terminal, else as a line after a while.

    The line is printed if the context lasts for `after_seconds`.
    """
    if console is None:
        yield
    elif console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            progress.add_task(what, total=None)
            yield
    else:
        timer = Timer(after_seconds, lambda: console.print(f"{what} …", highlight=False, soft_wrap=True))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class ByteMeter:
    """Progress bar by bytes on a terminal; shows nothing elsewhere. `total`: bytes, None if unknown."""

    def __init__(self, title: str, total: int | None, console: Console | None) -> None:
        drawn = console is not None and console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True) if drawn else None
        self._shown: AbstractContextManager[object] = self._progress or nullcontext()
        if self._progress is not None:
            self._task = self._progress.add_task(title, total=total)

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._shown.__exit__(kind, error, traceback)

    def show(self, read_bytes: int) -> None:
        """Redraw the bar after this number of bytes."""
        if self._progress is not None:
            self._progress.update(self._task, completed=read_bytes)
