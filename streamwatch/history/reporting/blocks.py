"""Parts of a report, before anybody decides how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Heading:
    """Title of what follows, down to the next of its level."""

    level: int
    """2 or 3; the page's own title is 1."""
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """One paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first column names the row."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, PNG."""

    name: str
    """Of its file, where it gets one; letters, digits and hyphens."""
    says: str
    """In words, for who does not see it."""
    png: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """Text as it is, such as settings."""

    title: str
    text: str


Block: TypeAlias = Heading | Text | Grid | Picture | Listing


@dataclass(frozen=True, slots=True)
class Page:
    """A report."""

    title: str
    blocks: tuple[Block, ...]
