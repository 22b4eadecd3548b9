"""What is posted, before anything of the network is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from streamwatch.core.notices import Notice


@dataclass(frozen=True, slots=True)
class Letter:
    """A JSON body, and headers of its own."""

    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Format(Protocol):
    """How one kind of outlet wants to be told."""

    def letter(self, notice: Notice, now_ms: int) -> Letter:
        """A notice in its words."""
        ...


Reminder: TypeAlias = Callable[[Sequence[Notice], int], Letter]
"""Open alarms and the time → one letter that repeats them all."""
