"""Addresses nothing is ever sent to: link-local ones, where clouds keep credentials of the machine.

Checked where the URL names an address, and again on every address a name resolves to: a name that points
elsewhere today may point there tomorrow. Private addresses are fine: that is where an Alertmanager lives.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from aiohttp.abc import AbstractResolver, ResolveResult

_LAST_32_BITS = tuple(
    map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
)
"""Networks whose addresses end in an IPv4 one: compatible, mapped, translated (RFC 2765), NAT64."""
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
"""Any prefix length within is the operator's own choice (RFC 8215)."""
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
_METADATA = ipaddress.IPv6Address("fd00:ec2::254")
"""Amazon's, by IPv6: not link-local, and nothing else."""


class AddressRefusedError(OSError):
    """A URL leads to an address that is never spoken to."""


def refused(address: str) -> bool:
    """Tell whether an IP address is link-local, however it is written; False for a name."""
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
    """Every IPv4 address that some gateway may read in an IPv6 one."""
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
    """Resolves names by another resolver, and refuses them if any of the addresses is refused."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of a name; AddressRefusedError where one of them is refused."""
        found = await self._resolver.resolve(host, port, family)
        if any(refused(result["host"]) for result in found):
            raise AddressRefusedError("link-local address")
        return found

    async def close(self) -> None:
        """Leave."""
        await self._resolver.close()
