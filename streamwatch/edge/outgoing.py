"""Resolvers for outgoing HTTP: one looks names up in threads, one refuses link-local addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

from aiohttp.abc import AbstractResolver, ResolveResult

# Host names are looked up in threads of their own.
#
# A name server that does not answer blocks a thread for half a minute, and nothing can end it. In the event
# loop's own pool a few such threads would delay the flushes of the state and the end of the process.


_Question = tuple[str, int, socket.AddressFamily]


class SystemResolver(AbstractResolver):
    """Resolver of the operating system; concurrent requests for the same name share one thread."""

    def __init__(self) -> None:
        self._asked: dict[_Question, asyncio.Future[list[ResolveResult]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name; raises OSError where it has none, or no thread can be started."""
        question = host, port, family
        answer = self._asked.get(question)
        if answer is None:
            loop = asyncio.get_running_loop()
            answer = loop.create_future()
            thread = threading.Thread(
                target=_ask, args=(loop, answer, question), name="resolver", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:  # the system allows no more threads
                raise OSError(f"{host} cannot be looked up: {error}") from error
            self._asked[question] = answer
            answer.add_done_callback(lambda done: self._forget(question, done))
        return await asyncio.shield(answer)  # a cancelled caller does not cancel the look-up for others

    async def close(self) -> None:
        """Do nothing: look-ups that are under way end by themselves."""

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
        loop.call_soon_threadsafe(_settle, answer, found)


def _settle(answer: asyncio.Future[list[ResolveResult]], found: list[ResolveResult] | OSError) -> None:
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


# Link-local addresses, at which clouds serve credentials of the machine, are refused.
#
# The address in a URL is checked, and so is every address that a name resolves to, on each connection, as its
# DNS entry may change. Private addresses are allowed: an Alertmanager usually has one.


_LAST_32_BITS = tuple(
    map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
)
"""Networks whose addresses end in an IPv4 address: compatible, mapped, translated (RFC 2765), NAT64."""
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
"""Network for local NAT64, whose operator chooses the prefix length within it (RFC 8215)."""
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
_METADATA = ipaddress.IPv6Address("fd00:ec2::254")
"""Amazon's metadata service by IPv6, which is not a link-local address."""


class AddressRefusedError(OSError):
    """A URL leads to an address that is never connected to."""


def refused(address: str) -> bool:
    """Tell whether a text is a link-local IP address, also one embedded in IPv6; False for a host name."""
    try:
        ip = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        return (
            int(ip) == int(_METADATA)
            or ip.is_link_local
            or any(inner.is_link_local for inner in _embedded(ip))
        )
    return ip.is_link_local


def _embedded(ip: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield each IPv4 address that a gateway may extract from an IPv6 address."""
    number = int(ip)
    last = number & 0xFFFF_FFFF
    if any(ip in network for network in _LAST_32_BITS) or (number >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield ipaddress.IPv4Address(last)
    if ip.sixtofour is not None:
        yield ip.sixtofour
    if ip.teredo is not None:
        yield from ip.teredo
    if ip in _LOCAL_NAT64:
        yield ipaddress.IPv4Address(last)
        for length in (48, 56, 64):  # the byte of bits 64 to 71 is left out (RFC 6052, section 2.2)
            before = (number >> 64) & ((1 << (64 - length)) - 1)
            rest = 32 - (64 - length)
            yield ipaddress.IPv4Address(before << rest | (number >> (56 - rest)) & ((1 << rest) - 1))


class GuardedResolver(AbstractResolver):
    """Resolves names by another resolver, and refuses a name if any of its addresses is refused."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name; raises AddressRefusedError where one of them is refused."""
        found = await self._resolver.resolve(host, port, family)
        if any(refused(result["host"]) for result in found):
            raise AddressRefusedError("link-local address")
        return found

    async def close(self) -> None:
        """Close the other resolver."""
        await self._resolver.close()
