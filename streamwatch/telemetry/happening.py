"""What every happening of the daemon states about itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True)
class Happening:
    """What every happening states about itself: its severity, and which field limits its log lines."""

    level: ClassVar[Level] = "info"
    sampled_by: ClassVar[str | None] = None
    """Each value of this field gets `SAMPLE_BURST` lines per minute; the rest is counted and summed up."""


def happening_name(kind: type[Happening]) -> str:
    """`RecordRejected` is written and counted as `record_rejected`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
