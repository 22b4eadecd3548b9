"""A few bytes that a process keeps writing and that are there after it was killed: what it was just doing."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

SIZE = 32
_FIELD = struct.Struct("<Q")
STARTING, OPENING, CONNECTING, READING, COMMITTING = range(5)
PHASES = ("starting", "opening", "connecting", "reading", "committing")


class CrashMarker:
    """Four numbers in a file mapped into memory."""

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        self._memory = memory

    def _get(self, field: int) -> int:
        return _FIELD.unpack_from(self._memory, field * _FIELD.size)[0]

    def _set(self, field: int, value: int) -> None:
        _FIELD.pack_into(self._memory, field * _FIELD.size, value)

    @property
    def phase(self) -> int:
        """One of `PHASES`."""
        return self._get(0)

    @phase.setter
    def phase(self, value: int) -> None:
        self._set(0, value)

    @property
    def flushing(self) -> int:
        """1 while a thread waits for the disk."""
        return self._get(1)

    @flushing.setter
    def flushing(self, value: int) -> None:
        self._set(1, value)

    @property
    def begun(self) -> int:
        """The last commit that was begun; 0 without one."""
        return self._get(2)

    @begun.setter
    def begun(self, value: int) -> None:
        self._set(2, value)

    @property
    def flushed(self) -> int:
        """The last commit known to be durable; 0 without one."""
        return self._get(3)

    @flushed.setter
    def flushed(self, value: int) -> None:
        self._set(3, value)

    @property
    def doing(self) -> str:
        """The phase in a word, a flush beside it."""
        return PHASES[self.phase] + (" + flushing" if self.flushing else "")


def read_marker(path: Path) -> CrashMarker:
    """As its process left it."""
    content = path.read_bytes() if path.exists() else b""
    return CrashMarker(bytearray(content.ljust(SIZE, b"\0")))
