"""What the daemon tells the service manager that started it: systemd's notification protocol (sd_notify).

A message is one datagram of `NAME=value` lines to the socket named in `NOTIFY_SOCKET`; where there is none,
nothing is said. A supervisor that does not listen never stops or slows the daemon.

Ready means: HTTP answers and the state is open. It does not wait for Kafka, without which the daemon is alive
and resumes by itself: a broker's outage must not end in start timeouts and restarts. The pings come from the
event loop, so that a loop that no longer turns is noticed and the daemon restarted.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress


class Supervisor:
    """Tells a service manager how the daemon is.

    Parameters
    ----------
    address
        A path, or an abstract name written with a leading @; None when nobody asked to be told.
    watchdog_seconds
        The daemon is restarted when it said nothing for so long; None when nobody watches.
    """

    def __init__(self, address: str | None = None, watchdog_seconds: float | None = None) -> None:
        self.address = address
        self.watchdog_seconds = watchdog_seconds
        self._said = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], pid: int | None = None) -> Supervisor:
        """As the service manager wrote it: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`."""
        microseconds = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID") in {None, str(pid or os.getpid())}
        watched = mine and microseconds.isdecimal() and int(microseconds) > 0
        seconds = int(microseconds) / 1e6 if watched else None
        return cls(environment.get("NOTIFY_SOCKET") or None, seconds)

    def ready(self) -> None:
        """HTTP answers and the state is open: what waited for this service may start."""
        self._tell("READY=1")

    def stopping(self) -> None:
        """The daemon was asked to stop, or stops by itself."""
        self._tell("STOPPING=1")

    def status(self, text: str) -> None:
        """One line for people, shown by `systemctl status`; said again only when it changed."""
        line = " ".join(text.split())
        if line != self._said:
            self._said = line
            self._tell(f"STATUS={line}")

    async def watch(self) -> None:
        """Ping from the event loop, three times as often as asked; returns at once when nobody watches."""
        if self.address is None or self.watchdog_seconds is None:
            return
        while True:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_seconds / 3)

    def _tell(self, message: str) -> None:
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaking:
            speaking.setblocking(False)  # a full queue is not waited for: the next ping follows
            speaking.sendto(message.encode(), address)
