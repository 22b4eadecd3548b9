"""Bounds on what clients may take of the server: places, time, memory."""

from __future__ import annotations

from dataclasses import dataclass

CHUNK_BYTES = 65_536
"""A body is written in pieces of this size, each after the one before was taken."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds that hold for all clients together, and for each.

    A client that exceeds one is cut off or answered 503, and counted by reason; none of them is ever an error
    of the daemon.
    """

    connections: int = 256
    """Connections open at once. Over it, the one that has waited longest without a request is closed."""
    header_seconds: float = 10.0
    """From the first moment of a connection, or the first byte of a further request, to its whole header."""
    send_seconds: float = 30.0
    """From the first byte of an answer to its last."""
    idle_seconds: float = 75.0
    """Between two requests of one connection."""
    buffered_bytes: int = 67_108_864
    """Bodies of all answers under way. One answer always goes, however large."""
    request_bytes: int = 32_768
    """Bytes of one request, header and body; no route reads a body."""

    @property
    def reserved(self) -> int:
        """Connections that only health and waiting clients may hold."""
        return max(2, self.connections // 8)
