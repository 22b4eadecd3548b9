"""Body and headers of a request, without anything of the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from streamwatch.core.alerting.notification import Notification


@dataclass(frozen=True, slots=True)
class HttpRequestBody:
    """A JSON body, and headers of its own."""

    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Format(Protocol):
    """Format of one kind of receiver."""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """A notification in its words."""
        ...


Reminder: TypeAlias = Callable[[Sequence[Notification], int], HttpRequestBody]
"""Open incidents and the time → one request that repeats them all."""
