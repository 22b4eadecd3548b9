"""What a person sees of a simulation or a replay: a bar while it runs, a summary after."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Timer
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from streamwatch.lab.streams.simulated import Drift


@dataclass(slots=True)
class SimulationSummary:
    """Summary of what was sent."""

    models: tuple[str, ...]
    instances: int = 0
    predictions: int = 0
    labels: int = 0
    bytes: int = 0
    seconds: float = 0.0
    drifts: list[Drift] = field(default_factory=list[Drift])
    interrupted: bool = False

    def lines(self) -> list[str]:
        """For a person to read."""
        sent = (
            f"sent {self.predictions:,} predictions of {len(self.models)} models ({', '.join(self.models)}) "
            f"on {self.instances:,} instances, and {self.labels:,} labels: {self.bytes / 1e6:,.1f} MB "
            f"in {self.seconds:,.1f} s"
        )
        late = self.instances - self.labels
        rest = f"{late:,} labels never come" if not self.interrupted else f"{late:,} labels were not sent"
        if not self.drifts:
            return [sent, rest, "no drift so far"]
        drifts = [
            f"drift at instance {d.at:,}: {d.kind}"
            + (f" over {d.width:,} instances" if d.width > 1 else "")
            + (": drifting-v2 gets worse" if d.concept else ": back to the first concept")
            for d in self.drifts
        ]
        return [sent, rest, *drifts]


@contextmanager
def waiting(what: str, console: Console | None, after_seconds: float = 1.0) -> Generator[None]:
    """Tell what is being waited for: with a clock on a terminal, else by one line if it takes long."""
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


class Meter:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, title: str, total: int | None, console: Console | None) -> None:
        drawn = console is not None and console.is_terminal
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("instances · {task.fields[labels]:,} labels"),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console) if drawn else None
        self._shown: AbstractContextManager[object] = self._progress or nullcontext()
        if self._progress is not None:
            self._task = self._progress.add_task(title, total=total, labels=0)

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

    def show(self, summary: SimulationSummary) -> None:
        """Redraw."""
        if self._progress is not None:
            self._progress.update(self._task, completed=summary.instances, labels=summary.labels)


class ByteMeter:
    """Progress of reading a file, on a terminal; nothing elsewhere. `total` None: of unknown size."""

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
        """Redraw."""
        if self._progress is not None:
            self._progress.update(self._task, completed=read_bytes)
