"""Numbers with bounds, worded once for both the error message and the JSON Schema."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


def counted(value: object) -> object:
    """Refuse `true` and `yes`, which would pass for 1."""
    if isinstance(value, bool):
        raise ValueError(f"expected a number, got {str(value).lower()}")  # noqa: TRY004 - pydantic's way
    return value


class Bounded:
    """A number's noun and its range, for `Annotated[float, Bounded("fading factor", above=0, below=1)]`.

    Parameters
    ----------
    noun
        What the number is called in an error; empty where its key says it.
    least, most
        Closed ends.
    above, below
        Open ends.
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
