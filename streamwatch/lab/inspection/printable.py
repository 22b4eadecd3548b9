"""Text of records made safe to show: names of fields may hold control characters."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text with everything that is no printable character escaped."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
