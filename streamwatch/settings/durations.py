"""Durations as people write them: `30s`, `14d`, `1h30m`; milliseconds inside."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

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
