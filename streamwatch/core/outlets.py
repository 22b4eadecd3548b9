"""What an outlet is to the rest: something that is told notices, and answers how that went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from streamwatch.core.notices import Notice


@dataclass(frozen=True, slots=True)
class Delivered:
    """The other side has it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It may work later."""

    reason: str
    after_seconds: float | None = None
    """The other side asked not to be bothered for so long."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It will never take this notice; others it may."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The other side wants nothing any more."""

    reason: str


Answer: TypeAlias = Delivered | Failed | Refused | Gone


class Outlet(Protocol):
    """One receiver of notices. Everything it answers with may be logged: no part of a URL, no secret."""

    @property
    def name(self) -> str:
        """As the operator calls it; a label of metrics."""
        ...

    @property
    def host(self) -> str:
        """Where it is, as far as a log may know."""
        ...

    @property
    def repeat_seconds(self) -> float | None:
        """How often it wants to be reminded of open alarms; None: never."""
        ...

    def wants(self, notice: Notice) -> bool:
        """Whether it is to be told."""
        ...

    async def open(self) -> None:
        """Get ready; called in the loop that will deliver."""
        ...

    async def deliver(self, notice: Notice, now_ms: int) -> Answer:
        """Tell it, in bounded time; never raises for what the other side does."""
        ...

    async def remind(self, standing: Sequence[Notice], now_ms: int) -> Answer:
        """Tell it again which alarms are open."""
        ...

    async def close(self) -> None:
        """Leave."""
        ...
