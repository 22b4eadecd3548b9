"""Parts of a report, independent of the format they are written in."""

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
    answers: bool = False
    """Whether it is what the page is read for."""


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
    """Name of its file, if it is written to one; letters, digits and hyphens."""
    alternative: str
    """Text for readers who do not see the picture."""
    png: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """Text as it is, such as settings."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are there for who asks: folded away where the page can fold."""

    title: str
    blocks: tuple[Grid | Text | Listing, ...]


Block: TypeAlias = Heading | Text | Grid | Picture | Listing | Fold


@dataclass(frozen=True, slots=True)
class Page:
    """A report."""

    title: str
    blocks: tuple[Block, ...]
