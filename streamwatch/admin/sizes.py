"""Sizes in bytes as text, for `streamwatch check` and `streamwatch state show`."""

from __future__ import annotations


def size_text(count: float) -> str:
    """Write a number of bytes with a unit: `950 B`, `12 MB`, `1.5 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:.1f} GB"
