"""A client of aiokafka, started and closed so that nothing of it stays open, whoever still waits for it."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable
from typing import Any, NoReturn

from aiokafka.errors import KafkaConnectionError
from aiokafka.helpers import create_ssl_context

from streamwatch.edge.sources.kafka.spec import KafkaSpec


class Client:
    """One client of aiokafka: started once, closed once.

    Parameters
    ----------
    client
        aiokafka's.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._starting: asyncio.Future[None] | None = None
        self._asked: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def start(self, start: Awaitable[None]) -> None:
        """Wait for the start, which goes on until `close` if the wait is given up.

        aiokafka forgets the first connection that it makes where a start is cancelled: it would stay open.
        """
        self._starting = asyncio.ensure_future(start)
        await asyncio.shield(self._starting)

    async def ask(self, question: Awaitable[Any], seconds: float) -> Any:
        """Wait for an answer, so long at most, or until the client is closed.

        Raises
        ------
        TimeoutError
            No answer has come.
        KafkaConnectionError
            The client is closed, or was closed meanwhile.
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
        """Let a start that nobody waits for come to its end, so long at most: what it made can be closed."""
        if self._starting is not None:
            await attempted(self._starting, seconds)

    async def close(self, seconds: float) -> None:
        """Close the client for good, within about `seconds`: nobody opens a connection over it again."""

        async def refuse(*_: object, **__: object) -> NoReturn:
            raise KafkaConnectionError("the client is closed")

        self._closed = True
        await self.end_start(seconds / 3)
        self._client._get_conn = refuse  # noqa: SLF001 - it makes one for whoever asks, be it closed
        for asked in self._asked:
            asked.cancel()
        await attempted(self._client.close(), seconds / 3)
        await attempted(self._none_in_the_making(), seconds / 3)
        for connection in list(self._client._conns.values()):  # noqa: SLF001
            connection.close()

    async def _none_in_the_making(self) -> None:
        async with self._client._get_conn_lock:  # noqa: SLF001 - held while one is made
            return


async def attempted(step: Any, seconds: float) -> None:
    """Run a closing step to its end or to the timeout; its result is ignored."""
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


# How clients connect, whatever they are for.


def connection_options(spec: KafkaSpec) -> dict[str, Any]:
    """Arguments by which clients of aiokafka find the brokers and are let in."""
    return {
        "bootstrap_servers": spec.bootstrap_servers,
        "client_id": spec.client_id,
        "request_timeout_ms": spec.request_timeout_ms,
        **security_options(spec),
    }


# Log lines of the client library.


class ClientLogCapture(logging.Handler):
    """Keeps the client library's last error line, which its exceptions lack, and its lines off stderr."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self._propagated = True

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the message."""
        self.last = record.getMessage()

    def attach(self) -> None:
        """Listen to the client library, and nobody else."""
        library = logging.getLogger("aiokafka")
        library.addHandler(self)
        self._propagated, library.propagate = library.propagate, False

    def detach(self) -> None:
        """Stop listening."""
        library = logging.getLogger("aiokafka")
        if self in library.handlers:
            library.removeHandler(self)
            library.propagate = self._propagated


# TLS to brokers, and authentication.


def security_options(spec: KafkaSpec) -> dict[str, Any]:
    """Keyword arguments by which every client of aiokafka (consumer, producer, admin) is let in.

    Raises
    ------
    TokenSourceMissing
        The mechanism needs a package that is not installed.
    OSError, ValueError
        A certificate or a key cannot be used.
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
        options["sasl_mechanism"] = "PLAIN"  # it is checked by the library, and not used
    return options


def ssl_context(spec: KafkaSpec) -> ssl.SSLContext | None:
    """Context by which brokers and the client are authenticated; None without TLS."""
    if spec.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    context: ssl.SSLContext = create_ssl_context(
        cafile=spec.cafile, certfile=spec.certfile, keyfile=spec.keyfile, password=spec.keyfile_password
    )
    context.check_hostname = spec.check_hostname
    return context
