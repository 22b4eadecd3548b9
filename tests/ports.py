"""Ports that nobody takes between their choice and their use."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

LOWEST = 10_240
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Of those that the system gives to nobody by itself, and that no other test was given.

    One that it gives to whoever connects, or asks for any, may be gone when it is bound, or be taken while
    its server is down, even by a client that tries to reach it.
    """
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    chance = random.Random(os.urandom(8))
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = chance.randrange(LOWEST, end)
            if not claim(port):
                continue
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    return ports


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


def claim(port: int) -> bool:
    """Whether no test, of this process or another that still runs, was given the port; then it is taken."""
    if port in _given:
        return False
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _given.add(port)
    return True


@cache
def _claims() -> int:
    """A file of which a process locks the byte of every port that it was given, until it ends."""
    file = Path(tempfile.gettempdir()) / f"streamwatch-tests-ports-{os.getuid()}"
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
