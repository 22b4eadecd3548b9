"""Addresses nothing is ever sent to: link-local ones, where clouds keep credentials of the machine.

Checked where the URL names an address, and again on every address a name resolves to: a name that points
elsewhere today may point there tomorrow. Private addresses are fine: that is where an Alertmanager lives.
"""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA = ipaddress.IPv6Address("fd00:ec2::254")
"""Amazon's, by IPv6: not link-local, and nothing else."""


class AddressRefusedError(OSError):
    """A URL leads to an address that is never spoken to."""


def refused(address: str) -> bool:
    """Whether an IP address is link-local, however it is written; False for a name."""
    try:
        ip = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        last = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        mapped = ip.ipv4_mapped or ip.sixtofour or (last if ip in _NAT64 or int(ip) >> 32 == 0 else None)
        return int(ip) == int(_METADATA) or ip.is_link_local or bool(mapped and mapped.is_link_local)
    return ip.is_link_local


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
