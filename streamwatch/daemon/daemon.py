"""The running monitor: serve, read, evaluate, commit, show, until a signal says stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from streamwatch import __version__
from streamwatch.core.ports import Sink
from streamwatch.core.series import Report
from streamwatch.daemon.background import in_background
from streamwatch.daemon.commits import Durable
from streamwatch.daemon.delivery import Deliveries
from streamwatch.daemon.reading import Reading, ReadingSpec
from streamwatch.daemon.vitals import Feed, Vitals
from streamwatch.edge.supervisor import Supervisor
from streamwatch.telemetry import (
    KernelCompiling,
    KernelReady,
    Started,
    StartedServing,
    Stopped,
    Stopping,
    Telemetry,
)

FINISH_SECONDS = 2.0
"""What a stop waits for the batch at hand; a poll that hangs on a dead broker is given up then."""

DELIVER_SECONDS = 2.0
"""What it waits for notices that are on their way; the rest goes out after the next start."""


class Server(Protocol):
    """The HTTP server, as the daemon needs it."""

    @property
    def url(self) -> str:
        """Where it answers."""
        ...

    async def start(self) -> None:
        """Listen and answer."""
        ...

    def publish(self, report: Report) -> None:
        """Show this report from now on."""
        ...

    async def stop(self) -> None:
        """Leave within a bounded time."""
        ...


@dataclass(frozen=True, slots=True)
class Beside:
    """Whoever is told of what happens, beside the HTTP server."""

    sinks: Sequence[Sink] = ()
    """Shown every report."""
    deliveries: Deliveries | None = None
    """Tells people of alarms."""
    supervisor: Supervisor = field(default_factory=Supervisor)
    """The service manager that started the daemon, if any."""


class Daemon:
    """One task that reads, evaluates and commits, beside a server that shows the last durable report.

    Parameters
    ----------
    source
        All partitions of the configured topics.
    reading
        How state is opened and committed.
    server
        Started before anything else, so that health is answered from the first moment.
    vitals
        Kept up to date with what polls tell.
    telemetry
        Told what happens.
    warm_up
        Compiles the estimators; runs in a thread.
    beside
        Whoever else is told of what happens.
    """

    def __init__(  # the parts of the process
        self,
        source: Feed,
        reading: ReadingSpec,
        server: Server,
        vitals: Vitals,
        telemetry: Telemetry,
        warm_up: Callable[[], None],
        beside: Beside | None = None,
    ) -> None:
        self._source = source
        self._server = server
        self._beside = beside or Beside()
        self._sinks = (server, *self._beside.sinks)
        self._vitals = vitals
        self._telemetry = telemetry
        self._warm_up = warm_up
        self._reading = Reading(source, reading, vitals, telemetry, self._show, self._ready)
        self._stop = asyncio.Event()
        self._began = time.monotonic()

    @property
    def url(self) -> str:
        """Where the HTTP server answers."""
        return self._server.url

    def stop(self, cause: str = "request") -> None:
        """Finish the batch at hand, make it durable, publish once more, and leave `run`."""
        if not self._stop.is_set():
            self._telemetry.emit(Stopping(cause))
            self._beside.supervisor.stopping()
            self._stop.set()

    async def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT (a second one kills); raises refusals and bugs."""
        supervisor = self._beside.supervisor
        self._telemetry.emit(Started(__version__))
        await self._server.start()
        self._telemetry.emit(StartedServing(self._server.url))
        with _signals(self.stop):
            try:
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(self._read())
                    beside = [group.create_task(self._deliver()), group.create_task(supervisor.watch())]
                    await self._stop.wait()
                    if self._beside.deliveries is not None:
                        await self._beside.deliveries.stop(DELIVER_SECONDS)
                    for task in beside:
                        task.cancel()
                    if self._vitals.stage is None:
                        await asyncio.wait({reading}, timeout=FINISH_SECONDS)
                    reading.cancel()
                self._vitals.stage = "stopping"
            except BaseExceptionGroup as several:
                raise (several.exceptions[0] if len(several.exceptions) == 1 else several) from None
            finally:
                await self._source.stop()
                await self._server.stop()
        self._telemetry.emit(Stopped(self._reading.records, round(time.monotonic() - self._began, 3)))

    async def _read(self) -> None:
        self._vitals.stage = "the estimators are being compiled"
        self._telemetry.emit(KernelCompiling())
        began = time.monotonic()
        await in_background(self._warm_up)
        self._telemetry.emit(KernelReady(round(time.monotonic() - began, 3)))
        await self._reading.run(self._stop)

    async def _deliver(self) -> None:
        if self._beside.deliveries is not None:
            await self._beside.deliveries.run()

    def _ready(self) -> None:
        self._beside.supervisor.ready()
        self._beside.supervisor.status(f"state is open; serving at {self._server.url}")

    def _show(self, durable: Durable) -> None:
        if durable.report is not None:
            for sink in self._sinks:
                sink.publish(durable.report)


@contextmanager
def _signals(stop: Callable[[str], None]) -> Generator[None]:
    """SIGTERM and SIGINT ask to stop; a second one of the same kind ends the process as usual."""
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        stop(number.name)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
