"""Models and classes repeat, so what was once found valid is remembered, in tables of bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamwatch.edge.decoders.field_locations import FRAMED, INCOMPLETE
from streamwatch.edge.decoders.fields import canonical_text, is_name

MAX_REMEMBERED = 4_096


def judged(raw: Any, missing: str, invalid: str) -> tuple[str, str]:
    """The canonical text and no reason, or no text and the reason."""
    if raw is None:
        return "", missing
    if raw is FRAMED:
        return "", "schema_registry_framing"
    if raw is INCOMPLETE:
        return "", f"{missing}_part"
    text = canonical_text(raw)
    return ("", invalid) if text is None else (text, "")


class Names:
    """The valid models, or classes, met so far.

    Parameters
    ----------
    aliases
        As written → the name meant.
    invalid
        The reason given for a name that is none.
    """

    def __init__(self, aliases: Mapping[str, str], invalid: str) -> None:
        self._aliases = dict(aliases)
        self._invalid = invalid
        self._texts: dict[Any, str] = {}
        # 1, 1.0 and True are equal as keys: each type has its own table.
        self._tables: dict[type, dict[Any, str]] = {str: self._texts, int: {}, float: {}, bool: {}}

    def cached(self, column: Sequence[Any]) -> Sequence[str] | None:
        """The names meant by contents all of one type; None if one of them was not met before."""
        try:
            return list(map(self._texts.__getitem__, column))
        except KeyError:
            kinds = set(map(type, column))
        table = self._tables.get(kinds.pop(), {}) if len(kinds) == 1 else {}
        try:
            return list(map(table.__getitem__, column))
        except KeyError:
            return None

    def judged(self, raw: Any, missing: str) -> tuple[str, str]:
        """The name meant and no reason, or no name and the reason."""
        table = self._tables.get(type(raw))
        if table is not None:
            cached = table.get(raw)
            if cached is not None:
                return cached, ""
        text, reason = judged(raw, missing, self._invalid)
        if not reason and not is_name(text):
            text, reason = "", self._invalid
        if reason or table is None:
            return text, reason
        if len(table) >= MAX_REMEMBERED:
            table.clear()
        name = table[raw] = self._aliases.get(text, text)
        return name, ""
