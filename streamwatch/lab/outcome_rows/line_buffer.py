"""Bytes of a recording from its first unread line on, read in large pieces."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.fetched import PADDING
from streamwatch.lab.outcome_rows.lines import Stretch
from streamwatch.lab.recordings.recording import Recording

_READ_BYTES: Final = 1 << 22
_SPARE_BYTES: Final = 1 << 18
"""Of rows that are left when more are read, mostly less."""


class LineBuffer:
    """Holds lines that are yet to be read.

    Parameters
    ----------
    recording
        Of which nothing but a header has been read.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._room = np.empty(0, np.uint8)
        self._data = padded(b"")
        self._at = 0
        """Where in `_data` the rows begin that are yet to be read."""
        self.line = recording.number
        """Lines of the file before that."""
        self.at_end = False
        """Whether the recording has no more."""

    @property
    def end(self) -> int:
        """Position behind the last byte that was read."""
        return len(self._data) - PADDING

    def stretch(self) -> Stretch:
        """Return all bytes that were read and not yet used."""
        return Stretch(self._data, self._at, self.end, self.line, self.at_end)

    def bytes_of(self, start: int, stop: int) -> bytes:
        """Copy what is between two places."""
        return self._data[start:stop].tobytes()

    def left(self) -> bytes:
        """Copy what is yet to be read."""
        return self.bytes_of(self._at, self.end)

    def advance(self, at: int, line: int) -> None:
        """Be done with what is before a place, behind so many lines of the file."""
        self._at, self.line = at, line

    def fill(self) -> bool:
        """Have more at hand; whether there was more, and room for it."""
        left = self._data[self._at : self.end]
        if self.at_end or len(left) > _READ_BYTES:
            return False
        lines = self.line + int(np.count_nonzero(left == ord("\n")))
        more = self._recording.read_on(_READ_BYTES, lines)
        self.at_end = not more
        self._hold(left, more)
        return True

    def _hold(self, left: NDArray[np.uint8], more: bytes) -> None:
        """Have these bytes at hand, in memory that is used again: new memory costs more than a copy."""
        size = len(left) + len(more)
        if size + PADDING > len(self._room):
            self._room = np.empty(size + PADDING + _SPARE_BYTES, np.uint8)
        self._room[: len(left)] = left
        self._room[len(left) : size] = np.frombuffer(more, np.uint8)
        self._room[size : size + PADDING] = 0
        self._data, self._at = self._room[: size + PADDING], 0
        self._data.flags.writeable = False


def padded(data: bytes) -> NDArray[np.uint8]:
    """Bytes with as many others behind as compiled readers need."""
    return np.frombuffer(data + bytes(PADDING), np.uint8)
