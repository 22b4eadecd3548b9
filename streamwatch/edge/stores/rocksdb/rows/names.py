"""Names of models and classes, which recur in every record, by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

MAX_NAMES: Final = 65_536


class Names:
    """Models and classes by number, in order of first use; never forgotten, and at most so many.

    A name that finds no place is written out wherever it is used.
    """

    __slots__ = ("_numbers", "fresh", "names")

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names) or [""]
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self.fresh: list[str] = [] if names else [""]
        """Added since the last commit."""

    def number(self, name: str | None) -> int | str | None:
        """Number of a name."""
        if name is None:
            return None
        number = self._numbers.get(name)
        if number is not None:
            return number
        if len(self.names) >= MAX_NAMES:
            return name
        number = self._numbers[name] = len(self.names)
        self.names.append(name)
        self.fresh.append(name)
        return number

    def name(self, number: int | str | None) -> Any:
        """Name of a number."""
        return self.names[number] if type(number) is int else number
