"""The running monitor: serve, read, evaluate, publish, until a signal says stop."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from streamwatch import __version__
from streamwatch.core.ports import Poll, Sink
from streamwatch.core.series import Report
from streamwatch.daemon.intake import Intake, breathe
from streamwatch.daemon.vitals import Feed, Vitals
from streamwatch.telemetry import (
    CatchUpFinished,
    KernelCompiling,
    KernelReady,
    Started,
    StartedServing,
    Stopped,
    Stopping,
    Telemetry,
)

REPORT_SECONDS = 1.0
"""Between two reports under load; building them never takes more than a tenth of the time."""
FINISH_SECONDS = 2.0
"""What a stop waits for the batch at hand; a poll that hangs on a dead broker is given up then."""


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


class Daemon:
    """One task that reads and evaluates, beside a server that shows the last report.

    Parameters
    ----------
    source
        All partitions of the configured topics.
    intake
        Evaluates what the source delivers.
    server
        Started before anything else, so that health is answered from the first moment.
    vitals
        Kept up to date with what polls tell.
    telemetry
        Told what happens.
    warm_up
        Compiles the estimators; runs in a thread.
    sinks
        Shown every report beside the server.
    """

    def __init__(  # the parts of the process
        self,
        source: Feed,
        intake: Intake,
        server: Server,
        vitals: Vitals,
        telemetry: Telemetry,
        warm_up: Callable[[], None],
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._source = source
        self._intake = intake
        self._server = server
        self._sinks = (server, *sinks)
        self._vitals = vitals
        self._telemetry = telemetry
        self._warm_up = warm_up
        self._stop = asyncio.Event()
        self._began = time.monotonic()
        self._report_due = self._report_soon = 0.0
        self._unpublished = True
        self._behind = True

    @property
    def url(self) -> str:
        """Where the HTTP server answers."""
        return self._server.url

    def stop(self, cause: str = "request") -> None:
        """Finish the batch at hand, publish once more, and leave `run`."""
        if not self._stop.is_set():
            self._telemetry.emit(Stopping(cause))
            self._stop.set()

    async def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT (a second one kills); raises refusals and bugs."""
        self._telemetry.emit(Started(__version__))
        await self._server.start()
        self._telemetry.emit(StartedServing(self._server.url))
        with _signals(self.stop):
            try:
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(self._read())
                    await self._stop.wait()
                    if self._vitals.stage is None:
                        await asyncio.wait({reading}, timeout=FINISH_SECONDS)
                    reading.cancel()
                self._vitals.stage = "stopping"
                await self._publish()
            except BaseExceptionGroup as several:
                raise (several.exceptions[0] if len(several.exceptions) == 1 else several) from None
            finally:
                await self._source.stop()
                await self._server.stop()
        self._telemetry.emit(Stopped(self._intake.records, round(time.monotonic() - self._began, 3)))

    async def _read(self) -> None:
        self._vitals.stage = "the estimators are being compiled"
        self._telemetry.emit(KernelCompiling())
        began = time.monotonic()
        await asyncio.to_thread(self._warm_up)
        self._telemetry.emit(KernelReady(round(time.monotonic() - began, 3)))
        self._vitals.stage = "Kafka has not answered yet"
        await self._source.start({})
        self._vitals.stage = None
        self._began = time.monotonic()
        while not self._stop.is_set():
            await self._take(await self._source.poll())

    async def _take(self, poll: Poll) -> None:
        """Evaluate one poll; publish when due, sooner when there is nothing else to do or an alarm is new.

        An alarm met while a backlog is read tells of the past: it waits for the next report.
        """
        self._vitals.partitions = poll.partitions
        alarms = await self._intake.take(poll)
        self._source.pause(self._intake.pipeline.timeline.ahead())
        if self._behind and self._vitals.caught_up:
            self._behind = False
            seconds = round(time.monotonic() - self._began, 3)
            self._telemetry.emit(CatchUpFinished(self._intake.records, seconds))
        idle = not poll.records
        self._unpublished = self._unpublished or not idle
        due = self._report_soon if idle or (alarms and not self._behind) else self._report_due
        if self._unpublished and time.monotonic() >= due:
            await self._publish()
        await breathe()

    async def _publish(self) -> None:
        """Build a report in slices, so that health is answered meanwhile, and show it."""
        began = time.monotonic()
        slices = self._intake.report_in_slices()
        while True:
            try:
                next(slices)
            except StopIteration as end:
                report = end.value
                break
            await breathe()
        for sink in self._sinks:
            sink.publish(report)
        self._unpublished = False
        now = time.monotonic()
        self._report_soon = now + 10.0 * (now - began)
        self._report_due = max(self._report_soon, now + REPORT_SECONDS)


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
