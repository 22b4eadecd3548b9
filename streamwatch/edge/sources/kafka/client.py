"""Start and end of aiokafka's clients without leaks, their options, their log, and TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError
from aiokafka.helpers import create_ssl_context

from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.telemetry import message_of


class Client:
    """Wrapper of one aiokafka client that leaves no connection open; it is started once and closed once.

    Parameters
    ----------
    client
        aiokafka's client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._starting: asyncio.Future[None] | None = None
        self._asked: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def start(self, start: Awaitable[None]) -> None:
        """Wait for `start`, which continues until `close` if this wait is cancelled.

        If a start is cancelled, aiokafka loses track of its first connection, which would stay open.
        """
        self._starting = asyncio.ensure_future(start)
        await asyncio.shield(self._starting)

    async def ask(self, question: Awaitable[Any], seconds: float) -> Any:
        """Wait for an answer, at most `seconds`, or until the client is closed.

        Raises
        ------
        TimeoutError
            No answer came in time.
        KafkaConnectionError
            The client is closed, or was closed during the wait.
        """
        asked = asyncio.ensure_future(question)
        if self._closed:
            asked.cancel()
        self._asked.add(asked)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wait({asked})
        finally:
            self._asked.discard(asked)
            if not asked.done():
                asked.cancel()
                await asyncio.wait({asked})
        if asked.cancelled():
            raise KafkaConnectionError("the client is closed")
        return asked.result()

    async def end_start(self, seconds: float) -> None:
        """Wait, at most `seconds`, for a start that still runs, so that its connection can be closed."""
        if self._starting is not None:
            await attempted(self._starting, seconds)

    async def close(self, seconds: float) -> None:
        """Close the client within about `seconds`; it refuses to open connections from then on."""

        async def refuse(*_: object, **__: object) -> NoReturn:
            raise KafkaConnectionError("the client is closed")

        self._closed = True
        await self.end_start(seconds / 3)
        self._client._get_conn = refuse  # noqa: SLF001 - it would open one after the close
        for asked in self._asked:
            asked.cancel()
        await attempted(self._client.close(), seconds / 3)
        await attempted(self._none_in_the_making(), seconds / 3)
        for connection in list(self._client._conns.values()):  # noqa: SLF001
            connection.close()

    async def _none_in_the_making(self) -> None:
        async with self._client._get_conn_lock:  # noqa: SLF001 - held while a connection is opened
            return


async def attempted(step: Any, seconds: float) -> None:
    """Run a closing step to its end or to the time limit; its result and errors are ignored."""
    task = asyncio.ensure_future(step)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
    if not done:
        await asyncio.wait({task}, timeout=seconds / 3)
    if task.done() and not task.cancelled():
        task.exception()


@asynccontextmanager
async def administration(spec: KafkaSpec) -> AsyncGenerator[Any]:
    """Start aiokafka's client for administration, and close it in bounded time when the block ends."""
    admin: Any = AIOKafkaAdminClient(**connection_options(spec))
    try:
        await admin.start()
        yield admin
    finally:
        await attempted(admin.close(), spec.stop_timeout_ms / 1_000)


# Options for all clients.


def connection_options(spec: KafkaSpec) -> dict[str, Any]:
    """Return the keyword arguments for connecting and authenticating any client of aiokafka."""
    return {
        "bootstrap_servers": spec.bootstrap_servers,
        "client_id": spec.client_id,
        "request_timeout_ms": spec.request_timeout_ms,
        **security_options(spec),
    }


# Log lines of the client library.


class ClientLogCapture(logging.Handler):
    """Keeps the client library's last warning or error, which its exceptions lack, and silences its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self._propagated = True

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the message of a warning or an error."""
        self.last = message_of(record)

    def attach(self) -> None:
        """Handle the client library's log lines, and keep them from other handlers."""
        library = logging.getLogger("aiokafka")
        library.addHandler(self)
        self._propagated, library.propagate = library.propagate, False

    def detach(self) -> None:
        """Restore the client library's logging."""
        library = logging.getLogger("aiokafka")
        if self in library.handlers:
            library.removeHandler(self)
            library.propagate = self._propagated


# TLS to brokers, and authentication.


def security_options(spec: KafkaSpec) -> dict[str, Any]:
    """Return the keyword arguments for TLS and authentication of any client of aiokafka.

    Raises
    ------
    TokenSourceMissing
        The mechanism needs a package that is not installed.
    OSError, ValueError
        A certificate or a key is missing or invalid.
    """
    options: dict[str, Any] = {
        "security_protocol": spec.security_protocol,
        "ssl_context": ssl_context(spec),
        "sasl_mechanism": spec.sasl_mechanism,
        "sasl_plain_username": spec.username,
        "sasl_plain_password": spec.password,
    }
    if spec.security_protocol.startswith("SASL") and spec.sasl_mechanism in ("OAUTHBEARER", "AWS_MSK_IAM"):
        from streamwatch.edge.sources.kafka.tokens import token_provider  # noqa: PLC0415 - loads the HTTP client

        options["sasl_mechanism"] = "OAUTHBEARER"
        options["sasl_oauth_token_provider"] = token_provider(spec)
    elif not spec.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = "PLAIN"  # the library checks it, but does not use it
    return options


def ssl_context(spec: KafkaSpec) -> ssl.SSLContext | None:
    """Make the TLS context, with the certificates of both sides; None without TLS."""
    if spec.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    context: ssl.SSLContext = create_ssl_context(
        cafile=spec.cafile, certfile=spec.certfile, keyfile=spec.keyfile, password=spec.keyfile_password
    )
    context.check_hostname = spec.check_hostname
    return context
