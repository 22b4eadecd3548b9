"""The current connection, and attempts to make the next one while there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from streamwatch.edge.sources.kafka.client import ClientLogCapture
from streamwatch.edge.sources.kafka.connection import BrokerHealth, Connection, TopicsMissing, require_topics
from streamwatch.edge.sources.kafka.data_loss import ReadingEnded
from streamwatch.edge.sources.kafka.fetching import Backoff
from streamwatch.edge.sources.kafka.refusals import TokenSourceMissing, explanation, not_let_in, of_token
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.wire import CONNECTION_ERRORS, Listing, worded


class Session:
    """A sequence of connections; each becomes current only after `settle` succeeds with it.

    Parameters
    ----------
    spec
        Addresses of the brokers, credentials and time limits.
    topics
        Topics that must exist.
    health
        Is told of failures and new connections.
    settle
        Makes a new connection read from the present positions.
    jitter
        Function that returns random numbers in [0, 1).
    """

    def __init__(
        self,
        spec: KafkaSpec,
        topics: Sequence[str],
        health: BrokerHealth,
        settle: Callable[[Connection, Listing], Awaitable[None]],
        jitter: Callable[[], float],
    ) -> None:
        self._spec = spec
        self._topics = topics
        self._health = health
        self._settle = settle
        self._backoff = Backoff(spec.backoff_initial_ms / 1_000, spec.backoff_max_ms / 1_000, jitter)
        self._client_log = ClientLogCapture()
        self._connecting: asyncio.Task[None] | None = None
        self._parting: Connection | None = None
        self.connection: Connection | None = None
        """The current connection; None while brokers are unreachable or the last one was dropped."""

    async def begin(self) -> None:
        """Make the first connection, waiting for unreachable brokers without limit.

        Raises
        ------
        TopicsMissing
            A topic is missing, also after `topic_grace_ms`.
        ReadingEnded
            Brokers refused this client for `denied_ms`; the package that signs tokens is missing; or as from
            the function `settle`.
        """
        self._client_log.attach()
        missed = False
        refused_since: float | None = None
        while True:
            try:
                return await self._connect(dict(self._spec.required_topics))
            except TokenSourceMissing as error:
                raise ReadingEnded(str(error)) from None
            except CONNECTION_ERRORS as error:
                now = asyncio.get_running_loop().time()
                refusal = not_let_in(worded(error) + self._client_log.last, self._spec)
                refused_since = None if refusal is None else refused_since or now
                if refused_since is not None and now - refused_since >= self._spec.denied_ms / 1_000:
                    raise ReadingEnded(refusal) from error
                delay = self._failed(error)
            except TopicsMissing:
                if missed:
                    raise
                missed, delay = True, self._spec.topic_grace_ms / 1_000
            await asyncio.sleep(delay)

    def drop(self, connection: Connection, error: BaseException) -> None:
        """Drop the connection, report brokers as lost, and start making another one."""
        self.connection, self._parting = None, connection
        self._connecting = asyncio.create_task(self._replace(self._failed(error)))

    def proven(self) -> None:
        """Reset the back-off, as the connection works."""
        self._backoff.reset()

    async def halt(self) -> bool:
        """Cancel attempts to connect; tell whether any were under way, so that `resume` is needed."""
        if self._connecting is None or self._connecting.done():
            return False
        self._connecting.cancel()
        await asyncio.wait({self._connecting})
        return self.connection is None

    def resume(self) -> None:
        """Start connecting again, after `halt`."""
        self._connecting = asyncio.create_task(self._replace(0.0))

    async def wait_connected(self) -> None:
        """Wait up to `poll_timeout_ms` for a connection; attempts continue in the background."""
        if self._connecting is None:
            raise RuntimeError("poll() before start()")
        await asyncio.wait({self._connecting}, timeout=self._spec.poll_timeout_ms / 1_000)
        if self._connecting.done():
            self._connecting.result()

    def check_silence(self) -> None:
        """Report brokers that are silent for `alive_ms`; raises TimeoutError after `stall_ms`."""
        silent_seconds = self._health.silent_ms / 1_000
        if silent_seconds * 1_000 > self._spec.stall_ms:
            raise TimeoutError(f"no answer for {silent_seconds:.0f} s")
        if not self._health.alive and not self._health.lost:
            self._health.failed(f"no answer for {silent_seconds:.0f} s{self._client_error()}")

    async def end(self, timeout_seconds: float) -> None:
        """Cancel attempts to connect, in bounded time; the caller closes the current connection."""
        self.connection = None
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting}, timeout=timeout_seconds / 2)
        if self._parting is not None:
            await self._parting.close(timeout_seconds / 2)
        self._client_log.detach()

    async def _connect(self, required: Mapping[str, str] | None = None) -> None:
        """Make a connection and settle it; `required` is further topics that must exist → their settings."""
        connection = Connection(self._spec)
        try:
            await connection.open()
            listing = await connection.listing()
            topics = [*self._topics, *(required or {})]
            require_topics(topics, listing, self._spec.bootstrap_servers, required)
            await self._settle(connection, listing)
        except BaseException:
            await connection.close(self._spec.stop_timeout_ms / 4_000)
            raise
        self.connection = connection
        self._health.begin()

    async def _replace(self, delay_seconds: float) -> None:
        if self._parting is not None:
            await self._parting.close(self._spec.stop_timeout_ms / 2_000)
            self._parting = None
        while True:
            await asyncio.sleep(delay_seconds)
            try:
                return await self._connect()
            except (*CONNECTION_ERRORS, TopicsMissing) as error:
                delay_seconds = self._failed(error)

    def _failed(self, error: BaseException) -> float:
        """Report brokers as lost; return the seconds until the next attempt."""
        delay = self._backoff.next_seconds()
        self._health.failed(worded(error) + self._client_error(), delay)
        return delay

    def _client_error(self) -> str:
        client_error, self._client_log.last = self._client_log.last, ""
        words = explanation(client_error, self._spec)
        reason = client_error.rstrip(" :") if words is None else f"{client_error.rstrip(' :')}: {words}"
        reason = of_token(client_error) or reason
        return f" ({reason})" if reason else ""
