"""Durations as people write them: `30s`, `14d`, `1h30m`; milliseconds inside."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler, PlainSerializer, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[wdhms])")
PATTERN = r"^(\d+(\.\d+)?(ms|[wdhms]))+$"


def parse_duration(text: object) -> int:
    """Milliseconds of a duration such as `30s`, `14d` or `1h30m` (units ms, s, m, h, d, w).

    Raises
    ------
    ValueError
        Anything else, a bare number included: nobody can tell which unit it is in.
    """
    if isinstance(text, str) and re.fullmatch(PATTERN, text):
        return round(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    if isinstance(text, int | str) and str(text) == "0":
        return 0
    raise ValueError(f"expected a duration such as 30s, 14d or 1h30m, got {text!r}")


def format_duration(milliseconds: int) -> str:
    """The shortest way to write it: `14d`, `1h30m`, `250ms`."""
    if milliseconds % _UNITS["w"] == 0 and milliseconds >= 10 * _UNITS["w"]:
        return f"{milliseconds // _UNITS['w']}w"
    parts: list[str] = []
    rest = milliseconds
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


Duration = Annotated[
    int,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration),
    WithJsonSchema({"type": "string", "pattern": PATTERN, "examples": ["30s", "14d", "1h30m"]}),
]


class Lasting:
    """The range of a duration, both ends included, for `Annotated[Duration, Lasting("1ms", "520w")]`."""

    def __init__(self, least: str, most: str) -> None:
        self._least, self._most = parse_duration(least), parse_duration(most)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, milliseconds: int) -> int:
        if not self._least <= milliseconds <= self._most:
            least, most = format_duration(self._least), format_duration(self._most)
            raise ValueError(f"must be {least} to {most}, got {format_duration(milliseconds)}")
        return milliseconds
