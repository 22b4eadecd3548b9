"""One line of `streamwatch check`, and how it writes sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check."""

    what: str
    good: bool
    details: tuple[str, ...] = ()


def size_text(count: float) -> str:
    """Bytes for a person."""
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"
