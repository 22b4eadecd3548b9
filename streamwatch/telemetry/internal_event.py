"""Base of the daemon's internal events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

SAMPLE_BURST = 5


@dataclass(frozen=True)
class InternalEvent:
    """Internal event: its severity, and the field that limits its log lines."""

    level: ClassVar[Level] = "info"
    sampled_by: ClassVar[str | None] = None
    """Each value of this field gets `burst` lines per minute; the rest is counted and summed up."""
    burst: ClassVar[int] = SAMPLE_BURST


def event_name(kind: type[InternalEvent]) -> str:
    """`RecordRejected` is written and counted as `record_rejected`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
