"""Names under which a server may be addressed.

A web page anywhere can point a name of its own at 127.0.0.1 and have a browser on this machine read what
listens there (DNS rebinding). The browser says in `Host` which name it believes to speak to.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def host_admitted(header: str, listening_on: str, allowed: Collection[str]) -> bool:
    """Tell whether a `Host` header names this server.

    On a loopback listener: addresses and names of this machine, and those allowed. Elsewhere: those allowed,
    or any if none is given. A request without `Host` comes from no browser.
    """
    name = _name(header)
    if not name:
        return True
    if is_loopback(listening_on):
        return is_loopback(name) or name in allowed
    return not allowed or name in allowed


def _name(header: str) -> str:
    """The host without port, brackets, case and final dot."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")
