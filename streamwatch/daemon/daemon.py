"""The daemon: its tasks from the first request to shutdown by a signal."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from streamwatch import __version__
from streamwatch.core.metrics.series import Report
from streamwatch.core.ports import Sink, Source
from streamwatch.daemon.commits import Durable
from streamwatch.daemon.consume_loop import ConsumeLoop, ConsumeLoopSpec
from streamwatch.daemon.deliveries import Deliveries
from streamwatch.daemon.publisher import Publisher
from streamwatch.daemon.standby import StandbyPublisher
from streamwatch.daemon.status import DaemonStatus
from streamwatch.edge.process import Supervisor
from streamwatch.telemetry import (
    BackupSkipped,
    KernelCompiling,
    KernelReady,
    Started,
    StartedServing,
    Stopped,
    Stopping,
    Telemetry,
)


async def in_background(work: Callable[[], object]) -> None:
    """Run `work` in a daemon thread and await it; if the caller is cancelled, the thread goes on.

    Threads of the event loop's pool would delay the end of the process until they have ended.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed, as the caller was cancelled
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="background", daemon=True).start()
    await done


FINISH_SECONDS = 2.0
"""Seconds that a stop waits for the current batch; then it is cancelled, such as a poll of a dead broker."""

DELIVER_SECONDS = 2.0
"""Seconds that a stop waits for notifications being sent; the rest are sent after the next start."""

PUBLISH_SECONDS = 2.0
"""Seconds that a stop waits for outcomes and events to be written; the next start writes the rest."""

REPORT_SECONDS = 10.0
"""Interval at which the duration of compiling is reported."""
COMPILING = "the estimators are being compiled"


class Server(Protocol):
    """HTTP server of the API, the page and `/metrics`."""

    @property
    def url(self) -> str:
        """URL of the server."""
        ...

    async def start(self) -> None:
        """Listen and answer."""
        ...

    def publish(self, report: Report) -> None:
        """Serve this report from now on."""
        ...

    async def stop(self) -> None:
        """Stop in bounded time."""
        ...


@dataclass(frozen=True, slots=True)
class Attachments:
    """Recipients of reports and alarms besides the HTTP server."""

    sinks: Sequence[Sink] = ()
    """Receive every report."""
    deliveries: Deliveries | None = None
    """Delivers notifications of alarms to receivers."""
    publisher: Publisher | StandbyPublisher | None = None
    """Writes outcomes and events to their topics."""
    supervisor: Supervisor = field(default_factory=Supervisor)
    """The service manager that started the daemon, if any."""


class Daemon:
    """Runs the consume loop, deliveries and publishing as tasks, beside a server of the last durable report.

    Parameters
    ----------
    source
        All partitions of the configured topics.
    reading
        Specification of how state is opened, evaluated and committed.
    server
        Started before anything else, so that health checks are answered at once.
    status
        Updated with the stage of the start and with every poll and commit.
    telemetry
        Receives internal events.
    warm_up
        Compiles the estimators; runs in a thread.
    attachments
        Recipients of reports and alarms besides the HTTP server.
    """

    def __init__(
        self,
        source: Source,
        reading: ConsumeLoopSpec,
        server: Server,
        status: DaemonStatus,
        telemetry: Telemetry,
        warm_up: Callable[[], object],
        attachments: Attachments | None = None,
    ) -> None:
        self._source = source
        self._server = server
        self._attachments = attachments or Attachments()
        self._sinks = (server, *self._attachments.sinks)
        self._status = status
        self._telemetry = telemetry
        self._warm_up = warm_up
        self._consume_loop = ConsumeLoop(source, reading, status, telemetry, self._show, self._ready)
        self._stop = asyncio.Event()
        self._began = time.monotonic()

    @property
    def url(self) -> str:
        """URL of the HTTP server."""
        return self._server.url

    def stop(self, cause: str = "request") -> None:
        """Request the end of `run`; what has been evaluated by then is committed and shown before.

        The turn of the event loop under way is evaluated to its end. Records that are not evaluated are read
        again by the next start.
        """
        if not self._stop.is_set():
            self._telemetry.emit(Stopping(cause))
            self._attachments.supervisor.stopping()
            self._stop.set()

    async def run(self) -> None:
        """Run until `stop`, SIGTERM or SIGINT; a second signal kills the process.

        Raises what the source refuses, too (`SourceKind.refusals`).

        Raises
        ------
        ListenError
            If the server cannot listen.
        StateRefused, PublishingRefused
            If the state or the topics of results cannot be used.
        """
        supervisor = self._attachments.supervisor
        self._telemetry.emit(Started(__version__))
        await self._server.start()
        self._telemetry.emit(StartedServing(self._server.url))
        with _signals(self.stop, self._back_up):
            try:
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(self._read())
                    background = [group.create_task(self._deliver()), group.create_task(supervisor.watch())]
                    publishing = group.create_task(self._publish())
                    await self._stop.wait()
                    if self._attachments.deliveries is not None:
                        await self._attachments.deliveries.stop(DELIVER_SECONDS)
                    for task in background:
                        task.cancel()
                    if self._status.stage is None:
                        await asyncio.wait({reading}, timeout=FINISH_SECONDS)
                    reading.cancel()
                    await self._end_publishing(reading, publishing)
                self._status.stage = "stopping"
            except BaseExceptionGroup as several:
                raise (several.exceptions[0] if len(several.exceptions) == 1 else several) from None
            finally:
                await self._source.stop()
                await self._server.stop()
        self._telemetry.emit(
            Stopped(self._consume_loop.holder.records, round(time.monotonic() - self._began, 3))
        )

    async def _read(self) -> None:
        await self._compile()
        gc.freeze()  # else each full collection takes 80 ms for the objects of the start
        try:
            await self._consume_loop.run(self._stop)
        finally:
            gc.unfreeze()

    async def _compile(self) -> None:
        """Compile the estimators or load them from the cache; report the time taken every ten seconds."""
        self._status.stage = COMPILING
        self._telemetry.emit(KernelCompiling())
        began = time.monotonic()
        compiling = asyncio.create_task(in_background(self._warm_up))
        try:
            while not (await asyncio.wait({compiling}, timeout=REPORT_SECONDS))[0]:
                seconds = round(time.monotonic() - began)
                self._status.stage = f"{COMPILING}, once on this machine: {seconds} s so far"
                self._telemetry.emit(KernelCompiling(seconds))
            await compiling
        finally:
            compiling.cancel()
        self._telemetry.emit(KernelReady(round(time.monotonic() - began, 3)))

    def _back_up(self) -> None:
        backups = self._consume_loop.backups
        if backups is None:
            self._telemetry.emit(BackupSkipped("the state is not on disk"))
        else:
            backups.ask()

    async def _publish(self) -> None:
        if self._attachments.publisher is not None:
            await self._attachments.publisher.run()

    async def _end_publishing(self, reading: asyncio.Task[None], publishing: asyncio.Task[None]) -> None:
        """Wait at most `PUBLISH_SECONDS` for the publications of the last commit, and end the publisher."""
        if self._attachments.publisher is not None:
            await asyncio.wait({reading})
            await self._attachments.publisher.drain(PUBLISH_SECONDS)
        publishing.cancel()

    async def _deliver(self) -> None:
        if self._attachments.deliveries is not None:
            await self._attachments.deliveries.run()

    def _ready(self) -> None:
        self._attachments.supervisor.ready()
        self._attachments.supervisor.status(f"state is open; serving at {self._server.url}")

    def _show(self, durable: Durable) -> None:
        if durable.report is not None:
            for sink in self._sinks:
                sink.publish(durable.report)


@contextmanager
def _signals(stop: Callable[[str], None], back_up: Callable[[], None]) -> Generator[None]:
    """Handle SIGTERM and SIGINT by `stop`, and SIGUSR1 by `back_up`.

    The default action is restored after a first SIGTERM or SIGINT, so that a second one ends the process.
    """
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        stop(number.name)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    loop.add_signal_handler(signal.SIGUSR1, back_up)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            loop.remove_signal_handler(number)
