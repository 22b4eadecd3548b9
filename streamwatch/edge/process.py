"""Interfaces to the operating system: messages to the service manager, and the C library's freed memory."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, cast

# Reports to the service manager that started the daemon, by systemd's notification protocol (sd_notify).
#
# A message is one datagram of `NAME=value` lines to the socket named in `NOTIFY_SOCKET`; without that
# variable nothing is sent. A service manager that does not read its socket never stops or slows the daemon.
#
# Ready means: HTTP answers and the state is open. It does not wait for Kafka, as the daemon runs without it
# and resumes by itself: a broker's outage must not cause start timeouts and restarts. The pings come from the
# event loop, so that a daemon whose loop hangs is restarted.


class Supervisor:
    """Reports the daemon's status to a service manager.

    Parameters
    ----------
    address
        Path of the socket, or an abstract name with a leading @; None without a service manager.
    watchdog_seconds
        Time without a ping after which the service manager restarts the daemon; None: it does not.
    """

    def __init__(self, address: str | None = None, watchdog_seconds: float | None = None) -> None:
        self.address = address
        self.watchdog_seconds = watchdog_seconds
        self._status = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Supervisor:
        """Read the variables of the service manager: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`."""
        microseconds = environment.get("WATCHDOG_USEC", "")
        mine = environment.get("WATCHDOG_PID") in {None, str(os.getpid())}
        watched = mine and microseconds.isdecimal() and int(microseconds) > 0
        seconds = int(microseconds) / 1e6 if watched else None
        return cls(environment.get("NOTIFY_SOCKET") or None, seconds)

    def ready(self) -> None:
        """Report that HTTP answers and the state is open: services that depend on this one may start."""
        self._notify("READY=1")

    def stopping(self) -> None:
        """Report that the daemon is stopping, by request or by itself."""
        self._notify("STOPPING=1")

    def status(self, text: str) -> None:
        """Report one line that `systemctl status` shows; sent only when it differs from the last."""
        line = " ".join(text.split())
        if line != self._status:
            self._status = line
            self._notify(f"STATUS={line}")

    async def watch(self) -> None:
        """Ping three times per `watchdog_seconds` until cancelled; returns at once where that is None."""
        if self.address is None or self.watchdog_seconds is None:
            return
        while True:
            self._notify("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_seconds / 3)

    def _notify(self, message: str) -> None:
        if self.address is None:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaking:
            speaking.setblocking(False)  # does not wait for a full queue: the next ping follows
            speaking.sendto(message.encode(), address)


# The GNU C library keeps freed memory for later allocations, or returns it to the system.


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` in <malloc.h>."""
KEPT_BYTES: Final = 512 * 2**20
"""Free memory at the end of the heap that a process keeps after `keep_freed_memory`."""
HEAP_BYTES: Final = 32 * 2**20
"""Size up to which an allocation comes from the heap, the largest that the library accepts."""


def keep_freed_memory() -> bool:
    """Make this process and its forks reuse freed memory; returns whether the C library can do that.

    For a process that allocates arrays of megabytes for each task and frees them. By default the library
    returns these to the system at once, and the system fills every page with zeros when the next task asks
    for it.
    """
    mallopt = _function_of_library("mallopt")
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, HEAP_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))


def return_freed_memory() -> bool:
    """Give freed memory back to the system; returns whether the GNU C library is there and had any.

    For a process that has just freed much more than it will soon need again, as after opening a state.
    """
    malloc_trim = _function_of_library("malloc_trim")
    return malloc_trim is not None and bool(malloc_trim(0))


def _function_of_library(name: str) -> Callable[..., int] | None:
    """Look up a function of the GNU C library; None elsewhere than on Linux with that library."""
    if sys.platform != "linux":
        return None
    return cast("Callable[..., int] | None", getattr(ctypes.CDLL(None), name, None))
