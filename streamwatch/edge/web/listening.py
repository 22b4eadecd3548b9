"""An address that cannot be served, in words that say what to change."""

from __future__ import annotations

import errno
import os
import socket


class ListenError(Exception):
    """The HTTP address cannot be listened on; the message says what to change."""


def advice(host: str, port: int, error: OSError | OverflowError) -> str:
    """Explain a failed listen to an operator."""
    where = f"cannot serve HTTP on {host}:{port}"
    if isinstance(error, OverflowError):
        return f"{where}: a port is 0 to 65535; change http.listen"
    if isinstance(error, socket.gaierror):
        return f"{where}: the host name does not resolve; change http.listen to an address of this machine"
    if isinstance(error, PermissionError):
        return f"{where}: ports below 1024 need more rights; change http.listen to a higher port"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: something listens there already (another streamwatch?); stop it or change http.listen"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: that is no address of this machine; change http.listen (0.0.0.0 is all of them)"
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"{where}: {reason}; change http.listen"
