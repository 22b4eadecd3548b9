"""Addresses of names, asked in threads of their own.

A name server that does not answer keeps a thread for half a minute, and nothing can end it. In the loop's own
pool a few of them would hold up the flushes of the state, and the end of the process.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress

from aiohttp.abc import AbstractResolver, ResolveResult

_Question = tuple[str, int, socket.AddressFamily]


class SystemResolver(AbstractResolver):
    """Asks the system; one thread per question at most, however often it is asked meanwhile."""

    def __init__(self) -> None:
        self._asked: dict[_Question, asyncio.Future[list[ResolveResult]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of a name; OSError where there are none."""
        question = host, port, family
        answer = self._asked.get(question)
        if answer is None:
            loop = asyncio.get_running_loop()
            answer = self._asked[question] = loop.create_future()
            answer.add_done_callback(lambda done: self._forget(question, done))
            threading.Thread(target=_ask, args=(loop, answer, question), name="resolver", daemon=True).start()
        return await asyncio.shield(answer)  # whoever gives up waiting leaves it to those who ask next

    async def close(self) -> None:
        """Leave; what is being asked ends by itself."""

    def _forget(self, question: _Question, answer: asyncio.Future[list[ResolveResult]]) -> None:
        del self._asked[question]
        if not answer.cancelled():
            answer.exception()  # nobody may be waiting any more


def _ask(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[ResolveResult]], question: _Question
) -> None:
    host, port, family = question
    found: list[ResolveResult] | OSError
    try:
        entries = socket.getaddrinfo(
            host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        found = [_result(host, number, protocol, address) for number, _, protocol, _, address in entries]
    except OSError as error:
        found = error
    except UnicodeError:
        found = socket.gaierror(socket.EAI_NONAME, "not a host name")
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_tell, answer, found)


def _tell(answer: asyncio.Future[list[ResolveResult]], found: list[ResolveResult] | OSError) -> None:
    if answer.done():
        return
    if isinstance(found, OSError):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _result(
    host: str,
    family: int,
    protocol: int,
    address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes],
) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=str(address[0]),
        port=int(address[1]),
        family=family,
        proto=protocol,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
