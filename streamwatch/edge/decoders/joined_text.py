"""One text of the contents of several places, such as a model's name and its version.

The texts follow one another with `/` between them: `fraud/7`. Different contents never give the same text: in
a text `%` is written `%25` and `/` is written `%2F`, and an optional place without a content leaves its text
empty, unless nothing follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamwatch.edge.decoders.field_locations import FRAMED, INCOMPLETE, UNREADABLE
from streamwatch.edge.decoders.fields import canonical_text
from streamwatch.edge.decoders.places import Constant, Joined, Places, parse_places

BETWEEN: Final = "/"


def joined_text(contents: Sequence[Any], optional: Sequence[bool]) -> object:
    """Join the contents of places, each written as a single one would be.

    Parameters
    ----------
    contents
        What stands at each place; None where there is nothing.
    optional
        Of each place, whether there may be nothing. Empty text then is nothing, too, as records with a schema
        have it for a field that was not set.

    Returns
    -------
    The text. None where no place has a content. `INCOMPLETE` where one that must have one has none,
    `UNREADABLE` where one can never be part of a name, `FRAMED` where that is for its wire format.
    """
    texts: list[str] = []
    is_missing = False
    for content, may_miss in zip(contents, optional, strict=True):
        if content is None or (may_miss and content == ""):
            is_missing |= not may_miss
            texts.append("")
            continue
        if content is FRAMED:
            return FRAMED
        text = canonical_text(content)
        if text is None:
            return UNREADABLE
        texts.append(escaped(text))
    if not any(texts):
        return None
    return INCOMPLETE if is_missing else BETWEEN.join(texts).rstrip(BETWEEN)


def escaped(text: str) -> str:
    """Write a part so that the sign between parts does not occur in it."""
    return text.replace("%", "%25").replace(BETWEEN, "%2F")


def fixed_text(places: Places | None) -> str | None:
    """The text of places that is the same for every record, as of `[=fraud, =v3]`; None of any other."""
    if places is None:
        return None
    location = parse_places(places)
    if not isinstance(location, Joined):
        return location.text if isinstance(location, Constant) else None
    texts = [part.text for part in location.parts if isinstance(part, Constant)]
    return None if len(texts) < len(location.parts) else BETWEEN.join(map(escaped, texts))
