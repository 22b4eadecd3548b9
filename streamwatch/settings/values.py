"""Types of settings with bounds: durations such as `1h30m`, and numbers."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[wdhms])")
PATTERN = r"^(\d+(\.\d+)?(ms|[wdhms]))+$"
_LONGEST_MS = 2**53
"""Longest duration, some 285,000 years: sums with times stay within 64 bits."""
_LARGEST = 2**53
"""Largest whole number, where its range has no end: sums and products with small numbers fit in 64 bits."""


def parse_duration(text: object) -> int:
    """Convert a duration such as `30s`, `14d` or `1h30m` (units ms, s, m, h, d, w) to milliseconds.

    Raises
    ------
    ValueError
        For anything else, including numbers without a unit other than 0, and beyond 2^53 ms.
    """
    if isinstance(text, str) and re.fullmatch(PATTERN, text):
        milliseconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        if milliseconds > _LONGEST_MS:
            raise ValueError("expected a duration of 285,000 years at most, got a longer one")
        return round(milliseconds)
    if isinstance(text, int | str) and str(text) == "0":
        return 0
    raise ValueError(f"expected a duration such as 30s, 14d or 1h30m, got {text!r}")


def format_duration(milliseconds: int) -> str:
    """Write milliseconds as the shortest duration: `14d`, `1h30m`, `250ms`."""
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


def counted(value: object) -> object:
    """Return a value unless it is a boolean, which pydantic would take for a number; raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")  # noqa: TRY004 - pydantic's way
    return value


class Bounded:
    """A number's noun and its range, for `Annotated[float, Bounded("fading factor", above=0, below=1)]`.

    Parameters
    ----------
    noun
        Name of the number in an error; empty if its key suffices.
    least, most
        Included ends of the range.
    above, below
        Excluded ends of the range.
    """

    def __init__(
        self,
        noun: str = "",
        *,
        least: float | None = None,
        most: float | None = None,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        self.noun = noun
        self.bounds: dict[str, float] = {
            key: bound
            for key, bound in (
                ("minimum", least),
                ("maximum", most),
                ("exclusiveMinimum", above),
                ("exclusiveMaximum", below),
            )
            if bound is not None
        }

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            counted, core_schema.no_info_after_validator_function(self._check, handler(source))
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.bounds}

    def _check(self, number: float) -> float:
        low = self.bounds.get("minimum", self.bounds.get("exclusiveMinimum"))
        high = self.bounds.get("maximum", self.bounds.get("exclusiveMaximum"))
        good = (low is None or number > low or ("minimum" in self.bounds and number == low)) and (
            high is None or number < high or ("maximum" in self.bounds and number == high)
        )
        if isinstance(number, int) and good and number > _LARGEST:
            raise ValueError(f"{self.noun} must be at most {_LARGEST:,}, got a larger number".lstrip())
        if not good:  # NaN compares false and ends here, too
            raise ValueError(f"{self.noun} must be {self._range(low, high)}, got {number!r}".lstrip())
        return number

    def _range(self, low: float | None, high: float | None) -> str:
        if low is not None and high is not None:
            opening = "[" if "minimum" in self.bounds else "("
            closing = "]" if "maximum" in self.bounds else ")"
            return f"in {opening}{low}, {high}{closing}"
        if low is not None:
            return f"at least {low}" if "minimum" in self.bounds else f"greater than {low}"
        return f"at most {high}" if "maximum" in self.bounds else f"less than {high}"


def one_of(*choices: str) -> BeforeValidator:
    """Build a validator that accepts these values; its error lists them."""

    def check(value: object) -> object:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, got {value!r}")
        return value

    return BeforeValidator(check, json_schema_input_type=str)


def link(example: str) -> AfterValidator:
    """Build a validator of URLs that people follow; its error does not show one with a user or password."""

    def check(url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^/\s]+\S*", url):
            got = "a text (not shown)" if "@" in url else repr(url)
            raise ValueError(f"expected a URL such as {example}, got {got}")
        return url

    return AfterValidator(check)
