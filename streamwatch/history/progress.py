"""Progress of a command for a person: what is being waited for, and how much has been done."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from threading import Timer
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
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
            progress.add_task(escape(what), total=None)
            yield
    else:
        line = escape(f"{what} …")
        timer = Timer(after_seconds, lambda: console.print(line, highlight=False, soft_wrap=True))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def meter(
    title: str,
    total: int | None,
    console: Console | None,
    *columns: ProgressColumn,
    transient: bool = False,
    **fields: Any,
) -> Generator[Callable[..., None]]:
    """Show a progress bar on a terminal, nothing elsewhere; yields the function that redraws it.

    The function takes the number that is `completed` of `total`, and new values of `fields`.
    """
    if console is None or not console.is_terminal:
        yield _nothing
        return
    bar = (TextColumn("{task.description}"), BarColumn(), *columns)
    with Progress(*bar, console=console, transient=transient) as progress:
        yield partial(progress.update, progress.add_task(escape(title), total=total, **fields))


def _nothing(**_: object) -> None:
    """Redraw nothing."""
