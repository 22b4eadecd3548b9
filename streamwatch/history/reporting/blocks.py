"""Parts of a report, independent of the format they are written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading of the blocks up to the next heading of its level."""

    level: int
    """Level, 2 or 3; the page's title has level 1."""
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """One paragraph."""

    text: str
    answers: bool = False
    """Whether it is the answer of the report, which is shown larger."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Table whose first column names the row."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture as PNG."""

    name: str
    """Name of its file without the suffix, of letters, digits and hyphens."""
    alternative: str
    """Text for readers who do not see the picture."""
    png: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """Preformatted text, such as settings."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that are hidden until the reader opens them."""

    title: str
    blocks: tuple[Grid | Text | Listing, ...]


Block: TypeAlias = Heading | Text | Grid | Picture | Listing | Fold


@dataclass(frozen=True, slots=True)
class Page:
    """Report as a title and blocks."""

    title: str
    blocks: tuple[Block, ...]
