"""Offsets of a partition that cannot be read, and why."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Cause: TypeAlias = Literal["corrupt_batch", "oversized_batch"]


class Damage(NamedTuple):
    """Offsets that cannot be read."""

    cause: Cause
    first: int
    next_offset: int
    """Where reading can go on; -1 if that is not known."""
    reason: str
    certain: bool
    """The checksum is right, so fetching again would bring the same."""
    asked: int = -1
    """Later offset by which brokers find `next_offset`; -1 for that itself."""

    @property
    def records(self) -> int:
        """Offsets passed over, each a record unless compacted away."""
        return max(0, self.next_offset - self.first)
